// Compares lists of rows while a table is built: leaves of a tree, local joins of NN-descent and blocks of the exact
// search (compare_all) are all a list of heads against a list of tails.
//
// A pair whose sketch (SketchTile in sketch.hpp) is within the limit of either row is evaluated in full, unless the
// sketch is exact, and offered to both rows.
#pragma once

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "neighbors/heap_push.hpp"
#include "neighbors/metric.hpp"
#include "neighbors/search_space.hpp"
#include "neighbors/sketch.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace vicinal::VICINAL_LEVEL {

// Floats of working memory per worker: the sketches and the bounds of the tails.
constexpr Size join_scratch_floats(Size sketch_dim) {
    return SketchTile<Squared>::scratch_floats(sketch_dim) + most_tails;
}

// Pairs are ranked by their sketches and compared with the k-th entries of both rows. Exact if the sketches are.
struct SketchLimit {
    static constexpr bool final = true;
    const NeighborHeap& heap;
    VICINAL_INLINE float operator()(Index row) const { return heap.bound(row); }
};

// A sketch never ranks a pair worse than the rows do, so no neighbor is lost.
struct LowerBoundLimit {
    static constexpr bool final = false;
    const SearchSpace& space;
    const NeighborHeap& heap;
    VICINAL_INLINE float operator()(Index row) const { return space.relaxed(heap.bound(row)); }
};

// One limit per row, fixed before the loop. So it can be tighter than the bound without making the result depend on
// the order of the threads.
struct FixedLimit {
    static constexpr bool final = false;
    const float* limit;
    VICINAL_INLINE float operator()(Index row) const { return limit[row]; }
};

// Every pair is evaluated, because nothing is known about its rank.
struct NoLimit {
    static constexpr bool final = false;
    VICINAL_INLINE float operator()(Index) const { return no_rank; }
};

template <class Rank, Source source, class Limit>
class Join {
    using Tile = SketchTile<Rank, fused_is_slow>;

  public:
    Join(const SearchSpace& space, const NeighborHeap& heap, const Limit& limit, float* scratch,
         const KnownPairs* known = nullptr)
        : space_(space), heap_(heap), limit_(limit), known_(known), tile_(space, scratch),
          bounds_(scratch + Tile::scratch_floats(space.sketch_dim)) {}

    // Compares every head with every tail. With `overlap`, the first n_heads tails are the heads themselves, and each
    // pair among them is compared once.
    template <bool owned = false>
    void run(const Index* heads, Size n_heads, const Index* tails, Size n_tails, bool overlap) {
        pack(tails, n_tails);
        for (Size h = 0; h < n_heads; h += 4) {
            const Size rows = n_heads - h < 4 ? n_heads - h : 4;
            const Size from = overlap ? (h / lanes) * lanes : 0;
            tile_.rank(space_, heads + h, rows, from);
            for (Size r = 0; r < rows; ++r) {
                const Size first = overlap ? h + r + 1 : 0;
                offer<owned>(heads[h + r], r, tails, n_tails, first);
            }
        }
    }

    // Compares all rows with each other, for rows whose lists no other thread writes to: they need no locks.
    void run_owned(const Index* rows, Size n) {
        const Size cuts = (n + most_tails - 1) / most_tails;
        for (Size x = 0; x < cuts; ++x)
            for (Size y = x; y < cuts; ++y) {
                const Size heads = n * x / cuts, tails = n * y / cuts;
                run<true>(rows + heads, n * (x + 1) / cuts - heads, rows + tails, n * (y + 1) / cuts - tails, x == y);
            }
    }

  private:
    // Prefetches what the join needs of the tails.
    void pack(const Index* tails, Size n) {
        for (Size j = 0; j < n; ++j) {
            prefetch(space_.sketch_row(tails[j]), space_.sketch_stride * static_cast<Size>(sizeof(float)));
            prefetch(heap_.row(tails[j]).rank, heap_.k * static_cast<Size>(sizeof(float)));
            prefetch(heap_.row(tails[j]).tag, heap_.k * static_cast<Size>(sizeof(float)));
        }
        tile_.pack(tails, n);
        for (Size j = 0; j < tile_.padded(); ++j) bounds_[j] = j < n ? limit_(tails[j]) : -1.0f;
    }

