// Insertion into the sorted rows of a NeighborHeap.
#pragma once

#include "base/simd.hpp"
#include "neighbors/neighbor_heap.hpp"

#include <sched.h>
#include <bit>

namespace vicinal::VICINAL_LEVEL {

// The position of (rank, index): ranks below it are counted one vector at a time, ties are resolved by index.
VICINAL_INLINE Size find_place(HeapRow row, Size k, float rank, Index index) {
    Size at = 0;
    const Float value = splat<Float>(rank);
    for (Size e = 0; e < k; e += lanes) {
        const int below = std::popcount(bits_of(load<Float>(row.rank + e) < value));
        at += below;
        if (below < lanes) break;
    }
    while (at < k && row.rank[at] == rank && row.index(at) < index) ++at;
    return at;
}

// Returns false if the candidate is already there or not good enough.
VICINAL_INLINE bool insert_sorted(HeapRow row, Size k, float rank, Index index) {
    const Size at = find_place(row, k, rank, index);
    if (at >= k || (row.rank[at] == rank && row.index(at) == index)) return false;
    for (Size e = k - 1; e > at; --e) {
        row.rank[e] = row.rank[e - 1];
        row.tag[e] = row.tag[e - 1];
    }
    row.rank[at] = rank;
    row.tag[at] = static_cast<std::uint32_t>(index) << 1 | 1u;
    return true;
}

// A lock is held for a few dozen instructions only. If the holder has lost its processor, waiting threads yield.
VICINAL_INLINE void lock(const NeighborHeap& heap, Size i) {
    for (int spins = 0; __atomic_test_and_set(heap.locks + i, __ATOMIC_ACQUIRE); ++spins)
        if (spins > 64) sched_yield();
}

VICINAL_INLINE void unlock(const NeighborHeap& heap, Size i) { __atomic_clear(heap.locks + i, __ATOMIC_RELEASE); }

VICINAL_INLINE bool contains(const NeighborHeap& heap, Size i, Index index) {
    const UInt wanted = splat<UInt>(static_cast<std::uint32_t>(index));
    lock(heap, i);
    const HeapRow row = heap.row(i);
    Int found{};
    for (Size e = 0; e < heap.k; e += lanes) found |= (load<UInt>(row.tag + e) >> 1) == wanted;
    unlock(heap, i);
    return bits_of(found) != 0;
}

VICINAL_INLINE void push(const NeighborHeap& heap, Size i, float rank, Index index) {
    lock(heap, i);
    const HeapRow row = heap.row(i);
    if (insert_sorted(row, heap.k, rank, index)) {
        float last = row.rank[heap.k - 1];
        __atomic_store(heap.worst + i, &last, __ATOMIC_RELAXED);
    }
    unlock(heap, i);
}

}  // namespace vicinal::VICINAL_LEVEL
