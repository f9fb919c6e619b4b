// Sketches of rows (search_space.hpp): the basis and the projection onto it, sketches and rows as bytes, and ranks of
// many sketches at once.
//
// For squared distances the basis is an orthonormal one of the directions of largest variance of a sample of rows, by
// subspace iteration (Halko, Martinsson, Tropp 2011), Q <- orth(S' S Q) from a random start. Only the subspace
// matters, so no eigenvalue problem is solved. Any orthonormal basis gives a valid lower bound, so an inexact
// iteration affects speed, never correctness. For other rankings it is the columns of largest variance, as unit
// vectors.
#pragma once

#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/scratch.hpp"
#include "base/simd.hpp"
#include "neighbors/metric.hpp"
#include "neighbors/search_space.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

constexpr int subspace_iterations = 3;

// Rows of d columns that are projected between two checks for an interrupt.
constexpr Size rows_at_a_time(Size d) { return d <= (Size{1} << 16) ? 64 : 4; }

// Draws rows at regular intervals and centers them; also sets the mean.
inline Size draw_sample(const SearchSpace& space, float* mean, Scratch<float>& sample, ThreadTeam& team) {
    const Size n = space.rows.rows, d = space.rows.cols;
    const Size m = std::min(n, std::clamp(sketch_sample_floats / d, least_sketch_sample_rows, most_sketch_sample_rows));
    sample.resize(m * d);
    constexpr Size together = RowMatrix::block;
    team.parallel_for(d, together, [&](Size begin, Size end, int) {
        double total[together] = {};
        float widened[together];
        for (Size i = 0; i < m; ++i) {
            const Size row = i * n / m;
            const RowScale s = space.scale_of(row);
            const float* values = space.rows.columns(row, begin, end - begin, widened);
            for (Size k = begin; k < end; ++k) {
                sample[i * d + k] = (values[k - begin] - s.shift) * s.scale;
                total[k - begin] += sample[i * d + k];
            }
        }
        for (Size k = begin; k < end; ++k) mean[k] = static_cast<float>(total[k - begin] / static_cast<double>(m));
        for (Size i = 0; i < m; ++i)
            for (Size k = begin; k < end; ++k) sample[i * d + k] -= mean[k];
    });
    return m;
}

// dots[e] += column' q[e] for `n` columns of q [rows][sketch_width], those beyond up to a multiple of 16 included.
inline void add_dots(const float* q, Size rows, const double* column, Size n, double* dots) {
    constexpr Size together = 16;
    for (Size e = 0; e < n; e += together) {
        double sum[together];
        for (Size l = 0; l < together; ++l) sum[l] = dots[e + l];
        for (Size k = 0; k < rows; ++k)
            for (Size l = 0; l < together; ++l) sum[l] += column[k] * static_cast<double>(q[k * sketch_width + e + l]);
        for (Size l = 0; l < together; ++l) dots[e + l] = sum[l];
    }
}

// Gram-Schmidt on the columns of q [d][sketch_width], twice; a column that vanishes stays zero.
inline void orthonormalize(float* q, Size d, ThreadTeam& team) {
    // Rows of q between two checks for an interrupt: a fraction of a second.
    constexpr Size polled_rows = Size{1} << 17;
    Scratch<double> column(d);
    Scratch<float> finished(sketch_width * d);  // columns, one behind the other
    const auto each_piece = [&](const auto& body) {
        for (Size begin = 0; begin < d; begin += polled_rows) {
            team.check_interrupt();
            body(begin, std::min(begin + polled_rows, d));
        }
    };
    for (Size c = 0; c < sketch_width; ++c) {
        double before = 0.0, after = 0.0;
        for (Size k = 0; k < d; ++k) {
            column[k] = q[k * sketch_width + c];
            before += column[k] * column[k];
        }
        for (int pass = 0; pass < 2; ++pass) {
            double dots[sketch_width] = {};
            each_piece([&](Size begin, Size end) {
                add_dots(q + begin * sketch_width, end - begin, column.data() + begin, c, dots);
            });
            each_piece([&](Size begin, Size end) {
                for (Size e = 0; e < c; ++e) {
                    const float* other = finished.data() + e * d;
                    for (Size k = begin; k < end; ++k) column[k] -= dots[e] * static_cast<double>(other[k]);
                }
            });
        }
        for (Size k = 0; k < d; ++k) after += column[k] * column[k];
        const double inverse = after > 1e-12 * before ? 1.0 / std::sqrt(after) : 0.0;
        for (Size k = 0; k < d; ++k)
            q[k * sketch_width + c] = finished[c * d + k] = static_cast<float>(column[k] * inverse);
    }
}

