// Neighbors of sparse rows from lists of the rows that store each column: for a head, each stored column adds to the
// sums of the rows that also store it.
//
//   sum over columns of step(x, y) = sum step(x, 0) + sum step(0, y) + sum over shared columns of
//                                    step(x, y) - step(x, 0) - step(0, y)
//
// The first two sums belong to one row each. Sums are float64, so enough digits remain after cancellation. They run in
// the order of the columns in both directions, so a pair has the same bits for both rows.
#pragma once

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "neighbors/heap_push.hpp"
#include "neighbors/pair_terms.hpp"
#include "neighbors/sparse_index.hpp"

#include <algorithm>

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE SparseRow sparse_row(const SparseView& rows, Size i) {
    const Size begin = rows.csr.indptr[i];
    return {rows.csr.indices + begin, rows.csr.weights + begin, rows.csr.indptr[i + 1] - begin};
}

// T ranks the pairs; Sums are computed from the lists: T itself if it is additive.
template <class T>
class SparseSearcher {
    using Sums = std::conditional_t<T::additive, T, SquaredTerms>;

  public:
    SparseSearcher(const Postings& postings, const SparseTask& task)
        : postings_(postings), task_(task), pool_size_(task.budget > 0 ? task.pool : task.k),
          shared_(postings.rows * Sums::sums), touched_(postings.rows), is_touched_(postings.rows), best_(task.k),
          pool_(pool_size_) {
        std::memset(shared_.data(), 0, static_cast<std::size_t>(postings.rows * Sums::sums) * sizeof(double));
        std::memset(is_touched_.data(), 0, static_cast<std::size_t>(postings.rows));
    }

    void run(Size head) {
        head_ = head;
        row_ = sparse_row(task_.heads, head);
        flat_ = task_.heads.is_flat(head);
        best_.clear();
        if (task_.budget > 0)
            rank_likely();
        else if (T::additive)
            rank_all_by_lists();
        else
            for (Size j = 0; j < postings_.rows; ++j) evaluate(static_cast<Index>(j));
        for (Size e = 0; e < task_.k; ++e) {
            const bool known = best_.row.rank[e] < no_rank;
            task_.index[head * task_.stride + e] = known ? best_.row.index(e) : -1;
            task_.rank[head * task_.stride + e] = best_.row.rank[e];
        }
    }

  private:
    // The best rows found, sorted.
    struct Best {
        explicit Best(Size size)
            : k(size), ranks(size + heap_pad), tags(size + heap_pad), row{ranks.data(), tags.data()} {}
        void clear() {
            for (Size e = 0; e < k + heap_pad; ++e) {
                row.rank[e] = no_rank;
                row.tag[e] = no_tag;
            }
        }
        VICINAL_INLINE void offer(double rank, Index j) {
            const auto value = static_cast<float>(rank > 0.0 ? rank : 0.0);
            if (value < row.rank[k - 1]) insert_sorted(row, k, value, j);
        }
        const Size k;
        Scratch<float> ranks;
        Scratch<std::uint32_t> tags;
        HeapRow row;
    };

    VICINAL_INLINE double apart(Index j) const { return flat_ != task_.tails.is_flat(j) ? 1.0 : 0.0; }

    VICINAL_INLINE void evaluate(Index j) {
        if (task_.itself && j == head_) return;
        best_.offer(rank_sparse<T>(row_, sparse_row(task_.tails, j), task_.rule) + apart(j), j);
    }

    // Adds the list of a column and calls `touch` with each of its rows.
    template <class Touch>
    VICINAL_INLINE void add_list(Size e, const Touch& touch) {
        const double x = row_.value[e];
        double x_alone[Sums::sums] = {};
        Sums::step(x, 0.0, x_alone, task_.rule);
        const Postings::List list = postings_.list(row_.column[e]);
        for (Size p = list.begin; p < list.end; ++p) {
            const double y = postings_.value[p];
            double both[Sums::sums] = {}, y_alone[Sums::sums] = {};
            Sums::step(x, y, both, task_.rule);
            Sums::step(0.0, y, y_alone, task_.rule);
            double* sum = shared_.data() + postings_.row[p] * Sums::sums;
            for (int s = 0; s < Sums::sums; ++s) sum[s] += both[s] - x_alone[s] - y_alone[s];
            touch(postings_.row[p]);
        }
    }

