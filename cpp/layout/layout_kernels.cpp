// Compiled once per level with VICINAL_LEVEL set. Nothing is fused and sums have a fixed number of lanes, so results
// have the same bits at every level.
#include "layout/layout_kernels.hpp"

#include "base/scratch.hpp"
#include "layout/density_term.hpp"
#include "layout/grid_interpolation.hpp"
#include "layout/layout_sweep.hpp"
#include "layout/student_field.hpp"

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

void measure_density(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                     ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        DensityRows(task, density, scratch[worker]).measure(begin, end);
    });
}

void move_density(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch, ThreadTeam& team) {
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        DensityRows(task, density, scratch[worker]).move(begin, end);
    });
}

void attract_any(const AttractTask& task, ThreadTeam& team) {
    switch (task.dim) {
    case 1: return attract_rows<1>(task, team);
    case 2: return attract_rows<2>(task, team);
    case 3: return attract_rows<3>(task, team);
    default: return attract_rows<0>(task, team);
    }
}

void student_field_any(const FieldTask& task, ThreadTeam& team) {
    const auto with_width = [&]<bool Cauchy>() {
        switch (task.dim) {
        case 1: return student_field<1, Cauchy>(task, team);
        case 2: return student_field<2, Cauchy>(task, team);
        case 3: return student_field<3, Cauchy>(task, team);
        default: return student_field<0, Cauchy>(task, team);
        }
    };
    return task.dof == 1.0f ? with_width.operator()<true>() : with_width.operator()<false>();
}

void grid_spread_any(const Grid& grid, const float* points, Size n, float* shares, float* out, ThreadTeam& team) {
    switch (grid.dim) {
    case 1: return grid_spread<1>(grid, points, n, shares, out, team);
    case 2: return grid_spread<2>(grid, points, n, shares, out, team);
    default: return grid_spread<3>(grid, points, n, shares, out, team);
    }
}

void grid_gather_any(const Grid& grid, const float* nodes, const float* points, Size n, float* potential, float* field,
                     ThreadTeam& team) {
    switch (grid.dim) {
    case 1: return grid_gather<1>(grid, nodes, points, n, potential, field, team);
    case 2: return grid_gather<2>(grid, nodes, points, n, potential, field, team);
    default: return grid_gather<3>(grid, nodes, points, n, potential, field, team);
    }
}

}  // namespace

const LayoutKernels layout_kernels{
    .list_firings = list_firings,
    .layout_sweep = layout_sweep,
    .force_table = VICINAL_UNLESS_SMALL(force_table),
    .space_table = VICINAL_UNLESS_SMALL(space_table),
    .measure_density = measure_density,
    .move_density = move_density,
    .attract = attract_any,
    .student_field = student_field_any,
    .grid_spread = VICINAL_UNLESS_SMALL(grid_spread_any),
    .grid_gather = VICINAL_UNLESS_SMALL(grid_gather_any),
};

}  // namespace vicinal::VICINAL_LEVEL
