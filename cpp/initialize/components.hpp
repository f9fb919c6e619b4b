// The connected components of a graph, and its rows sorted by component.
//
// Threads unite rows in a forest without locks: a root is only ever linked to a lower one, so in the end the root of a
// component is its lowest row, whatever the order of the links. Components are numbered by their lowest rows.
#pragma once

#include "base/parallel.hpp"

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

}  // namespace vicinal
