// Compiled once a level with VICINAL_LEVEL set. Nothing in a layout is fused, so it has the same bits at every level
// and on every processor.
#include "chebyshev_step.hpp"
#include "kernels.hpp"
#include "sampled_layout.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

template <class Force, int Dim>
void run_epoch(const LayoutTask& task, const LayoutEpoch& epoch, const Force& force, const LayoutScratch* scratch,
               ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        LayoutBlock<Force, Dim>(task, epoch, force, scratch[worker]).run(begin, end);
    });
}

void layout_epoch(const LayoutTask& task, const LayoutEpoch& epoch, const ForceParameters& parameters,
                  const LayoutScratch* scratch, ThreadTeam& team) {
    with_force(parameters, [&]<class Force>(const Force& force) {
        switch (task.dim) {
        case 2: return run_epoch<Force, 2>(task, epoch, force, scratch, team);
        case 3: return run_epoch<Force, 3>(task, epoch, force, scratch, team);
        default: return run_epoch<Force, 0>(task, epoch, force, scratch, team);
        }
    });
}

void force_table(const ForceParameters& parameters, const float* d2, Size n, float* attract, float* repel) {
    with_force(parameters, [&](const auto& force) {
        for (Size i = 0; i < n; ++i) {
            attract[i] = force.attract(splat<Float>(d2[i]))[0];
            repel[i] = force.repel(splat<Float>(d2[i]))[0];
        }
    });
}

}  // namespace

void layout_kernels(Kernels& out) {
    out.chebyshev_step = chebyshev_step;
    out.layout_epoch = layout_epoch;
    out.force_table = force_table;
}

}  // namespace vicinal::VICINAL_LEVEL
