// Compares lists of rows while a table is built: leaves of a tree, local joins of NN-descent and blocks of the exact
// search are all a list of heads against a list of tails.
//
// The sketches of the tails are transposed, so that lanes are tails; four heads share every load. A pair whose sketch
// is within the limit of either row is evaluated in full, unless the sketch is exact, and offered to both rows.
#pragma once

#include "neighbors/heap_push.hpp"
#include "neighbors/known_pairs.hpp"
#include "neighbors/metric.hpp"
#include "neighbors/search_space.hpp"

#include <bit>
#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

// Floats of working memory per worker: transposed sketches, ranks of four heads, bounds and rests of the tails.
constexpr Size padded_columns(Size sketch_dim) { return (sketch_dim + 3) / 4 * 4; }
constexpr Size join_scratch_floats(Size sketch_dim) { return (padded_columns(sketch_dim) + 4 + 2) * most_tails; }

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

// How the ranks of sketches add up, from what the rows add by themselves: by differences, or as |x|^2 + |y|^2 - 2 x y.
template <class Rank>
struct Differences {
    static VICINAL_INLINE Float start(Float own) { return own; }
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) { return Rank::step(sum, x, y); }
    static VICINAL_INLINE Float finish(Float sum) { return sum; }
};

struct Products {
    static VICINAL_INLINE Float start(Float own) { return own * -0.5f; }
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) { return multiply_add(x, y, sum); }
    static VICINAL_INLINE Float finish(Float sum) { return max(sum * -2.0f, Float{}); }
};

template <class Rank, Source source, class Limit>
class Join {
  public:
    Join(const SearchSpace& space, const NeighborHeap& heap, const Limit& limit, float* scratch,
         const KnownPairs* known = nullptr)
        : space_(space), heap_(heap), limit_(limit), known_(known), columns_(scratch),
          ranks_(columns_ + padded_columns(space.sketch_dim) * most_tails), bounds_(ranks_ + 4 * most_tails),
          rests_(bounds_ + most_tails), products_(std::is_same_v<Rank, Squared> && space.shown != nullptr) {}

    // Compares every head with every tail. With `overlap`, the first n_heads tails are the heads themselves, and each
    // pair among them is compared once.
    template <bool owned = false>
    void run(const Index* heads, Size n_heads, const Index* tails, Size n_tails, bool overlap) {
        pack(tails, n_tails);
        for (Size h = 0; h < n_heads; h += 4) {
            const Size rows = n_heads - h < 4 ? n_heads - h : 4;
            const Size from = overlap ? (h / lanes) * lanes : 0;
            rank_sketches(heads + h, rows, from);
            for (Size r = 0; r < rows; ++r) {
                const Size first = overlap ? h + r + 1 : 0;
                offer<owned>(heads[h + r], tails, n_tails, first, ranks_ + r * most_tails);
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
    // Prefetches what the join needs, and transposes the sketches of the tails.
    void pack(const Index* tails, Size n) {
        for (Size j = 0; j < n; ++j) {
            prefetch(space_.sketch_row(tails[j]), space_.sketch_stride * static_cast<Size>(sizeof(float)));
            prefetch(heap_.row(tails[j]).rank, heap_.k * static_cast<Size>(sizeof(float)));
            prefetch(heap_.row(tails[j]).tag, heap_.k * static_cast<Size>(sizeof(float)));
        }
        padded_ = (n + 2 * lanes - 1) / (2 * lanes) * (2 * lanes);
        for (Size j = 0; j < padded_; ++j) {
            bounds_[j] = j < n ? limit_(tails[j]) : -1.0f;
            rests_[j] = j < n ? own_part(tails[j]) : 0.0f;
        }
        for (Size j = 0; j < padded_; j += 4) {
            const float* sketch[4];
            for (Size r = 0; r < 4; ++r) sketch[r] = space_.sketch_row(tails[j + r < n ? j + r : 0]);
            for (Size k = 0; k < space_.sketch_dim; k += 4) transpose4(sketch, k, columns_ + k * padded_ + j);
        }
    }

    // What a row adds to the rank of a pair whatever the other row is.
    VICINAL_INLINE float own_part(Index row) const {
        return products_ ? space_.weighted_rest(row) + space_.shown[row] : space_.weighted_rest(row);
    }

    // Four columns of four sketches; columns between sketch_dim and the padded stride are zero.
    VICINAL_INLINE void transpose4(const float* const (&sketch)[4], Size k, float* out) const {
        typedef float Quad __attribute__((vector_size(16)));
        const Quad a = load<Quad>(sketch[0] + k), b = load<Quad>(sketch[1] + k);
        const Quad c = load<Quad>(sketch[2] + k), d = load<Quad>(sketch[3] + k);
        const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        store(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
        store(out + padded_, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
        store(out + 2 * padded_, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
        store(out + 3 * padded_, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }

    VICINAL_INLINE void rank_sketches(const Index* heads, Size rows, Size from) {
        const float* x[4];
        Float rest[4];
        for (Size r = 0; r < 4; ++r) {
            const Index head = heads[r < rows ? r : 0];
            x[r] = space_.sketch_row(head);
            rest[r] = splat<Float>(own_part(head));
        }
        if (products_)
            accumulate<Products>(x, rest, from);
        else
            accumulate<Differences<Rank>>(x, rest, from);
    }

    template <class Sum>
    VICINAL_INLINE void accumulate(const float* const (&x)[4], const Float (&rest)[4], Size from) {
        for (Size j = from / (2 * lanes) * (2 * lanes); j < padded_; j += 2 * lanes) {
            Float sum[4][2];
            for (int r = 0; r < 4; ++r) {
                sum[r][0] = Sum::start(rest[r] + load<Float>(rests_ + j));
                sum[r][1] = Sum::start(rest[r] + load<Float>(rests_ + j + lanes));
            }
            const float* column = columns_ + j;
            for (Size k = 0; k < space_.sketch_dim; ++k, column += padded_) {
                const Float y0 = load<Float>(column), y1 = load<Float>(column + lanes);
                for (int r = 0; r < 4; ++r) {
                    const Float v = splat<Float>(x[r][k]);
                    sum[r][0] = Sum::step(sum[r][0], v, y0);
                    sum[r][1] = Sum::step(sum[r][1], v, y1);
                }
            }
            for (int r = 0; r < 4; ++r) {
                store(ranks_ + r * most_tails + j, Sum::finish(sum[r][0]));
                store(ranks_ + r * most_tails + j + lanes, Sum::finish(sum[r][1]));
            }
        }
    }

    template <bool owned>
    VICINAL_INLINE void offer(Index head, const Index* tails, Size n, Size first, const float* ranks) {
        float own = limit_(head);
        for (Size j = first / lanes * lanes; j < n; j += lanes) {
            const Float rank = load<Float>(ranks + j);
            std::uint32_t pass = bits_of((rank <= own) | (rank <= load<Float>(bounds_ + j)));
            if (j < first) pass &= ~0u << (first - j);
            if (n - j < lanes) pass &= (1u << (n - j)) - 1u;
            for (; pass != 0; pass &= pass - 1) {
                const Size at = j + std::countr_zero(pass);
                compare<owned>(head, tails[at], ranks[at]);
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
    float* columns_;
    float* ranks_;
    float* bounds_;
    float* rests_;
    const bool products_;
    Size padded_ = 0;
};

}  // namespace vicinal::VICINAL_LEVEL
