// T_degree of a symmetric sparse matrix M, applied to a block of vectors (vicinal.spectral): all eigenvalues but
// those above `cut` are damped.
//   x_0 = x,  x_1 = (M x - c x) / h,  x_{t+1} = 2 (M x_t - c x_t) / h - x_{t-1},
//   c = (cut - 1) / 2, h = (cut + 1) / 2: the map that sends [-1, cut] to [-1, 1].
//
// Each row of a block has one writer, so the result does not depend on the number of threads; a product by
// NumPy or SciPy would depend on the number of threads of their linear-algebra library.
#pragma once

#include "base/parallel.hpp"

namespace vicinal {

struct ChebyshevStep {
    float scale, centre, keep;  // next = scale * (M x - centre * x) - keep * previous
};

// Vectors of a block that are carried through the edges of a row together.
constexpr Size block_columns = 8;

// The block [rows][width], width a multiple of block_columns, is replaced by the result; degree >= 1.
void chebyshev_filter(const Csr& m, float* block, Size width, double cut, int degree, ThreadTeam& team);

}  // namespace vicinal
