// The hash of a dense row, which depends on its values alone.
#pragma once

#include "base/rng.hpp"

#include <cstring>
#include <limits>

namespace vicinal {

// -0 equals 0, and all NaNs are equal: they stand for missing values.
inline float canonical(float x) { return x == x ? x + 0.0f : std::numeric_limits<float>::quiet_NaN(); }

inline std::uint64_t add_word(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 35;
}

inline std::uint64_t hash_row(const float* row, Size d) {
    std::uint64_t hash = mix64(static_cast<std::uint64_t>(d));
    for (Size k = 0; k < d; k += 2) {
        const float pair[2] = {canonical(row[k]), k + 1 < d ? canonical(row[k + 1]) : 0.0f};
        std::uint64_t word;
        std::memcpy(&word, pair, sizeof word);
        hash = add_word(hash, word);
    }
    return mix64(hash);
}

}  // namespace vicinal
