// Coarsens a graph: nearby rows are merged into groups.
//
// For eigenvectors: every row names the row of most edges among itself and its neighbors (of equal ones, that of the
// highest hash). A named row starts a group, and a row that no row named joins the group of its heaviest named
// neighbor. The weight between two groups (or within one) is the sum of the weights between their rows. So the degree
// of a group is the sum of the degrees of its rows, and the coarse graph of a connected graph is connected. Its smooth
// vectors, copied to the rows, approximate those of the graph.
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

// Groups of up to about ten rows, for a layout of the groups in place of the rows.
struct Aggregates {
    std::vector<Index> group;  // aggregate of every row
    std::vector<float> mass;   // rows of every aggregate
    OwnedCsr graph;  // of the aggregates, sorted by tail; the edges within an aggregate are its edge to itself
};

// Merges rows in `rounds` rounds. In a round each aggregate is joined with another one if each is the other's best
// partner among those that are left, by the likeness w / sqrt(m m) of their weight and masses; what is left over in the
// end joins its best neighbor. So aggregates have similar masses, which those of `coarsen` do not.
Aggregates aggregate(const Csr& graph, int rounds, ThreadTeam& team);

// Writes to out [rows][cols] the mean of the places of each row's neighbors, weighted by its edges. A row without edges
// keeps its place. The tails of the graph are rows of `places`.
void neighbor_means(const Csr& graph, const Matrix& places, float* out, ThreadTeam& team);

}  // namespace vicinal
