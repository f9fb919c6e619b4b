// Search along a graph: repeatedly expands the nearest row of a pool of the best rows found, until all are expanded.
// The caller provides the graph:
//
//   graph.expand(row, f)        calls f(rows, n) for parts of the neighbor list of a row
//   graph.prefetch(row)         fetches that list into the cache
//   graph.wanted(row)           the largest sketch rank at which the row itself wants the pair evaluated
//   graph.evaluated(row, rank)  is called for every pair that was ranked in full
#pragma once

#include "base/rng.hpp"
#include "base/scratch.hpp"
#include "neighbors/heap_push.hpp"
#include "neighbors/metric.hpp"

#include <algorithm>
#include <bit>

namespace vicinal::VICINAL_LEVEL {

// Rows that were already considered: open addressing, cleared for each query.
class VisitedSet {
  public:
    VisitedSet() : slots_(first_capacity) { clear(); }

    void clear() {
        for (Size s = 0; s < capacity_; ++s) slots_[s] = -1;
        used_ = 0;
    }

    bool contains(Index row) const { return slots_[find(row)] == row; }

    bool insert(Index row) {
        const Size s = find(row);
        if (slots_[s] == row) return false;
        slots_[s] = row;
        if (2 * ++used_ > capacity_) grow();
        return true;
    }

  private:
    static constexpr Size first_capacity = 2048;

    // The slot of a row, or the free one where it belongs.
    VICINAL_INLINE Size find(Index row) const {
        Size s = static_cast<Size>(finalize32(static_cast<std::uint32_t>(row))) & (capacity_ - 1);
        while (slots_[s] >= 0 && slots_[s] != row) s = (s + 1) & (capacity_ - 1);
        return s;
    }

    void grow() {
        Scratch<Index> rows(capacity_);
        const Size old = capacity_;
        std::memcpy(rows.data(), slots_.data(), static_cast<std::size_t>(old) * sizeof(Index));
        capacity_ *= 2;
        slots_.resize(capacity_);
        clear();
        for (Size s = 0; s < old; ++s)
            if (rows[s] >= 0) insert(rows[s]);
    }

    Size capacity_ = first_capacity;
    Size used_ = 0;
    Scratch<Index> slots_;
};

constexpr Size most_candidates = 512;  // candidates considered together
constexpr Size block_candidates = 32;  // candidates sorted by their whole sketch at once
constexpr Size float_bytes = sizeof(float);

// The columns of a sketch that are compared first: a part never ranks a pair worse than the whole, and most rows are
// rejected by it. A coarse sketch is compared as a whole.
VICINAL_INLINE Size first_columns(const SearchSpace& space) {
    return space.coarse.data != nullptr || space.sketch_stride < sketch_width ? space.sketch_stride : sketch_width / 2;
}

// The pool belongs to the caller; it has `width` entries, padded to whole vectors.
template <class Rank, Source source, class Graph>
class PoolSearch {
  public:
    PoolSearch(const SearchSpace& space, const SearchSpace& heads, Size width, float share, Graph& graph)
        : space_(space), heads_(heads), width_(width), share_(share), graph_(graph) {}

    // Rows of `elsewhere`, unless it is null, count as considered.
    void start(Size head, HeapRow pool, const VisitedSet* elsewhere = nullptr) {
        head_ = head;
        pool_ = pool;
        elsewhere_ = elsewhere;
        visited_.clear();
    }

    void skip(Index row) { visited_.insert(row); }

    // Considers those of all n rows that were not considered before; nothing comes after it, so they are not noted.
    void consider_every_row(Size n) {
        Candidate rows[most_candidates];
        for (Size begin = 0; begin < n; begin += most_candidates) {
            Size count = 0;
            for (Size row = begin; row < n && row < begin + most_candidates; ++row)
                if (!visited_.contains(static_cast<Index>(row))) rows[count++].row = static_cast<Index>(row);
            consider_candidates(rows, count);
        }
    }

