// Compiled once per level with VICINAL_LEVEL set. Nothing is fused, so results have the same bits at every level.
#include "layout/density_kernels.hpp"

#include "layout/density_term.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

void measure(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch, ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        DensityRows(task, density, scratch[worker]).measure(begin, end);
    });
}

void move(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch, ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        DensityRows(task, density, scratch[worker]).move(begin, end);
    });
}

}  // namespace

const DensityKernels density_kernels{
    .measure = measure,
    .move = move,
};

}  // namespace vicinal::VICINAL_LEVEL
