// Exploring: the search of one row among the rows there are. A row that has just come starts from the leaves it falls
// into, one that has neighbours from those it has not followed yet; both then go along the table of neighbours. Every
// pair that was evaluated on the way and would improve the other row's list is offered to it.
//
// Explorations read the table and write to their own pools only, so any number of them can go on at once and none
// depends on another.
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

    VICINAL_INLINE float wanted(Index row) const { return offers == nullptr ? -1.0f : view.limit(row); }

    VICINAL_INLINE void evaluated(Index row, float rank) {
        if (offers != nullptr && n_offers < most_offers && rank <= view.heap.worst[row])
            offers[n_offers++] = {row, head, rank};
    }
};

// A refresh finds what earlier explorations could not see. What they saw and refused lies just within the limit, and is
// not evaluated again and again: of 70,000 images 7 % of the time for 0.002 of the recall.
constexpr float refresh_share = 0.9f;

template <class Rank, Source source>
class Explorer {
  public:
    Explorer(const OnlineView& view, const Exploration& task)
        : view_(view), task_(task), graph_{view},
          search_(view.space, task.heads, task.width,
                  view.share < 1.0f && !task.lost ? refresh_share * view.share : view.share, graph_),
          leaves_(view.forest.trees) {}

    void run(Size at) {
        const Index row = task_.rows != nullptr ? task_.rows[at] : static_cast<Index>(at);
        const HeapRow pool{task_.ranks + at * task_.stride, task_.tags + at * task_.stride};
        graph_.head = row;
        graph_.offers = task_.offers == nullptr ? nullptr : task_.offers + at * most_offers;
        graph_.n_offers = 0;
        search_.looked_at = search_.evaluated = 0;
        search_.start(row, pool);
        if (task_.rows != nullptr) search_.skip(row);
        for (Size e = 0; e < task_.width && pool.holds(e); ++e) search_.skip(pool.index(e));
        if (find_start(at, row))
            search_.expand_all();
        else
            for (Size e = 0; e < task_.width; ++e) pool.tag[e] &= ~1u;
        if (task_.n_offers != nullptr) task_.n_offers[at] = graph_.n_offers;
        task_.compared[at] = search_.looked_at + search_.evaluated;
    }

  private:
    // False if what is in the pool then need not be followed.
    bool find_start(Size at, Size row) {
        if (task_.given != nullptr) {
            for (Size e = at * task_.n_given; e < (at + 1) * task_.n_given; ++e)
                if (task_.given[e] >= 0) search_.consider_all(task_.given + e, 1);
            return false;
        }
        if (!task_.lost) return true;
        if (view_.known <= view_.exact_rows) {
            search_.look_at_all(view_.known);
            return false;
        }
        // The leaves together: of all their rows the nearest are evaluated first.
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

// The limit of a pair within a chunk: what the two rows hold by now. Only for loops of one thread. A join adds up the
// columns of a sketch in another order than an exploration does, which may make a pair a little worse.
struct SharedLimit {
    static constexpr bool final = false;
    const OnlineView& view;
    VICINAL_INLINE float operator()(Index row) const { return 1.0001f * view.limit(row); }
};

// Rows that were explored side by side have not seen each other: every pair of them is compared.
template <class Rank, Source source>
void meet(const OnlineView& view, Size listed, const Index* rows, Size n) {
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
        // Ranks have to be those of explorations, in every bit: a row could otherwise hold another one twice.
        space.rows = {space.sketch, space.rows.rows, space.sketch_stride};
        space.scale = nullptr;
        run.template operator()<Source::plain>(SharedLimit{view});
    } else {
        run.template operator()<source>(SharedLimit{view});
    }
}

}  // namespace vicinal::VICINAL_LEVEL
