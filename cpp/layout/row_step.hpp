// The moves of a row along one firing edge: pulls towards the tail, then a push away from the negatives. Shared by the
// blocks of layout_sweep.hpp, whose lanes are rows, and by the threads of a GPU (cuda/layout.cu).
#pragma once

#include "base/rng.hpp"
#include "base/simd.hpp"
#include "layout/force.hpp"
#include "layout/layout_task.hpp"
#include "layout/output_space.hpp"

namespace vicinal::VICINAL_LEVEL {

// The bound of the gradient of a push, so that a row moves by at most `longest_push` along each axis.
VICINAL_INLINE Float push_bound(float longest_push, Float rate) {
    return min(splat<Float>(gradient_bound), splat<Float>(longest_push) / rate);
}

// Dim > 0 fixes the number of components at compile time; 0 takes it from the task.
template <class Force, class Space, int Dim>
class RowStep {
  public:
    VICINAL_INLINE RowStep(const LayoutTask& task, int pulls, int negatives, const Force& force, const Space& space)
        : task_(task), force_(force), space_(space), pulls_(pulls), negatives_(negatives),
          dim_(static_cast<int>(task.dim)) {}

    VICINAL_INLINE int dim() const { return Dim > 0 ? Dim : dim_; }

    VICINAL_INLINE void gather_points(const float* points, Int at, Float* out) const {
        if constexpr (Dim == 2)
            gather_pairs(points, at, out[0], out[1]);
        else
            for (int c = 0; c < dim(); ++c) out[c] = gather<Float>(points + c, at * dim());
    }

    VICINAL_INLINE void pull(Int tail, Float step, Float* place, Float* delta) const {
        VICINAL_UNROLL
        for (int p = 0; p < pulls_; ++p) {
            gather_points(task_.reference, tail, delta);
            pull_to(step, place, delta);
        }
    }

    VICINAL_INLINE void push_away(Int own, UInt key, UInt& draw, Int active, Float step, Float bound, Float* place,
                                  Float* delta, Float* push) const {
        for (int c = 0; c < dim(); ++c) push[c] = Float{};
        for (int s = 0; s < negatives_; ++s) {
            draw += 1;
            const Int negative = draw_negative(key, draw);
            gather_points(task_.reference, negative, delta);
            push_from(negative, own, active, step, bound, place, delta, push);
        }
        for (int c = 0; c < dim(); ++c) place[c] -= step * push[c];
    }

    // The parts of a pull and of a push, for callers that fetch the points themselves.

    // Pulls once towards the point that `delta` holds.
    VICINAL_INLINE void pull_to(Float step, Float* place, Float* delta) const {
        const Float g = force_.attract(space_.towards(place, delta, dim()));
        for (int c = 0; c < dim(); ++c) place[c] -= step * clamp(g * delta[c], gradient_bound);
    }

    // Adds the push of one negative, whose point `delta` holds. `bound` is that of the gradient.
    VICINAL_INLINE void push_from(Int negative, Int own, Int active, Float step, Float bound, const Float* place,
                                  Float* delta, Float* push) const {
        const Float g = select(negative == own, Float{}, force_.repel(space_.towards(place, delta, dim())));
        for (int c = 0; c < dim(); ++c) {
            delta[c] = min(max(g * delta[c], -bound), bound);
            push[c] += delta[c];
        }
        if (task_.negative_moves != nullptr) move_negatives(negative, active, step, delta);
    }

    // A random row of the reference, uniform or by the weights of the alias table.
    VICINAL_INLINE Int draw_negative(UInt key, UInt draw) const {
        const UInt bits = finalize32(key + draw * golden_ratio_32);
        const auto n = static_cast<std::uint32_t>(task_.n_reference);
        const Int drawn = bits_as<Int>(multiply_high(bits, n));
        if (task_.negative_keep == nullptr) return drawn;
        const Int kept = bits * n < gather<UInt>(task_.negative_keep, drawn);
        return (kept & drawn) | (~kept & gather<Int>(task_.negative_alias, drawn));
    }

  private:
    // Algorithm 1's optional line: the negative moves by the opposite of the push that it gives.
    VICINAL_INLINE void move_negatives(Int negative, Int active, Float step, const Float* gradient) const {
        for (int lane = 0; lane < lanes; ++lane) {
            if (active[lane] == 0) continue;
            for (int c = 0; c < dim(); ++c) {
                const double move = static_cast<double>(step[lane]) * gradient[c][lane];
                const auto units = static_cast<std::int64_t>(move / fixed_point_unit);
                add_atomically(task_.negative_moves + static_cast<Size>(negative[lane]) * dim() + c, units);
            }
        }
    }

    const LayoutTask& task_;
    const Force force_;
    const Space space_;
    const int pulls_, negatives_, dim_;
};

}  // namespace vicinal::VICINAL_LEVEL
