// Hot code of the layouts, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "layout/density_row.hpp"
#include "layout/full_layout_task.hpp"
#include "layout/grid_convolution_task.hpp"
#include "layout/layout_task.hpp"

namespace vicinal {

struct LayoutKernels {
    // SampledLayout.
    void (*list_firings)(const LayoutTask& task, Size begin, Size end, Size number, Size sweeps, Size capacity,
                         Index* tails, Index* first);
    // `firings` lists the firing edges of each block of rows for several sweeps; `listed` is this sweep's place in
    // them.
    void (*layout_sweep)(const LayoutTask& task, const LayoutSweep& sweep, const LayoutLaw& law,
                         const BlockFirings* firings, Size listed, const LayoutScratch* scratch, ThreadTeam& team);
    // Coefficients of the forces at the squared distances `d2`, and distances with gradients of pairs of points: for
    // tests of the formulas.
    void (*force_table)(const ForceParameters& force, const float* d2, Size n, float* attract, float* repel);
    void (*space_table)(const SpaceParameters& space, Matrix heads, Matrix tails, float* d2, float* delta);

    // densMAP's term.
    void (*measure_density)(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                            ThreadTeam& team);
    void (*move_density)(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                         ThreadTeam& team);

    // FullLayout.
    void (*attract)(const AttractTask& task, ThreadTeam& team);
    void (*student_field)(const FieldTask& task, ThreadTeam& team);
    void (*grid_spread)(const Grid& grid, const float* points, Size n, float* shares, float* out, ThreadTeam& team);
    void (*grid_gather)(const Grid& grid, const float* nodes, const float* points, Size n, float* potential,
                        float* field, ThreadTeam& team);
    void (*convolve_grid)(const ConvolutionTask& task, ThreadTeam& team);
};

VICINAL_KERNELS(LayoutKernels, layout_kernels)

}  // namespace vicinal
