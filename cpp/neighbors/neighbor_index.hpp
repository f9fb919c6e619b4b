// Rows prepared for searches: by their metric, with sketches, and for large data in a forest. An index depends on
// (rows, metric, seed) only, so it can be discarded and rebuilt.
#pragma once

#include "base/parallel.hpp"
#include "neighbors/row_sketcher.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace vicinal {

// Rows in the order of the leaves of a tree during a search: rows that are near each other are then near in memory
// too. 700,000 images are searched in a tenth less time.
//
// Arrays are reordered in place, along the cycles of the permutation. The cycles are laid end to end and cut into
// pieces, which threads process independently: the rows that a piece reads beyond its end were copied before.
class LeafOrder {
  public:
    // Row i is to become row `order[i]`, a permutation of n rows.
    LeafOrder(const Index* order, Size n);
    // Puts the rows back if restore() was not called, for example because the search was interrupted.
    ~LeafOrder();
    LeafOrder(const LeafOrder&) = delete;
    LeafOrder& operator=(const LeafOrder&) = delete;

    // Adds an array of n rows, unless it is null.
    template <class T>
    void add(T* rows, Size columns) {
        if (rows != nullptr) add_bytes(reinterpret_cast<std::byte*>(rows), columns * Size{sizeof(T)});
    }

    void apply(ThreadTeam& team);
    void restore(ThreadTeam& team);

    const Index* places() const { return places_.data(); }  // of the rows as they were before

  private:
    struct Rows {
        std::byte* data;
        Size row_bytes;
        std::byte* row(Size i) const { return data + i * row_bytes; }
    };

    void add_bytes(std::byte* rows, Size row_bytes);
    void move(ThreadTeam& team);
    void move_piece(const Rows& rows, Size piece) const;
    Size piece_end(Size piece) const;
    std::byte* saved(Size piece, Size which) const;

    std::vector<Index> places_;
    std::vector<Index> chain_;  // the rows of all cycles; each becomes the next one, the last of a cycle its first
    std::vector<Size> ends_;    // of the cycles in the chain
    std::vector<Rows> arrays_;
    mutable std::vector<std::byte> saved_;  // copies of three rows per piece
    Size most_bytes_ = 0;                   // of a row
    bool moved_ = false;
};

// Effort of the approximate search. The values and their reasons are in Python (SearchOptions).
struct SearchOptions {
    Size trees;
    Size leaf_rows;
    Size node_rows;        // nodes of at most this many rows (or leaves) are compared as blocks
    Size candidates;       // per row and round, NN-descent compares at most this many new and as many old neighbors
    Size spare;            // additional neighbors searched for on the sketches
    Size rounds;           // the most rounds of each stage
    double coarse;         // rounds on sketches end when less than this share of the table is new
    double fine;           // the same for rounds on rows, which follow those on sketches
    double final;          // the same for rounds on sketches that are the rows themselves
    double structureless;  // contrast (rp_forest.hpp) beyond which the data has no structure that a search can use
    Size unordered_bytes;  // more bytes of sketches (and of rows as bytes) are reordered by leaves (LeafOrder)
};

struct SearchResult {
    float share;      // of a neighbor's rank that its sketch shows (nn_descent.hpp)
    bool structured;  // otherwise more effort would not find more
};

struct QueryOptions {
    Size k;
    Size pool;    // entries kept while searching, at least k
    Size trees;   // whose leaves a search starts from; 0 compares a query with every row
    float share;  // of a neighbor's rank that its sketch shows (nn_descent.hpp); 1 makes the filter exact
};

// Up to this many rows, comparing all pairs is faster than fitting a basis for their sketches, for rows of any width.
constexpr Size rows_without_basis = 512;

const MetricRule& find_metric(const std::string& name);  // throws std::invalid_argument

class NeighborIndex {
  public:
    // Keeps a view of the rows, which must outlive the index. A metric that ranks by pairs needs `pairs`, which must
    // outlive the index too; the rows then only provide sketches that suggest likely neighbors.
    NeighborIndex(const RowMatrix& rows, const MetricRule& metric, std::uint64_t seed, const PairMetric* pairs,
                  ThreadTeam& team);

    // Writes the k nearest rows of every row, itself first, [rows][k]; exact. Few rows are compared without sketches.
    void search_exact(Size k, Index* index, float* distance, ThreadTeam& team);
    // The same by a forest and NN-descent, or by central rows if the data has no structure.
    SearchResult search_approximate(Size k, const SearchOptions& options, Index* index, float* distance,
                                    ThreadTeam& team);

    // Builds the trees that searches of unseen rows start from; without them, a query is compared with every row.
    void grow_forest(Size trees, Size leaf_rows, ThreadTeam& team);

    // Writes the k nearest rows of every query, [queries][k]. `pairs` ranks queries against rows, if the metric needs
    // it.
    void query(const RowMatrix& queries, const PairMetric* pairs, GraphView graph, const QueryOptions& options,
               Index* index, float* distance, ThreadTeam& team) const;

    const RowMatrix& rows() const { return space_.rows; }

  private:
    struct Sketched {
        std::vector<RowScale> scale;
        std::unique_ptr<std::uint8_t[]> bytes;
        std::unique_ptr<float[]> sketch;
        std::vector<float> rest, shown;
        SearchSpace space;
    };

    void prepare_rows(const RowMatrix& rows, const PairMetric* pairs, Sketched& out, ThreadTeam& team) const;
    void sketch_rows(Sketched& out, ThreadTeam& team) const;
    void fit_sketches(ThreadTeam& team);
    void write_table(const NeighborHeap& heap, const Index* order, Size wanted, Index* index, float* distance,
                     ThreadTeam& team) const;

    const MetricRule& metric_;
    const std::uint64_t seed_;
    RowSketcher sketcher_;
    Sketched own_;
    SearchSpace& space_ = own_.space;
    std::vector<Index> order_, pairs_;
    std::vector<float> threshold_;
    ForestView forest_;
};

}  // namespace vicinal
