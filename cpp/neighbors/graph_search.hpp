// Neighbors of unseen rows. With a forest, a search starts from the leaves that contain the query and follows the
// neighbor graph (pool_search.hpp). Without a forest (small data), or without trees to start from, it compares every
// row. Queries are independent of each other.
#pragma once

#include "neighbors/pool_search.hpp"
#include "neighbors/rp_forest.hpp"

#include <algorithm>

namespace vicinal::VICINAL_LEVEL {

// A graph that does not change.
struct FixedGraph {
    const GraphView& graph;

    template <class F>
    VICINAL_INLINE void expand(Size row, const F& f) const {
        f(graph.indices + graph.indptr[row], graph.indptr[row + 1] - graph.indptr[row]);
    }
    VICINAL_INLINE float wanted(Index) const { return -1.0f; }
    VICINAL_INLINE void evaluated(Index, float) const {}
};

template <class Rank, Source source>
class Searcher {
  public:
    Searcher(const SearchSpace& space, const ForestView& forest, const QueryTask& task)
        : space_(space), forest_(forest), task_(task), graph_{task.graph},
          search_(space, task.queries, task.pool, task.share, graph_), ranks_(task.pool + heap_pad),
          tags_(task.pool + heap_pad), pool_{ranks_.data(), tags_.data()}, normal_(split_width(space)) {}

    void run(Size query) {
        for (Size e = 0; e < task_.pool + heap_pad; ++e) {
            pool_.rank[e] = no_rank;
            pool_.tag[e] = no_tag;
        }
        search_.start(query, pool_);
        // The rows of the first leaf come first even if every row is considered: their ranks reject most of the others.
        const bool every_row = task_.trees == 0 || forest_.trees == 0;
        const Size trees = std::min(std::max(task_.trees, Size{1}), forest_.trees);
        for (Size tree = 0; tree < trees; ++tree) {
            const Size leaf = find_leaf(space_, forest_, tree, task_.queries.sketch_row(query), normal_.data());
            const Size begin = forest_.begin_of(forest_.depth, leaf), end = forest_.begin_of(forest_.depth, leaf + 1);
            search_.consider_all(forest_.order + tree * forest_.rows + begin, end - begin);
        }
        if (every_row)
            search_.consider_every_row(space_.rows.rows);
        else
            search_.expand_all();
        for (Size e = 0; e < task_.k; ++e) {
            task_.index[query * task_.k + e] = pool_.rank[e] < no_rank ? pool_.index(e) : -1;
            task_.rank[query * task_.k + e] = pool_.rank[e];
        }
    }

  private:
    const SearchSpace& space_;
    const ForestView& forest_;
    const QueryTask& task_;
    FixedGraph graph_;
    PoolSearch<Rank, source, FixedGraph> search_;
    Scratch<float> ranks_;
    Scratch<std::uint32_t> tags_;
    HeapRow pool_;
    Scratch<float> normal_;
};

}  // namespace vicinal::VICINAL_LEVEL
