// Neighbor searches of the interface.
#include "neighbors/neighbor_index.hpp"

#include "neighbors/row_content.hpp"
#include "wasm/calls.hpp"

using namespace vicinal;
using wasm::call;

NeighborIndex* vicinal_index(const float* rows, int n, int d, const char* metric, double seed) {
    return call([&](ThreadTeam& team) {
        const RowMatrix from{rows, n, d, Element::float32};
        return new NeighborIndex(from, find_metric(metric), static_cast<std::uint64_t>(seed), nullptr, team);
    });
}

void vicinal_index_free(NeighborIndex* index) { delete index; }

bool vicinal_index_exact(NeighborIndex* index, int k, std::int32_t* neighbors, float* distance) {
    return call([&](ThreadTeam& team) {
        index->search_exact(k, neighbors, distance, team);
        return true;
    });
}

bool vicinal_index_approximate(NeighborIndex* index, int k, const double* options, std::int32_t* neighbors,
                               float* distance, double* found) {
    return call([&](ThreadTeam& team) {
        const auto whole = [&](int at) { return static_cast<Size>(options[at]); };
        const SearchOptions effort{whole(0),   whole(1),   whole(2),   whole(3),   whole(4), whole(5),
                                   options[6], options[7], options[8], options[9], whole(10)};
        const SearchResult result = index->search_approximate(k, effort, neighbors, distance, team);
        found[0] = result.share;
        found[1] = result.structured ? 1.0 : 0.0;
        return true;
    });
}

bool vicinal_index_grow(NeighborIndex* index, int trees, int leaf_rows) {
    return call([&](ThreadTeam& team) {
        index->grow_forest(trees, leaf_rows, team);
        return true;
    });
}

bool vicinal_index_query(const NeighborIndex* index, const float* queries, int m, const EdgeList* graph,
                         const double* how, std::int32_t* neighbors, float* distance) {
    return call([&](ThreadTeam& team) {
        const std::vector<Size> none(static_cast<std::size_t>(index->rows().rows) + 1, 0);
        const GraphView edges{graph ? graph->csr.indptr.data() : none.data(),
                              graph ? graph->csr.indices.data() : nullptr};
        const QueryOptions options{static_cast<Size>(how[0]), static_cast<Size>(how[1]), static_cast<Size>(how[2]),
                                   static_cast<float>(how[3])};
        const RowMatrix heads{queries, m, index->rows().cols, Element::float32};
        index->query(heads, nullptr, edges, options, neighbors, distance, team);
        return true;
    });
}

bool vicinal_hash_rows(const float* rows, int n, int d, std::uint64_t* out) {
    return call([&](ThreadTeam& team) {
        hash_rows(RowMatrix{rows, n, d, Element::float32}, out, team);
        return true;
    });
}
