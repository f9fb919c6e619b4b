// All pairs of sparse rows by the columns' lists of rows: for a head, each stored column adds to the sums of the
// rows that store it too, and nothing else is touched.
//
//   sum over columns of step(x, y) = sum step(x, 0) + sum step(0, y) + sum over shared columns of
//                                    step(x, y) - step(x, 0) - step(0, y)
//
// The first two are the rows' own. Sums are float64, so what cancels leaves enough digits; they are taken in the order
// of the columns from both sides, so a pair has the same bits whichever row asks.
#pragma once

#include "heap_push.hpp"
#include "pair_terms.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "sparse_index.hpp"

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE SparseRow sparse_row(const SparseView& rows, Size i) {
    const Size begin = rows.csr.indptr[i];
    return {rows.csr.indices + begin, rows.csr.weights + begin, rows.csr.indptr[i + 1] - begin};
}

template <class T>
class SparseSearcher {
  public:
    SparseSearcher(const Postings& postings, const SparseTask& task)
        : postings_(postings), task_(task), shared_(postings.rows * T::sums), ranks_(task.k + heap_pad),
          tags_(task.k + heap_pad), best_{ranks_.data(), tags_.data()} {}

    void run(Size head) {
        for (Size e = 0; e < task_.k + heap_pad; ++e) {
            best_.rank[e] = no_rank;
            best_.tag[e] = no_tag;
        }
        const SparseRow row = sparse_row(task_.heads, head);
        double own[T::sums] = {};
        for (Size e = 0; e < row.n; ++e) T::step(static_cast<double>(row.value[e]), 0.0, own, task_.rule);
        add_shared(row);
        rank_all(own, task_.heads.is_flat(head), task_.itself ? head : -1);
        for (Size e = 0; e < task_.k; ++e) {
            task_.index[head * task_.stride + e] = best_.holds(e) ? best_.index(e) : -1;
            task_.rank[head * task_.stride + e] = best_.rank[e];
        }
    }

  private:
    void add_shared(const SparseRow& row) {
        double* shared = shared_.data();
        std::memset(shared, 0, static_cast<std::size_t>(postings_.rows * T::sums) * sizeof(double));
        for (Size e = 0; e < row.n; ++e) {
            const double x = row.value[e];
            double x_alone[T::sums] = {};
            T::step(x, 0.0, x_alone, task_.rule);
            for (Size p = postings_.begin[row.column[e]]; p < postings_.begin[row.column[e] + 1]; ++p) {
                const double y = postings_.value[p];
                double both[T::sums] = {}, y_alone[T::sums] = {};
                T::step(x, y, both, task_.rule);
                T::step(0.0, y, y_alone, task_.rule);
                double* sum = shared + postings_.row[p] * T::sums;
                for (int s = 0; s < T::sums; ++s) sum[s] += both[s] - x_alone[s] - y_alone[s];
            }
        }
    }

    void rank_all(const double* own, bool flat, Size itself) {
        const double* shared = shared_.data();
        float worst = no_rank;
        for (Size j = 0; j < postings_.rows; ++j) {
            double sum[T::sums];
            for (int s = 0; s < T::sums; ++s)
                sum[s] = own[s] + postings_.alone[j * most_sums + s] + shared[j * T::sums + s];
            float rank = static_cast<float>(T::rank(sum, task_.rule));
            if (flat != task_.tails.is_flat(j)) rank += 1.0f;
            if (!(rank < worst) || j == itself) continue;
            insert_sorted(best_, task_.k, rank > 0.0f ? rank : 0.0f, static_cast<Index>(j));
            worst = best_.rank[task_.k - 1];
        }
    }

    const Postings& postings_;
    const SparseTask& task_;
    Scratch<double> shared_;
    Scratch<float> ranks_;
    Scratch<std::uint32_t> tags_;
    HeapRow best_;
};

inline void sparse_nearest(const Postings& postings, const SparseTask& task, ThreadTeam& team) {
    with_terms(task.rule.terms, [&]<class T>() {
        if constexpr (T::additive)
            team.parallel_for(task.heads.csr.rows, 16, [&](Size begin, Size end, int) {
                SparseSearcher<T> searcher(postings, task);
                for (Size i = begin; i < end; ++i) searcher.run(i);
            });
    });
}

// What every tail adds alone: sum step(0, y).
inline void sum_alone(const SparseView& rows, const PairRule& rule, double* out, ThreadTeam& team) {
    with_terms(rule.terms, [&]<class T>() {
        team.parallel_for(rows.csr.rows, 256, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) {
                const SparseRow row = sparse_row(rows, i);
                double sum[T::sums] = {};
                for (Size e = 0; e < row.n; ++e) T::step(0.0, static_cast<double>(row.value[e]), sum, rule);
                for (int s = 0; s < T::sums; ++s) out[i * most_sums + s] = sum[s];
            }
        });
    });
}

// Rows of about the same distances in few columns: each column goes to all of them with a random sign
// (Achlioptas 2003). Rows of equal direction count as equal where `unit` is set, of equal support where `truth` is.
inline void sketch_sparse(const SparseView& rows, const SparseSketch& how, float* out, ThreadTeam& team) {
    const std::uint64_t key = stream_key(how.seed, Stream::sketch);
    team.parallel_for(rows.csr.rows, 64, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            const SparseRow row = sparse_row(rows, i);
            float sum[SparseSketch::width] = {};
            double length2 = 0.0;
            for (Size e = 0; e < row.n; ++e) {
                const float value = how.truth ? (row.value[e] != 0.0f ? 1.0f : 0.0f) : row.value[e];
                length2 += static_cast<double>(value) * value;
                for (Size w = 0; w < SparseSketch::width; w += 64) {
                    const std::uint64_t signs = mix64(key ^ mix64(static_cast<std::uint64_t>(row.column[e]) << 8 | w));
                    for (Size b = 0; b < 64; ++b) sum[w + b] += (signs >> b & 1) != 0 ? value : -value;
                }
            }
            const float scale = how.unit && length2 > 0.0 ? static_cast<float>(1.0 / std::sqrt(length2)) : 1.0f;
            for (Size w = 0; w < SparseSketch::width; ++w) out[i * SparseSketch::width + w] = sum[w] * scale;
        }
    });
}

}  // namespace vicinal::VICINAL_LEVEL
