// When an edge fires, and the order in which the edges of a row pull.
//
// An edge of weight w in (0, 1] fires in sweep e if floor((e+1) w + u) > floor(e w + u), where u is a hash of the
// unordered pair, so that both directions fire together. In 32-bit fixed point, w is the edge's rate and u its phase,
// and the condition is a carry: phase + e * rate wraps when rate is added. There is no state, so any sweep can be
// computed at any time.
#pragma once

#include "base/rng.hpp"

#include <algorithm>

namespace vicinal {

// The heaviest edge fires `firings_per_sweep` times per sweep, the others in proportion to their weights.
inline std::uint32_t firing_rate(float weight, float most, double firings_per_sweep) {
    const double share = static_cast<double>(weight) / most * firings_per_sweep * 4294967296.0;
    return static_cast<std::uint32_t>(std::min(share, 4294967295.0));
}

struct FiringEdge {
    Index tail;
    std::uint32_t rate, phase;
};

// The later of two pulls moves a row further than the earlier one, so an order by row numbers would make the map
// depend on the order of the rows. A hash of the phase is independent of when the edge fires.
inline bool in_random_order(const FiringEdge& a, const FiringEdge& b) {
    const std::uint32_t key_a = finalize32(a.phase), key_b = finalize32(b.phase);
    return key_a != key_b ? key_a < key_b : a.tail < b.tail;
}

inline std::uint32_t firing_phase(std::uint64_t key, std::uint64_t i, std::uint64_t j) {
    return row_key(key, mix64(std::min(i, j)) ^ std::max(i, j));
}

}  // namespace vicinal
