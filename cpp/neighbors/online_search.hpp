// Explorations: the search of one row among the present rows. An unsearched row starts from the leaves that contain
// it, other rows from those of their neighbors that were not followed yet; both then follow the neighbor table. Every
// evaluated pair that would improve the other row's list is offered to it.
//
// Explorations read the table and write to their own pools only, so they can run in parallel and are independent of
// each other.
#pragma once

#include "neighbors/join.hpp"
#include "neighbors/online_forest.hpp"
#include "neighbors/pool_search.hpp"

namespace vicinal::VICINAL_LEVEL {

// The table as a graph, and the offers to its rows.
struct TableGraph {
    const OnlineView& view;
    Index head = -1;
    Offer* offers = nullptr;
    Size n_offers = 0;

    template <class F>
    VICINAL_INLINE void expand(Size row, const F& f) const {
        const HeapRow entries = view.heap.row(row);
        Index rows[most_tails];
        Size n = 0;
        for (Size e = 0; e < view.heap.k && entries.holds(e); ++e) {
            rows[n++] = entries.index(e);
            if (n == most_tails) {
                f(rows, n);
                n = 0;
            }
        }
        f(rows, n);
    }

    VICINAL_INLINE void prefetch(Size row) const {
        VICINAL_LEVEL::prefetch(view.heap.row(row).tag, view.heap.k * Size{sizeof(std::uint32_t)});
    }

    VICINAL_INLINE float wanted(Index row) const { return offers == nullptr ? -1.0f : view.limit(row); }

    VICINAL_INLINE void evaluated(Index row, float rank) {
        if (offers != nullptr && n_offers < most_offers && rank <= view.heap.worst[row])
            offers[n_offers++] = {row, head, rank};
    }
};

// A refresh looks for rows that earlier explorations could not find. Rows that these rejected are just within the
// limit; a tighter limit avoids evaluating them again: for 70,000 images, 7 % of the time for 0.002 of the recall.
constexpr float refresh_share = 0.9f;

template <class Rank, Source source>
class Explorer {
  public:
    Explorer(const OnlineView& view, const Exploration& task)
        : view_(view), task_(task), graph_{view},
          search_(view.space, task.heads, task.width,
                  view.share < 1.0f && !task.unsearched ? refresh_share * view.share : view.share, graph_),
          leaves_(view.forest.trees) {}

    void run(Size at) {
        const Index row = task_.rows != nullptr ? task_.rows[at] : static_cast<Index>(at);
        const HeapRow pool{task_.ranks + at * task_.stride, task_.tags + at * task_.stride};
        graph_.head = row;
        graph_.offers = task_.offers == nullptr ? nullptr : task_.offers + at * most_offers;
        graph_.n_offers = 0;
        search_.sketches_compared = search_.evaluated = 0;
        search_.start(row, pool);
        if (task_.rows != nullptr) search_.skip(row);
        for (Size e = 0; e < task_.width && pool.holds(e); ++e) search_.skip(pool.index(e));
        if (find_start(at, row))
            search_.expand_all();
        else
            for (Size e = 0; e < task_.width; ++e) pool.tag[e] &= ~1u;
        if (task_.n_offers != nullptr) task_.n_offers[at] = graph_.n_offers;
        task_.compared[at] = search_.sketches_compared + search_.evaluated;
    }

  private:
    // Returns false if the rows in the pool need not be followed.
    bool find_start(Size at, Size row) {
        if (task_.given != nullptr) {
            for (Size e = at * task_.n_given; e < (at + 1) * task_.n_given; ++e)
                if (task_.given[e] >= 0) search_.consider_all(task_.given + e, 1);
            return false;
        }
        if (!task_.unsearched) return true;
        if (view_.known <= view_.exact_rows) {
            search_.consider_every_row(view_.known);
            return false;
        }
        // All leaves together, so that the nearest of all their rows are evaluated first.
        Index rows[most_candidates];
        Size n = 0;
        const Size trees = view_.forest.trees;
        Index* leaves = task_.leaves != nullptr ? task_.leaves + at * trees : leaves_.data();
        descend_trees(view_.forest, task_.heads.sketch_row(row), split_width(view_.space), leaves);
        for (Size tree = 0; tree < trees; ++tree) {
            const TreeNode& leaf = view_.forest.nodes[leaves[tree]];
            prefetch(view_.forest.members + leaf.leaf * online_leaf_rows,
                     leaf.count * static_cast<Size>(sizeof(Index)));
        }
        for (Size tree = 0; tree < trees; ++tree) {
            const TreeNode& leaf = view_.forest.nodes[leaves[tree]];
            if (n + leaf.count > most_candidates) {
                search_.consider_all(rows, n);
                n = 0;
            }
            std::memcpy(rows + n, view_.forest.members + leaf.leaf * online_leaf_rows,
                        static_cast<std::size_t>(leaf.count) * sizeof(Index));
            n += leaf.count;
        }
        search_.consider_all(rows, n);
        return true;
    }

    const OnlineView& view_;
    const Exploration& task_;
    TableGraph graph_;
    PoolSearch<Rank, source, TableGraph> search_;
    Scratch<Index> leaves_;
};

// The limit of a pair within a chunk: the present lists of the two rows. For serial loops only. A join adds the
// columns of a sketch in another order than an exploration does, so the limit has a tolerance.
struct SharedLimit {
    static constexpr bool final = false;
    const OnlineView& view;
    VICINAL_INLINE float operator()(Index row) const { return 1.0001f * view.limit(row); }
};

// Compares every pair of rows of a chunk, which have not seen each other.
template <class Rank, Source source>
void compare_chunk(const OnlineView& view, Size listed, const Index* rows, Size n) {
    Scratch<float> scratch(join_scratch_floats(view.space.sketch_dim));
    NeighborHeap heap = view.heap;
    heap.k = listed;
    SearchSpace space = view.space;
    const auto run = [&]<Source from, class Limit>(const Limit& limit) {
        Join<Rank, from, Limit>(space, heap, limit, scratch.data()).run(rows, n, rows, n, true);
    };
    if constexpr (source == Source::pairs) {
        run.template operator()<source>(NoLimit{});
    } else if (space.sketch_exact) {
        // Ranks must have exactly the same bits as in explorations, otherwise a row could be listed twice.
        space.rows = {space.sketch, space.rows.rows, space.sketch_stride};
        space.scale = nullptr;
        run.template operator()<Source::plain>(SharedLimit{view});
    } else {
        run.template operator()<source>(SharedLimit{view});
    }
}

}  // namespace vicinal::VICINAL_LEVEL
