// Eigenvalues and eigenvectors of a small symmetric matrix in double precision: reflections to tridiagonal form, then
// implicit QL rotations (Golub, Van Loan, Matrix Computations, sections 8.3.1 and 8.3.3). A LAPACK library may sum in
// another order on another processor; this does not.
#pragma once

#include "base/types.hpp"

#include <vector>

namespace vicinal {

struct SymmetricEigen {
    std::vector<double> values;   // descending
    std::vector<double> vectors;  // [n][n]: row k is the unit eigenvector of values[k]
};

// `matrix` is [n][n]; its lower triangle is read.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, Size n);

}  // namespace vicinal
