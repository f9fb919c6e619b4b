// Ranking values of pairs of rows (metric_table.hpp): how a column adds to the value, and how partial values are
// merged.
//
// On the CPU, a pair is accumulated in 64 virtual lanes for any register width and reduced by one fixed tree, so levels
// with fused multiply-add (x86-64-v3, v4, arm64) agree bit for bit. The GPU shares the steps (cuda/neighbors.cu).
#pragma once

#include "base/simd.hpp"
#include "neighbors/metric_table.hpp"

#include <cmath>

#if !defined(VICINAL_ONE_LANE)
#include "neighbors/search_space.hpp"

#include <type_traits>
#endif

namespace vicinal::VICINAL_LEVEL {

struct Squared {
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) {
        const Float t = x - y;
        return multiply_add(t, t, sum);
    }
    static VICINAL_INLINE float merge(float x, float y) { return x + y; }
};

struct Absolute {
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) { return sum + abs(x - y); }
    static VICINAL_INLINE float merge(float x, float y) { return x + y; }
};

struct Maximum {
    static VICINAL_INLINE Float step(Float most, Float x, Float y) { return max(most, abs(x - y)); }
    static VICINAL_INLINE float merge(float x, float y) { return x > y ? x : y; }
};

// The scale of a row for cosine and, centered, for correlation.
VICINAL_INLINE RowScale row_scale(const float* x, Size cols, bool centered) {
    double mean = 0.0, length2 = 0.0;
    if (centered) {
        for (Size k = 0; k < cols; ++k) mean += x[k];
        mean /= static_cast<double>(cols);
    }
    for (Size k = 0; k < cols; ++k) length2 += (x[k] - mean) * (x[k] - mean);
    // If a row is so short that its inverse length overflows float32, it has no direction.
    const double scale = length2 > 1e-72 ? 1.0 / std::sqrt(length2) : 0.0;
    return {static_cast<float>(mean), static_cast<float>(scale)};
}

}  // namespace vicinal::VICINAL_LEVEL

// Ranks of pairs, on the CPU.
#if !defined(VICINAL_ONE_LANE)

