// The arguments of the search kernels: the rows, how the metric prepares and ranks them, a sketch of every row, trees,
// queries, and the searches of a stream. Plain data shared by all levels.
//
// A sketch is a short vector whose ranking value never exceeds that of the rows: for squared distances the projection
// onto an orthonormal basis, for other rankings a choice of columns. A pair whose sketch already ranks worse than the
// k-th neighbors of both rows needs no full evaluation, and no neighbor is lost. If the rows are short, the sketch is
// the prepared row itself and its rank is final.
#pragma once

#include "base/row_matrix.hpp"
#include "base/types.hpp"
#include "neighbors/metric_table.hpp"
#include "neighbors/neighbor_heap.hpp"
#include "neighbors/pair_metric.hpp"

namespace vicinal {

constexpr Size sketch_width = 128;
constexpr Size sketch_pad = 16;
// A basis is fitted to a sample of rows: as many as fit into `sketch_sample_floats` floats, within these bounds.
constexpr Size sketch_sample_floats = Size{1} << 22;
constexpr Size least_sketch_sample_rows = 256;
constexpr Size most_sketch_sample_rows = 2048;
constexpr Size split_columns = 32;  // columns of a sketch, those of largest variance, that split a tree node
constexpr Size most_tails = 320;    // largest number of rows that are compared with each other at once

// Rows of whole numbers between 0 and 255, for example pixels, are also kept as bytes, if their squared distances are
// sought: a search reads a quarter of the memory, and adds whole numbers. Null for other rows.
//
// A row is a number of whole blocks, filled with zeros. Within a block, column l is followed by column l + block / 2.
// So sums of neighboring bytes are the sums that rank_pair (metric.hpp) forms first.
struct ByteRows {
    static constexpr Size block = 64;
    static constexpr Size most_cols = 8192;  // sums of lanes stay below 2^24

    const std::uint8_t* data = nullptr;
    Size stride = 0;

    VICINAL_INLINE const std::uint8_t* row(Size i) const { return data + i * stride; }
    static constexpr Size padded(Size cols) { return (cols + block - 1) / block * block; }
};

struct SearchSpace {
    RowMatrix rows;
    const RowScale* scale = nullptr;  // null if rows are used unchanged
    ByteRows bytes;
    const Index* number = nullptr;  // which of `rows`, `scale` and `pairs` row i is; null if they have the same order
    Ranking ranking = Ranking::squared;
    const PairMetric* pairs =
        nullptr;  // ranks these rows (or queries) against the index; `rows` then only provide sketches

    const float* sketch = nullptr;  // [rows][stride], zero-padded
    // The sketches as bytes, in multiples of `coarse_unit`, or null. They are a quarter as long and rank pairs almost
    // as well, but their ranks are not lower bounds.
    ByteRows coarse;
    float coarse_unit = 0.0f;
    Size sketch_dim = 0;
    Size sketch_stride = 0;
    bool sketch_exact = false;
    float slack = 0.0f;  // rounding error of the rank of a sketch, see relaxed()

    // What a sketch leaves out: the squared length of the rest of each row (null if nothing is known about it), and the
    // share of both rests that separates neighbors on average (sample_nodes in rp_forest.hpp). Added to the rank of two
    // sketches, it makes an estimate of the rank of the rows, which is not a lower bound.
    const float* rest = nullptr;
    float rest_weight = 0.0f;

    // Squared lengths of the sketches, or null. With them a search that may err a little ranks sketches by their
    // products, which takes half of the operations; the error is at most about `product_slack`.
    const float* shown = nullptr;
    float product_slack = 0.0f;

    VICINAL_INLINE const float* sketch_row(Size i) const { return sketch + i * sketch_stride; }
    VICINAL_INLINE Size number_of(Size i) const { return number != nullptr ? number[i] : i; }
    VICINAL_INLINE RowScale scale_of(Size i) const { return scale != nullptr ? scale[i] : RowScale{}; }
    VICINAL_INLINE float weighted_rest(Size i) const { return rest_weight > 0.0f ? rest_weight * rest[i] : 0.0f; }

    // The largest sketch rank of a pair that may still rank at or below `rank`.
    VICINAL_INLINE float relaxed(float rank) const { return sketch_exact ? rank : rank * 1.002f + slack; }
};

// An error delta of a projected difference of length s changes its square by at most 2 s delta + delta^2 <= s^2/1000 +
// 1001 delta^2; delta is 1e-5 of the longest row's distance to the mean. If the rank is a length (not squared), delta
// is the whole error.
inline float sketch_slack(Ranking ranking, float longest2) {
    const bool length = ranking == Ranking::absolute || ranking == Ranking::maximum;
    return length ? 1e-5f * std::sqrt(longest2) : 1001e-10f * longest2;
}

// Rounding error of a squared distance that is made of products of sketches.
inline float product_slack(float longest2) { return 1e-6f * longest2; }

// Balanced random-projection trees. Node p of level l covers order[n p / 2^l, n (p+1) / 2^l); its plane is normal to
// the difference of the sketches of rows (a, b). The nodes of a tree are stored level by level.
struct ForestView {
    Index* order = nullptr;      // [trees][rows]
    Index* pairs = nullptr;      // [trees][nodes][2]
    float* threshold = nullptr;  // [trees][nodes]
    Size trees = 0;
    Size depth = 0;
    Size rows = 0;

    VICINAL_INLINE Size nodes() const { return (Size{1} << depth) - 1; }
    VICINAL_INLINE Size leaves() const { return Size{1} << depth; }
    VICINAL_INLINE Size begin_of(Size level, Size position) const { return rows * position >> level; }
};

// Row numbers during a search. They differ from those of the forest if the search reorders the rows (LeafOrder).
struct RowNumbers {
    const Index* places = nullptr;  // of the rows of the forest
    const Index* order = nullptr;   // rows so that near ones follow each other
};

// The basis onto which sketches are projected.
struct SketchBasis {
    float* mean = nullptr;   // [cols]
    float* basis = nullptr;  // [cols][sketch_width]
};

// Neighbors that are compared in a round of NN-descent, by hashed priority.
struct CandidateTables {
    NeighborHeap fresh, old;
};

struct DescentOptions {
    std::uint64_t seed;
    Size rounds;
    // Rounds end after one that changes less than this share of all entries.
    double enough;
};

// What a sample of rows tells about the data (sample_nodes in rp_forest.hpp).
struct NodeSample {
    float rest_weight = 0.0f;
    float contrast = 0.0f;
};

struct GraphView {
    const Size* indptr = nullptr;
    const Index* indices = nullptr;
};

struct QueryTask {
    SearchSpace queries;  // rows and sketches of the queries, prepared like those of the space
    GraphView graph;
    Size k = 0;
    Size pool = 0;   // entries kept while searching, at least k
    Size trees = 1;  // of the forest, whose leaves a search starts from; 0 compares every row
    // Of a neighbor's rank that its sketch shows; 1 keeps every row that could be a neighbor.
    float share = 1.0f;
    Index* index = nullptr;
    float* rank = nullptr;
};

// Searches of a stream (online_search.hpp):
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
    bool refills = false;  // lists may have lost rows that were removed
    float share = 1.0f;    // of a neighbor's rank that its sketch shows (nn_descent.hpp)

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
