// Insertion into the sorted rows of a NeighborHeap, and pairs of rows that were inserted before.
#pragma once

#include "base/simd.hpp"
#include "neighbors/neighbor_heap.hpp"

#include <sched.h>
#include <bit>
#include <type_traits>

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

// Puts `value` at position `at` of a row of k entries and moves those behind it by one; positions from k on keep
// `missing`. Whole vectors are moved, from the last to the one of the position.
template <class T>
VICINAL_INLINE void open_place(T* row, Size k, Size at, T value, T missing) {
    using V = std::conditional_t<std::is_same_v<T, float>, Float, UInt>;
    const Size first = at / lanes * lanes;
    for (Size e = (k - 1) / lanes * lanes; e >= first; e -= lanes) {
        const V here = load<V>(row + e), moved = shift_up(e > first ? load<V>(row + e - lanes) : here, here);
        const Int lane = lane_numbers() + static_cast<std::int32_t>(e);
        const Int before = lane < static_cast<std::int32_t>(at), within = lane < static_cast<std::int32_t>(k);
        const V filled = select(lane == static_cast<std::int32_t>(at), splat<V>(value), moved);
        store(row + e, select(within, select(before, here, filled), splat<V>(missing)));
    }
}

// Returns false if the candidate is already there or not good enough.
VICINAL_INLINE bool insert_sorted(HeapRow row, Size k, float rank, Index index) {
    const Size at = find_place(row, k, rank, index);
    if (at >= k || (row.rank[at] == rank && row.index(at) == index)) return false;
    open_place(row.rank, k, at, rank, no_rank);
    open_place(row.tag, k, at, static_cast<std::uint32_t>(index) << 1 | 1u, no_tag);
    return true;
}

// A lock is held for a few dozen instructions only. If the holder has lost its processor, waiting threads yield.
VICINAL_INLINE void lock(const NeighborHeap& heap, Size i) {
    for (int spins = 0; __atomic_test_and_set(heap.locks + i, __ATOMIC_ACQUIRE); ++spins)
        if (spins > 64) sched_yield();
}

VICINAL_INLINE void unlock(const NeighborHeap& heap, Size i) { __atomic_clear(heap.locks + i, __ATOMIC_RELEASE); }

// Whether a row that no thread writes to holds an entry.
VICINAL_INLINE bool lists(const NeighborHeap& heap, Size i, Index index) {
    const UInt wanted = splat<UInt>(static_cast<std::uint32_t>(index));
    const HeapRow row = heap.row(i);
    Int found{};
    for (Size e = 0; e < heap.k; e += lanes) found |= (load<UInt>(row.tag + e) >> 1) == wanted;
    return bits_of(found) != 0;
}

VICINAL_INLINE bool contains(const NeighborHeap& heap, Size i, Index index) {
    lock(heap, i);
    const bool found = lists(heap, i, index);
    unlock(heap, i);
    return found;
}

// Rows that only one thread writes to (`owned`) need no lock.
template <bool owned = false>
VICINAL_INLINE void push(const NeighborHeap& heap, Size i, float rank, Index index) {
    if constexpr (!owned) lock(heap, i);
    const HeapRow row = heap.row(i);
    if (insert_sorted(row, heap.k, rank, index)) {
        float last = row.rank[heap.k - 1];
        __atomic_store(heap.worst + i, &last, __ATOMIC_RELAXED);
    }
    if constexpr (!owned) unlock(heap, i);
}

// Offers two rows to each other.
template <bool owned = false>
VICINAL_INLINE void offer_pair(const NeighborHeap& heap, Index x, Index y, float rank) {
    if (rank <= heap.bound(x)) push<owned>(heap, x, rank, y);
    if (rank <= heap.bound(y)) push<owned>(heap, y, rank, x);
}

// Pairs of rows that need not be evaluated again, because both rows were offered to each other already. A table keeps
// its best entries, so skipping such pairs changes no result.
//
// Known are the pairs of an earlier table, and those that this thread has evaluated lately: rows that are near each
// other meet in the lists of many rows, and lists of near rows are joined one after the other.
class KnownPairs {
  public:
    // Slots per thread: a quarter of a second-level cache.
    static constexpr int slot_bits = 15;
    static constexpr Size slots = Size{1} << slot_bits;

    // `recent` has as many slots, all 0 at first; `found` may be null.
    KnownPairs(std::uint64_t* recent, const NeighborHeap* found) : recent_(recent), found_(found) {}

    // Returns whether the pair is known, and makes it known.
    VICINAL_INLINE bool meets_again(Index x, Index y) const {
        const auto low = static_cast<std::uint64_t>(x < y ? x : y), high = static_cast<std::uint64_t>(x < y ? y : x);
        const std::uint64_t pair = low << 32 | high;  // never 0
        std::uint64_t& slot = recent_[pair * 0x9e3779b97f4a7c15u >> (64 - slot_bits)];
        if (slot == pair) return true;
        slot = pair;
        return found_ != nullptr && (lists(*found_, x, y) || lists(*found_, y, x));
    }

  private:
    std::uint64_t* recent_;
    const NeighborHeap* found_;
};

}  // namespace vicinal::VICINAL_LEVEL
