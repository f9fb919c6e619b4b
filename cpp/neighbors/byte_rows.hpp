// Rows as bytes (ByteRows in search_space.hpp).
#pragma once

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "neighbors/search_space.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace vicinal::VICINAL_LEVEL {

// Writes up to ByteRows::block values as a block; false if one of them is not a whole number between 0 and 255.
VICINAL_INLINE bool write_block(const float* values, Size n, std::uint8_t* out) {
    constexpr Size half = ByteRows::block / 2;
    alignas(64) float padded[ByteRows::block] = {};
    std::copy_n(values, n, padded);
    Int wrong{};
    alignas(64) std::int32_t whole[ByteRows::block];
    for (Size k = 0; k < ByteRows::block; k += lanes) {
        const Float value = load<Float>(padded + k);
        const Int number = __builtin_convertvector(value, Int);
        wrong |= (to_float(number) != value) | ((number & ~0xff) != 0);
        store(whole + k, number);
    }
    for (Size l = 0; l < half; ++l) {
        out[2 * l] = static_cast<std::uint8_t>(whole[l]);
        out[2 * l + 1] = static_cast<std::uint8_t>(whole[l + half]);
    }
    return bits_of(wrong) == 0;
}

// Writes the rows, [rows][ByteRows::padded(cols)]; false if they contain other numbers.
inline bool write_bytes(Matrix rows, std::uint8_t* out, ThreadTeam& team) {
    const Size stride = ByteRows::padded(rows.cols);
    std::atomic<bool> all = true;
    team.parallel_for(rows.rows, 64, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end && all.load(std::memory_order_relaxed); ++i)
            for (Size k = 0; k < rows.cols; k += ByteRows::block)
                if (!write_block(rows.row(i) + k, std::min(ByteRows::block, rows.cols - k), out + i * stride + k))
                    all.store(false, std::memory_order_relaxed);
    });
    return all.load();
}

// Writes n sketches as bytes, [n][sketch_width]: multiples of `unit` around 128; larger values are cut.
inline void write_coarse(const float* sketch, Size n, float unit, std::uint8_t* out, ThreadTeam& team) {
    const float scale = 1.0f / unit;
    team.parallel_for(n, 256, [&](Size begin, Size end, int) {
        alignas(64) float values[ByteRows::block];
        for (Size at = begin * sketch_width; at < end * sketch_width; at += ByteRows::block) {
            for (Size k = 0; k < ByteRows::block; ++k)
                values[k] = std::floor(std::clamp(sketch[at + k] * scale + 128.5f, 0.0f, 255.0f));
            write_block(values, ByteRows::block, out + at);
        }
    });
}

}  // namespace vicinal::VICINAL_LEVEL
