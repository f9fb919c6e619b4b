// The k nearest neighbors of rows that arrive in a stream (the neighbor part of the survey's Algorithm 3, after
// PANENE).
//
// An operation is the exploration of one row (online_search.hpp): the search of an added row, or the refresh of a row
// whose list has changed since its last exploration. Operations run in chunks. The operations of a chunk read the
// table as it was when the chunk was opened; when the chunk is closed, their offers to other rows are merged in the
// order of the operations. So results depend neither on the number of threads nor on how the work is split into calls.
//
// Searches come before refreshes, in the order of insertion. A row is refreshed when `refresh_after` of its entries
// are new.
//
// Exceptions (interrupts, errors of a metric function, memory): insert() adds all rows or none. A step() that throws
// keeps the operations that were complete, including what it would have returned; the next step() continues with the
// same results as if nothing had happened.
#pragma once

#include "base/growing_array.hpp"
#include "base/parallel.hpp"
#include "neighbors/row_sketcher.hpp"
#include "neighbors/search_space.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

namespace vicinal {

// The trees of a stream (ForestBuilder in online_search.hpp) and their memory. A tree depends on its rows and their
// order only.
class GrowingForest {
  public:
    // Trees without rows.
    GrowingForest(Size trees, std::uint64_t seed);

    // Allocates the memory to plant `rows` more rows.
    void reserve(Size rows);

    // Rows that are inserted between two checks for an interrupt.
    static constexpr Size whole_rows = 4096;

    // Inserts the rows [begin, end) into all trees. `above` holds a node of each tree that is an ancestor of the row's
    // leaf, [rows][trees]; null means the roots. Up to `whole_rows` rows are never interrupted.
    void plant(const SearchSpace& space, Size begin, Size end, const Index* above, ThreadTeam& team);

    const OnlineForest& view() const { return forest_; }

  private:
    GrowingArray<TreeNode> nodes_;
    GrowingArray<float> normals_;
    GrowingArray<Index> members_;
    OnlineForest forest_;
};

struct OnlineOptions {
    Size k;      // neighbors reported per row, including the row itself
    Size spare;  // entries kept beyond those
    Size trees;
    Size refresh_after;  // new entries after which a row is refreshed
    Size exact_rows;     // up to this many rows, a search compares all of them
};

struct OnlineChange {
    Size first_new = 0, last_new = 0;  // rows whose first search finished: [first, last)
    std::vector<Size> updated;         // earlier rows whose list changed, ascending
};

class OnlineNeighbors {
  public:
    // Rows per chunk. They are compared with each other when the chunk is closed, by one join.
    static constexpr Size chunk_rows = 128;

    // For a metric that ranks by pairs, rows are only sketched, and the pair rows of `pair_cols` columns are ranked.
    // If `pair_cols` is 0, the caller ranks the pairs (rank_by).
    OnlineNeighbors(Size cols, Size pair_cols, const MetricRule& metric, double power, std::uint64_t seed,
                    OnlineOptions options);

    // Allocates memory for n rows in all. While someone reads the present rows, growing would copy them.
    void reserve(Size n);
    void insert(Matrix rows, Matrix pair_rows, ThreadTeam& team);

    // Sets the ranks of all pairs of rows, by row number, for the following calls; null for a metric of the core. The
    // lower row number is the first argument.
    void rank_by(const PairMetric* pairs) { ordered_ = OrderedPairs{pairs}; }

    // Removes all rows but the given ones, whose numbers ascend, and numbers these from 0. Lists lose the rows that go,
    // and are refilled by the next operations, as refreshes. Returns the rows, by their new numbers, whose lists
    // changed since the last report. Costs a pass over the rows that stay, and no comparisons.
    std::vector<Size> keep(const Index* rows, Size n, ThreadTeam& team);

    // Takes over the table of all present rows, [rows][k] with the row itself first, instead of searching them.
    void adopt(const Index* index, Size k, ThreadTeam& team);

    // Runs up to `ops` operations; none starts after `seconds`.
    OnlineChange step(Size ops, double seconds, ThreadTeam& team);

    Size rows() const { return n_; }
    Size searched() const { return searched_; }
    Size pending() const { return n_ - searched_ + waiting(); }
    Size compared() const { return compared_; }
    float share() const { return share_; }
    const OnlineOptions& options() const { return options_; }

    // The neighbors of some searched rows, [n][k], the row itself first; -1 and infinity for missing ones.
    void table(const Size* rows, Size n, Index* index, float* distance) const;

    // The neighbors of unseen rows among the searched rows, [queries][k].
    // `pairs` ranks queries and rows if the caller ranks the pairs.
    void query(Matrix queries, Matrix pair_queries, const PairMetric* pairs, Size k, Index* index, float* distance,
               ThreadTeam& team);

    bool ranked_by_caller() const { return metric_.ranking == Ranking::pairs && pair_cols_ == 0; }
    Size cols() const { return cols_; }
    Size pair_cols() const { return pair_cols_; }
    // The rows that are ranked, as they were inserted.
    Size ranked_cols() const { return by_pairs() ? pair_cols_ : cols_; }
    const GrowingArray<float>& ranked_rows() const { return by_pairs() ? pair_rows_ : rows_; }

