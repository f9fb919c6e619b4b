// The Chebyshev polynomial T_degree of a symmetric sparse matrix M, applied to a block of vectors: it damps all
// eigenvalues up to `cut` (used by the spectral initialization).
//
//   x_0 = x,  x_1 = (M x - c x) / h,  x_{t+1} = 2 (M x_t - c x_t) / h - x_{t-1},
//   c = (cut - 1) / 2, h = (cut + 1) / 2: the map from [-1, cut] to [-1, 1].
//
// Each row of a block has one writer, so the result does not depend on the number of threads; products of NumPy or
// SciPy depend on the number of threads of their linear algebra library.
#pragma once

#include "base/parallel.hpp"

namespace vicinal {

struct ChebyshevStep {
    float scale, center, keep;  // next = scale * (M x - center * x) - keep * previous
};

// Vectors of a block that are processed together.
constexpr Size block_columns = 8;

// Replaces the block [rows][width] by the result. width is a multiple of block_columns; degree >= 1.
void chebyshev_filter(const Csr& m, float* block, Size width, double cut, int degree, ThreadTeam& team);

}  // namespace vicinal
