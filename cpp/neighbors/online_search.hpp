// The search of one row (an exploration) among the present rows of a stream, and the trees where it begins.
//
// An unsearched row starts from the leaves that contain it, other rows from those of their neighbors that were not
// followed yet. A row whose neighbors were removed starts from both. All then follow the neighbor table. Every
// evaluated pair that would improve the other row's list is offered to it.
//
// Explorations read the table and write to their own pools only, so they can run in parallel and are independent of
// each other.
#pragma once

#include "base/rng.hpp"
#include "neighbors/join.hpp"
#include "neighbors/pool_search.hpp"
#include "neighbors/rp_forest.hpp"
#include "neighbors/search_space.hpp"

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE Size next_node(const OnlineForest& forest, Size node, const float* sketch, Size width) {
    const bool right = dot(sketch, forest.normals + node * split_columns, width) >= forest.nodes[node].threshold;
    return forest.nodes[node].child + (right ? 1 : 0);
}

VICINAL_INLINE Size descend_tree(const OnlineForest& forest, Size node, const float* sketch, Size width) {
    while (forest.nodes[node].child >= 0) node = next_node(forest, node, sketch, width);
    return node;
}

// Finds the leaves of the first trees, `nodes` [trees]. All of these are descended together, because each waits for
// memory at every step.
VICINAL_INLINE void descend_trees(const OnlineForest& forest, Size trees, const float* sketch, Size width,
                                  Index* nodes) {
    for (Size tree = 0; tree < trees; ++tree) nodes[tree] = static_cast<Index>(tree);
    for (bool inside = true; inside;) {
        inside = false;
        for (Size tree = 0; tree < trees; ++tree) {
            const Size node = nodes[tree];
            if (forest.nodes[node].child < 0) continue;
            nodes[tree] = static_cast<Index>(next_node(forest, node, sketch, width));
            prefetch(forest.nodes + nodes[tree], sizeof(TreeNode));
            prefetch(forest.normals + nodes[tree] * split_columns, width * static_cast<Size>(sizeof(float)));
            inside = true;
        }
    }
}

// Grows random-projection trees by insertion. A full leaf is split at the median along the difference of two of
// its rows, so an insertion costs a descent from the root and sometimes a sort of one leaf.
//
// If the rows of a full leaf cannot be separated, the leaf takes no more rows: its rows are starting points only, and
// the graph leads to the others.
class ForestBuilder {
  public:
    ForestBuilder(const SearchSpace& space, OnlineForest& forest)
        : space_(space), forest_(forest), width_(split_width(space)) {}

    // Inserts a row below a node of a tree. Several threads may insert rows, each into other trees.
    void insert(Index row, Size node) {
        const float* sketch = space_.sketch_row(row);
        node = descend_tree(forest_, node, sketch, width_);
        if (forest_.nodes[node].count == online_leaf_rows) {
            if (!split(node)) return;
            node = descend_tree(forest_, node, sketch, width_);
        }
        TreeNode& leaf = forest_.nodes[node];
        forest_.members[leaf.leaf * online_leaf_rows + leaf.count++] = row;
    }

  private:
    static constexpr std::uint32_t most_draws = 8;  // random numbers of one node

    // Returns false if all rows have the same projection in every direction tried.
    bool split(Size node) {
        Index* rows = forest_.members + forest_.nodes[node].leaf * online_leaf_rows;
        const std::uint32_t key = forest_.nodes[node].key;
        for (std::uint32_t attempt = 0; attempt < most_draws / 2; ++attempt) {
            const Index a = rows[below(draw32(key, 2 * attempt), online_leaf_rows)];
            const Index b = rows[below(draw32(key, 2 * attempt + 1), online_leaf_rows)];
            if (split_along(node, rows, a, b)) return true;
        }
        return split_along(node, rows, rows[0], farthest_from(rows));
    }

    Index farthest_from(const Index* rows) const {
        Index farthest = rows[0];
        float most = 0.0f;
        for (Size i = 1; i < online_leaf_rows; ++i) {
            float sum = 0.0f;
            for (Size k = 0; k < width_; ++k) {
                const float t = space_.sketch_row(rows[i])[k] - space_.sketch_row(rows[0])[k];
                sum += t * t;
            }
            if (sum > most) {
                most = sum;
                farthest = rows[i];
            }
        }
        return farthest;
    }

