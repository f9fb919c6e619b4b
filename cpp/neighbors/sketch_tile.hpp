// Ranks the sketches of up to most_tails rows, the tails, against other rows, the heads. The sketches of the tails are
// transposed, so that lanes are tails; four heads share every load.
#pragma once

#include "neighbors/metric.hpp"
#include "neighbors/search_space.hpp"

#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

constexpr Size padded_columns(Size sketch_dim) { return (sketch_dim + 3) / 4 * 4; }

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

template <class Rank>
class SketchTile {
  public:
    static constexpr Size most_heads = 4;

    // Floats of working memory: transposed sketches, ranks of four heads, rests of the tails.
    static constexpr Size scratch_floats(Size sketch_dim) {
        return (padded_columns(sketch_dim) + most_heads + 1) * most_tails;
    }

    SketchTile(const SearchSpace& space, float* scratch)
        : space_(space), columns_(scratch), ranks_(columns_ + padded_columns(space.sketch_dim) * most_tails),
          rests_(ranks_ + most_heads * most_tails), products_(std::is_same_v<Rank, Squared> && space.shown != nullptr) {
    }

    void pack(const Index* tails, Size n) {
        padded_ = (n + 2 * lanes - 1) / (2 * lanes) * (2 * lanes);
        for (Size j = 0; j < padded_; ++j) rests_[j] = j < n ? own_part(space_, tails[j]) : 0.0f;
        for (Size j = 0; j < padded_; j += 4) {
            const float* sketch[4];
            for (Size r = 0; r < 4; ++r) sketch[r] = space_.sketch_row(tails[j + r < n ? j + r : 0]);
            for (Size k = 0; k < space_.sketch_dim; k += 4) transpose4(sketch, k, columns_ + k * padded_ + j);
        }
    }

    // Ranks up to four rows of `heads` against the tails from `from` on.
    VICINAL_INLINE void rank(const SearchSpace& heads, const Index* rows, Size n, Size from) {
        const float* x[most_heads];
        Float rest[most_heads];
        for (Size r = 0; r < most_heads; ++r) {
            const Index head = rows[r < n ? r : 0];
            x[r] = heads.sketch_row(head);
            rest[r] = splat<Float>(own_part(heads, head));
        }
        if (products_)
            accumulate<Products>(x, rest, from);
        else
            accumulate<Differences<Rank>>(x, rest, from);
    }

    VICINAL_INLINE Size padded() const { return padded_; }
    VICINAL_INLINE const float* ranks(Size head) const { return ranks_ + head * most_tails; }

  private:
    // What a row adds to the rank of a pair whatever the other row is.
    VICINAL_INLINE float own_part(const SearchSpace& space, Index row) const {
        return products_ ? space.weighted_rest(row) + space.shown[row] : space.weighted_rest(row);
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

    const SearchSpace& space_;
    float* columns_;
    float* ranks_;
    float* rests_;
    const bool products_;
    Size padded_ = 0;
};

}  // namespace vicinal::VICINAL_LEVEL
