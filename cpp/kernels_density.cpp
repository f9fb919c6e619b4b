// Compiled once a level with VICINAL_LEVEL set, as the layout is.
#include "density_term.hpp"
#include "kernels.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

void density_measure(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                     ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        DensityRows(task, density, scratch[worker]).measure(begin, end);
    });
}

void density_move(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch, ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        DensityRows(task, density, scratch[worker]).move(begin, end);
    });
}

}  // namespace

void density_kernels(Kernels& out) {
    out.density_measure = density_measure;
    out.density_move = density_move;
}

}  // namespace vicinal::VICINAL_LEVEL
