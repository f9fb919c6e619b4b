// Compiled once per level with VICINAL_LEVEL set. Nothing is fused, so results have the same bits at every level.
#include "layout/sampled_kernels.hpp"

#include "base/scratch.hpp"
#include "layout/firing_lists.hpp"
#include "layout/layout_sweep.hpp"

#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

namespace {

// Only UMAP's force is compiled for distances other than the euclidean.
template <class F>
void with_law(const LayoutLaw& law, const F& f) {
    with_force(law.force, [&]<class Force>(const Force& force) {
        if constexpr (std::is_same_v<Force, UmapForce>)
            with_space(law.space, [&](const auto& space) { f(force, space); });
        else
            f(force, EuclideanSpace(law.space));
    });
}

void layout_sweep(const LayoutTask& task, const LayoutSweep& sweep, const LayoutLaw& law, const BlockFirings* firings,
                  Size listed, const LayoutScratch* scratch, ThreadTeam& team) {
    with_law(law, [&]<class Force, class Space>(const Force& force, const Space& space) {
        const auto run = [&]<int Dim>(std::integral_constant<int, Dim>) {
            team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
                const BlockFirings& of_block = firings[begin / layout_block_rows];
                LayoutBlock<Force, Space, Dim>(task, sweep, force, space, of_block, scratch[worker])
                    .run(begin, end, listed);
            });
        };
        // Euclidean maps of two or three components are the most common ones: they get specialized code.
        constexpr bool common = std::is_same_v<Space, EuclideanSpace>;
        if (common && task.dim == 2) return run(std::integral_constant<int, common ? 2 : 0>{});
        if (common && task.dim == 3) return run(std::integral_constant<int, common ? 3 : 0>{});
        run(std::integral_constant<int, 0>{});
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

void space_table(const SpaceParameters& parameters, Matrix heads, Matrix tails, float* d2, float* delta) {
    const auto dim = static_cast<int>(heads.cols);
    Scratch<Float> head(heads.cols), tail(heads.cols);
    with_space(parameters, [&](const auto& space) {
        for (Size i = 0; i < heads.rows; ++i) {
            for (int c = 0; c < dim; ++c) {
                head[c] = splat<Float>(heads.row(i)[c]);
                tail[c] = splat<Float>(tails.row(i)[c]);
            }
            d2[i] = space.towards(head.data(), tail.data(), dim)[0];
            for (int c = 0; c < dim; ++c) delta[i * dim + c] = tail[c][0];
        }
    });
}

}  // namespace

const SampledKernels sampled_kernels{
    .list_firings = list_firings,
    .layout_sweep = layout_sweep,
    .force_table = force_table,
    .space_table = space_table,
};

}  // namespace vicinal::VICINAL_LEVEL
