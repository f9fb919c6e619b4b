// One sweep of the negative-sampling loop, for every method that samples, in fit and transform.
//
// Algorithm 1 of the survey with one writer per row. In every sweep a row starts at its own point in the snapshot of
// the previous sweep. Every edge that fires pulls it towards the snapshot of the tail: twice if the graph is
// symmetric, because the mirrored edge pulls this row too, and once if tails are a frozen reference. Then the row
// draws its negatives, evaluates all of them at the moved point and adds the sum; a row that draws itself is not
// pushed. Nothing that a row reads is written in the same sweep, so there are no locks, and the result has the same
// bits for any number of threads.
//
// The heads may be only some of the points: these move, each with its own learning rate if there is one, and the
// others are only read. A sweep then costs as much as its heads, for any number of points.
//
// Two single pulls, the second from the point that the first reached, overshoot less than one pull of twice the
// length: near points attract with a coefficient above 1.
//
// An edge of weight w in (0, 1] fires in sweep e if floor((e+1) w + u) > floor(e w + u), where u is a hash of the
// unordered pair, so that both directions fire together. In 32-bit fixed point this is a carry: phase + e * rate wraps
// when rate is added. There is no state, so any sweep can be computed at any time.
//
// Every vector lane processes one row; a lane that has finished its row takes the next one of the block. Lanes do not
// interact, so the width of the vector does not change the result.
#pragma once

#include "base/rng.hpp"
#include "layout/force.hpp"
#include "layout/layout_task.hpp"
#include "layout/output_space.hpp"

#include <bit>

namespace vicinal::VICINAL_LEVEL {

// Bits of the edges that fire, for one vector of edges.
VICINAL_INLINE std::uint32_t firing(const std::uint32_t* rate, const std::uint32_t* phase, std::uint32_t sweep) {
    const UInt r = load<UInt>(rate), before = load<UInt>(phase) + sweep * r;
    return bits_of(before + r < before);
}

// Dim > 0 fixes the number of components at compile time; 0 takes it from the task.
template <class Force, class Space, int Dim>
class LayoutBlock {
  public:
    LayoutBlock(const LayoutTask& task, const LayoutSweep& sweep, const Force& force, const Space& space,
                const LayoutScratch& scratch)
        : task_(task), sweep_(sweep), force_(force), space_(space), fired_(scratch.fired), items_(scratch.items),
          state_(scratch.lane_state), dim_(static_cast<int>(task.dim)) {}

    void run(Size begin, Size end) {
        collect(begin, end);
        next_item_ = 0;
        active_ = 0;
        for (int lane = 0; lane < lanes; ++lane) refill(lane);
        while (active_ > 0) step();
    }

  private:
    VICINAL_INLINE int dim() const { return Dim > 0 ? Dim : dim_; }

    // Lists the edges that fire in this sweep, row by row. Rows without any keep their point.
    void collect(Size begin, Size end) {
        n_items_ = 0;
        Index fired = 0;
        const auto sweep = static_cast<std::uint32_t>(sweep_.number);
        for (Size head = begin; head < end; ++head) {
            const Index first = fired;
            for (Size e = task_.indptr[head], end_e = task_.indptr[head + 1]; e < end_e; e += lanes) {
                std::uint32_t bits = firing(task_.rate + e, task_.phase + e, sweep);
                if (end_e - e < lanes) bits &= (1u << (end_e - e)) - 1u;
                fired += compress(fired_ + fired, load<Int>(task_.tails + e), bits);
            }
            if (fired > first)
                items_[n_items_++] = {static_cast<Index>(head), first, fired};
            else
                for (int c = 0; c < dim(); ++c)
                    task_.head_out[head * dim() + c] = task_.head_in[row_of(head) * dim() + c];
        }
        // Idle lanes read this entry after the last edge.
        fired_[fired] = 0;
        idle_ = fired;
    }

    VICINAL_INLINE Size row_of(Size head) const { return task_.head_row != nullptr ? task_.head_row[head] : head; }

    // Gives the next head to a lane, or parks the lane.
    VICINAL_INLINE void refill(int lane) {
        if (next_item_ == n_items_) {
            state_.head[lane] = state_.own[lane] = -1;
            state_.cursor[lane] = idle_;
            state_.stop[lane] = -1;
            return;
        }
        const LayoutItem item = items_[next_item_++];
        const Size row = row_of(item.head);
        ++active_;
        state_.head[lane] = item.head;
        state_.own[lane] = static_cast<Index>(row);
        state_.cursor[lane] = item.begin;
        state_.stop[lane] = item.end;
        state_.key[lane] =
            row_key(sweep_.key, task_.row_key != nullptr ? task_.row_key[item.head] : static_cast<std::uint64_t>(row));
        state_.draw[lane] = 0;
        state_.learning_rate[lane] = sweep_.head_rates != nullptr ? sweep_.head_rates[item.head] : sweep_.learning_rate;
        for (int c = 0; c < dim(); ++c) state_.place[c * lanes + lane] = task_.head_in[row * dim() + c];
    }