    template <bool owned>
    VICINAL_INLINE void offer(Index head, Size r, const Index* tails, Size n, Size first) {
        const float* ranks = tile_.ranks(r);
        float own = limit_(head);
        for (Size j = first / lanes * lanes; j < n; j += lanes) {
            const Float rank = load<Float>(ranks + j);
            std::uint32_t pass = bits_of((rank <= own) | (rank <= load<Float>(bounds_ + j)));
            if (j < first) pass &= ~0u << (first - j);
            if (n - j < lanes) pass &= (1u << (n - j)) - 1u;
            [[maybe_unused]] const float own_before = own;
            [[maybe_unused]] const Float bounds_before = load<Float>(bounds_ + j);
            for (; pass != 0; pass &= pass - 1) {
                const Size at = j + std::countr_zero(pass);
                float pair = ranks[at];
                if constexpr (Tile::gives_bounds) {
                    pair = tile_.rank_of(r, at);
                    if (!(pair <= own_before) && !(pair <= bounds_before[at - j])) continue;
                }
                compare<owned>(head, tails[at], pair);
                if constexpr (owned) {
                    own = limit_(head);
                    bounds_[at] = limit_(tails[at]);
                }
            }
        }
    }

    template <bool owned>
    VICINAL_INLINE void compare(Index head, Index tail, float rank) {
        if (head == tail || (known_ != nullptr && known_->meets_again(head, tail))) return;
        if constexpr (!Limit::final) {
            // Pairs that already list each other are skipped: the check is cheaper than an evaluation.
            if (contains(heap_, head, tail) && contains(heap_, tail, head)) return;
            rank = rank_rows<Rank, source>(space_, head, tail);
        }
        offer_pair<owned>(heap_, head, tail, rank);
    }

    const SearchSpace& space_;
    const NeighborHeap& heap_;
    const Limit limit_;
    const KnownPairs* known_;
    Tile tile_;
    float* bounds_;
};

// Rows per block. Blocks of very long rows are small, so that an interrupt is answered soon.
constexpr Size exact_block_rows(Size cols) { return cols <= (Size{1} << 14) ? 128 : 16; }

// Compares every pair of rows once, in blocks: the symmetric half of the distance matrix, which is never stored.
template <class Rank, Source source, class Limit>
void compare_all(const SearchSpace& space, const NeighborHeap& heap, const Limit& limit, ThreadTeam& team) {
    const Size exact_block = exact_block_rows(space.rows.cols);
    const Size n = heap.rows, n_blocks = (n + exact_block - 1) / exact_block;
    Scratch<float> scratch(team.size() * join_scratch_floats(space.sketch_dim));
    Scratch<Index> ids(n);
    for (Size i = 0; i < n; ++i) ids[i] = static_cast<Index>(i);
    // The diagonal blocks come first: they fill the heaps, so sketches reject most pairs of the later blocks.
    const auto run = [&](Size head, Size tail, int worker) {
        Join<Rank, source, Limit> join(space, heap, limit,
                                       scratch.data() + worker * join_scratch_floats(space.sketch_dim));
        const Size h = head * exact_block, t = tail * exact_block;
        join.run(ids.data() + h, std::min(exact_block, n - h), ids.data() + t, std::min(exact_block, n - t),
                 head == tail);
    };
    team.parallel_for(n_blocks, 1, [&](Size begin, Size end, int worker) {
        for (Size b = begin; b < end; ++b) run(b, b, worker);
    });
    team.parallel_for(n_blocks, 1, [&](Size begin, Size end, int worker) {
        for (Size head = begin; head < end; ++head)
            for (Size tail = head + 1; tail < n_blocks; ++tail) run(head, tail, worker);
    });
}

}  // namespace vicinal::VICINAL_LEVEL
