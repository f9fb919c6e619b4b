// Pairs of rows that need not be evaluated again, because both rows were offered to each other already. A table keeps
// its best entries, so skipping such pairs changes no result.
//
// They are those of an earlier table, and those that this thread has evaluated lately: rows that are near each other
// meet in the lists of many rows, and lists of near rows are joined one after the other.
#pragma once

#include "neighbors/heap_push.hpp"

namespace vicinal::VICINAL_LEVEL {

class KnownPairs {
  public:
    // Slots per thread: a quarter of a second-level cache.
    static constexpr int slot_bits = 15;
    static constexpr Size slots = Size{1} << slot_bits;

    // `recent` has as many slots, all 0 at first; `found` may be null.
    KnownPairs(std::uint64_t* recent, const NeighborHeap* found) : recent_(recent), found_(found) {}

    // Whether the pair is known; if it is not, it is from now on.
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
