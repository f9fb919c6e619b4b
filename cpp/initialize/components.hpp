// The connected components of a graph, a Laplacian eigenmap of each, and the means of their rows.
//
// Threads unite rows in a forest without locks: a root is only ever linked to a lower one. So in the end the root of a
// component is its lowest row, for any order of the links. Components are numbered by their lowest rows.
#pragma once

#include "base/parallel.hpp"
#include "base/row_matrix.hpp"

#include <vector>

namespace vicinal {

struct Components {
    std::vector<Index> of_row;  // the component of every row
    std::vector<Index> order;   // rows by (component, row)
    std::vector<Size> bounds;   // component c has the positions [bounds[c], bounds[c + 1]) of `order`

    Size count() const { return static_cast<Size>(bounds.size()) - 1; }
};

// The direction of an edge does not matter.
Components connected_components(const Csr& graph, ThreadTeam& team);

// Writes the `wanted` smoothest nontrivial eigenvectors of every component (eigenmap.hpp) to out[rows][wanted], in the
// order of the graph's rows. Large components are computed one after the other by all threads, and then the others
// each by one thread.
void component_eigenmaps(const Csr& graph, const Components& components, Size wanted, std::uint64_t seed, float* out,
                         ThreadTeam& team);

// Sets of positions in `order`, which holds row numbers: set s has the positions [begin[s], end[s]), at least one.
struct RowSets {
    const Index* order;
    const Size *begin, *end;
    Size count;
};

// Estimates the mean of each set. Writes the means [sets][columns] of at most `most_rows` rows of each set, evenly
// spread over its positions, added in their order in double precision.
void segment_means(const RowMatrix& rows, const RowSets& sets, Size most_rows, double* means, ThreadTeam& team);

}  // namespace vicinal
