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

namespace vicinal {

// Writes the `wanted` smoothest nontrivial eigenvectors of a connected, symmetric graph to out[rows][wanted]. Vectors
// beyond rows - 1 are zero.
void eigenmap(const Csr& graph, Size wanted, std::uint64_t seed, float* out, ThreadTeam& team);

}  // namespace vicinal
