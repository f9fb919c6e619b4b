// Laplacian eigenmap by Chebyshev-filtered subspace iteration, with a budget of matrix products.
//
// The leading eigenvectors of M = D^{-1/2} W D^{-1/2} are those of the normalized Laplacian I - M with the smallest
// eigenvalues. A block of vectors is multiplied by a Chebyshev polynomial of M that is small on [-1, cut] and grows
// fast beyond; `cut` follows the smallest Ritz value of the block (Zhou, Saad, Tiago, Chelikowsky 2006). The iteration
// starts from the vectors of a coarser graph. If it uses up its budget the vectors are still smooth, which is all that
// an initial layout needs.
//
// Vectors are float32; sums over rows are in double precision and in chunks of fixed size, so that the result has the
// same bits for any number of threads.
#pragma once

#include "base/parallel.hpp"

#include <memory>

namespace vicinal {

// Uninitialized floats. Their first writers are the threads that use them, which spreads the page faults.
using Floats = std::unique_ptr<float[]>;
inline Floats make_floats(Size n) { return std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(n)); }

// The Chebyshev polynomial T_degree of a symmetric sparse matrix M, applied to a block of vectors: it damps all
// eigenvalues up to `cut`.
//
//   x_0 = x,  x_1 = (M x - c x) / h,  x_{t+1} = 2 (M x_t - c x_t) / h - x_{t-1},
//   c = (cut - 1) / 2, h = (cut + 1) / 2: the map from [-1, cut] to [-1, 1].
//
// Each row of a block has one writer, so the result does not depend on the number of threads; products of NumPy or
// SciPy depend on the number of threads of their linear algebra library.
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

// Writes the `wanted` smoothest nontrivial eigenvectors of a connected, symmetric graph to out[rows][wanted]. Vectors
// beyond rows - 1 are zero.
void eigenmap(const Csr& graph, Size wanted, std::uint64_t seed, float* out, ThreadTeam& team);

}  // namespace vicinal