// out[i] = (row_i - mean) * basis for rows [begin, end) of the sample or of the data; four rows share each load.
template <class RowOf>
VICINAL_INLINE void project_rows(Size begin, Size end, Size d, const float* basis, float* out, Size stride,
                                 const RowOf& value) {
    // 16 accumulators if there are 32 registers, otherwise 8.
    constexpr int span = lanes == 16 ? 4 : 2;
    for (Size i = begin; i < end; i += 4) {
        const Size rows = std::min<Size>(4, end - i);
        for (Size column = 0; column < sketch_width; column += span * lanes) {
            Float sum[4][span] = {};
            for (Size k = 0; k < d; ++k) {
                Float b[span];
                for (int v = 0; v < span; ++v) b[v] = load<Float>(basis + k * sketch_width + column + v * lanes);
                for (int r = 0; r < 4; ++r) {
                    const float x = value(i + (r < rows ? r : 0), k);
                    for (int v = 0; v < span; ++v) sum[r][v] = multiply_add(splat<Float>(x), b[v], sum[r][v]);
                }
            }
            for (int r = 0; r < rows; ++r)
                for (int v = 0; v < span; ++v) store(out + (i + r) * stride + column + v * lanes, sum[r][v]);
        }
    }
}

// q <- orth(S' (S q)) for the sample S [m][d].
inline void iterate_subspace(const Scratch<float>& sample, Size m, Size d, float* q, ThreadTeam& team) {
    Scratch<float> y(m * sketch_width);
    const float* s = sample.data();
    team.parallel_for(m, rows_at_a_time(d), [&](Size begin, Size end, int) {
        project_rows(begin, end, d, q, y.data(), sketch_width, [&](Size i, Size k) { return s[i * d + k]; });
    });
    team.parallel_for(d, 16, [&](Size begin, Size end, int) {
        project_rows(begin, end, m, y.data(), q, sketch_width, [&](Size k, Size i) { return s[i * d + k]; });
    });
    orthonormalize(q, d, team);
}

inline void choose_columns(const Scratch<float>& sample, Size m, Size d, float* q) {
    Scratch<double> variance(d);
    Scratch<Index> order(d);
    for (Size k = 0; k < d; ++k) {
        variance[k] = 0.0;
        order[k] = static_cast<Index>(k);
        for (Size i = 0; i < m; ++i) variance[k] += static_cast<double>(sample[i * d + k]) * sample[i * d + k];
    }
    std::sort(order.data(), order.data() + d,
              [&](Index x, Index y) { return variance[x] > variance[y] || (variance[x] == variance[y] && x < y); });
    for (Size c = 0; c < std::min(sketch_width, d); ++c) q[order[c] * sketch_width + c] = 1.0f;
}

inline void fit_sketch(const SearchSpace& space, std::uint64_t seed, const SketchBasis& out, ThreadTeam& team) {
    const Size d = space.rows.cols;
    Scratch<float> sample;
    const Size m = draw_sample(space, out.mean, sample, team);
    std::fill(out.basis, out.basis + d * sketch_width, 0.0f);
    if (space.ranking == Ranking::absolute || space.ranking == Ranking::maximum) {
        choose_columns(sample, m, d, out.basis);
        return;
    }
    const std::uint64_t key = stream_key(seed, Stream::sketch);
    team.check_interrupt();
    for (Size e = 0; e < d * sketch_width; ++e)
        out.basis[e] = (row_key(key, static_cast<std::uint64_t>(e)) & 1) != 0 ? 1.0f : -1.0f;
    for (int t = 0; t < subspace_iterations; ++t) {
        team.check_interrupt();
        iterate_subspace(sample, m, d, out.basis, team);
    }
}

VICINAL_INLINE float sum_of_squares(const float* x, Size n) {
    float sum[block_lanes] = {};
    const Size whole = n / block_lanes * block_lanes;
    for (Size k = 0; k < whole; k += block_lanes)
        for (int l = 0; l < block_lanes; ++l) sum[l] += x[k + l] * x[k + l];
    for (Size k = whole; k < n; ++k) sum[k - whole] += x[k] * x[k];
    for (int l = 1; l < block_lanes; ++l) sum[0] += sum[l];
    return sum[0];
}

