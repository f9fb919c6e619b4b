// The k best candidates of every row, sorted by (rank, index), filled from many threads.
//
// What a row ends with is a property of the set of candidates offered, not of their order: the pair
// (rank, index) is a total order, an entry that was pushed out can never come back, and the same pair of
// rows always has the same rank. So a lock a row costs no determinism.
#pragma once

#include "base/types.hpp"

#include <limits>

namespace vicinal {

constexpr float no_rank = std::numeric_limits<float>::infinity();
constexpr std::uint32_t no_tag = 0xfffffffeu;
constexpr Size heap_pad = 16;  // rows are padded so that whole vectors can be read

// A tag is index << 1 | fresh; fresh entries have not been through a round of NN-descent yet.
VICINAL_INLINE Index index_of(std::uint32_t tag) { return static_cast<Index>(tag >> 1); }
VICINAL_INLINE bool is_fresh(std::uint32_t tag) { return (tag & 1) != 0; }

VICINAL_INLINE bool precedes(float rank_x, Index x, float rank_y, Index y) {
    return rank_x < rank_y || (rank_x == rank_y && x < y);
}

// One row: ranks ascending, infinite where there is no entry, and beyond k.
struct HeapRow {
    float* rank;
    std::uint32_t* tag;

    VICINAL_INLINE bool holds(Size e) const { return tag[e] != no_tag; }
    VICINAL_INLINE Index index(Size e) const { return index_of(tag[e]); }
};

// View of the arrays of all rows; the owner allocates them.
struct NeighborHeap {
    float* ranks = nullptr;         // [rows][stride]
    std::uint32_t* tags = nullptr;  // [rows][stride]
    float* worst = nullptr;         // rank of the k-th entry, readable without the lock
    std::uint8_t* locks = nullptr;
    Size rows = 0;
    Size k = 0;
    Size stride = 0;

    VICINAL_INLINE HeapRow row(Size i) const { return {ranks + i * stride, tags + i * stride}; }

    // Never smaller than the truth at the time of the call: the k-th rank only falls.
    VICINAL_INLINE float bound(Size i) const {
        float value;
        __atomic_load(worst + i, &value, __ATOMIC_RELAXED);
        return value;
    }

    VICINAL_INLINE void clear(Size begin, Size end) const {
        for (Size e = begin * stride; e < end * stride; ++e) {
            ranks[e] = no_rank;
            tags[e] = no_tag;
        }
        for (Size i = begin; i < end; ++i) {
            worst[i] = no_rank;
            locks[i] = 0;
        }
    }
};

}  // namespace vicinal
