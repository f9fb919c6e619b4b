// Interpolation between all points and a grid (grid_cell.hpp).
#pragma once

#include "base/parallel.hpp"
#include "layout/grid_cell.hpp"

#include <cstring>

namespace vicinal::VICINAL_LEVEL {

// Writes the sum of the unit masses of n points to `out`; `shares` has space for spread_shares grids.
template <int Dim>
void grid_spread(const Grid& grid, const float* points, Size n, float* shares, float* out, ThreadTeam& team) {
    const Size size = grid.size();
    team.parallel_for(spread_shares, 1, [&](Size begin, Size end, int) {
        for (Size s = begin; s < end; ++s) {
            float* nodes = shares + s * size;
            std::memset(nodes, 0, static_cast<std::size_t>(size) * sizeof(float));
            for (Size i = n * s / spread_shares; i < n * (s + 1) / spread_shares; ++i) {
                const GridCell<Dim> cell(grid, points + i * Dim);
                const Quad w = spline(cell.last());
                cell.template for_each_line<false>([&](Size at, float weight, const float*) {
                    const Quad sum = load_quad(nodes + at) + weight * w;
                    std::memcpy(nodes + at, &sum, sizeof sum);
                });
            }
        }
    });
    team.parallel_for(size, 16384, [&](Size begin, Size end, int) {
        for (Size g = begin; g < end; ++g) {
            float sum = shares[g];
            for (Size s = 1; s < spread_shares; ++s) sum += shares[s * size + g];
            out[g] = sum;
        }
    });
}

template <int Dim>
void grid_gather(const Grid& grid, const float* nodes, const float* points, Size n, float* potential, float* field,
                 ThreadTeam& team) {
    team.parallel_for(n, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            potential[i] = gather_point<Dim>(grid, nodes, points + i * Dim, field + i * Dim);
    });
}

}  // namespace vicinal::VICINAL_LEVEL
