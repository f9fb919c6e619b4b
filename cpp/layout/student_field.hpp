// Student's kernel of t-SNE (survey eq. 20), along the edges of a graph and over all pairs.
//
//   w(d^2) = (1 + d^2/dof)^(-(dof+1)/2)         one degree of freedom: 1/(1 + d^2)
//   phi_i  = sum over j of w(d_ij^2)            the potential; Z = sum over i of phi_i
//   dc4/dy_i = 2 (dof+1)/dof * sum over j of p_ij (y_i - y_j)/(1 + d_ij^2/dof)  +  2/Z * dphi_i/dy_i     (of eq. 22)
//
// The attractive sum needs no power for any dof, and the repulsive sum is the gradient of one potential, so a grid
// needs only one number per node (grid_interpolation.hpp).
//
// The formulas of a pair are shared with the GPU (cuda/full_layout.cu); the sums over rows are for the CPU.
#pragma once

#include "base/simd.hpp"
#include "layout/full_layout_task.hpp"

#if !defined(VICINAL_ONE_LANE)
#include "base/parallel.hpp"
#include "base/scratch.hpp"

#include <cstring>
#endif

namespace vicinal::VICINAL_LEVEL {

// The coefficient of (y_i - y_j) in the attraction of an edge.
VICINAL_INLINE Float attraction(Float weight, Float d2, float per_dof) { return weight / (1.0f + d2 * per_dof); }

// w of a pair, and the factor that makes it the coefficient of (y_i - y_j) in the repulsion.
template <bool Cauchy>
struct StudentPair {
    Float inverse, weight;

    VICINAL_INLINE StudentPair(Float d2, float per_dof, float power) {
        const Float s = 1.0f + d2 * per_dof;
        inverse = 1.0f / s;
        weight = Cauchy ? inverse : pow(s, power);
    }
};

// Any number of components, one edge at a time: such maps are small.
VICINAL_INLINE void attract_row_of_any_width(const AttractTask& t, Size i) {
    const float* y = t.heads + i * t.dim;
    float* pull = t.pull + i * t.dim;
    for (Size c = 0; c < t.dim; ++c) pull[c] = 0.0f;
    for (Size e = t.start[i]; e < t.start[i + 1]; ++e) {
        const float* z = t.sources + t.tails[e] * t.dim;
        float d2 = 0.0f;
        for (Size c = 0; c < t.dim; ++c) d2 += (y[c] - z[c]) * (y[c] - z[c]);
        const float coefficient = t.weights[e] / (1.0f + d2 / t.dof);
        for (Size c = 0; c < t.dim; ++c) pull[c] += coefficient * (y[c] - z[c]);
    }
}

}  // namespace vicinal::VICINAL_LEVEL

// Sums over edges and over all pairs, on the CPU.
#if !defined(VICINAL_ONE_LANE)

namespace vicinal::VICINAL_LEVEL {

// The edges are read once per iteration, and they exceed the caches: they are fetched this many edges ahead.
constexpr Size attract_ahead = 512;
constexpr int sum_parts = static_cast<int>(sum_lanes) / lanes;

// Adds the second half of 2 * Half numbers to the first, until lane[0] is the sum of all.
template <int Half>
VICINAL_INLINE void add_halves(float* lane) {
    typedef float Part __attribute__((vector_size(Half * sizeof(float))));
    Part low, high;
    std::memcpy(&low, lane, sizeof low);
    std::memcpy(&high, lane + Half, sizeof high);
    low += high;
    std::memcpy(lane, &low, sizeof low);
    if constexpr (Half > 1) add_halves<Half / 2>(lane);
}

// sum_lanes running sums.
struct LaneSums {
    Float part[sum_parts];

