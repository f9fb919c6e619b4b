// Convolution of the values at the nodes of a grid with a kernel that is even along each axis, by Fourier transforms.
//
// An axis with n nodes is padded to a length N >= 2 n whose only factors are 2, 3 and 5, so that the periodic
// convolution does not reach around the grid. Lines without data are never transformed: the last axis gets its padding
// first and the first axis last, where one pass transforms forward, multiplies and transforms back.
//
// A lane is a line, or a pair of lines of real numbers: x = a + ib has the transform X(k), and those of a and b are
//
//   A(k) = (X(k) + conj X(N - k)) / 2,    B(k) = (X(k) - conj X(N - k)) / 2i.
//
// Lines 2r and 2r + 1 are a pair at every level, so the bits do not depend on the width of a register.
#pragma once

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "layout/grid_convolution_task.hpp"

namespace vicinal::VICINAL_LEVEL {

struct Complex {
    Float re, im;

    friend VICINAL_INLINE Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
    friend VICINAL_INLINE Complex operator-(Complex x, Complex y) { return {x.re - y.re, x.im - y.im}; }
    friend VICINAL_INLINE Complex operator*(Complex x, float y) { return {x.re * y, x.im * y}; }
};

VICINAL_INLINE Complex times_i(Complex x) { return {-x.im, x.re}; }
VICINAL_INLINE Complex turned(Complex x, Turn w) {
    return {x.re * w.cosine - x.im * w.sine, x.re * w.sine + x.im * w.cosine};
}

// Complex numbers of all lanes, one after the other.
class ComplexLines {
  public:
    VICINAL_INLINE explicit ComplexLines(float* memory) : memory_(memory) {}
    VICINAL_INLINE Complex get(Size k) const {
        const float* at = memory_ + 2 * k * lanes;
        return {load<Float>(at), load<Float>(at + lanes)};
    }
    VICINAL_INLINE void set(Size k, Complex x) const {
        float* at = memory_ + 2 * k * lanes;
        store(at, x.re);
        store(at + lanes, x.im);
    }
    // `lanes` consecutive numbers of one lane, from k on or back; `part` is 0 for real and 1 for imaginary parts.
    template <int Step = 1>
    VICINAL_INLINE Float along(Size k, int lane, int part) const {
        return gather<Float>(memory_ + (2 * k + part) * lanes + lane, lane_numbers() * (2 * lanes * Step));
    }

  private:
    float* memory_;
};

// The discrete Fourier transform of Radix numbers, in place.
template <int Radix>
VICINAL_INLINE void transform_few(Complex* x) {
    if constexpr (Radix == 2) {
        const Complex sum = x[0] + x[1];
        x[1] = x[0] - x[1];
        x[0] = sum;
    } else if constexpr (Radix == 3) {
        constexpr float half = 0.5f, height = 0.866025403784438647f;
        const Complex sum = x[1] + x[2], side = times_i((x[2] - x[1]) * height), middle = x[0] - sum * half;
        x[0] = x[0] + sum;
        x[1] = middle + side;
        x[2] = middle - side;
    } else if constexpr (Radix == 4) {
        const Complex a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = times_i(x[3] - x[1]);
        x[0] = a + c;
        x[1] = b + d;
        x[2] = a - c;
        x[3] = b - d;
    } else {
        constexpr float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;
        constexpr float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;
        const Complex a = x[1] + x[4], b = x[2] + x[3], c = x[4] - x[1], d = x[3] - x[2];
        const Complex near = x[0] + a * c1 + b * c2, far = x[0] + a * c2 + b * c1;
        const Complex near_side = times_i(c * s1 + d * s2), far_side = times_i(c * s2 - d * s1);
        x[0] = x[0] + a + b;
        x[1] = near + near_side;
        x[4] = near - near_side;
        x[2] = far + far_side;
        x[3] = far - far_side;
    }
}

// One pass of Stockham's algorithm: the numbers that are `stride` steps of an earlier pass apart.
template <int Radix>
VICINAL_INLINE void transform_pass(ComplexLines from, ComplexLines to, Size parts, Size stride, const Turn* turns) {
    for (Size p = 0; p < parts; ++p)
        for (Size q = 0; q < stride; ++q) {
            Complex x[Radix];
            for (int k = 0; k < Radix; ++k) x[k] = from.get(q + stride * (p + parts * k));
            transform_few<Radix>(x);
            to.set(q + stride * Radix * p, x[0]);
            for (int j = 1; j < Radix; ++j)
                to.set(q + stride * (Radix * p + j), p > 0 ? turned(x[j], turns[p * j * stride]) : x[j]);
        }
}

// Two buffers of one worker; a pass reads one and writes the other.
class LineTransform {
  public:
    VICINAL_INLINE LineTransform(float* memory, Size longest) : first_(memory), second_(memory + 2 * longest * lanes) {}

    // The numbers to transform, and afterwards their transform.
    VICINAL_INLINE ComplexLines lines() const { return ComplexLines(first_); }

