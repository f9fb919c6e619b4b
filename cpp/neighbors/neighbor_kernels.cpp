// Compiled once per level with VICINAL_LEVEL set. Each kernel is compiled for every ranking (with_ranking), or for
// every kind of sums over the columns (with_terms).
#include "neighbors/neighbor_kernels.hpp"

#include "neighbors/graph_search.hpp"
#include "neighbors/join.hpp"
#include "neighbors/nn_descent.hpp"
#include "neighbors/online_search.hpp"
#include "neighbors/pair_terms.hpp"
#include "neighbors/rp_forest.hpp"
#include "neighbors/sketch.hpp"
#include "neighbors/sparse_search.hpp"

#include <cmath>
#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

namespace {

void prepare_rows(const RowMatrix& rows, Preparation preparation, RowScale* out, ThreadTeam& team) {
    team.parallel_for(rows.rows, 256, [&](Size begin, Size end, int) {
        Scratch<float> widened(rows.is_float() ? 0 : rows.cols);
        for (Size i = begin; i < end; ++i)
            out[i] = row_scale(rows.row(i, widened.data()), rows.cols, preparation == Preparation::centered_unit);
    });
}

void compare_all_any(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team) {
    with_ranking(space, [&]<class Rank, Source source>() {
        if constexpr (source == Source::pairs)
            compare_all<Rank, source>(space, heap, NoLimit{}, team);
        else if (space.sketch_exact)
            compare_all<Rank, source>(space, heap, SketchLimit{heap}, team);
        else
            compare_all<Rank, source>(space, heap, LowerBoundLimit{space, heap}, team);
    });
}

void descend_sketches_any(const SearchSpace& space, const NeighborHeap& heap, const CandidateTables& tables,
                          const ForestView& forest, Size level, const RowNumbers& numbers,
                          const DescentOptions& options, ThreadTeam& team) {
    with_ranking(space, [&]<class Rank, Source source>() {
        descend_sketches<Rank>(space, heap, tables, forest, level, numbers, options, team);
    });
}

// Calls f for squared distances of rows that are longer than their sketches; only they have rests.
template <class F>
void with_rests(const SearchSpace& space, const F& f) {
    if (space.rest == nullptr) return;
    with_ranking(space, [&]<class Rank, Source source>() {
        if constexpr (std::is_same_v<Rank, Squared> && source != Source::pairs) f.template operator()<Rank, source>();
    });
}

NodeSample sample_nodes_any(const SearchSpace& space, const ForestView& forest, Size level, ThreadTeam& team) {
    NodeSample sample;
    with_rests(space,
               [&]<class Rank, Source source>() { sample = sample_nodes<Rank, source>(space, forest, level, team); });
    return sample;
}

float compare_central_any(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team) {
    float share = 1.0f;
    with_rests(space, [&]<class Rank, Source source>() { share = compare_central<Rank, source>(space, heap, team); });
    return share;
}

float descend_rows_any(const SearchSpace& space, const NeighborHeap& found, const NeighborHeap& heap,
                       const CandidateTables& tables, const Index* order, const DescentOptions& options,
                       ThreadTeam& team) {
    float share = 1.0f;
    with_ranking(space, [&]<class Rank, Source source>() {
        share = descend_rows<Rank, source>(space, found, heap, tables, order, options, team);
    });
    return share;
}

// Queries of the same leaf read almost the same rows, so processing them one after the other uses the cache. 10,000
// images among 60,000: 0.45 s instead of 0.60 s.
void order_queries(const SearchSpace& space, const ForestView& forest, const QueryTask& task, QueryLeaf* order,
                   ThreadTeam& team) {
    const Size n = task.queries.rows.rows;
    team.parallel_for(n, 256, [&](Size begin, Size end, int) {
        Scratch<float> normal(split_width(space));
        for (Size i = begin; i < end; ++i) {
            const float* sketch = task.queries.sketch_row(i);
            order[i] = {forest.trees > 0 ? find_leaf(space, forest, 0, sketch, normal.data()) : 0, i};
        }
    });
    std::sort(order, order + n, [](const QueryLeaf& x, const QueryLeaf& y) {
        return x.leaf != y.leaf ? x.leaf < y.leaf : x.query < y.query;
    });
}

void query_any(const SearchSpace& space, const ForestView& forest, const QueryTask& task, ThreadTeam& team) {
    Scratch<QueryLeaf> order(task.queries.rows.rows);
    order_queries(space, forest, task, order.data(), team);
    with_ranking(space, [&]<class Rank, Source source>() {
        // Few queries are shared among all threads too, for example those that check a search.
        const Size n = task.queries.rows.rows, grain = std::clamp<Size>(n / (4 * team.size()), 1, 64);
        team.parallel_for(n, grain, [&](Size begin, Size end, int) {
            Searcher<Rank, source> searcher(space, forest, task);
            searcher.run(order.data() + begin, end - begin);
        });
    });
}

void explore_any(const OnlineView& view, const Exploration& task, ThreadTeam& team) {
    with_ranking(view.space, [&]<class Rank, Source source>() {
        team.parallel_for(task.n, 1, [&](Size begin, Size end, int) {
            Explorer<Rank, source> explorer(view, task);
            for (Size at = begin; at < end; ++at) explorer.run(at);
        });
    });
}

void compare_chunk_any(const OnlineView& view, Size listed, const Index* rows, Size n) {
    with_ranking(view.space, [&]<class Rank, Source source>() { compare_chunk<Rank, source>(view, listed, rows, n); });
}

void accept(const OnlineView& view, Size listed, const Offer* offers, Size n, Outcome* out) {
    for (Size e = 0; e < n; ++e) {
        const Offer& offer = offers[e];
        if (e + 4 < n) prefetch(view.heap.row(offers[e + 4].row).rank, view.heap.k * static_cast<Size>(sizeof(float)));
        const HeapRow row = view.heap.row(offer.row);
        const Size at = find_place(row, view.heap.k, offer.rank, offer.candidate);
        const bool taken = insert_sorted(row, view.heap.k, offer.rank, offer.candidate);
        out[e] = !taken ? Outcome::refused : at < listed ? Outcome::listed : Outcome::spare;
        view.heap.worst[offer.row] = row.rank[listed - 1];
    }
}

// All trees get all rows: an interrupt waits.
void insert_rows(const SearchSpace& space, OnlineForest& forest, Size begin, Size end, const Index* above,
                 ThreadTeam& team) {
    team.parallel_for_whole(forest.trees, 1, [&](Size first, Size last, int) {
        ForestBuilder builder(space, forest);
        for (Size tree = first; tree < last; ++tree)
            for (Size row = begin; row < end; ++row) {
                const Index* nodes = above == nullptr ? nullptr : above + (row - begin) * forest.trees;
                builder.insert(static_cast<Index>(row), nodes == nullptr ? tree : nodes[tree]);
            }
    });
}

float sketch_share_any(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team) {
    float share = 1.0f;
    with_ranking(space, [&]<class Rank, Source source>() {
        if (source != Source::pairs && !space.sketch_exact) share = sketch_share<Rank>(space, heap, team);
    });
    return share;
}

float rank_dense_any(const float* x, const float* y, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() { return static_cast<float>(rank_dense<T>(x, y, rule)); });
}