    // The rank from the lists added so far; resets their sums.
    VICINAL_INLINE double take_rank(const double* own, Size j) {
        double* shared = shared_.data() + j * Sums::sums;
        double sum[Sums::sums];
        for (int s = 0; s < Sums::sums; ++s) {
            sum[s] = own[s] + postings_.alone[j * most_sums + s] + shared[s];
            shared[s] = 0.0;
        }
        return Sums::rank(sum, task_.rule) + apart(static_cast<Index>(j));
    }

    void sum_own(double* own) const {
        for (Size e = 0; e < row_.n; ++e) Sums::step(static_cast<double>(row_.value[e]), 0.0, own, task_.rule);
    }

    void rank_all_by_lists() {
        double own[Sums::sums] = {};
        sum_own(own);
        for (Size e = 0; e < row_.n; ++e) add_list(e, [](Index) {});
        for (Size j = 0; j < postings_.rows; ++j) {
            const double rank = take_rank(own, j);
            if (!(task_.itself && j == head_)) best_.offer(rank, static_cast<Index>(j));
        }
    }

    // Adds the shortest lists first, within the budget: columns that few rows store say most about which rows are
    // near. The best rows by these sums are evaluated. A row that shares no column with
    // any other gets the rows that follow it, because nothing tells them apart.
    void rank_likely() {
        double own[Sums::sums] = {};
        sum_own(own);
        order_.resize(row_.n);
        length_.resize(row_.n);
        for (Size e = 0; e < row_.n; ++e) {
            order_[e] = e;
            length_[e] = postings_.list(row_.column[e]).length();
        }
        const auto length = [&](Size e) { return length_[e]; };
        std::sort(order_.data(), order_.data() + row_.n,
                  [&](Size x, Size y) { return length(x) < length(y) || (length(x) == length(y) && x < y); });
        Size touched = 0, spent = 0;
        for (Size e = 0; e < row_.n && spent + length(order_[e]) <= task_.budget; ++e) {
            spent += length(order_[e]);
            add_list(order_[e], [&](Index j) {
                if (is_touched_[j] == 0) touched_[touched++] = j;
                is_touched_[j] = 1;
            });
        }
        pool_.clear();
        for (Size t = 0; t < touched; ++t) {
            is_touched_[touched_[t]] = 0;
            pool_.offer(take_rank(own, touched_[t]), touched_[t]);
        }
        Size seen = 0;
        for (Size e = 0; e < pool_.k && pool_.row.holds(e); ++e, ++seen) evaluate(pool_.row.index(e));
        for (Size step = 1; seen <= task_.k && step < postings_.rows; ++step, ++seen)
            evaluate(static_cast<Index>((head_ + step) % postings_.rows));
    }

    const Postings& postings_;
    const SparseTask& task_;
    const Size pool_size_;
    Scratch<double> shared_;
    Scratch<Index> touched_;
    Scratch<std::uint8_t> is_touched_;
    Scratch<Size> order_, length_;
    Best best_, pool_;
    Size head_ = 0;
    SparseRow row_{};
    bool flat_ = false;
};

inline void sparse_nearest(const Postings& postings, const SparseTask& task, ThreadTeam& team) {
    with_terms(task.rule.terms, [&]<class T>() {
        team.parallel_for(task.heads.csr.rows, 32, [&](Size begin, Size end, int) {
            SparseSearcher<T> searcher(postings, task);
            for (Size i = begin; i < end; ++i) searcher.run(i);
        });
    });
}

// The part of every tail alone: sum step(0, y).
inline void sum_alone(const SparseView& rows, const PairRule& rule, double* out, ThreadTeam& team) {
    with_terms(rule.terms, [&]<class T>() {
        team.parallel_for(rows.csr.rows, 256, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) {
                const SparseRow row = sparse_row(rows, i);
                using Sums = std::conditional_t<T::additive, T, SquaredTerms>;
                double sum[Sums::sums] = {};
                for (Size e = 0; e < row.n; ++e) Sums::step(0.0, static_cast<double>(row.value[e]), sum, rule);
                for (int s = 0; s < Sums::sums; ++s) out[i * most_sums + s] = sum[s];
            }
        });
    });
}

}  // namespace vicinal::VICINAL_LEVEL
