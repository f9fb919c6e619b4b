// Hot code of OnlineNeighbors, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "neighbors/online_task.hpp"

namespace vicinal {

struct OnlineKernels {
    void (*explore)(const OnlineView& view, const Exploration& task, ThreadTeam& team);
    void (*compare_chunk)(const OnlineView& view, Size listed, const Index* rows, Size n);
    void (*accept)(const OnlineView& view, Size listed, const Offer* offers, Size n, Outcome* out);
    void (*insert_rows)(const SearchSpace& space, OnlineForest& forest, Size begin, Size end, const Index* above,
                        ThreadTeam& team);
    float (*sketch_share)(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team);
};

VICINAL_KERNELS(OnlineKernels, online_kernels)

}  // namespace vicinal
