// Keys that sort by (value, index), and the best of them, in the shared memory of a warp.
#pragma once

#include "cuda/device.hpp"

namespace vicinal {

constexpr float no_rank_value = 3.0e38f;

// Order of numbers as order of unsigned integers.
VICINAL_INLINE std::uint32_t ordered_bits(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
VICINAL_INLINE float value_of(std::uint32_t ordered) {
    const std::uint32_t bits = (ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
// Sorts by (value, index).
VICINAL_INLINE std::uint64_t sort_key(float value, std::uint32_t index) {
    return static_cast<std::uint64_t>(ordered_bits(value)) << 32 | index;
}
constexpr std::uint64_t no_key = 0xffffffffffffffffull;

// Sorts `size` keys in shared memory, a power of two, by the lanes of a warp (Batcher's bitonic sort).
VICINAL_INLINE void sort_keys(std::uint64_t* keys, int size) {
    sync_lanes();
    for (int run = 2; run <= size; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) {
            FOR_LANES(lane) {
                for (int pair = lane; pair < size / 2; pair += warp_lanes) {
                    const int at = 2 * pair - pair % apart, other = at + apart;
                    const bool ascending = (at & run) == 0;
                    const std::uint64_t x = keys[at], y = keys[other];
                    if ((x > y) == ascending) {
                        keys[at] = y;
                        keys[other] = x;
                    }
                }
            }
            sync_lanes();
        }
}

#if defined(__CUDACC_RTC__)
extern __shared__ std::uint64_t dynamic_shared[];
VICINAL_INLINE std::uint64_t* warp_memory(int size) { return dynamic_shared + (threadIdx.x / warp_lanes) * size; }
#else
VICINAL_INLINE std::uint64_t* warp_memory(int) { return host_shared_memory; }
#endif

// The k smallest of the keys that are offered, by a warp. `size` is a power of two, at least 2 k and 64.
class BestKeys {
  public:
    VICINAL_INLINE BestKeys(std::uint64_t* keys, int size, int k) : keys_(keys), size_(size), k_(k) {}

    // A key per lane; no_key is none.
    VICINAL_INLINE void offer(PerLane<std::uint64_t>& key) {
        PerLane<bool> better;
        FOR_LANES(lane) better[lane] = key[lane] < worst_;
        std::uint32_t votes = ballot(better);
        if (votes == 0) return;
        if (count_ + bit_count(votes) > size_) {
            sort();
            count_ = k_;
            worst_ = keys_[k_ - 1];
            FOR_LANES(lane) better[lane] = key[lane] < worst_;
            votes = ballot(better);
        }
        sync_lanes();
        FOR_LANES(lane) if (better[lane]) keys_[count_ + bit_count(votes & ((1u << lane) - 1u))] = key[lane];
        count_ += bit_count(votes);
        sync_lanes();
    }

    // The keys in order; no_key stands for those that there are not.
    VICINAL_INLINE const std::uint64_t* sorted() {
        sort();
        return keys_;
    }

  private:
    VICINAL_INLINE void sort() {
        FOR_LANES(lane) for (int e = count_ + lane; e < size_; e += warp_lanes) keys_[e] = no_key;
        sort_keys(keys_, size_);
    }

    std::uint64_t* keys_;
    int size_, k_, count_ = 0;
    std::uint64_t worst_ = no_key;
};

}  // namespace vicinal
