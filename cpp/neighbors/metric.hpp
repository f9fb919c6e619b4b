// Ranking values of pairs of rows (metric_table.hpp), on vectors.
//
// A pair is accumulated in 64 virtual lanes for any register width and reduced by one fixed tree, so levels with fused
// multiply-add (x86-64-v3, v4, arm64) agree bit for bit.
#pragma once

#include "base/simd.hpp"
#include "neighbors/metric_table.hpp"
#include "neighbors/rank_step.hpp"
#include "neighbors/search_space.hpp"

namespace vicinal::VICINAL_LEVEL {

// What ranks two rows: the rows, the prepared rows, or a function of the pair.
enum class Source { plain, prepared, pairs };

// Prefetches the beginning of a row; the processor prefetches the rest when the row is read.
VICINAL_INLINE void prefetch_row(const SearchSpace& space, Size row) {
    constexpr Size head_bytes = 1024;
    const Size bytes = space.rows.cols * static_cast<Size>(sizeof(float));
    prefetch(space.rows.row(row), bytes < head_bytes ? bytes : head_bytes);
}

constexpr int block_lanes = 16;
constexpr int parts = block_lanes / lanes;  // registers that hold sixteen virtual lanes
constexpr int blocks = 4;

// The prepared values of one register of columns; Prepared = false returns the row unchanged.
template <bool Prepared>
VICINAL_INLINE Float prepared(const float* x, RowScale scale) {
    const Float v = load<Float>(x);
    if constexpr (Prepared) return (v - scale.shift) * scale.scale;
    return v;
}

template <class Rank>
VICINAL_INLINE float reduce(Float (&sum)[blocks][parts]) {
    alignas(64) float lane[blocks * block_lanes];
    std::memcpy(lane, sum, sizeof lane);
    for (int width = blocks * block_lanes / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l) lane[l] = Rank::merge(lane[l], lane[l + width]);
    return lane[0];
}

template <class Rank, bool Prepared>
VICINAL_INLINE float rank_pair(const float* x, RowScale sx, const float* y, RowScale sy, Size d) {
    Float sum[blocks][parts] = {};
    Size k = 0;
    for (; k + blocks * block_lanes <= d; k += blocks * block_lanes)
        for (int b = 0; b < blocks; ++b)
            for (int p = 0; p < parts; ++p) {
                const Size at = k + b * block_lanes + p * lanes;
                sum[b][p] = Rank::step(sum[b][p], prepared<Prepared>(x + at, sx), prepared<Prepared>(y + at, sy));
            }
    for (int b = 0; k < d; k += block_lanes, ++b) {
        alignas(64) float tail_x[block_lanes] = {}, tail_y[block_lanes] = {};
        const Size n = d - k < block_lanes ? d - k : block_lanes;
        for (Size l = 0; l < n; ++l) {
            tail_x[l] = Prepared ? (x[k + l] - sx.shift) * sx.scale : x[k + l];
            tail_y[l] = Prepared ? (y[k + l] - sy.shift) * sy.scale : y[k + l];
        }
        for (int p = 0; p < parts; ++p)
            sum[b][p] = Rank::step(sum[b][p], load<Float>(tail_x + p * lanes), load<Float>(tail_y + p * lanes));
    }
    const float rank = reduce<Rank>(sum);
    if constexpr (Prepared) return Rank::merge(rank, (sx.scale == 0.0f) != (sy.scale == 0.0f) ? 1.0f : 0.0f);
    return rank;
}

// The rank of a row of `heads` and a row of `space`. Two rows of one space are passed in ascending order, so that the
// result is the same for both even if a metric function is not symmetric.
template <class Rank, Source source>
VICINAL_INLINE float rank_rows(const SearchSpace& heads, Size head, const SearchSpace& space, Size row) {
    if constexpr (source == Source::pairs)
        return heads.pairs->rank(head, row);
    else
        return rank_pair<Rank, source == Source::prepared>(heads.rows.row(head), heads.scale_of(head),
                                                           space.rows.row(row), space.scale_of(row), space.rows.cols);
}

template <class Rank, Source source>
VICINAL_INLINE float rank_rows(const SearchSpace& space, Size x, Size y) {
    const bool swap = source == Source::pairs && x > y;
    return rank_rows<Rank, source>(space, swap ? y : x, space, swap ? x : y);
}

// The rank of the sketches of two rows, with the expected part of what they leave out.
template <class Rank>
VICINAL_INLINE float rank_sketches(const SearchSpace& space, Size x, Size y) {
    return rank_pair<Rank, false>(space.sketch_row(x), {}, space.sketch_row(y), {}, space.sketch_stride) +
           (space.weighted_rest(x) + space.weighted_rest(y));
}

// Calls f.template operator()<Rank, source>() for the ranking of the space. The sketches of a space that is ranked by
// pairs are compared as vectors.
template <class F>
void with_ranking(const SearchSpace& space, const F& f) {
    switch (space.ranking) {
    case Ranking::squared:
        return space.scale != nullptr ? f.template operator()<Squared, Source::prepared>()
                                      : f.template operator()<Squared, Source::plain>();
    case Ranking::absolute: return f.template operator()<Absolute, Source::plain>();
    case Ranking::maximum: return f.template operator()<Maximum, Source::plain>();
    case Ranking::pairs: return f.template operator()<Squared, Source::pairs>();
    }
}

}  // namespace vicinal::VICINAL_LEVEL