    VICINAL_INLINE void clear() {
        for (Float& p : part) p = Float{};
    }
    VICINAL_INLINE float total() const {
        alignas(64) float lane[sum_lanes];
        for (int p = 0; p < sum_parts; ++p) store(lane + p * lanes, part[p]);
        add_halves<sum_lanes / 2>(lane);
        return lane[0];
    }
};

template <int Dim>
VICINAL_INLINE void attract_row(const AttractTask& t, Size i) {
    const float* y = t.heads + i * Dim;
    const float per_dof = 1.0f / t.dof;
    LaneSums sum[Dim];
    for (LaneSums& s : sum) s.clear();
    for (Size e = t.start[i]; e < t.start[i + 1]; e += sum_lanes) {
        prefetch(t.tails + e + attract_ahead, sum_lanes * sizeof(Index));
        prefetch(t.weights + e + attract_ahead, sum_lanes * sizeof(float));
        for (int p = 0; p < sum_parts; ++p) {
            const Int tail = load<Int>(t.tails + e + p * lanes);
            Float difference[Dim] = {};
            if constexpr (Dim == 2)
                gather_pairs(t.sources, tail, difference[0], difference[1]);
            else
                for (int c = 0; c < Dim; ++c) difference[c] = gather<Float>(t.sources + c, tail * Dim);
            Float d2{};
            for (int c = 0; c < Dim; ++c) {
                difference[c] = y[c] - difference[c];
                d2 += difference[c] * difference[c];
            }
            const Float coefficient = attraction(load<Float>(t.weights + e + p * lanes), d2, per_dof);
            for (int c = 0; c < Dim; ++c) sum[c].part[p] += coefficient * difference[c];
        }
    }
    for (int c = 0; c < Dim; ++c) t.pull[i * Dim + c] = sum[c].total();
}

template <int Dim>
void attract_rows(const AttractTask& task, ThreadTeam& team) {
    team.parallel_for(task.n_heads, 256, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            if constexpr (Dim > 0)
                attract_row<Dim>(task, i);
            else
                attract_row_of_any_width(task, i);
        }
    });
}

// One head against all sources. Sums within a block of sources are single precision, sums of blocks double precision.
template <int Dim, bool Cauchy>
class FieldRow {
  public:
    explicit FieldRow(const FieldTask& task)
        : t_(task), dim_(Dim > 0 ? Dim : task.dim), sums_(dim_), totals_(dim_), per_dof_(1.0f / task.dof),
          power_(-0.5f * (task.dof + 1.0f)) {}

    void run(Size i) {
        const bool with_field = t_.field != nullptr;
        double potential = 0.0;
        for (Size c = 0; c < dim_; ++c) totals_[c] = 0.0;
        for (Size begin = 0; begin < t_.n_sources; begin += field_block) {
            const Size end = begin + field_block < t_.n_sources ? begin + field_block : t_.n_sources;
            for (Size c = 0; c < dim_; ++c) sums_[c].clear();
            potential += with_field ? add<true>(i, begin, end) : add<false>(i, begin, end);
            for (Size c = 0; with_field && c < dim_; ++c) totals_[c] += sums_[c].total();
        }
        t_.potential[i] = static_cast<float>(potential);
        const double scale = -(static_cast<double>(t_.dof) + 1.0) / t_.dof;
        for (Size c = 0; with_field && c < dim_; ++c) t_.field[i * dim_ + c] = static_cast<float>(scale * totals_[c]);
    }

  private:
    template <bool WithField>
    VICINAL_INLINE float add(Size i, Size begin, Size end) {
        const float* y = t_.heads + i * dim_;
        const Int self = splat<Int>(t_.heads_are_sources ? static_cast<Index>(i) : Index{-1});
        LaneSums weight;
        weight.clear();
        for (Size j = begin; j < end; j += sum_lanes)
            for (int p = 0; p < sum_parts; ++p) {
                const Size at = j + p * lanes;
                Float d2{};
                for (Size c = 0; c < dim_; ++c) {
                    const Float difference = y[c] - load<Float>(t_.columns + c * t_.stride + at);
                    d2 += difference * difference;
                }
                const StudentPair<Cauchy> pair(d2, per_dof_, power_);
                const Float inverse = pair.inverse;
                const Float w = select(lane_numbers() + static_cast<Index>(at) == self, Float{}, pair.weight);
                weight.part[p] += w;
                if constexpr (WithField)
                    for (Size c = 0; c < dim_; ++c)
                        sums_[c].part[p] += w * inverse * (y[c] - load<Float>(t_.columns + c * t_.stride + at));
            }
        return weight.total();
    }

    const FieldTask& t_;
    const Size dim_;
    Scratch<LaneSums> sums_;
    Scratch<double> totals_;
    const float per_dof_, power_;
};

template <int Dim, bool Cauchy>
void student_field(const FieldTask& task, ThreadTeam& team) {
    team.parallel_for(task.n_heads, 32, [&](Size begin, Size end, int) {
        FieldRow<Dim, Cauchy> row(task);
        for (Size i = begin; i < end; ++i) row.run(i);
    });
}

}  // namespace vicinal::VICINAL_LEVEL

#endif  // VICINAL_ONE_LANE
