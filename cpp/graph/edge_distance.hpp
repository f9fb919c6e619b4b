// The input distance of every edge of a graph that came from a neighbour table: j stands in the table's row i, or i in
// row j, or (after other graphs were merged in) in neither, which gives -1.
#pragma once

#include "base/parallel.hpp"

#include <algorithm>

namespace vicinal {

inline float table_distance(const NeighborTable& table, Size row, Index wanted) {
    const Index* begin = table.index + row * table.k;
    const Index* found = std::find(begin, begin + table.k, wanted);
    return found == begin + table.k ? -1.0f : table.distance[row * table.k + (found - begin)];
}

inline void edge_distances(const Csr& graph, const NeighborTable& table, float* out, ThreadTeam& team) {
    team.parallel_for(graph.rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
                // An approximate table may know a pair from one side only.
                out[e] = std::max(table_distance(table, i, graph.indices[e]),
                                  table_distance(table, graph.indices[e], static_cast<Index>(i)));
    });
}

}  // namespace vicinal
