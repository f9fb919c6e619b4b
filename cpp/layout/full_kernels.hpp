// Hot code of FullLayout, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "layout/full_layout_task.hpp"

namespace vicinal {

struct FullKernels {
    void (*attract)(const AttractTask& task, ThreadTeam& team);
    void (*student_field)(const FieldTask& task, ThreadTeam& team);
    void (*grid_spread)(const Grid& grid, const float* points, Size n, float* shares, float* out, ThreadTeam& team);
    void (*grid_gather)(const Grid& grid, const float* nodes, const float* points, Size n, float* potential,
                        float* field, ThreadTeam& team);
};

VICINAL_KERNELS(FullKernels, full_kernels)

}  // namespace vicinal
