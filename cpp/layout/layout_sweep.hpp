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
// The rule by which an edge fires is in firing.hpp. The edges that fire in several sweeps are listed together
// (list_firings). The edges of a row are stored in a random order. A sweep begins at a random one of those that fire
// and goes around the list once: a later pull moves the row further than an earlier one, so which pull is the last must
// not depend on row numbers.
//
// A negative that happens to be near pushes a row far away, out of a sheet or a cluster, at the learning rates of the
// first epochs. The move by one negative may therefore have a limit (longest_push); pulls have none.
//
// Two single pulls, the second from the point that the first reached, overshoot less than one pull of twice the
// length: near points attract with a coefficient above 1.
//
// Every vector lane processes one row. The rows of a block are sorted by their number of firing edges, so that the
// lanes of a vector finish at about the same time and all state stays in registers. Lanes do not interact: neither the
// width of the vector nor the order of the rows changes the result.
#pragma once

#include "base/simd.hpp"
#include "layout/layout_task.hpp"
#include "layout/row_step.hpp"

#include <algorithm>
#include <utility>

namespace vicinal::VICINAL_LEVEL {

// Dim > 0 fixes the number of components at compile time; 0 takes it from the task.
template <class Force, class Space, int Dim>
class LayoutBlock {
  public:
    LayoutBlock(const LayoutTask& task, const LayoutSweep& sweep, const Force& force, const Space& space,
                const BlockFirings& firings, const LayoutScratch& scratch)
        : task_(task), sweep_(sweep), step_(task, sweep.pulls, sweep.negatives, force, space), firings_(firings),
          rows_(scratch.rows), work_(scratch.work) {}

    // Moves the rows [begin, end) along the edges that fire in the sweep `listed` of the lists.
    void run(Size begin, Size end, Size listed) {
        sort_rows(begin, end, firings_.first + listed * (end - begin + 1));
        const bool fetches = task_.n_reference * task_.dim * Size{sizeof(float)} > cached_bytes;
        for (Size first = 0; first < n_items_; first += lanes) fetches ? lay_out<true>(first) : lay_out<false>(first);
    }

  private:
    static constexpr Size cached_bytes = Size{1} << 18;  // of points that need not be fetched

    VICINAL_INLINE int dim() const { return step_.dim(); }
    VICINAL_INLINE Size row_of(Size head) const { return task_.head_row != nullptr ? task_.head_row[head] : head; }

    // Sorts the rows by their number of firing edges and fills the last vector with idle lanes. Rows without any keep
    // their point.
    void sort_rows(Size begin, Size end, const Index* first) {
        constexpr Index most = 31;  // rows with more edges come last, in any order
        Index next[most + 1] = {};
        const auto n = static_cast<Index>(end - begin);
        const auto bucket = [&](Index k) { return std::min(first[k + 1] - first[k], most); };
        for (Index k = 0; k < n; ++k) ++next[bucket(k)];
        n_items_ = n - std::exchange(next[0], 0);
        for (Index b = 1, before = 0; b <= most; ++b) before += std::exchange(next[b], before);
        for (Index k = 0; k < n; ++k) {
            const Size head = begin + k, row = row_of(head);
            const auto n_fired = static_cast<std::uint32_t>(first[k + 1] - first[k]);
            if (n_fired == 0) {
                for (int c = 0; c < dim(); ++c) task_.head_out[head * dim() + c] = task_.head_in[row * dim() + c];
                continue;
            }
            const std::uint32_t key =
                row_key(sweep_.key, task_.row_key != nullptr ? task_.row_key[head] : static_cast<std::uint64_t>(row));
            const Index at = next[bucket(k)]++;
            rows_.head[at] = static_cast<Index>(head);
            rows_.row[at] = static_cast<Index>(row);
            rows_.begin[at] = first[k];
            rows_.end[at] = first[k + 1];
            rows_.cursor[at] = first[k] + static_cast<Index>(below(draw32(key, 0), n_fired));
            rows_.key[at] = key;
        }
        for (Index at = n_items_; at % lanes != 0; ++at) {
            rows_.head[at] = rows_.row[at] = 0;
            rows_.begin[at] = rows_.end[at] = rows_.cursor[at] = firings_.idle;
            rows_.key[at] = 0;
        }
    }