    VICINAL_INLINE void run(const FourierAxis& axis) {
        Size rest = axis.padded, stride = 1;
        for (; rest % 4 == 0; stride *= 4) pass<4>(rest /= 4, stride, axis.turns);
        for (; rest % 2 == 0; stride *= 2) pass<2>(rest /= 2, stride, axis.turns);
        for (; rest % 3 == 0; stride *= 3) pass<3>(rest /= 3, stride, axis.turns);
        for (; rest % 5 == 0; stride *= 5) pass<5>(rest /= 5, stride, axis.turns);
    }

  private:
    template <int Radix>
    VICINAL_INLINE void pass(Size parts, Size stride, const Turn* turns) {
        transform_pass<Radix>(ComplexLines(first_), ComplexLines(second_), parts, stride, turns);
        float* const swapped = first_;
        first_ = second_;
        second_ = swapped;
    }

    float *first_, *second_;
};

class FourierLines {
  public:
    VICINAL_INLINE FourierLines(const ConvolutionTask& task, int worker)
        : t_(task), work_(task.scratch + worker * 4 * longest(task) * widest_lanes, longest(task)) {}

    // The last axis, of the pairs of lines from `pair` on: from real numbers to waves.
    void forward_last(Size pair) {
        const FourierAxis& axis = t_.axes[2];
        const Int first = clamped(2 * pair, 2, lines_of_data()), second = clamped(2 * pair + 1, 2, lines_of_data());
        for (Size x = 0; x < axis.nodes; ++x)
            work_.lines().set(x, {gather<Float>(t_.values + x, first * static_cast<Index>(axis.nodes)),
                                  gather<Float>(t_.values + x, second * static_cast<Index>(axis.nodes))});
        fill(axis.nodes, axis.padded);
        work_.run(axis);
        // Separate the pair in place: A(k) is written to k, and B(k) to N - k; B(0) and B(N/2) are in the imaginary
        // parts.
        const ComplexLines x = work_.lines();
        for (Size k = 1; 2 * k < axis.padded; ++k) {
            const Complex here = x.get(k), there = x.get(axis.padded - k);
            x.set(k, Complex{here.re + there.re, here.im - there.im} * 0.5f);
            x.set(axis.padded - k, Complex{here.im + there.im, there.re - here.re} * 0.5f);
        }
        for (int lane = 0; lane < lanes; ++lane)
            for (int which = 0; which < 2; ++which) {
                const Size line = 2 * (pair + lane) + which;
                if (line < lines_of_data()) write_waves(line, lane, which);
            }
    }

    // The way back, to real numbers.
    void back_last(Size pair) {
        const FourierAxis& axis = t_.axes[2];
        const Int first = clamped(2 * pair, 2, lines_of_data()), second = clamped(2 * pair + 1, 2, lines_of_data());
        const ComplexLines x = work_.lines();
        for (Size k = 0; 2 * k <= axis.padded; ++k) {
            const Complex a = wave(first, k), b = wave(second, k);
            // The transform of a real line is real at 0 and in the middle.
            const bool alone = k == 0 || 2 * k == axis.padded;
            // Real and imaginary parts change places, which makes the transform the inverse.
            if (alone) {
                x.set(k, {b.re, a.re});
            } else {
                x.set(k, {a.im + b.re, a.re - b.im});
                x.set(axis.padded - k, {b.re - a.im, a.re + b.im});
            }
        }
        work_.run(axis);
        for (int lane = 0; lane < lanes; ++lane)
            for (int which = 0; which < 2; ++which) {
                const Size line = 2 * (pair + lane) + which;
                if (line >= lines_of_data()) continue;
                float* to = t_.found + line * axis.nodes;
                for (Size at = 0; at < axis.nodes; at += lanes)
                    store_some(to + at, work_.lines().along(at, lane, 1 - which) * t_.scale, axis.nodes - at);
            }
    }

    // The middle axis of three, of one plane, columns from k on; `back` undoes it.
    void transform_middle(Size plane, Size k, bool back) {
        const FourierAxis& axis = t_.axes[1];
        const Size from = plane * axis.padded * t_.stride + k;
        read_columns(from, t_.stride, back ? axis.padded : axis.nodes, back);
        if (!back) fill(axis.nodes, axis.padded);
        work_.run(axis);
        write_columns(from, t_.stride, back ? axis.nodes : axis.padded, back);
    }

    // The first axis, forward and back, of the columns from k on of row `row` of all planes.
    void convolve_first(Size row, Size k) {
        const FourierAxis& axis = t_.axes[0];
        const Size step = t_.axes[1].padded * t_.stride, from = row * t_.stride + k;
        read_columns(from, step, axis.nodes, false);
        fill(axis.nodes, axis.padded);
        work_.run(axis);
        const ComplexLines x = work_.lines();
        const Int column = clamped(k, 1, t_.waves());
        for (Size p = 0; p < axis.padded; ++p) {
            const Size of_row = mirror(p, axis.padded) * (t_.axes[1].padded / 2 + 1) + mirror(row, t_.axes[1].padded);
            const Float factor = gather<Float>(t_.transfer + of_row * t_.waves(), column);
            const Complex wave = x.get(p);
            x.set(p, {wave.im * factor, wave.re * factor});
        }
        work_.run(axis);
        write_columns(from, step, axis.nodes, true);
    }

