// Compiled once per level with VICINAL_LEVEL set. Nothing is fused and sums have a fixed number of lanes, so results
// have the same bits at every level.
#include "layout/full_kernels.hpp"

#include "layout/grid_interpolation.hpp"
#include "layout/student_field.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

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

const FullKernels full_kernels{
    .attract = attract_any,
    .student_field = student_field_any,
    .grid_spread = grid_spread_any,
    .grid_gather = grid_gather_any,
};

}  // namespace vicinal::VICINAL_LEVEL
