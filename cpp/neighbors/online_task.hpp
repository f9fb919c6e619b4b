// Arguments of the kernels of OnlineNeighbors (online_search.hpp). Plain data shared by all levels.
#pragma once

#include "neighbors/search_space.hpp"

namespace vicinal {

constexpr Size online_leaf_rows = 48;  // capacity of a leaf; one more row splits it
constexpr Size most_offers = 256;      // per exploration

// A node of a growing tree. Its children are adjacent; a leaf has none. Which numbers nodes get does not matter, and
// depends on the order in which the trees grow.
struct TreeNode {
    std::uint32_t key = 0;  // of its random numbers
    float threshold = 0.0f;
    Index child = -1;  // the left child, for values below the threshold
    Index leaf = -1;   // number of its list of rows
    Index count = 0;
};

// Trees in one pool of nodes; node t is the root of tree t. The owner provides the memory.
struct OnlineForest {
    TreeNode* nodes = nullptr;
    float* normals = nullptr;  // [nodes][split_columns]
    Index* members = nullptr;  // [leaves][online_leaf_rows]
    Size trees = 0;
    Size n_nodes = 0;
    Size n_leaves = 0;
};

// A possible neighbor of another row.
struct Offer {
    Index row;        // receives the offer
    Index candidate;  // the possible neighbor
    float rank;
};

enum class Outcome : std::uint8_t { refused, spare, listed };

struct OnlineView {
    SearchSpace space;  // the rows that can be found
    NeighborHeap heap;  // their neighbors; `worst` is the rank of the last reported entry
    OnlineForest forest;
    Size known = 0;  // present rows; up to `exact_rows` of them, a search compares all
    Size exact_rows = 0;
    float share = 1.0f;  // of a neighbor's rank that its sketch shows (nn_descent.hpp)

    // The largest sketch rank of a pair that may improve the list of a row.
    VICINAL_INLINE float limit(Size row) const {
        return share < 1.0f ? share * heap.worst[row] : space.relaxed(heap.worst[row]);
    }
};

// Rows of `heads` to explore: rows of the space, or unseen rows. The pool of a row holds its present neighbors.
struct Exploration {
    SearchSpace heads;
    const Index* rows = nullptr;  // null: all of `heads`, which are unseen
    Size n = 0;
    bool unsearched = false;       // the rows have no neighbors yet and start from the forest
    const Index* given = nullptr;  // [n][n_given]: neighbors found elsewhere, which are ranked but not followed
    Size n_given = 0;
    Size width = 0;  // entries of a pool
    Size stride = 0;
    float* ranks = nullptr;  // [n][stride]
    std::uint32_t* tags = nullptr;
    Offer* offers = nullptr;  // [n][most_offers], or null
    Size* n_offers = nullptr;
    Index* leaves = nullptr;   // [n][trees]: the leaves where the search of an unsearched row began, or null
    Size* compared = nullptr;  // [n]: sketches compared and rows evaluated
};

}  // namespace vicinal
