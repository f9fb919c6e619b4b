// A counter-based random generator: a value is a function of (seed, stream, index, draw), so it does not depend on
// which thread asks for it, in which order or how often.
//
// A 64-bit hash of (seed, stream, index) gives one 32-bit key per row; a draw is a 32-bit finalizer of key + draw *
// golden ratio. The finalizer has C. Wellons' "lowbias32" constants (avalanche bias 0.17); the 64-bit hash is
// SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include "base/types.hpp"

namespace vicinal {

// Different uses of one seed must not share draws.
enum class Stream : std::uint64_t { layout, phase, sketch, forest, candidates, row_key, pairs, spectral };
constexpr const char* stream_names[] = {"layout",     "phase",   "sketch", "forest",
                                        "candidates", "row_key", "pairs",  "spectral"};

VICINAL_INLINE std::uint64_t mix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

VICINAL_INLINE std::uint64_t stream_key(std::uint64_t seed, Stream stream, std::uint64_t part = 0) {
    return mix64(mix64(mix64(seed) ^ static_cast<std::uint64_t>(stream)) ^ part);
}

VICINAL_INLINE std::uint32_t row_key(std::uint64_t key, std::uint64_t index) {
    return static_cast<std::uint32_t>(mix64(key ^ index) >> 32);
}

constexpr std::uint32_t golden_ratio_32 = 0x9e3779b9u;

// For one 32-bit number or a vector of them.
template <class U>
VICINAL_INLINE U finalize32(U x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

VICINAL_INLINE std::uint32_t draw32(std::uint32_t key, std::uint32_t draw) {
    return finalize32(key + draw * golden_ratio_32);
}

// An integer in [0, n), n < 2^32: the high half of a product.
VICINAL_INLINE std::uint32_t below(std::uint32_t bits, std::uint32_t n) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(bits) * n) >> 32);
}

}  // namespace vicinal