// Rows of packed bits have the sums of TruthTerms, except that those of the single rows are one.
float rank_bits(const std::uint8_t* x, const std::uint8_t* y, const PairRule& rule) {
    const BitCounts counts = count_bits(x, y, rule.cols / 8);
    const double sums[] = {static_cast<double>(counts.different), 0.0, static_cast<double>(counts.both)};
    return static_cast<float>(TruthTerms::rank(sums, rule));
}

float rank_sparse_any(const SparseView& heads, Size head, const SparseView& tails, Size tail, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() {
        const double apart = heads.is_flat(head) != tails.is_flat(tail) ? 1.0 : 0.0;
        const double rank = rank_sparse<T>(sparse_row(heads, head), sparse_row(tails, tail), rule) + apart;
        return static_cast<float>(rank > 0.0 ? rank : 0.0);
    });
}

}  // namespace

const NeighborKernels neighbor_kernels{
    .prepare_rows = prepare_rows,
    .write_bytes = write_bytes,
    .write_coarse = write_coarse,
    .fit_sketch = fit_sketch,
    .project = project,
    .grow_forest = grow_forest,
    .compare_all = compare_all_any,
    .sample_nodes = sample_nodes_any,
    .compare_central = compare_central_any,
    .descend_sketches = descend_sketches_any,
    .descend_rows = descend_rows_any,
    .query = query_any,
    .explore = VICINAL_UNLESS_SMALL(explore_any),
    .compare_chunk = VICINAL_UNLESS_SMALL(compare_chunk_any),
    .accept = VICINAL_UNLESS_SMALL(accept),
    .insert_rows = VICINAL_UNLESS_SMALL(insert_rows),
    .sketch_share = sketch_share_any,
    .rank_dense = VICINAL_UNLESS_SMALL(rank_dense_any),
    .rank_bits = VICINAL_UNLESS_SMALL(rank_bits),
    .rank_sparse = VICINAL_UNLESS_SMALL(rank_sparse_any),
    .sparse_nearest = VICINAL_UNLESS_SMALL(sparse_nearest),
    .sum_alone = VICINAL_UNLESS_SMALL(sum_alone),
};

}  // namespace vicinal::VICINAL_LEVEL
