// Random-projection trees that grow by insertion. A full leaf is split at the median along the difference of two of
// its rows, so an insertion costs a descent from the root and sometimes a sort of one leaf.
//
// If the rows of a full leaf cannot be separated, the leaf takes no more rows: its rows are starting points only, and
// the graph leads to the others.
#pragma once

#include "base/rng.hpp"
#include "neighbors/online_task.hpp"
#include "neighbors/rp_forest.hpp"

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE Size next_node(const OnlineForest& forest, Size node, const float* sketch, Size width) {
    const bool right = dot(sketch, forest.normals + node * split_columns, width) >= forest.nodes[node].threshold;
    return forest.nodes[node].child + (right ? 1 : 0);
}

VICINAL_INLINE Size descend_tree(const OnlineForest& forest, Size node, const float* sketch, Size width) {
    while (forest.nodes[node].child >= 0) node = next_node(forest, node, sketch, width);
    return node;
}

// Finds the leaves of all trees, `nodes` [trees]. All trees are descended together, because each waits for memory at
// every step.
VICINAL_INLINE void descend_trees(const OnlineForest& forest, const float* sketch, Size width, Index* nodes) {
    for (Size tree = 0; tree < forest.trees; ++tree) nodes[tree] = static_cast<Index>(tree);
    for (bool inside = true; inside;) {
        inside = false;
        for (Size tree = 0; tree < forest.trees; ++tree) {
            const Size node = nodes[tree];
            if (forest.nodes[node].child < 0) continue;
            nodes[tree] = static_cast<Index>(next_node(forest, node, sketch, width));
            prefetch(forest.nodes + nodes[tree], sizeof(TreeNode));
            prefetch(forest.normals + nodes[tree] * split_columns, width * static_cast<Size>(sizeof(float)));
            inside = true;
        }
    }
}

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

}  // namespace vicinal::VICINAL_LEVEL
