// What the search of a growing set of rows hands to its kernels (online_search.hpp, online_forest.hpp).
#pragma once

#include "neighbors/search_space.hpp"

namespace vicinal {

constexpr Size online_leaf_rows = 48;  // rows of a leaf; one more splits it
constexpr Size most_offers = 256;      // that an exploration makes to other rows

// A node of a tree that grows at its leaves. Children lie side by side; a leaf has none.
struct TreeNode {
    float threshold = 0.0f;
    Index child = -1;  // the left one, where values below the threshold go
    Index leaf = -1;   // its list of rows
    Index count = 0;
};

// Trees in one pool of nodes; node t is the root of tree t. The owner sees to it that there is room.
struct OnlineForest {
    TreeNode* nodes = nullptr;
    float* normals = nullptr;  // [nodes][split_columns]
    Index* members = nullptr;  // [leaves][online_leaf_rows]
    Size trees = 0;
    Size n_nodes = 0;
    Size n_leaves = 0;
};

// A row that may be a neighbour of another one.
struct Offer {
    Index row;        // to whom
    Index candidate;  // what
    float rank;
};

enum class Outcome : std::uint8_t { refused, spare, listed };

struct OnlineView {
    SearchSpace space;  // the rows that can be found
    NeighborHeap heap;  // their neighbours; `worst` is the rank of the last that is reported
    OnlineForest forest;
    Size known = 0;  // rows that are found by looking at all, if there are no more than `exact_rows`
    Size exact_rows = 0;
    float share = 1.0f;  // of a neighbour's rank that its sketch shows (nn_descent.hpp)

    // The largest sketch rank of a pair that may improve a row's list.
    VICINAL_INLINE float limit(Size row) const {
        return share < 1.0f ? share * heap.worst[row] : space.relaxed(heap.worst[row]);
    }
};

// Rows to be explored, of `heads`: those of the space, or others. What a row holds already is in its pool.
struct Exploration {
    SearchSpace heads;
    const Index* rows = nullptr;  // null: all of `heads`, which are unseen
    Size n = 0;
    bool lost = false;             // rows that hold nothing, and start from the forest
    const Index* given = nullptr;  // [n][n_given]: neighbours found elsewhere, which are ranked and not followed
    Size n_given = 0;
    Size width = 0;  // of a pool
    Size stride = 0;
    float* ranks = nullptr;  // [n][stride]
    std::uint32_t* tags = nullptr;
    Offer* offers = nullptr;  // [n][most_offers], or null
    Size* n_offers = nullptr;
    Index* leaves = nullptr;   // [n][trees]: the nodes where a row that holds nothing began, or null
    Size* compared = nullptr;  // sketches looked at and rows evaluated, a number each
};

}  // namespace vicinal
