// The k nearest neighbours of rows that keep coming (the neighbour part of the survey's Algorithm 3, after PANENE).
//
// An operation is the exploration of one row (online_search.hpp): a search for a row that has just come, or a refresh
// of one whose list has changed since it was last explored. Operations are done in chunks. Those of a chunk read the
// table as it was when the chunk was opened; when it is closed, what they offer to other rows is merged in the order of
// the operations. So neither the number of threads nor the places where calls begin and end make a difference.
//
// Searches come before refreshes, in the order of insertion. A row is refreshed when `refresh_after` of its entries are
// new.
#pragma once

#include "base/growing_array.hpp"
#include "neighbors/online_task.hpp"
#include "neighbors/row_sketcher.hpp"

#include <limits>
#include <memory>
#include <vector>

namespace vicinal {

struct OnlineOptions {
    Size k;      // neighbors reported per row, including the row itself
    Size spare;  // entries kept beyond those
    Size trees;
    Size refresh_after;  // new entries after which a row is refreshed
    Size exact_rows;     // up to this many rows, a search compares all of them
};

struct OnlineChange {
    Size first_new = 0, last_new = 0;  // rows that got their neighbours: [first, last)
    std::vector<Size> updated;         // earlier rows whose list changed, ascending
};

class OnlineNeighbors {
  public:
    // `pair_cols` is not 0 for a metric that ranks by pairs: those rows are ranked, the others sketched.
    OnlineNeighbors(Size cols, Size pair_cols, const MetricRule& metric, double power, std::uint64_t seed,
                    OnlineOptions options);

    void insert(Matrix rows, Matrix pair_rows, ThreadTeam& team);

    // Takes the table of a search of all rows there are, [rows][k] with the row itself first, instead of searching
    // them.
    void adopt(const Index* index, Size k, ThreadTeam& team);

    // Up to `ops` operations, and none that begins after `seconds`.
    OnlineChange step(Size ops, double seconds, ThreadTeam& team);

    Size rows() const { return n_; }
    Size searched() const { return searched_; }
    Size pending() const { return n_ - searched_ + waiting(); }
    Size compared() const { return compared_; }
    float share() const { return share_; }
    const OnlineOptions& options() const { return options_; }

    // Of some rows that were searched, [n][k], itself first; -1 and infinity where there is none.
    void table(const Size* rows, Size n, Index* index, float* distance) const;

    // Of unseen rows, [queries][k], among those that were searched.
    void query(Matrix queries, Matrix pair_queries, Size k, Index* index, float* distance, ThreadTeam& team) const;

    Size cols() const { return cols_; }
    Size pair_cols() const { return pair_cols_; }
    // What is ranked, as it was inserted.
    Size ranked_cols() const { return by_pairs() ? pair_cols_ : cols_; }
    const GrowingArray<float>& ranked_rows() const { return by_pairs() ? pair_rows_ : rows_; }

    // What a run goes on from, by name; the rest follows from it. After a change from outside it is checked and
    // completed by restore(), which throws std::invalid_argument.
    template <class Visitor>
    void visit_state(Visitor&& visit) {
        visit("rows", rows_);
        visit("pair_rows", pair_rows_);
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
    }
    void restore(ThreadTeam& team);

  private:
    enum Kind : Size { none, search, refresh };

    bool by_pairs() const { return metric_.ranking == Ranking::pairs; }
    Size listed() const { return options_.k - 1; }
    Size waiting() const { return queue_.size() - queue_head_ + (kind_ == Kind::refresh ? chunk_.size() : 0); }
    Matrix row_matrix() const { return {rows_.data(), n_, cols_}; }
    Matrix pair_matrix() const { return {pair_rows_.data(), n_, pair_cols_}; }
    NeighborHeap heap(Size rows) const;
    SearchSpace space() const;
    OnlineView view() const;

    void resize_table(Size n);
    void check_state() const;
    void fit_sketches(ThreadTeam& team);
    void fit_basis(ThreadTeam& team);
    void sketch_until(Size end, ThreadTeam& team);
    void clear_forest();
    void plant(Size begin, Size end, const Index* above = nullptr);

    Index* start_at_roots(Size n);
    bool open();  // false: nothing is pending
    Size available() const;
    void explore(Size n, ThreadTeam& team);
    void close();
    void close_search();
    void close_refresh();
    void merge_offers();
    void note_change(Size row);

    const Size cols_, pair_cols_;
    const MetricRule& metric_;
    const double power_;
    const std::uint64_t seed_;
    const OnlineOptions options_;
    const Size width_, stride_;  // of a row of the table
    RowSketcher sketcher_;

    Size n_ = 0, sketched_ = 0, searched_ = 0;
    Size merged_ = 0;  // rows that others can find
    GrowingArray<float> rows_, pair_rows_, sketch_;
    GrowingArray<RowScale> scale_;
    std::unique_ptr<DensePairs> pairs_;
    Size fitted_rows_ = 0, share_rows_ = 0;
    float longest2_ = 0.0f, share_ = 1.0f;

    GrowingArray<float> ranks_, worst_;
    GrowingArray<std::uint32_t> tags_;
    GrowingArray<std::uint8_t> locks_, queued_, marked_;
    GrowingArray<std::uint32_t> changes_;  // since a row was last explored
    GrowingArray<TreeNode> nodes_;
    GrowingArray<float> normals_;
    GrowingArray<Index> members_;
    OnlineForest forest_;

    GrowingArray<Index> queue_;  // of refreshes
    Size queue_head_ = 0;
    Size kind_ = Kind::none;
    GrowingArray<Index> chunk_;         // rows explored since the chunk was opened
    GrowingArray<Index> leaves_;        // and the nodes where their searches began
    GrowingArray<float> staged_ranks_;  // what refreshes found
    GrowingArray<std::uint32_t> staged_tags_;
    GrowingArray<Offer> offers_;

    Size first_new_ = 0;  // rows before it have been reported
    std::vector<Size> updated_;
    Size compared_ = 0;
};

}  // namespace vicinal
