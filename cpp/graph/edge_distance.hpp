// The input distance of every edge (i, j) of a graph that was made from a neighbor table: the distance of entry j of
// row i or of entry i of row j. It is -1 if neither exists, which happens if other graphs were merged in.
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
                // An approximate table may contain a pair in one direction only.
                out[e] = std::max(table_distance(table, i, graph.indices[e]),
                                  table_distance(table, graph.indices[e], static_cast<Index>(i)));
    });
}

}  // namespace vicinal