// Writes the sketches of all rows of `space.rows`, their squared distances to the mean, which bound the rounding error,
// and, unless `rest` is null, what a sketch leaves out of that distance. The mean cancels in differences; subtracting
// it keeps numbers small.
inline void project(const SearchSpace& space, const SketchBasis& basis, float* out, float* length2, float* rest,
                    ThreadTeam& team) {
    constexpr Size together = 4;
    const Size d = space.rows.cols;
    Scratch<float> centered(team.size() * together * d);
    team.parallel_for(space.rows.rows, rows_at_a_time(d), [&](Size begin, Size end, int worker) {
        float* x = centered.data() + worker * together * d;
        for (Size first = begin; first < end; first += together) {
            const Size rows = std::min(together, end - first);
            for (Size r = 0; r < rows; ++r) {
                const RowScale s = space.scale_of(first + r);
                const float* row = space.rows.row(first + r, x + r * d);
                for (Size k = 0; k < d; ++k) x[r * d + k] = (row[k] - s.shift) * s.scale - basis.mean[k];
            }
            float* sketch = out + first * sketch_width;
            project_rows(0, rows, d, basis.basis, sketch, sketch_width, [&](Size r, Size k) { return x[r * d + k]; });
            for (Size r = 0; r < rows; ++r) {
                const float all = sum_of_squares(x + r * d, d);
                const float shown = sum_of_squares(sketch + r * sketch_width, sketch_width);
                length2[first + r] = all;
                if (rest != nullptr) rest[first + r] = all > shown ? all - shown : 0.0f;
            }
        }
    });
}

// Writes up to ByteRows::block values as a block; false if one of them is not a whole number between 0 and 255.
VICINAL_INLINE bool write_block(const float* values, Size n, std::uint8_t* out) {
    constexpr Size half = ByteRows::block / 2;
    alignas(64) float padded[ByteRows::block] = {};
    std::copy_n(values, n, padded);
    Int wrong{};
    alignas(64) std::int32_t whole[ByteRows::block];
    for (Size k = 0; k < ByteRows::block; k += lanes) {
        const Float value = load<Float>(padded + k);
        const Int number = __builtin_convertvector(value, Int);
        wrong |= (to_float(number) != value) | ((number & ~0xff) != 0);
        store(whole + k, number);
    }
    for (Size l = 0; l < half; ++l) {
        out[2 * l] = static_cast<std::uint8_t>(whole[l]);
        out[2 * l + 1] = static_cast<std::uint8_t>(whole[l + half]);
    }
    return bits_of(wrong) == 0;
}

// Writes the rows, [rows][ByteRows::padded(cols)]; false if they contain other numbers.
inline bool write_bytes(Matrix rows, std::uint8_t* out, ThreadTeam& team) {
    const Size stride = ByteRows::padded(rows.cols);
    std::atomic<bool> all = true;
    team.parallel_for(rows.rows, 64, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end && all.load(std::memory_order_relaxed); ++i)
            for (Size k = 0; k < rows.cols; k += ByteRows::block)
                if (!write_block(rows.row(i) + k, std::min(ByteRows::block, rows.cols - k), out + i * stride + k))
                    all.store(false, std::memory_order_relaxed);
    });
    return all.load();
}

// Writes n sketches as bytes, [n][sketch_width]: multiples of `unit` around 128; larger values are cut.
inline void write_coarse(const float* sketch, Size n, float unit, std::uint8_t* out, ThreadTeam& team) {
    const float scale = 1.0f / unit;
    team.parallel_for(n, 256, [&](Size begin, Size end, int) {
        alignas(64) float values[ByteRows::block];
        for (Size at = begin * sketch_width; at < end * sketch_width; at += ByteRows::block) {
            for (Size k = 0; k < ByteRows::block; ++k)
                values[k] = std::floor(std::clamp(sketch[at + k] * scale + 128.5f, 0.0f, 255.0f));
            write_block(values, ByteRows::block, out + at);
        }
    });
}

constexpr Size padded_columns(Size sketch_dim) { return (sketch_dim + 3) / 4 * 4; }