    void expand_all() {
        for (Size e = 0; e < width_ && pool_.holds(e);) {
            if (!is_fresh(pool_.tag[e])) {
                ++e;
                continue;
            }
            pool_.tag[e] &= ~1u;
            // The next row to expand, unless a nearer one is found.
            for (Size next = e + 1; next < width_ && pool_.holds(next); ++next)
                if (is_fresh(pool_.tag[next])) {
                    graph_.prefetch(pool_.index(next));
                    break;
                }
            graph_.expand(pool_.index(e), [&](const Index* rows, Size n) { consider_all(rows, n); });
            e = 0;
        }
    }

    // Considers rows that were not considered before.
    void consider_all(const Index* rows, Size n) {
        Candidate fresh[most_candidates];
        for (Size begin = 0; begin < n; begin += most_candidates) {
            Size count = 0;
            for (Size i = begin; i < n && i < begin + most_candidates; ++i)
                if (!(elsewhere_ != nullptr && elsewhere_->contains(rows[i])) && visited_.insert(rows[i])) {
                    fetch_sketch(rows[i]);
                    fresh[count++].row = rows[i];
                }
            consider_candidates(fresh, count);
        }
    }

    // Considers n rows by the ranks of their whole sketches, which are padded to whole vectors.
    void consider_estimated(const Index* rows, const float* estimates, Size n) {
        alignas(64) float ranks[block_candidates];
        alignas(64) std::uint32_t tags[block_candidates];
        const HeapRow nearest{ranks, tags};
        nearest.clear(block_candidates);
        each_within(estimates, n, ranks[block_candidates - 1],
                    [&](Size i) { insert_sorted(nearest, block_candidates, estimates[i], rows[i]); });
        for (Size e = 0; e < block_candidates && nearest.holds(e); ++e) {
            if (!is_promising(ranks[e], nearest.index(e))) return;
            if (e + 1 < block_candidates && nearest.holds(e + 1)) prefetch_row(space_, nearest.index(e + 1));
            consider({ranks[e], nearest.index(e)});
        }
        // The other rows that the pool admits. The nearest ones were considered above.
        Candidate some[most_candidates];
        Size count = 0;
        const float limit = limit_of_pool();
        each_within(estimates, n, limit, [&](Size i) {
            if (estimates[i] < ranks[block_candidates - 1]) return;
            some[count++] = {estimates[i], rows[i]};
            if (count < most_candidates) return;
            consider_ranked(some, count, space_.sketch_stride);
            count = 0;
        });
        consider_ranked(some, count, space_.sketch_stride);
    }

    // Notes that the neighbors of the rows for which f(row) holds were considered.
    template <class F>
    void skip_expansion(const F& f) {
        for (Size e = 0; e < width_ && pool_.holds(e); ++e)
            if (f(pool_.index(e))) pool_.tag[e] &= ~1u;
    }

    Size sketches_compared = 0, evaluated = 0;

  private:
    // A row and what is known of its rank.
    struct Candidate {
        float rank;
        Index row;
    };

    static constexpr auto comes_before = [](const Candidate& x, const Candidate& y) {
        return precedes(x.rank, x.row, y.rank, y.row);
    };

    // Considers candidates first by a part of their sketch (first_columns), then by the whole, then by the row. Memory
    // is prefetched.
    void consider_candidates(Candidate* some, Size count) {
        const Size first = first_columns(space_);
        sketches_compared += count;
        Size kept = 0;
        for (Size i = 0; i < count; ++i) {
            const Index row = some[i].row;
            const float rank = rank_first(row, first);
            if (is_promising(rank, row)) some[kept++] = {rank, row};
        }
        consider_ranked(some, kept, first);
    }

    VICINAL_INLINE void fetch_sketch(Index row) const {
        if (space_.coarse.data != nullptr)
            prefetch(space_.coarse.row(row), space_.coarse.stride);
        else
            prefetch(space_.sketch_row(row), first_columns(space_) * float_bytes);
    }

