// T_degree of a symmetric sparse matrix M, applied to a block of vectors (vicinal.spectral): all eigenvalues but
// those above `cut` are damped.
//   x_0 = x,  x_1 = (M x - c x) / h,  x_{t+1} = 2 (M x_t - c x_t) / h - x_{t-1},
//   c = (cut - 1) / 2, h = (cut + 1) / 2: the map that sends [-1, cut] to [-1, 1].
//
// Each row of a block has one writer, so the result does not depend on the number of threads; a product by
// NumPy or SciPy would depend on the number of threads of their linear-algebra library.
#pragma once

#include "parallel.hpp"

#include <utility>
#include <vector>

namespace vicinal {

struct ChebyshevStep {
    float scale, centre, keep;  // next = scale * (M x - centre * x) - keep * previous
};

// Vectors of a block that are carried through the edges of a row together.
constexpr Size block_columns = 8;

inline void chebyshev_step(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step,
                           float* next, ThreadTeam& team) {
    team.parallel_for(m.rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size at = 0; at < width; at += block_columns) {
                float sum[block_columns];
                for (Size c = 0; c < block_columns; ++c) sum[c] = -step.centre * x[i * width + at + c];
                for (Size e = m.indptr[i]; e < m.indptr[i + 1]; ++e) {
                    const float* from = x + static_cast<Size>(m.indices[e]) * width + at;
                    const float weight = m.weights[e];
                    for (Size c = 0; c < block_columns; ++c) sum[c] += weight * from[c];
                }
                for (Size c = 0; c < block_columns; ++c)
                    next[i * width + at + c] = step.scale * sum[c] - step.keep * previous[i * width + at + c];
            }
    });
}

// The block [rows][width], width a multiple of block_columns, is replaced by the result; degree >= 1.
inline void chebyshev_filter(const Csr& m, float* block, Size width, double cut, int degree, ThreadTeam& team) {
    const auto size = static_cast<std::size_t>(m.rows * width);
    const auto half = static_cast<float>((cut + 1.0) / 2.0), centre = static_cast<float>((cut - 1.0) / 2.0);
    std::vector<float> previous(block, block + size), current(size), next(size);
    chebyshev_step(m, previous.data(), previous.data(), width, {1.0f / half, centre, 0.0f}, current.data(), team);
    for (int t = 1; t < degree; ++t) {
        chebyshev_step(m, current.data(), previous.data(), width, {2.0f / half, centre, 1.0f}, next.data(), team);
        previous.swap(current);
        current.swap(next);
    }
    std::copy(current.begin(), current.end(), block);
}

}  // namespace vicinal