    bool split_along(Size node, Index* rows, Index a, Index b) {
        float* normal = forest_.normals + node * split_columns;
        for (Size k = 0; k < width_; ++k) normal[k] = space_.sketch_row(a)[k] - space_.sketch_row(b)[k];
        Projected projected[online_leaf_rows];
        for (Size i = 0; i < online_leaf_rows; ++i)
            projected[i] = {dot(space_.sketch_row(rows[i]), normal, width_), rows[i]};
        std::sort(projected, projected + online_leaf_rows, [](const Projected& x, const Projected& y) {
            return x.value < y.value || (x.value == y.value && x.row < y.row);
        });
        // Equal values go to the same side: split where the value changes, at or after the middle, otherwise before
        // it.
        Size middle = online_leaf_rows / 2;
        while (middle < online_leaf_rows && projected[middle].value == projected[middle - 1].value) ++middle;
        if (middle == online_leaf_rows)
            for (middle = online_leaf_rows / 2; middle > 0 && projected[middle].value == projected[middle - 1].value;)
                --middle;
        if (middle == 0) return false;
        part(node, rows, projected, middle);
        return true;
    }

    void part(Size node, Index* rows, const Projected* projected, Size middle) {
        TreeNode& parent = forest_.nodes[node];
        const Size child = __atomic_fetch_add(&forest_.n_nodes, 2, __ATOMIC_RELAXED);
        const Size leaf = __atomic_fetch_add(&forest_.n_leaves, 1, __ATOMIC_RELAXED);
        const auto child_leaf = [&](std::uint32_t side, Size number, Size count) {
            return TreeNode{draw32(parent.key, most_draws + side), 0.0f, -1, static_cast<Index>(number),
                            static_cast<Index>(count)};
        };
        forest_.nodes[child] = child_leaf(0, parent.leaf, middle);
        forest_.nodes[child + 1] = child_leaf(1, leaf, online_leaf_rows - middle);
        for (Size i = 0; i < middle; ++i) rows[i] = projected[i].row;
        for (Size i = middle; i < online_leaf_rows; ++i)
            forest_.members[leaf * online_leaf_rows + i - middle] = projected[i].row;
        parent = {parent.key, projected[middle].value, static_cast<Index>(child), -1, 0};
    }

    const SearchSpace& space_;
    OnlineForest& forest_;
    const Size width_;
};

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

// Trees from which a refill starts. Recall after removing 30 % of 8,000 rows in Gaussian groups in 150 dimensions, and
// comparisons per removed row of 20,000 images: 0.961 and 1,160 with none, 0.971 and 1,930 with 3, 0.976 and 2,540 with
// 6, 0.981 and 5,170 with all; 0.984 if these rows were never there.
constexpr Size refill_trees = 6;

template <class Rank, Source source>
class Explorer {
  public:
    Explorer(const OnlineView& view, const Exploration& task)
        : view_(view), task_(task), graph_{view},
          search_(view.space, task.heads, task.width,
                  view.share < 1.0f && !task.unsearched && !view.refills ? refresh_share * view.share : view.share,
                  graph_),
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
        if (find_start(at, row, pool))
            search_.expand_all();
        else
            for (Size e = 0; e < task_.width; ++e) pool.tag[e] &= ~1u;
        if (task_.n_offers != nullptr) task_.n_offers[at] = graph_.n_offers;
        task_.compared[at] = search_.sketches_compared + search_.evaluated;
    }

  private:
    // Returns false if the rows in the pool need not be followed.
    bool find_start(Size at, Size row, HeapRow pool) {
        if (task_.given != nullptr) {
            for (Size e = at * task_.n_given; e < (at + 1) * task_.n_given; ++e)
                if (task_.given[e] >= 0) search_.consider_all(task_.given + e, 1);
            return false;
        }
        if (!task_.unsearched && !is_refill(pool)) return true;
        if (view_.known <= view_.exact_rows) {
            search_.consider_every_row(view_.known);
            return false;
        }
        // All leaves together, so that the nearest of all their rows are evaluated first.
        Index rows[most_candidates];
        Size n = 0;
        const Size trees = task_.unsearched ? view_.forest.trees : std::min(view_.forest.trees, refill_trees);
        Index* leaves = task_.leaves != nullptr ? task_.leaves + at * trees : leaves_.data();
        descend_trees(view_.forest, trees, task_.heads.sketch_row(row), split_width(view_.space), leaves);
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

    // Whether rows of a list were removed: the others need not lead to those that take their place. So the row also
    // starts from some trees.
    bool is_refill(HeapRow pool) const {
        return view_.refills && (view_.known <= view_.exact_rows || !pool.holds(task_.width - 1));
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
