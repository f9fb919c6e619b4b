// Interpolation between points and a grid by cubic B-splines: the mass of a point is spread onto nodes, and a potential
// at the nodes is gathered at a point together with its gradient.
//
// The last axis of the grid is one vector of four nodes; the others are a loop over 4^(Dim-1) lines.
//
// The functions of one point are shared with the GPU (cuda/full_layout.cu); the loops over all points are for the CPU.
#pragma once

#include "layout/full_layout_task.hpp"

#include <cmath>
#include <cstring>

#if !defined(VICINAL_ONE_LANE)
#include "base/parallel.hpp"
#endif

namespace vicinal::VICINAL_LEVEL {

#if defined(VICINAL_ONE_LANE)

// Four numbers, for a compiler without vector extensions.
struct Quad {
    float value[4];

    VICINAL_INLINE float operator[](int i) const { return value[i]; }
    friend VICINAL_INLINE Quad operator+(const Quad& x, const Quad& y) {
        return {{x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3]}};
    }
    friend VICINAL_INLINE Quad operator*(const Quad& x, const Quad& y) {
        return {{x[0] * y[0], x[1] * y[1], x[2] * y[2], x[3] * y[3]}};
    }
    friend VICINAL_INLINE Quad operator*(const Quad& x, float y) { return x * Quad{{y, y, y, y}}; }
    friend VICINAL_INLINE Quad operator*(float x, const Quad& y) { return y * x; }
    VICINAL_INLINE Quad& operator+=(const Quad& y) { return *this = *this + y; }
};

VICINAL_INLINE Quad load_quad(const float* from) { return {{from[0], from[1], from[2], from[3]}}; }

#else

typedef float Quad __attribute__((vector_size(16)));

VICINAL_INLINE Quad load_quad(const float* from) {
    Quad q;
    std::memcpy(&q, from, sizeof q);
    return q;
}

#endif

VICINAL_INLINE float dot(const Quad& x, const Quad& y) {
    const Quad z = x * y;
    return (z[0] + z[1]) + (z[2] + z[3]);
}

// Weights of the four nodes around a point; t is its position between the second and the third.
VICINAL_INLINE Quad spline(float t) {
    constexpr float sixth = 1.0f / 6.0f;
    const Quad c0 = {1, 4, 1, 0}, c1 = {-3, 0, 3, 0}, c2 = {3, -6, 3, 0}, c3 = {-1, 3, -3, 1};
    return (c0 + t * (c1 + t * (c2 + t * c3))) * sixth;
}

// Derivatives of the weights by t.
VICINAL_INLINE Quad spline_slope(float t) {
    const Quad c1 = {-1, 0, 1, 0}, c2 = {2, -4, 2, 0}, c3 = {-1, 3, -3, 1};
    return (c1 + t * (c2 + t * c3)) * 0.5f;
}

template <int Dim>
class GridCell {
  public:
    VICINAL_INLINE GridCell(const Grid& grid, const float* y) {
        Size stride[Dim];
        stride[Dim - 1] = 1;
        for (int c = Dim - 1; c > 0; --c) stride[c - 1] = stride[c] * grid.shape[c];
        for (int c = 0; c < Dim; ++c) {
            const float u = (y[c] - grid.origin[c]) / grid.spacing;
            // A point outside the grid uses the border; NaN compares false and uses node 0.
            const float last = static_cast<float>(grid.shape[c] - 4), low = u > 0.0f ? u : 0.0f;
            const float cell = std::floor(low < last ? low : last);
            const float rest = low - cell;
            t_[c] = rest < 1.0f ? rest : 1.0f;
            at_ += static_cast<Size>(cell) * stride[c];
            if (c < Dim - 1) stride_[c] = stride[c];
        }
    }

