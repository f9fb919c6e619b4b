// The k best candidates of every row, sorted by (rank, index), filled by many threads.
//
// The final content of a row depends on the set of candidates, not on their order: (rank, index) is a total order, an
// entry that was pushed out can never return, and a pair of rows always has the same rank. So locks per row keep the
// result deterministic.
#pragma once

#include "base/types.hpp"

#include <limits>

namespace vicinal {

constexpr float no_rank = std::numeric_limits<float>::infinity();
constexpr std::uint32_t no_tag = 0xfffffffeu;
constexpr Size heap_pad = 16;  // entries per row are padded to this multiple, so that whole vectors can be read

// A tag is index << 1 | fresh; fresh entries have not taken part in a round of NN-descent yet.
VICINAL_INLINE Index index_of(std::uint32_t tag) { return static_cast<Index>(tag >> 1); }
VICINAL_INLINE bool is_fresh(std::uint32_t tag) { return (tag & 1) != 0; }

VICINAL_INLINE bool precedes(float rank_x, Index x, float rank_y, Index y) {
    return rank_x < rank_y || (rank_x == rank_y && x < y);
}

// One row: ranks ascend; they are infinite for missing entries and beyond k.
struct HeapRow {
    float* rank;
    std::uint32_t* tag;

    VICINAL_INLINE bool holds(Size e) const { return tag[e] != no_tag; }
    VICINAL_INLINE Index index(Size e) const { return index_of(tag[e]); }

    VICINAL_INLINE void clear(Size entries) const {
        for (Size e = 0; e < entries; ++e) {
            rank[e] = no_rank;
            tag[e] = no_tag;
        }
    }
};

// A view of the arrays of all rows, which the owner allocates.
struct NeighborHeap {
    float* ranks = nullptr;         // [rows][stride]
    std::uint32_t* tags = nullptr;  // [rows][stride]
    float* worst = nullptr;         // rank of the k-th entry, readable without the lock
    std::uint8_t* locks = nullptr;
    Size rows = 0;
    Size k = 0;
    Size stride = 0;

    VICINAL_INLINE HeapRow row(Size i) const { return {ranks + i * stride, tags + i * stride}; }

    // At least the true value at the time of the call, because the k-th rank only decreases.
    VICINAL_INLINE float bound(Size i) const {
        float value;
        __atomic_load(worst + i, &value, __ATOMIC_RELAXED);
        return value;
    }

    VICINAL_INLINE void clear(Size begin, Size end) const {
        row(begin).clear((end - begin) * stride);
        for (Size i = begin; i < end; ++i) {
            worst[i] = no_rank;
            locks[i] = 0;
        }
    }
};

}  // namespace vicinal
