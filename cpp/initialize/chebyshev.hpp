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

#include <memory>

namespace vicinal {

struct ChebyshevStep {
    float scale, center, keep;  // next = scale * (M x - center * x) - keep * previous
};

// Vectors of a block that are processed together.
constexpr Size block_columns = 8;
// Rows of a step that a thread takes at a time.
constexpr Size step_rows = 256;

// Uninitialized floats. Their first writers are the threads that use them, which spreads the page faults.
using Floats = std::unique_ptr<float[]>;
inline Floats make_floats(Size n) { return std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(n)); }

class ChebyshevFilter {
  public:
    // The arrays of the matrix must live as long as the filter. width is a multiple of block_columns.
    ChebyshevFilter(const Csr& matrix, Size width);

    // Replaces the block [rows][width] by T_degree times the block; degree >= 1.
    void apply(Floats& block, double cut, int degree, ThreadTeam& team);

    // Writes M times the block.
    void multiply(const Floats& block, Floats& image, ThreadTeam& team) const;

  private:
    Csr matrix_;
    Size width_;
    Floats current_, next_;
};

}  // namespace vicinal