namespace vicinal::VICINAL_LEVEL {

// What ranks two rows: the rows, the prepared rows, or a function of the pair.
enum class Source { plain, prepared, pairs };

// Prefetches the beginning of a row; the processor prefetches the rest when the row is read.
VICINAL_INLINE void prefetch_row(const SearchSpace& space, Size row) {
    constexpr Size head_bytes = 1024;
    const bool as_bytes = space.bytes.data != nullptr;
    const Size bytes = as_bytes ? space.bytes.stride : space.rows.row_bytes();
    const std::uint8_t* from = as_bytes ? space.bytes.row(row) : space.rows.byte_row(space.number_of(row));
    prefetch(from, bytes < head_bytes ? bytes : head_bytes);
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

// Merges the upper half of the lanes into the lower half until one is left. The widths are constants, so that every
// step is a few instructions.
template <class Rank, int width>
VICINAL_INLINE float reduce(float* lane) {
    if constexpr (width > 1) {
#pragma GCC unroll 32
        for (int l = 0; l < width / 2; ++l) lane[l] = Rank::merge(lane[l], lane[l + width / 2]);
        return reduce<Rank, width / 2>(lane);
    }
    return lane[0];
}

// The first n <= block_lanes values of a row, followed by zeros.
template <bool Prepared>
VICINAL_INLINE void load_tail(const float* x, RowScale scale, Size n, float* block) {
    for (Size l = 0; l < block_lanes; ++l) block[l] = 0.0f;
    for (Size l = 0; l < n; ++l) block[l] = Prepared ? (x[l] - scale.shift) * scale.scale : x[l];
}

// Where rank_pair reads a row, RowMatrix::block columns at a time: floats, or columns that are widened first.
struct FloatRow {
    const float* values;
    VICINAL_INLINE const float* columns(Size from, Size) const { return values + from; }
};

struct WidenedRow {
    VICINAL_INLINE WidenedRow(const RowMatrix& from, Size which) : rows(from), row(which) {}
    const RowMatrix& rows;
    const Size row;
    alignas(64) float buffer[RowMatrix::block];
    VICINAL_INLINE const float* columns(Size from, Size n) { return rows.columns(row, from, n, buffer); }
};

template <class Rank, bool Prepared, class Row>
VICINAL_INLINE float rank_pair(Row x, RowScale sx, Row y, RowScale sy, Size d) {
    static_assert(RowMatrix::block == blocks * block_lanes);
    Float sum[blocks][parts] = {};
    const auto add_block = [&](int b, const float* from_x, const float* from_y) {
        for (int p = 0; p < parts; ++p)
            sum[b][p] = Rank::step(sum[b][p], prepared<Prepared>(from_x + p * lanes, sx),
                                   prepared<Prepared>(from_y + p * lanes, sy));
    };
    Size k = 0;
    for (; k + RowMatrix::block <= d; k += RowMatrix::block) {
        const float *from_x = x.columns(k, RowMatrix::block), *from_y = y.columns(k, RowMatrix::block);
        for (int b = 0; b < blocks; ++b) add_block(b, from_x + b * block_lanes, from_y + b * block_lanes);
    }
    const Size rest = d - k;
    const float *from_x = rest > 0 ? x.columns(k, rest) : nullptr, *from_y = rest > 0 ? y.columns(k, rest) : nullptr;
    for (int b = 0; b * block_lanes < rest; ++b) {
        const Size at = b * block_lanes;
        if (at + block_lanes <= rest) {
            add_block(b, from_x + at, from_y + at);
            continue;
        }
        alignas(64) float tail_x[block_lanes], tail_y[block_lanes];
        load_tail<Prepared>(from_x + at, sx, rest - at, tail_x);
        load_tail<Prepared>(from_y + at, sy, rest - at, tail_y);
        for (int p = 0; p < parts; ++p)
            sum[b][p] = Rank::step(sum[b][p], load<Float>(tail_x + p * lanes), load<Float>(tail_y + p * lanes));
    }
    alignas(64) float lane[blocks * block_lanes];
    std::memcpy(lane, sum, sizeof lane);
    const float rank = reduce<Rank, blocks * block_lanes>(lane);
    if constexpr (Prepared) return Rank::merge(rank, (sx.scale == 0.0f) != (sy.scale == 0.0f) ? 1.0f : 0.0f);
    return rank;
}

template <class Rank, bool Prepared>
VICINAL_INLINE float rank_pair(const float* x, RowScale sx, const float* y, RowScale sy, Size d) {
    return rank_pair<Rank, Prepared>(FloatRow{x}, sx, FloatRow{y}, sy, d);
}

// The same for rows of other types. Two rows of bits differ in as many bits as their squared distance.
template <class Rank, bool Prepared>
[[gnu::noinline]] float rank_widened(const RowMatrix& heads, Size x, RowScale sx, const RowMatrix& rows, Size y,
                                     RowScale sy) {
    if constexpr (std::is_same_v<Rank, Squared> && !Prepared)
        if (heads.element == Element::bits && rows.element == Element::bits)
            return static_cast<float>(count_bits(heads.byte_row(x), rows.byte_row(y), rows.row_bytes()).different);
    return rank_pair<Rank, Prepared>(WidenedRow(heads, x), sx, WidenedRow(rows, y), sy, rows.cols);
}

// The squared distance of two rows of bytes, which has the bits of rank_pair: sums of lanes are whole numbers that a
// float holds, and they are merged in the same order.
VICINAL_INLINE float rank_bytes(const std::uint8_t* x, const std::uint8_t* y, Size stride) {
    constexpr int width = ByteRows::block / 2;
    Int sum[width / lanes] = {};
    for (Size k = 0; k < stride; k += ByteRows::block)
        for (int p = 0; p < width / lanes; ++p)
            sum[p] = add_squares(sum[p], x + k + 2 * p * lanes, y + k + 2 * p * lanes);
    alignas(64) float lane[width];
    for (int p = 0; p < width / lanes; ++p) store(lane + p * lanes, to_float(sum[p]));
    return reduce<Squared, width>(lane);
}

// The rank of a row of `heads` and a row of `space`. Two rows of one space are passed in ascending order, so that the
// result is the same for both even if a metric function is not symmetric.
template <class Rank, Source source>
VICINAL_INLINE float rank_rows(const SearchSpace& heads, Size head, const SearchSpace& space, Size row) {
    if constexpr (std::is_same_v<Rank, Squared> && source == Source::plain)
        if (heads.bytes.data != nullptr && space.bytes.data != nullptr)
            return rank_bytes(heads.bytes.row(head), space.bytes.row(row), space.bytes.stride);
    const Size x = heads.number_of(head), y = space.number_of(row);
    constexpr bool prepared = source == Source::prepared;
    if constexpr (source == Source::pairs)
        return heads.pairs->rank(x, y);
    else if (heads.rows.is_float() && space.rows.is_float())
        return rank_pair<Rank, prepared>(heads.rows.float_row(x), heads.scale_of(x), space.rows.float_row(y),
                                         space.scale_of(y), space.rows.cols);
    else
        return rank_widened<Rank, prepared>(heads.rows, x, heads.scale_of(x), space.rows, y, space.scale_of(y));
}

template <class Rank, Source source>
VICINAL_INLINE float rank_rows(const SearchSpace& space, Size x, Size y) {
    const bool swap = source == Source::pairs && space.number_of(x) > space.number_of(y);
    return rank_rows<Rank, source>(space, swap ? y : x, space, swap ? x : y);
}

// The squared distance of two coarse sketches. Whole numbers have the same sum in any order.
VICINAL_INLINE float rank_coarse(const SearchSpace& heads, Size head, const SearchSpace& space, Size row) {
    const std::uint8_t *x = heads.coarse.row(head), *y = space.coarse.row(row);
    Int sum{};
    for (Size k = 0; k < sketch_width; k += 2 * lanes) sum = add_squares(sum, x + k, y + k);
    std::int32_t total = 0;
    for (int l = 0; l < lanes; ++l) total += sum[l];
    return space.coarse_unit * space.coarse_unit * static_cast<float>(total);
}

// The rank of the sketches of two rows, with the expected part of what they leave out.
template <class Rank>
VICINAL_INLINE float rank_sketches(const SearchSpace& space, Size x, Size y) {
    if constexpr (std::is_same_v<Rank, Squared>)
        if (space.coarse.data != nullptr) return rank_coarse(space, x, space, y);
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
#if defined(VICINAL_SMALL)
    case Ranking::pairs: return;
#else
    case Ranking::pairs: return f.template operator()<Squared, Source::pairs>();
#endif
    }
}

}  // namespace vicinal::VICINAL_LEVEL

#endif  // VICINAL_ONE_LANE