    // The rank of a row by the first columns of its sketch, or by its coarse sketch.
    VICINAL_INLINE float rank_first(Index row, Size first) const {
        if constexpr (std::is_same_v<Rank, Squared>)
            if (space_.coarse.data != nullptr) return rank_coarse(heads_, head_, space_, row);
        return rank_pair<Rank, false>(heads_.sketch_row(head_), {}, space_.sketch_row(row), {}, first);
    }

    // Considers candidates that are ranked by the first columns of their sketches, the nearest first, so that the limit
    // is tight for the rest.
    void consider_ranked(Candidate* some, Size n, Size columns) {
        for (; n > block_candidates; n = keep_promising(some, n - block_candidates)) {
            std::nth_element(some, some + block_candidates, some + n, comes_before);
            consider_block(some, block_candidates, columns);
            some += block_candidates;
        }
        consider_block(some, n, columns);
    }

    // Considers candidates that are ranked by the first columns of their sketches.
    void consider_block(Candidate* block, Size n, Size first) {
        if (const Size rest = space_.sketch_stride - first; rest > 0) {
            n = keep_promising(block, n);
            for (Size i = 0; i < n; ++i) prefetch(space_.sketch_row(block[i].row) + first, rest * float_bytes);
            const float* query = heads_.sketch_row(head_);
            for (Size i = 0; i < n; ++i)
                block[i].rank =
                    rank_pair<Rank, false>(query, {}, space_.sketch_row(block[i].row), {}, space_.sketch_stride);
        }
        n = keep_promising(block, n);
        std::sort(block, block + n, comes_before);
        for (Size i = 0; i < n; ++i) {
            if (!is_promising(block[i].rank, block[i].row)) continue;
            if (i + 1 < n) prefetch_row(space_, block[i + 1].row);
            consider(block[i]);
        }
    }

    Size keep_promising(Candidate* some, Size n) const {
        Size kept = 0;
        for (Size i = 0; i < n; ++i)
            if (is_promising(some[i].rank, some[i].row)) some[kept++] = some[i];
        return kept;
    }

    // Whether the sketch justifies a full evaluation, for either row.
    VICINAL_INLINE bool is_promising(float rank, Index row) const {
        if constexpr (source == Source::pairs) return true;
        return rank <= limit_of_pool() || rank <= graph_.wanted(row);
    }

    // The largest rank by sketch of a row that may enter the pool.
    VICINAL_INLINE float limit_of_pool() const {
        const float worst = pool_.rank[width_ - 1];
        return share_ < 1.0f ? share_ * worst : space_.relaxed(worst);
    }

    // Calls f(i) for every i < n whose value is at most the limit, which f may lower.
    template <class F>
    static VICINAL_INLINE void each_within(const float* values, Size n, const float& limit, const F& f) {
        for (Size j = 0; j < n; j += lanes) {
            std::uint32_t pass = bits_of(load<Float>(values + j) <= limit);
            if (n - j < lanes) pass &= (1u << (n - j)) - 1u;
            for (; pass != 0; pass &= pass - 1)
                if (const Size i = j + std::countr_zero(pass); values[i] <= limit) f(i);
        }
    }

    VICINAL_INLINE void consider(Candidate candidate) {
        if (!space_.sketch_exact) {
            candidate.rank = rank_rows<Rank, source>(heads_, head_, space_, candidate.row);
            ++evaluated;
        }
        if (!(candidate.rank < no_rank)) return;
        graph_.evaluated(candidate.row, candidate.rank);
        insert_sorted(pool_, width_, candidate.rank, candidate.row);
    }

    const SearchSpace& space_;
    const SearchSpace& heads_;
    const Size width_;
    const float share_;
    Graph& graph_;
    HeapRow pool_{};
    const VisitedSet* elsewhere_ = nullptr;
    VisitedSet visited_;
    Size head_ = 0;
};

}  // namespace vicinal::VICINAL_LEVEL