    // Calls f(offset of the first node, weight of the line, derivatives of the weight by the leading axes).
    template <bool Slopes, class F>
    VICINAL_INLINE void for_each_line(const F& f) const {
        Quad w[Dim], slope[Dim];
        for (int c = 0; c < Dim - 1; ++c) {
            w[c] = spline(t_[c]);
            if constexpr (Slopes) slope[c] = spline_slope(t_[c]);
        }
        constexpr int lines = Dim == 1 ? 1 : Dim == 2 ? 4 : 16;
        for (int line = 0; line < lines; ++line) {
            const int step[2] = {line & 3, line >> 2};
            Size at = at_;
            float weight = 1.0f, derivative[Dim];
            for (int c = 0; c < Dim - 1; ++c) {
                at += step[c] * stride_[c];
                weight *= w[c][step[c]];
            }
            if constexpr (Slopes)
                for (int c = 0; c < Dim - 1; ++c) {
                    derivative[c] = slope[c][step[c]];
                    for (int o = 0; o < Dim - 1; ++o)
                        if (o != c) derivative[c] *= w[o][step[o]];
                }
            f(at, weight, derivative);
        }
    }

    VICINAL_INLINE float last() const { return t_[Dim - 1]; }

  private:
    float t_[Dim];
    Size at_ = 0, stride_[Dim] = {};
};

// Returns the potential at a point, and writes its gradient to field[Dim].
template <int Dim>
VICINAL_INLINE float gather_point(const Grid& grid, const float* nodes, const float* point, float* field) {
    const float per_spacing = 1.0f / grid.spacing;
    const GridCell<Dim> cell(grid, point);
    Quad sum{}, leading[Dim] = {};
    cell.template for_each_line<true>([&](Size at, float weight, const float* derivative) {
        const Quad line = load_quad(nodes + at);
        sum += weight * line;
        for (int c = 0; c < Dim - 1; ++c) leading[c] += derivative[c] * line;
    });
    const Quad w = spline(cell.last());
    for (int c = 0; c < Dim - 1; ++c) field[c] = dot(leading[c], w) * per_spacing;
    field[Dim - 1] = dot(sum, spline_slope(cell.last())) * per_spacing;
    return dot(sum, w);
}

}  // namespace vicinal::VICINAL_LEVEL

// The loops over all points, on the CPU.
#if !defined(VICINAL_ONE_LANE)

namespace vicinal::VICINAL_LEVEL {

// Writes the sum of the unit masses of n points to `out`; `shares` has space for spread_shares grids.
template <int Dim>
void grid_spread(const Grid& grid, const float* points, Size n, float* shares, float* out, ThreadTeam& team) {
    const Size size = grid.size();
    team.parallel_for(spread_shares, 1, [&](Size begin, Size end, int) {
        for (Size s = begin; s < end; ++s) {
            float* nodes = shares + s * size;
            std::memset(nodes, 0, static_cast<std::size_t>(size) * sizeof(float));
            for (Size i = n * s / spread_shares; i < n * (s + 1) / spread_shares; ++i) {
                const GridCell<Dim> cell(grid, points + i * Dim);
                const Quad w = spline(cell.last());
                cell.template for_each_line<false>([&](Size at, float weight, const float*) {
                    const Quad sum = load_quad(nodes + at) + weight * w;
                    std::memcpy(nodes + at, &sum, sizeof sum);
                });
            }
        }
    });
    team.parallel_for(size, 16384, [&](Size begin, Size end, int) {
        for (Size g = begin; g < end; ++g) {
            float sum = shares[g];
            for (Size s = 1; s < spread_shares; ++s) sum += shares[s * size + g];
            out[g] = sum;
        }
    });
}

template <int Dim>
void grid_gather(const Grid& grid, const float* nodes, const float* points, Size n, float* potential, float* field,
                 ThreadTeam& team) {
    team.parallel_for(n, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            potential[i] = gather_point<Dim>(grid, nodes, points + i * Dim, field + i * Dim);
    });
}

}  // namespace vicinal::VICINAL_LEVEL

#endif  // VICINAL_ONE_LANE
