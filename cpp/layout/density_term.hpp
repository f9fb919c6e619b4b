// densMAP's term, -lambda Corr(r_q, r_p) (survey eq. 30-35, with their errata in docs/equations.md).
//
//   R_p(i) = sum_j p_ij |x_i - x_j|² / sum_j p_ij        R_q(i) = sum_j q_ij d_ij² / sum_j q_ij       r = ln R
//
// With Q_i = sum_j q_ij over the edges of the graph, s² = Var(r_q) + shift and standardized r_p, the derivative of a
// pair is
//
//   dCorr/dd² = (w_i dr_i + w_j dr_j) / ((n-1) s),   w_i = r_p^i - Cov (r_q^i - mean) / s²
//   dr_i/dd²  = q/Q_i (b (1-q) / d² + (1 - b (1-q)) / R_q^i)
//
// so two numbers per row are enough, A = w/Q and B = A/R. The gradient with respect to y_i is the sum of 2 dCorr/dd²
// (y_i - y_j) over its edges; it is exact, no edge is sampled. c2 grows with the number of edges and Corr does not, so
// lambda is multiplied by the firings per sweep, as in umap-learn. The part of an edge is clipped to the bound of its
// expected firings, so that a weak edge does not outweigh its attraction.
//
// The sums of a row run over its edges in order, in double precision, for any vector width.
//
// The part of an edge is shared with the GPU (cuda/density.cu).
#pragma once

#include "base/simd.hpp"
#include "layout/density_row.hpp"

#include <cstring>

namespace vicinal::VICINAL_LEVEL {

constexpr float density_smallest_d2 = 1e-12f;

VICINAL_INLINE Float density_affinity(const DensityTask& density, Float d2) {
    return 1.0f / (1.0f + density.a * pow(max(d2, splat<Float>(density_smallest_d2)), density.b));
}

// The coefficient of (y_i - y_j), from the sums a and b of the (A, B) of both ends.
VICINAL_INLINE Float density_slope(const DensityTask& density, Float a, Float b, Float q, Float squared) {
    const Float d2 = max(squared, splat<Float>(density_smallest_d2)), steep = density.b * (1.0f - q);
    return (2.0f * density.scale) * q * (a * steep / d2 + b * (1.0f - steep));
}

// The largest part of an edge that fires at this rate.
VICINAL_INLINE Float density_limit(const DensityTask& density, UInt rate) {
    return density.bound * to_float(bits_as<Int>(rate >> 1));
}

// Radii and gradients of a range of rows.
class DensityRows {
  public:
    DensityRows(const LayoutTask& task, const DensityTask& density, const DensityScratch& scratch)
        : task_(task), density_(density), scratch_(scratch), dim_(static_cast<int>(task.dim)) {}

    // Computes q of every edge, its sum per row, and the logarithm of the radius, for rows [begin, end).
    void measure(Size begin, Size end) const {
        for (Size row = begin; row < end; ++row) {
            const Size first = task_.indptr[row], count = task_.indptr[row + 1] - first;
            for (Size e = 0; e < count; e += lanes) {
                const Float d2 = squared_distance(row, load<Int>(task_.tails + first + e));
                store(scratch_.d2 + e, d2);
                store(scratch_.affinity + e, density_affinity(density_, d2));
            }
            double mass = 0.0, moment = 0.0;
            for (Size e = 0; e < count; ++e) {
                mass += scratch_.affinity[e];
                moment += static_cast<double>(scratch_.affinity[e]) * scratch_.d2[e];
            }
            std::memcpy(density_.affinity + first, scratch_.affinity, static_cast<std::size_t>(count) * sizeof(float));
            density_.mass[row] = mass;
            density_.log_radius[row] = log_radius_of(count, mass, moment);
        }
    }

    // Computes the gradient of lambda Corr with respect to the points of rows [begin, end).
    void move(Size begin, Size end) const {
        for (Size row = begin; row < end; ++row) {
            const Size first = task_.indptr[row], count = task_.indptr[row + 1] - first;
            for (Size e = 0; e < count; e += lanes) edge_parts(row, first, e);
            for (int c = 0; c < dim_; ++c) {
                double sum = 0.0;
                for (Size e = 0; e < count; ++e) sum += scratch_.part[c * scratch_.stride + e];
                density_.moves[row * dim_ + c] = static_cast<float>(sum);
            }
        }
    }

  private:
    VICINAL_INLINE Float difference(Size row, Int tail, int c) const {
        return splat<Float>(task_.head_in[row * dim_ + c]) - gather<Float>(task_.reference + c, tail * dim_);
    }

    VICINAL_INLINE Float squared_distance(Size row, Int tail) const {
        Float d2{};
        for (int c = 0; c < dim_; ++c) {
            const Float delta = difference(row, tail, c);
            d2 += delta * delta;
        }
        return d2;
    }

    VICINAL_INLINE void edge_parts(Size row, Size first, Size e) const {
        const Int tail = load<Int>(task_.tails + first + e);
        Float a{}, b{};
        if (density_.share != nullptr) gather_pairs(density_.share, tail, a, b);
        a += density_.head_share[2 * row];
        b += density_.head_share[2 * row + 1];
        const Float q = load<Float>(density_.affinity + first + e);
        const Float slope = density_slope(density_, a, b, q, squared_distance(row, tail));
        const Float bound = density_limit(density_, load<UInt>(task_.rate + first + e));
        for (int c = 0; c < dim_; ++c)
            store(scratch_.part + c * scratch_.stride + e, min(max(slope * difference(row, tail, c), -bound), bound));
    }

    const LayoutTask& task_;
    const DensityTask& density_;
    const DensityScratch& scratch_;
    const int dim_;
};

}  // namespace vicinal::VICINAL_LEVEL
