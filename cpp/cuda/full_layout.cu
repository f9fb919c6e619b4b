// t-SNE's full layout on a GPU, with the formulas of the CPU (student_field.hpp, grid_interpolation.hpp,
// full_layout_task.hpp).
//
// Sums along the edges of a row and over all pairs have 16 lanes and the CPU's tree, so that an iteration with exact
// repulsion has the CPU's bits. Masses are spread onto a grid as integers, whose sum does not depend on the order of
// the threads. Sums over rows are those of sums.cu.
#include "cuda/device.hpp"

#include "layout/grid_interpolation.hpp"
#include "layout/student_field.hpp"

#include <algorithm>

#ifndef VICINAL_DIM
#define VICINAL_DIM 2
#define VICINAL_CAUCHY 1  // one degree of freedom
#endif

namespace vicinal {

constexpr int dim = VICINAL_DIM;
constexpr int grid_axes = dim <= static_cast<int>(Grid::most_axes) ? dim : 1;  // wider maps have no grid
static_assert(row_lanes == sum_lanes);
// A node holds masses as integer multiples of this; 63 bits hold the masses of 2^31 points.
constexpr float mass_units = 4294967296.0f;

VICINAL_INLINE Grid grid_of(Size shape_0, Size shape_1, Size shape_2, float origin_0, float origin_1, float origin_2,
                            float spacing) {
    Grid grid;
    grid.dim = grid_axes;
    grid.shape[0] = shape_0;
    grid.shape[1] = shape_1;
    grid.shape[2] = shape_2;
    grid.origin[0] = origin_0;
    grid.origin[1] = origin_1;
    grid.origin[2] = origin_2;
    grid.spacing = spacing;
    return grid;
}

}  // namespace vicinal

using namespace vicinal;

// Attraction along the edges; 16 lanes per row.
extern "C" __global__ void attract_rows(const Size* __restrict__ indptr, const Index* __restrict__ tails,
                                        const float* __restrict__ weights, const float* heads, const float* sources,
                                        Size n_heads, float dof, float* __restrict__ pull) {
    using namespace vicinal::gpu;
    const float per_dof = 1.0f / dof;
    PerLane<float> sums[dim];
    FOR_LANES(lane) {
        const Size i = row_of(lane);
        Float sum[dim] = {};
        if (i < n_heads) {
            const float* y = heads + i * dim;
            for (Size e = indptr[i] + lane % row_lanes; e < indptr[i + 1]; e += row_lanes) {
                Float difference[dim] = {};
                if constexpr (dim == 2)
                    gather_pairs(sources, tails[e], difference[0], difference[1]);
                else
                    for (int c = 0; c < dim; ++c) difference[c] = sources[static_cast<Size>(tails[e]) * dim + c];
                Float d2{};
                for (int c = 0; c < dim; ++c) {
                    difference[c] = y[c] - difference[c];
                    d2 += difference[c] * difference[c];
                }
                const Float coefficient = attraction(weights[e], d2, per_dof);
                for (int c = 0; c < dim; ++c) sum[c] += coefficient * difference[c];
            }
        }
        for (int c = 0; c < dim; ++c) sums[c][lane] = sum[c][0];
    }
    for (int c = 0; c < dim; ++c) {
        add_lanes(sums[c]);
        FOR_LANES(lane) {
            if (lane % row_lanes == 0 && row_of(lane) < n_heads) pull[row_of(lane) * dim + c] = sums[c][lane];
        }
    }
}
WARP_KERNEL(attract_rows)

// Attraction in any number of components; thread per row.
extern "C" __global__ void attract_wide_rows(const Size* indptr, const Index* tails, const float* weights,
                                             const float* heads, const float* sources, Size n_heads, float dof,
                                             float* pull) {
    const Size i = thread_number();
    if (i >= n_heads) return;
    AttractTask task;
    task.start = indptr;
    task.tails = tails;
    task.weights = weights;
    task.heads = heads;
    task.sources = sources;
    task.n_heads = n_heads;
    task.dim = dim;
    task.dof = dof;
    task.pull = pull;
    vicinal::gpu::attract_row_of_any_width(task, i);
}
THREAD_KERNEL(attract_wide_rows)

