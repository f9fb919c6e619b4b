// One step of the recurrence in chebyshev.hpp. Each row of a block has one writer, so the result does not depend on
// the number of threads; nothing is fused, so it does not depend on the level.
#pragma once

#include "initialize/block_columns.hpp"

namespace vicinal::VICINAL_LEVEL {

inline void chebyshev_step(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step,
                           float* next, ThreadTeam& team) {
    constexpr Size ahead = 32;  // edges whose rows are on their way from memory
    const Size last = m.indptr[m.rows];
    team.parallel_for(m.rows, step_rows, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size at = 0; at < width; at += block_columns) {
                const auto columns = [&](const float* block, Size row) {
                    return load<Columns>(block + row * width + at);
                };
                Columns sum = columns(x, i) * -step.center;
                for (Size e = m.indptr[i]; e < m.indptr[i + 1]; ++e) {
                    if (e + ahead < last) __builtin_prefetch(x + m.indices[e + ahead] * width + at);
                    sum += columns(x, m.indices[e]) * m.weights[e];
                }
                store(next + i * width + at, sum * step.scale - columns(previous, i) * step.keep);
            }
    });
}

}  // namespace vicinal::VICINAL_LEVEL
