// A Laplacian eigenmap of each component of a graph.
#pragma once

#include "initialize/components.hpp"

namespace vicinal {

// Writes the `wanted` smoothest nontrivial eigenvectors of every component (eigenmap.hpp) to out[rows][wanted], in the
// order of the graph's rows. Large components are computed one after the other by all threads, and then the others
// each by one thread.
void component_eigenmaps(const Csr& graph, const Components& components, Size wanted, std::uint64_t seed, float* out,
                         ThreadTeam& team);

}  // namespace vicinal