// The potential of all sources at every head, and its gradient; 16 lanes per head.
extern "C" __global__ void student_field(const float* sources, Size n_sources, const float* heads, Size n_heads,
                                         bool heads_are_sources, float dof, float* __restrict__ potential,
                                         float* __restrict__ field) {
    using namespace vicinal::gpu;
    const float per_dof = 1.0f / dof, power = -0.5f * (dof + 1.0f);
    PerLane<double> total, totals[dim];
    FOR_LANES(lane) {
        total[lane] = 0.0;
        for (int c = 0; c < dim; ++c) totals[c][lane] = 0.0;
    }
    for (Size begin = 0; begin < n_sources; begin += field_block) {
        const Size last = std::min(begin + field_block, n_sources);
        const Size end = (last + sum_lanes - 1) / sum_lanes * sum_lanes;
        PerLane<float> weights, sums[dim];
        FOR_LANES(lane) {
            const Size i = row_of(lane);
            Float weight{}, sum[dim] = {};
            for (Size j = begin + lane % row_lanes; i < n_heads && j < end; j += row_lanes) {
                Float difference[dim] = {}, d2{};
                for (int c = 0; c < dim; ++c) {
                    difference[c] = heads[i * dim + c] - (j < n_sources ? sources[j * dim + c] : far_away);
                    d2 += difference[c] * difference[c];
                }
                const StudentPair<VICINAL_CAUCHY> pair(d2, per_dof, power);
                const Float w = heads_are_sources && i == j ? Float{} : pair.weight;
                weight += w;
                for (int c = 0; c < dim; ++c) sum[c] += w * pair.inverse * difference[c];
            }
            weights[lane] = weight[0];
            for (int c = 0; c < dim; ++c) sums[c][lane] = sum[c][0];
        }
        add_lanes(weights);
        for (int c = 0; c < dim; ++c) add_lanes(sums[c]);
        FOR_LANES(lane) {
            total[lane] += weights[lane];
            for (int c = 0; c < dim; ++c) totals[c][lane] += sums[c][lane];
        }
    }
    const double scale = -(static_cast<double>(dof) + 1.0) / dof;
    FOR_LANES(lane) {
        const Size i = row_of(lane);
        if (lane % row_lanes == 0 && i < n_heads) {
            potential[i] = static_cast<float>(total[lane]);
            for (int c = 0; c < dim; ++c) field[i * dim + c] = static_cast<float>(scale * totals[c][lane]);
        }
    }
}
WARP_KERNEL(student_field)

// Adds the unit masses of points to the nodes around them; thread per point.
extern "C" __global__ void spread_points(const float* points, Size n, Size shape_0, Size shape_1, Size shape_2,
                                         float origin_0, float origin_1, float origin_2, float spacing,
                                         std::int64_t* units) {
    using namespace vicinal::gpu;
    const Size i = thread_number();
    if (i >= n) return;
    const Grid grid = grid_of(shape_0, shape_1, shape_2, origin_0, origin_1, origin_2, spacing);
    const GridCell<grid_axes> cell(grid, points + i * dim);
    const Quad w = spline(cell.last());
    cell.template for_each_line<false>([&](Size at, float weight, const float*) {
        const Quad mass = weight * w;
        for (int node = 0; node < 4; ++node)
            add_atomically(units + at + node, static_cast<std::int64_t>(mass[node] * mass_units));
    });
}
THREAD_KERNEL(spread_points)

// The masses of nodes as numbers; thread per node.
extern "C" __global__ void node_masses(const std::int64_t* units, Size size, float* density) {
    const Size g = thread_number();
    if (g < size) density[g] = static_cast<float>(static_cast<double>(units[g]) / mass_units);
}
THREAD_KERNEL(node_masses)

// The potential at points, and its gradient, from the nodes of a grid; thread per point.
extern "C" __global__ void gather_points(const float* __restrict__ nodes, const float* points, Size n, Size shape_0,
                                         Size shape_1, Size shape_2, float origin_0, float origin_1, float origin_2,
                                         float spacing, float* __restrict__ potential, float* __restrict__ field) {
    const Size i = thread_number();
    if (i >= n) return;
    const Grid grid = grid_of(shape_0, shape_1, shape_2, origin_0, origin_1, origin_2, spacing);
    potential[i] = vicinal::gpu::gather_point<grid_axes>(grid, nodes, points + i * dim, field + i * dim);
}
THREAD_KERNEL(gather_points)

// The step of every row; thread per row. `normalizer` is null if each row has its own.
extern "C" __global__ void move_rows(const float* pull, const float* field, const float* potential,
                                     const double* normalizer, const float* places, const float* velocity,
                                     const float* gain, Size n, float dof, float exaggeration, float learning_rate,
                                     float momentum, float* next_places, float* next_velocity, float* next_gain) {
    const Size i = thread_number(), at = i * dim;
    if (i >= n) return;
    const double z = normalizer != nullptr ? *normalizer : static_cast<double>(potential[i]);
    move_row({exaggeration, learning_rate, momentum}, dof,
             static_cast<float>(std::max(z, static_cast<double>(smallest_normalizer))), dim, {pull + at, field + at},
             {places + at, velocity + at, gain + at}, {next_places + at, next_velocity + at, next_gain + at});
}
THREAD_KERNEL(move_rows)

// Subtracts the mean; thread per row.
extern "C" __global__ void center_rows(const double* sums, Size n, float* places) {
    const Size i = thread_number();
    if (i >= n) return;
    for (int c = 0; c < dim; ++c) places[i * dim + c] -= static_cast<float>(sums[c] / static_cast<double>(n));
}
THREAD_KERNEL(center_rows)
