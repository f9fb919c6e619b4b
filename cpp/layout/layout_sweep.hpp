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
// The edges of a row are stored in a random order, and a sweep takes those that fire from a random one on, round and
// round: a later pull moves the row further than an earlier one, and which is the last must not depend on row numbers.
//
// Two single pulls, the second from the point that the first reached, overshoot less than one pull of twice the
// length: near points attract with a coefficient above 1.
//
// An edge of weight w in (0, 1] fires in sweep e if floor((e+1) w + u) > floor(e w + u), where u is a hash of the
// unordered pair, so that both directions fire together. In 32-bit fixed point this is a carry: phase + e * rate wraps
// when rate is added. There is no state, so any sweep can be computed at any time.
//
// Every vector lane processes one row. The rows of a block are sorted by their number of firing edges, so that the
// lanes of a vector finish at about the same time and all state stays in registers. Lanes do not interact: neither the
// width of the vector nor the order of the rows changes the result.
#pragma once

#include "base/rng.hpp"
#include "layout/force.hpp"
#include "layout/layout_task.hpp"
#include "layout/output_space.hpp"

#include <algorithm>
#include <utility>

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
          rows_(scratch.rows), work_(scratch.work), dim_(static_cast<int>(task.dim)) {}

    void run(Size begin, Size end) {
        collect(begin, end);
        sort_rows();
        for (Size first = 0; first < n_items_; first += lanes) lay_out(first);
    }

  private:
    VICINAL_INLINE int dim() const { return Dim > 0 ? Dim : dim_; }
    VICINAL_INLINE Size row_of(Size head) const { return task_.head_row != nullptr ? task_.head_row[head] : head; }

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

    // Sorts the rows by their number of firing edges and fills the last vector with idle lanes.
    void sort_rows() {
        constexpr Index most = 31;  // rows with more edges come last, in any order
        Index next[most + 1] = {};
        const auto bucket = [&](const LayoutItem& item) { return std::min(item.end - item.begin, most); };
        for (Index k = 0; k < n_items_; ++k) ++next[bucket(items_[k])];
        for (Index b = 0, before = 0; b <= most; ++b) before += std::exchange(next[b], before);
        for (Index k = 0; k < n_items_; ++k) {
            const LayoutItem item = items_[k];
            const auto n_fired = static_cast<std::uint32_t>(item.end - item.begin);
            const Size row = row_of(item.head);
            const std::uint32_t key = row_key(
                sweep_.key, task_.row_key != nullptr ? task_.row_key[item.head] : static_cast<std::uint64_t>(row));
            const Index at = next[bucket(item)]++;
            rows_.head[at] = item.head;
            rows_.row[at] = static_cast<Index>(row);
            rows_.begin[at] = item.begin;
            rows_.end[at] = item.end;
            rows_.cursor[at] = item.begin + static_cast<Index>(below(draw32(key, 0), n_fired));
            rows_.key[at] = key;
        }
        for (Index at = n_items_; at % lanes != 0; ++at) {
            rows_.head[at] = rows_.row[at] = 0;
            rows_.begin[at] = rows_.end[at] = rows_.cursor[at] = idle_;
            rows_.key[at] = 0;
        }
    }

    // Processes one row per lane: in every step one firing edge and its negatives.
    void lay_out(Size first) {
        Float local[Dim > 0 ? 3 * Dim : 1];
        Float* place = Dim > 0 ? local : reinterpret_cast<Float*>(work_);
        Float* delta = place + dim();
        Float* push = delta + dim();

        const Int row = load<Int>(rows_.row + first), own = task_.reference == task_.head_in ? row : splat<Int>(-1);
        const Int begin = load<Int>(rows_.begin + first), end = load<Int>(rows_.end + first), n_fired = end - begin;
        const UInt key = load<UInt>(rows_.key + first);
        const Float rate = sweep_.head_rates != nullptr
                               ? gather<Float>(sweep_.head_rates, load<Int>(rows_.head + first))
                               : splat<Float>(sweep_.learning_rate);
        Int cursor = load<Int>(rows_.cursor + first);
        UInt draw{};
        gather_points(task_.head_in, row, place);

        const Size last = std::min<Size>(first + lanes, n_items_);
        Index most = 0;
        for (Size at = first; at < last; ++at) most = std::max(most, rows_.end[at] - rows_.begin[at]);
        for (Index t = 0; t < most; ++t) {
            const Int active = n_fired > t;
            // Lanes that are finished compute as well; a learning rate of 0 keeps their points.
            const Float step = select(active, rate, Float{});
            pull(gather<Int>(fired_, cursor), step, place, delta);
            push_away(own, key, draw, active, step, place, delta, push);
            const Int advanced = cursor + 1;
            cursor = advanced < end ? advanced : begin;
        }
        for (Size at = first; at < last; ++at)
            for (int c = 0; c < dim(); ++c) task_.head_out[rows_.head[at] * dim() + c] = place[c][at - first];
    }

    VICINAL_INLINE void pull(Int tail, Float step, Float* place, Float* delta) const {
        for (int p = 0; p < sweep_.pulls; ++p) {
            const Float g = force_.attract(towards(tail, place, delta));
            for (int c = 0; c < dim(); ++c) place[c] -= step * clamp(g * delta[c], gradient_bound);
        }
    }

    VICINAL_INLINE void push_away(Int own, UInt key, UInt& draw, Int active, Float step, Float* place, Float* delta,
                                  Float* push) {
        for (int c = 0; c < dim(); ++c) push[c] = Float{};
        for (int s = 0; s < sweep_.negatives; ++s) {
            draw += 1;
            const Int negative = draw_negative(finalize32(key + draw * golden_ratio_32));
            const Float g = select(negative == own, Float{}, force_.repel(towards(negative, place, delta)));
            for (int c = 0; c < dim(); ++c) {
                delta[c] = clamp(g * delta[c], gradient_bound);
                push[c] += delta[c];
            }
            if (task_.negative_moves != nullptr) move_negatives(negative, active, step, delta);
        }
        for (int c = 0; c < dim(); ++c) place[c] -= step * push[c];
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
        gather_points(task_.reference, at, delta);
        return space_.towards(place, delta, dim());
    }

    VICINAL_INLINE void gather_points(const float* points, Int at, Float* out) const {
        if constexpr (Dim == 2)
            gather_pairs(points, at, out[0], out[1]);
        else
            for (int c = 0; c < dim(); ++c) out[c] = gather<Float>(points + c, at * dim());
    }

    // Algorithm 1's optional line: the negative moves by the opposite of the push that it gives.
    void move_negatives(Int negative, Int active, Float step, const Float* gradient) {
        for (int lane = 0; lane < lanes; ++lane) {
            if (active[lane] == 0) continue;
            for (int c = 0; c < dim(); ++c) {
                const double move = static_cast<double>(step[lane]) * gradient[c][lane];
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
    const LayoutRows rows_;
    float* work_;
    const int dim_;
    Index n_items_ = 0, idle_ = 0;
};

}  // namespace vicinal::VICINAL_LEVEL