    // Processes one firing edge and its negatives in every lane.
    VICINAL_INLINE void step() {
        Float local[Dim > 0 ? 3 * Dim : 1];
        Float* place = Dim > 0 ? local : reinterpret_cast<Float*>(state_.work);
        Float* delta = place + dim();
        Float* push = delta + dim();
        for (int c = 0; c < dim(); ++c) place[c] = load<Float>(state_.place + c * lanes);

        const Float rate = load<Float>(state_.learning_rate);
        const Int cursor = load<Int>(state_.cursor);
        {
            const Int at = cursor < idle_ ? cursor : splat<Int>(idle_);
            const Int tail = gather<Int>(fired_, at);
            for (int p = 0; p < sweep_.pulls; ++p) {
                const Float g = force_.attract(towards(tail, place, delta));
                for (int c = 0; c < dim(); ++c) place[c] -= rate * clamp(g * delta[c], gradient_bound);
            }
        }

        const Int own = task_.reference == task_.head_in ? load<Int>(state_.own) : splat<Int>(-1);
        const UInt key = load<UInt>(state_.key);
        UInt draw = load<UInt>(state_.draw);
        for (int c = 0; c < dim(); ++c) push[c] = Float{};
        for (int s = 0; s < sweep_.negatives; ++s) {
            draw += 1;
            const UInt bits = finalize32(key + draw * golden_ratio_32);
            const Int negative = draw_negative(bits);
            const Float g = select(negative == own, Float{}, force_.repel(towards(negative, place, delta)));
            for (int c = 0; c < dim(); ++c) {
                delta[c] = clamp(g * delta[c], gradient_bound);
                push[c] += delta[c];
            }
            if (task_.negative_moves != nullptr) move_negatives(negative, delta);
        }
        store(state_.draw, draw);
        for (int c = 0; c < dim(); ++c) store(state_.place + c * lanes, place[c] - rate * push[c]);

        const Int advanced = cursor + 1;
        store(state_.cursor, advanced);
        for (std::uint32_t done = bits_of(advanced == load<Int>(state_.stop)); done != 0; done &= done - 1)
            finish(std::countr_zero(done));
    }

    VICINAL_INLINE void finish(int lane) {
        const Size head = state_.head[lane];
        for (int c = 0; c < dim(); ++c) task_.head_out[head * dim() + c] = state_.place[c * lanes + lane];
        --active_;
        refill(lane);
    }

    // A random row of the reference, uniform or by the weights of the alias table.
    VICINAL_INLINE Int draw_negative(UInt bits) const {
        const auto n = static_cast<std::uint32_t>(task_.n_reference);
        const Int drawn = bits_as<Int>(multiply_high(bits, n));
        if (task_.negative_keep == nullptr) return drawn;
        const Int kept = bits * n < gather<UInt>(task_.negative_keep, drawn);
        return (kept & drawn) | (~kept & gather<Int>(task_.negative_alias, drawn));
    }

    // The squared distance to reference[at]; delta becomes half of its gradient (output_space.hpp).
    VICINAL_INLINE Float towards(Int at, const Float* place, Float* delta) const {
        if constexpr (Dim == 2)
            gather_pairs(task_.reference, at, delta[0], delta[1]);
        else
            for (int c = 0; c < dim(); ++c) delta[c] = gather<Float>(task_.reference + c, at * dim());
        return space_.towards(place, delta, dim());
    }

    // Algorithm 1's optional line: the negative moves by the opposite of the push that it gives.
    void move_negatives(Int negative, const Float* gradient) {
        for (int lane = 0; lane < lanes; ++lane) {
            if (state_.head[lane] < 0) continue;
            for (int c = 0; c < dim(); ++c) {
                const double move = static_cast<double>(state_.learning_rate[lane]) * gradient[c][lane];
                const auto units = static_cast<std::int64_t>(move / fixed_point_unit);
                __atomic_fetch_add(task_.negative_moves + static_cast<Size>(negative[lane]) * dim() + c, units,
                                   __ATOMIC_RELAXED);
            }
        }
    }

    const LayoutTask& task_;
    const LayoutSweep& sweep_;
    const Force force_;
    const Space space_;
    Index* fired_;
    LayoutItem* items_;
    const LaneState state_;
    const int dim_;
    Index n_items_ = 0, next_item_ = 0, idle_ = 0;
    int active_ = 0;
};

}  // namespace vicinal::VICINAL_LEVEL