// How the rank of two sketches is summed, beginning with the parts of each row alone: by differences, or as
// |x|^2 + |y|^2 - 2 x y.
template <class Rank>
struct Differences {
    static VICINAL_INLINE Float start(Float own) { return own; }
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) { return Rank::step(sum, x, y); }
    static VICINAL_INLINE Float quick_step(Float sum, Float x, Float y) { return sum + (x - y) * (x - y); }
    // An error of the sum by rounding is in proportion to this.
    static VICINAL_INLINE Float scale(Float, Float rank) { return rank; }
    static VICINAL_INLINE Float finish(Float sum) { return sum; }
};

struct Products {
    static VICINAL_INLINE Float start(Float own) { return own * -0.5f; }
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) { return multiply_add(x, y, sum); }
    static VICINAL_INLINE Float quick_step(Float sum, Float x, Float y) { return sum + x * y; }
    static VICINAL_INLINE Float scale(Float own, Float) { return own; }
    static VICINAL_INLINE Float finish(Float sum) { return max(sum * -2.0f, Float{}); }
};

// Ranks the sketches of up to most_tails rows, the tails, against other rows, the heads. The sketches of the tails are
// transposed, so that lanes are tails; four heads share every load.
//
// With `Bounds`, ranks() of squared distances are lower bounds of the ranks, computed without fused multiply-add, and
// rank_of() computes a rank: where few pairs are near enough, this is faster if fused steps are slow.
template <class Rank, bool Bounds = false>
class SketchTile {
  public:
    static constexpr Size most_heads = 4;
    static constexpr bool gives_bounds = Bounds && std::is_same_v<Rank, Squared>;

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
            if constexpr (gives_bounds) {
                last_.head[r] = x[r];
                last_.rest[r] = rest[r];
            }
        }
        if (products_)
            accumulate<Products>(x, rest, from);
        else
            accumulate<Differences<Rank>>(x, rest, from);
    }

    // The rank of a tail and the head `r` of the last call of rank().
    float rank_of(Size r, Size tail) const {
        return products_ ? rank_of<Products>(r, tail) : rank_of<Differences<Rank>>(r, tail);
    }

    VICINAL_INLINE Size padded() const { return padded_; }
    VICINAL_INLINE const float* ranks(Size head) const { return ranks_ + head * most_tails; }

  private:
    // The part of a pair's rank that depends on this row only.
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
    float rank_of(Size r, Size tail) const {
        const Size j = tail / lanes * lanes;
        Float sum = Sum::start(last_.rest[r] + load<Float>(rests_ + j));
        for (Size k = 0; k < space_.sketch_dim; ++k)
            sum = Sum::step(sum, splat<Float>(last_.head[r][k]), load<Float>(columns_ + k * padded_ + j));
        return Sum::finish(sum)[tail - j];
    }

    // Every operation of a sum of d terms errs by at most 2^-24 of it, with fused steps and without, and by 2^-150 if
    // the sum is tiny: a difference of both sums is within these margins.
    template <class Sum>
    VICINAL_INLINE Float bound(Float sum, Float own) const {
        const Float rank = Sum::finish(sum);
        const float margin = 0x1p-21f * static_cast<float>(space_.sketch_dim + 8);
        return rank - Sum::scale(own, rank) * margin - 1e-37f;
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
                    if constexpr (gives_bounds) {
                        sum[r][0] = Sum::quick_step(sum[r][0], v, y0);
                        sum[r][1] = Sum::quick_step(sum[r][1], v, y1);
                        continue;
                    }
                    sum[r][0] = Sum::step(sum[r][0], v, y0);
                    sum[r][1] = Sum::step(sum[r][1], v, y1);
                }
            }
            for (int r = 0; r < 4; ++r) {
                if constexpr (gives_bounds) {
                    store(ranks_ + r * most_tails + j, bound<Sum>(sum[r][0], rest[r] + load<Float>(rests_ + j)));
                    store(ranks_ + r * most_tails + j + lanes,
                          bound<Sum>(sum[r][1], rest[r] + load<Float>(rests_ + j + lanes)));
                    continue;
                }
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
    // The heads of the last call of rank(), if ranks are computed later.
    struct Heads {
        const float* head[most_heads];
        Float rest[most_heads];
    };
    struct NoHeads {};
    [[no_unique_address]] std::conditional_t<gives_bounds, Heads, NoHeads> last_;
};

}  // namespace vicinal::VICINAL_LEVEL