    // Calls visit(name, field) for all fields that a stream continues from, and visit.append_only(name, field) for
    // those whose elements never change once they are there, and visit.later(name, field) for those that states of
    // earlier versions lack. After a visitor has changed them, restore() checks them
    // and rebuilds the rest; it throws std::invalid_argument.
    template <class Visitor>
    void visit_state(Visitor&& visit) {
        visit.append_only("rows", rows_);
        visit.append_only("pair_rows", pair_rows_);
        visit("mean", sketcher_.mean());
        visit("basis", sketcher_.basis());
        visit("ranks", ranks_);
        visit("tags", tags_);
        visit("changes", changes_);
        visit("queue", queue_);
        visit("chunk", chunk_);
        visit("staged_ranks", staged_ranks_);
        visit("staged_tags", staged_tags_);
        visit("offers", offers_);
        visit("queue_head", queue_head_);
        visit("chunk_kind", kind_);
        visit("searched", searched_);
        visit("merged", merged_);
        visit("sketched", sketched_);
        visit("reported", first_new_);
        visit("fitted_rows", fitted_rows_);
        visit("share_rows", share_rows_);
        visit("share", share_);
        visit("compared", compared_);
        visit.later("removed", removed_);
        visit.later("longest2", longest2_);
        visit.later("coarse_unit", coarse_unit_);
    }
    void restore(ThreadTeam& team);

  private:
    enum Kind : Size { none, search, refresh };

    // A function of two rows need not be symmetric, but the two rows must agree on their rank.
    struct OrderedPairs final : PairMetric {
        explicit OrderedPairs(const PairMetric* metric = nullptr) : pairs(metric) {}
        float rank(Size head, Size tail) const override {
            return pairs->rank(std::min(head, tail), std::max(head, tail));
        }
        const PairMetric* pairs;
    };

    bool by_pairs() const { return pair_cols_ > 0; }
    Size listed() const { return options_.k - 1; }
    Size waiting() const { return queue_.size() - queue_head_ + (kind_ == Kind::refresh ? chunk_.size() : 0); }
    Matrix row_matrix() const { return {rows_.data(), n_, cols_}; }
    Matrix pair_matrix() const { return {pair_rows_.data(), n_, pair_cols_}; }
    NeighborHeap heap(Size rows) const;
    SearchSpace space() const;
    OnlineView view() const;

    bool drop_entries(Size row, const std::vector<Index>& number);
    void renumber_queue(const std::vector<Index>& number, const std::vector<Size>& changed);
    void plant_missing(ThreadTeam& team);
    void resize_table(Size n);
    void keep_bytes(Matrix rows, Size begin, ThreadTeam& team);
    void check_state() const;
    void fit_sketches(ThreadTeam& team);
    void fit_basis(ThreadTeam& team);
    float coarse_unit_of(const RowSketcher& sketcher, Size n, ThreadTeam& team) const;
    void sketch_until(Size end, ThreadTeam& team);
    void reserve_changes(Size rows);

    Index* start_at_roots(Size n);
    bool open();  // returns false if nothing is pending
    Size available() const;
    void explore(Size n, ThreadTeam& team);
    void explore_rows(Size n, ThreadTeam& team);
    void close(ThreadTeam& team);
    void close_search(ThreadTeam& team);
    void close_refresh();
    void merge_offers();
    void note_change(Size row);

    const Size cols_, pair_cols_;
    const MetricRule& metric_;
    const double power_;
    const std::uint64_t seed_;
    const OnlineOptions options_;
    const Size width_, stride_;  // entries per row of the table, and their padded number
    RowSketcher sketcher_;

    Size n_ = 0, sketched_ = 0, searched_ = 0;
    Size merged_ = 0;  // rows that searches can find
    GrowingArray<float> rows_, pair_rows_, sketch_;
    GrowingArray<RowScale> scale_;
    GrowingArray<std::uint8_t> bytes_;  // the rows as bytes, empty once a row cannot be
    GrowingArray<std::uint8_t> coarse_;
    float coarse_unit_ = 0.0f;  // 0 if the sketches are not kept as bytes
    bool all_bytes_ = true;
    std::unique_ptr<DensePairs> pairs_;
    OrderedPairs ordered_;
    Size fitted_rows_ = 0, share_rows_ = 0;
    float longest2_ = 0.0f, share_ = 1.0f;

    GrowingArray<float> ranks_, worst_;
    GrowingArray<std::uint32_t> tags_;
    GrowingArray<std::uint8_t> locks_, queued_, marked_;
    GrowingArray<std::uint32_t> changes_;  // new entries since a row was last explored
    GrowingForest forest_;
    Size planted_ = 0;  // rows in the forest: `merged_`, or 0 if rows were removed since
    Size removed_ = 0;

    GrowingArray<Index> queue_;  // rows to refresh
    Size queue_head_ = 0;
    Size kind_ = Kind::none;
    bool closing_ = false;              // an exception interrupted the closing of the chunk
    GrowingArray<Index> chunk_;         // rows explored since the chunk was opened
    GrowingArray<Index> leaves_;        // the nodes where their searches began
    GrowingArray<float> staged_ranks_;  // results of refreshes
    GrowingArray<std::uint32_t> staged_tags_;
    GrowingArray<Offer> offers_;
    // Offers of the explorations in progress, [rows][most_offers]; kept to save the allocation.
    GrowingArray<Offer> found_;

    Size first_new_ = 0;  // rows before it have been reported
    std::vector<Size> updated_;
    Size compared_ = 0;
};

}  // namespace vicinal
