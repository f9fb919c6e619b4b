// Neighbors of unseen rows. With a forest, a search starts from the leaves that contain the query and follows the
// neighbor graph (pool_search.hpp). Without a forest (small data), or without trees to start from, it compares every
// row. Results of queries are independent of each other.
//
// If rows are longer than their sketches, queries in the same leaf of the first tree share the first part of the
// search: their sketches are compared with those of all rows of the leaf and of all neighbors of these rows, a tile at
// a time.
#pragma once

#include "neighbors/pool_search.hpp"
#include "neighbors/rp_forest.hpp"
#include "neighbors/sketch.hpp"

#include <algorithm>

namespace vicinal::VICINAL_LEVEL {

// A graph that does not change.
struct FixedGraph {
    const GraphView& graph;

    template <class F>
    VICINAL_INLINE void expand(Size row, const F& f) const {
        f(graph.indices + graph.indptr[row], graph.indptr[row + 1] - graph.indptr[row]);
    }
    VICINAL_INLINE void prefetch(Size row) const {
        const Size begin = graph.indptr[row];
        VICINAL_LEVEL::prefetch(graph.indices + begin, (graph.indptr[row + 1] - begin) * Size{sizeof(Index)});
    }
    VICINAL_INLINE float wanted(Index) const { return -1.0f; }
    VICINAL_INLINE void evaluated(Index, float) const {}
};

// A query and the leaf that contains it.
struct QueryLeaf {
    Size leaf, query;
};

// The rows of a leaf, followed by their neighbors.
class LeafSurroundings {
  public:
    static constexpr Size most_rows = 3 * most_tails;

    void collect(const Index* leaf, Size n, const GraphView& graph) {
        set_.clear();
        leaf_.clear();
        n_ = 0;
        for (Size i = 0; i < n; ++i) {
            leaf_.insert(leaf[i]);
            add(leaf[i]);
        }
        for (Size i = 0; i < n; ++i)
            for (Size e = graph.indptr[leaf[i]]; e < graph.indptr[leaf[i] + 1]; ++e) add(graph.indices[e]);
    }

    Size n() const { return n_; }
    const Index* rows() const { return rows_; }
    const VisitedSet& set() const { return set_; }
    // Whether the row is one of the leaf, and all its neighbors are among the rows.
    bool encloses(Index row) const { return n_ < most_rows && leaf_.contains(row); }

  private:
    void add(Index row) {
        if (n_ < most_rows && set_.insert(row)) rows_[n_++] = row;
    }

    VisitedSet set_, leaf_;
    Index rows_[most_rows];
    Size n_ = 0;
};

template <class Rank, Source source>
class Searcher {
  public:
    Searcher(const SearchSpace& space, const ForestView& forest, const QueryTask& task)
        : space_(space), forest_(forest), task_(task), graph_{task.graph},
          search_(space, task.queries, task.pool, task.share, graph_), ranks_(task.pool + heap_pad),
          tags_(task.pool + heap_pad), pool_{ranks_.data(), tags_.data()}, normal_(split_width(space)) {
        if (!shares_leaves()) return;
        tile_memory_.resize(SketchTile<Rank>::scratch_floats(space.sketch_dim));
        estimates_.resize(most_together * LeafSurroundings::most_rows);
    }

    // Searches the queries, which are sorted by leaf.
    void run(const QueryLeaf* queries, Size n) {
        if (!shares_leaves()) {
            for (Size i = 0; i < n; ++i) search_one(queries[i].query);
            return;
        }
        for (Size begin = 0, end = 0; begin < n; begin = end) {
            while (end < n && end < begin + most_together && queries[end].leaf == queries[begin].leaf) ++end;
            search_leaf(queries + begin, end - begin);
        }
    }

  private:
    static constexpr Size most_together = 16;

    bool shares_leaves() const {
        return source != Source::pairs && !space_.sketch_exact && task_.trees > 0 && forest_.trees > 0;
    }

    void search_one(Size query) {
        pool_.clear(task_.pool + heap_pad);
        search_.start(query, pool_);
        // The rows of the first leaf come first even if every row is considered: their ranks reject most of the others.
        const bool every_row = task_.trees == 0 || forest_.trees == 0;
        consider_leaves(query, 0, std::max(task_.trees, Size{1}));
        if (every_row)
            search_.consider_every_row(space_.rows.rows);
        else
            search_.expand_all();
        write(query);
    }

    void search_leaf(const QueryLeaf* queries, Size n) {
        const Size begin = forest_.begin_of(forest_.depth, queries[0].leaf);
        near_.collect(forest_.order + begin, forest_.begin_of(forest_.depth, queries[0].leaf + 1) - begin, task_.graph);
        estimate(queries, n);
        for (Size i = 0; i < n; ++i) {
            pool_.clear(task_.pool + heap_pad);
            search_.start(queries[i].query, pool_, &near_.set());
            search_.consider_estimated(near_.rows(), estimates_.data() + i * LeafSurroundings::most_rows, near_.n());
            consider_leaves(queries[i].query, 1, task_.trees);
            search_.skip_expansion([&](Index row) { return near_.encloses(row); });
            search_.expand_all();
            write(queries[i].query);
        }
    }

    // Ranks the sketches of the queries against those of the rows near their leaf.
    void estimate(const QueryLeaf* queries, Size n) {
        SketchTile<Rank> tile(space_, tile_memory_.data());
        Index heads[most_together];
        for (Size i = 0; i < n; ++i) heads[i] = static_cast<Index>(queries[i].query);
        for (Size from = 0; from < near_.n(); from += most_tails) {
            const Size tails = std::min(most_tails, near_.n() - from);
            for (Size j = 0; j < tails; ++j)
                prefetch(space_.sketch_row(near_.rows()[from + j]), space_.sketch_stride * float_bytes);
            tile.pack(near_.rows() + from, tails);
            for (Size h = 0; h < n; h += SketchTile<Rank>::most_heads) {
                const Size count = std::min(SketchTile<Rank>::most_heads, n - h);
                tile.rank(task_.queries, heads + h, count, 0);
                for (Size r = 0; r < count; ++r)
                    std::copy_n(tile.ranks(r), tails, estimates_.data() + (h + r) * LeafSurroundings::most_rows + from);
            }
        }
    }

    // Considers the rows of the leaves of trees [first, last) that contain the query.
    void consider_leaves(Size query, Size first, Size last) {
        for (Size tree = first; tree < std::min(last, forest_.trees); ++tree) {
            const Size leaf = find_leaf(space_, forest_, tree, task_.queries.sketch_row(query), normal_.data());
            const Size begin = forest_.begin_of(forest_.depth, leaf), end = forest_.begin_of(forest_.depth, leaf + 1);
            search_.consider_all(forest_.order + tree * forest_.rows + begin, end - begin);
        }
    }

    void write(Size query) {
        for (Size e = 0; e < task_.k; ++e) {
            task_.index[query * task_.k + e] = pool_.rank[e] < no_rank ? pool_.index(e) : -1;
            task_.rank[query * task_.k + e] = pool_.rank[e];
        }
    }

    const SearchSpace& space_;
    const ForestView& forest_;
    const QueryTask& task_;
    FixedGraph graph_;
    PoolSearch<Rank, source, FixedGraph> search_;
    Scratch<float> ranks_;
    Scratch<std::uint32_t> tags_;
    HeapRow pool_;
    Scratch<float> normal_;
    LeafSurroundings near_;
    Scratch<float> tile_memory_, estimates_;
};

}  // namespace vicinal::VICINAL_LEVEL
