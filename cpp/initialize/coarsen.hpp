// Coarsens a graph: nearby rows are merged into groups.
//
// Every row names the row of most edges among itself and its neighbors (of equal ones, that of the highest hash). A
// named row starts a group, and a row that no row named joins the group of its heaviest named neighbor. The weight
// between two groups (or within one) is the sum of the weights between their rows. So the degree of a group is the sum
// of the degrees of its rows, and the coarse graph of a connected graph is connected. Its smooth vectors, copied to the
// rows, approximate those of the graph.
#pragma once

#include "base/parallel.hpp"
#include "graph/symmetrize.hpp"

#include <vector>

namespace vicinal {

struct Coarse {
    std::vector<Index> group;  // group of every row, numbered in the order of the rows that start them
    OwnedCsr graph;            // graph of the groups
};

// The graph must be symmetric.
Coarse coarsen(const Csr& graph, ThreadTeam& team);

}  // namespace vicinal
