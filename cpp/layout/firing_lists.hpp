// Lists of the edges that fire, by the rule of layout_sweep.hpp. Reading all edges takes longer than finding those that
// fire, so one pass lists them for several sweeps.
#pragma once

#include "base/simd.hpp"
#include "layout/layout_task.hpp"

namespace vicinal::VICINAL_LEVEL {

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
                listed[s] += compress(tails + s * capacity + listed[s], tail, fires);
                phase = next;
            }
        }
        for (Size s = 0; s < sweeps; ++s) first[s * stride + head - begin + 1] = listed[s];
    }
}

}  // namespace vicinal::VICINAL_LEVEL
