// A graph made coarser: rows near each other become one.
//
// A row none of whose neighbours is taken makes a group with all of them; a row left over joins the group of its
// heaviest neighbour that has one. The weight between two groups (or of one with itself) is the sum of the weights
// between their rows, so the degree of a group is the sum of its rows' degrees, and the coarse graph of a connected
// graph is connected. Its smooth vectors, taken to the rows, are nearly those of the graph (vicinal.spectral).
#pragma once

#include "base/parallel.hpp"
#include "graph/symmetrize.hpp"

#include <vector>

namespace vicinal {

struct Coarse {
    std::vector<Index> group;  // of every row
    OwnedCsr graph;            // of the groups
};

// The graph is symmetric.
Coarse coarsen(const Csr& graph, ThreadTeam& team);

}  // namespace vicinal
