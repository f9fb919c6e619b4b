// Compares every pair of rows once, in blocks: the symmetric half of the distance matrix, which is never stored.
#pragma once

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "neighbors/join.hpp"

#include <algorithm>
#include <numeric>

namespace vicinal::VICINAL_LEVEL {

// Rows per block. Blocks of very long rows are small, so that an interrupt is answered soon.
constexpr Size exact_block_rows(Size cols) { return cols <= (Size{1} << 14) ? 128 : 16; }

template <class Rank, Source source, class Limit>
void compare_all(const SearchSpace& space, const NeighborHeap& heap, const Limit& limit, ThreadTeam& team) {
    const Size exact_block = exact_block_rows(space.rows.cols);
    const Size n = heap.rows, n_blocks = (n + exact_block - 1) / exact_block;
    Scratch<float> scratch(team.size() * join_scratch_floats(space.sketch_dim));
    Scratch<Index> ids(n);
    for (Size i = 0; i < n; ++i) ids[i] = static_cast<Index>(i);
    // The diagonal blocks come first: they fill the heaps, so sketches reject most pairs of the later blocks.
    const auto run = [&](Size head, Size tail, int worker) {
        Join<Rank, source, Limit> join(space, heap, limit,
                                       scratch.data() + worker * join_scratch_floats(space.sketch_dim));
        const Size h = head * exact_block, t = tail * exact_block;
        join.run(ids.data() + h, std::min(exact_block, n - h), ids.data() + t, std::min(exact_block, n - t),
                 head == tail);
    };
    team.parallel_for(n_blocks, 1, [&](Size begin, Size end, int worker) {
        for (Size b = begin; b < end; ++b) run(b, b, worker);
    });
    team.parallel_for(n_blocks, 1, [&](Size begin, Size end, int worker) {
        for (Size head = begin; head < end; ++head)
            for (Size tail = head + 1; tail < n_blocks; ++tail) run(head, tail, worker);
    });
}

}  // namespace vicinal::VICINAL_LEVEL