    // Processes one row per lane: in every step one firing edge and its negatives.
    template <bool fetches>
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
        const Float bound = push_bound(sweep_.longest_push, rate);
        Int cursor = load<Int>(rows_.cursor + first);
        UInt draw{};
        step_.gather_points(task_.head_in, row, place);
        const auto following = [&](Int at) { return at + 1 < end ? at + 1 : begin; };
        Int next_tail = gather<Int>(firings_.tails, cursor);

        const Size last = std::min<Size>(first + lanes, n_items_);
        Index most = 0;
        for (Size at = first; at < last; ++at) most = std::max(most, rows_.end[at] - rows_.begin[at]);
        for (Index t = 0; t < most; ++t) {
            const Int active = n_fired > t;
            // Lanes that are finished compute as well; a learning rate of 0 keeps their points.
            const Float step = select(active, rate, Float{});
            const Int tail = std::exchange(next_tail, gather<Int>(firings_.tails, following(cursor)));
            if constexpr (fetches) fetch_ahead(next_tail, key, draw + static_cast<std::uint32_t>(sweep_.negatives));
            step_.pull(tail, step, place, delta);
            step_.push_away(own, key, draw, active, step, bound, place, delta, push);
            cursor = following(cursor);
        }
        for (Size at = first; at < last; ++at)
            for (int c = 0; c < dim(); ++c) task_.head_out[rows_.head[at] * dim() + c] = place[c][at - first];
    }

    // Fetches the points that the next step reads, its tails and its negatives: 700,000 rows take 6 % less time. The
    // points of fewer rows are in the cache.
    VICINAL_INLINE void fetch_ahead(Int tail, UInt key, UInt draw) const {
        fetch_points(tail);
        for (int s = 0; s < sweep_.negatives; ++s) fetch_points(step_.draw_negative(key, draw += 1));
    }

    VICINAL_INLINE void fetch_points(Int at) const {
        alignas(64) std::int32_t points[lanes];
        store(points, at);
        for (const std::int32_t point : points) __builtin_prefetch(task_.reference + Size{point} * dim());
    }

    const LayoutTask& task_;
    const LayoutSweep& sweep_;
    const RowStep<Force, Space, Dim> step_;
    const BlockFirings& firings_;
    const LayoutRows rows_;
    float* work_;
    Index n_items_ = 0;
};

// Reading all edges takes longer than finding those that fire, so one pass lists them for several sweeps.
//
// Lists the tails of the edges of rows [begin, end) that fire in `sweeps` sweeps from `number` on: those of sweep s at
// tails + s * capacity, and in first[s][end - begin + 1] where those of each row begin.
inline void list_firings(const LayoutTask& task, Size begin, Size end, Size number, Size sweeps, Size capacity,
                         Index* tails, Index* first) {
    Index listed[most_listed_sweeps] = {};
    const Size stride = end - begin + 1;
    for (Size s = 0; s < sweeps; ++s) first[s * stride] = 0;
    for (Size head = begin; head < end; ++head) {
        for (Size e = task.indptr[head], end_e = task.indptr[head + 1]; e < end_e; e += lanes) {
            const UInt rate = load<UInt>(task.rate + e);
            const Int tail = load<Int>(task.tails + e);
            const std::uint32_t edges = end_e - e < lanes ? (1u << (end_e - e)) - 1u : ~0u;
            UInt phase = load<UInt>(task.phase + e) + static_cast<std::uint32_t>(number) * rate;
            for (Size s = 0; s < sweeps; ++s) {
                const UInt next = phase + rate;
                const std::uint32_t fires = bits_of(next < phase) & edges;
                phase = next;
#if defined(__wasm_simd128__)
                if (fires == 0) continue;  // mostly, of four edges; compressing takes several instructions here
#endif
                listed[s] += compress(tails + s * capacity + listed[s], tail, fires);
            }
        }
        for (Size s = 0; s < sweeps; ++s) first[s * stride + head - begin + 1] = listed[s];
    }
}

}  // namespace vicinal::VICINAL_LEVEL