    static Size longest(const ConvolutionTask& task) {
        Size most = 0;
        for (const FourierAxis& axis : task.axes) most = axis.padded > most ? axis.padded : most;
        return most + widest_lanes;  // `along` reads whole vectors
    }

  private:
    VICINAL_INLINE static Size mirror(Size wave, Size padded) { return 2 * wave <= padded ? wave : padded - wave; }
    VICINAL_INLINE Size lines_of_data() const { return t_.axes[0].nodes * t_.axes[1].nodes; }
    // first, first + step, ..., at most n - 1.
    VICINAL_INLINE static Int clamped(Size first, Index step, Size n) {
        const Int at = lane_numbers() * step + static_cast<Index>(first), last = splat<Int>(static_cast<Index>(n - 1));
        return select(at < last, at, last);
    }
    VICINAL_INLINE static void store_some(float* to, Float values, Size n) {
        if (n >= lanes)
            store(to, values);
        else
            for (Size l = 0; l < n; ++l) to[l] = values[l];
    }
    VICINAL_INLINE void fill(Size begin, Size end) {
        for (Size k = begin; k < end; ++k) work_.lines().set(k, Complex{Float{}, Float{}});
    }
    // Where the waves of a line of data begin.
    VICINAL_INLINE Size waves_at(Size line) const {
        const Size middle = t_.axes[1].nodes;
        return (line / middle * t_.axes[1].padded + line % middle) * t_.stride;
    }
    VICINAL_INLINE Complex wave(Int line, Size k) const {
        alignas(64) Index at[lanes];
        store(at, line);
        for (Index& one : at) one = static_cast<Index>(waves_at(one));
        const Int from = load<Int>(at);
        return {gather<Float>(t_.re + k, from), gather<Float>(t_.im + k, from)};
    }
    VICINAL_INLINE void write_waves(Size line, int lane, int which) {
        const Size padded = t_.axes[2].padded, half = padded / 2, to = waves_at(line);
        const ComplexLines x = work_.lines();
        // The rows of waves are whole vectors long.
        for (Size k = 0; k < half; k += lanes)
            for (int part = 0; part < 2; ++part)
                store((part == 0 ? t_.re : t_.im) + to + k,
                      which == 0 ? x.along(k, lane, part) : x.along<-1>(padded - k, lane, part));
        for (const Size k : {Size{0}, half}) {
            const Complex real = x.get(k);
            t_.re[to + k] = which == 0 ? real.re[lane] : real.im[lane];
            t_.im[to + k] = 0.0f;
        }
    }
    VICINAL_INLINE void read_columns(Size from, Size step, Size n, bool back) {
        for (Size p = 0; p < n; ++p) {
            const Float re = load<Float>(t_.re + from + p * step), im = load<Float>(t_.im + from + p * step);
            work_.lines().set(p, back ? Complex{im, re} : Complex{re, im});
        }
    }
    VICINAL_INLINE void write_columns(Size from, Size step, Size n, bool back) {
        for (Size p = 0; p < n; ++p) {
            const Complex x = work_.lines().get(p);
            store(t_.re + from + p * step, back ? x.im : x.re);
            store(t_.im + from + p * step, back ? x.re : x.im);
        }
    }

    const ConvolutionTask& t_;
    LineTransform work_;
};

// Runs all passes. `lanes` pairs of lines, or lanes columns, are one piece of work.
inline void convolve_grid(const ConvolutionTask& task, ThreadTeam& team) {
    const FourierAxis* axes = task.axes;
    const Size pairs = (axes[0].nodes * axes[1].nodes + 1) / 2, vectors = (task.waves() + lanes - 1) / lanes;
    const auto for_each = [&](Size n, const auto& work) {
        team.parallel_for(n, 1, [&](Size begin, Size end, int worker) {
            FourierLines lines(task, worker);
            for (Size at = begin; at < end; ++at) work(lines, at);
        });
    };
    const auto transform_middle = [&](bool back) {
        if (axes[1].padded == 1) return;
        for_each(axes[0].nodes * vectors, [&](FourierLines& lines, Size at) {
            lines.transform_middle(at / vectors, at % vectors * lanes, back);
        });
    };
    for_each((pairs + lanes - 1) / lanes, [](FourierLines& lines, Size at) { lines.forward_last(at * lanes); });
    transform_middle(false);
    for_each(axes[1].padded * vectors,
             [&](FourierLines& lines, Size at) { lines.convolve_first(at / vectors, at % vectors * lanes); });
    transform_middle(true);
    for_each((pairs + lanes - 1) / lanes, [](FourierLines& lines, Size at) { lines.back_last(at * lanes); });
}

}  // namespace vicinal::VICINAL_LEVEL
