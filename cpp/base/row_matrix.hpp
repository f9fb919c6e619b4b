// Rows in the type that they came in: float32, float16, int8, uint8, or bits packed into bytes. All arithmetic is in
// float32: a block of columns is widened when it is read, so no second copy of the rows is needed, and ranks have the
// bits that the same values have as float32.
#pragma once

#include "base/types.hpp"

#include <bit>
#include <cstring>

namespace vicinal {

enum class Element : std::uint8_t { float32, float16, int8, uint8, bits };

// IEEE half precision. A product with a power of two moves the exponent, also that of subnormal numbers.
VICINAL_INLINE float widen_half(std::uint16_t half) {
    const float magnitude = std::bit_cast<float>((half & 0x7fffu) << 13) * 0x1p112f;
    const std::uint32_t special = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;  // infinity and NaN
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special | (half & 0x8000u) << 16);
}

// Rows, row-major and contiguous. The columns of bits are the bits of the bytes, the highest first (numpy.packbits);
// their number is a multiple of 8.
struct RowMatrix {
    static constexpr Size block = 64;

    const void* data = nullptr;
    Size rows = 0;
    Size cols = 0;
    Element element = Element::float32;

    RowMatrix() = default;
    VICINAL_INLINE RowMatrix(const Matrix& floats) : data(floats.data), rows(floats.rows), cols(floats.cols) {}
    VICINAL_INLINE RowMatrix(const void* first, Size n, Size d, Element type = Element::float32)
        : data(first), rows(n), cols(d), element(type) {}

#if defined(VICINAL_SMALL)
    VICINAL_INLINE static constexpr bool is_float() { return true; }
#else
    VICINAL_INLINE bool is_float() const { return element == Element::float32; }
#endif
    VICINAL_INLINE const float* float_row(Size i) const { return static_cast<const float*>(data) + i * cols; }
    VICINAL_INLINE const std::uint8_t* byte_row(Size i) const {
        return static_cast<const std::uint8_t*>(data) + i * row_bytes();
    }
    VICINAL_INLINE Size row_bytes() const {
        switch (element) {
        case Element::float32: return cols * 4;
        case Element::float16: return cols * 2;
        case Element::bits: return cols / 8;
        default: return cols;
        }
    }

    // The columns [from, from + n) of a row: in place if they are floats, otherwise widened into the buffer. `from` is
    // a multiple of 8.
    VICINAL_INLINE const float* columns(Size i, Size from, Size n, float* buffer) const {
        const std::uint8_t* bytes = byte_row(i);
        switch (element) {
        case Element::float32: return float_row(i) + from;
        case Element::float16: {
            const auto* x = reinterpret_cast<const std::uint16_t*>(bytes) + from;
            for (Size k = 0; k < n; ++k) buffer[k] = widen_half(x[k]);
            break;
        }
        case Element::int8: {
            const auto* x = reinterpret_cast<const std::int8_t*>(bytes) + from;
            for (Size k = 0; k < n; ++k) buffer[k] = static_cast<float>(x[k]);
            break;
        }
        case Element::uint8:
            for (Size k = 0; k < n; ++k) buffer[k] = static_cast<float>(bytes[from + k]);
            break;
        case Element::bits:
            for (Size k = 0; k < n; ++k) buffer[k] = static_cast<float>(bytes[(from + k) / 8] >> (7 - k % 8) & 1);
            break;
        }
        return buffer;
    }
    VICINAL_INLINE const float* row(Size i, float* buffer) const { return columns(i, 0, cols, buffer); }
};

// Bits of two rows of packed bits that are set in both, and in one of them.
struct BitCounts {
    Size both = 0, different = 0;
};

VICINAL_INLINE BitCounts count_bits(const std::uint8_t* x, const std::uint8_t* y, Size bytes) {
    BitCounts counts;
    for (Size k = 0; k < bytes; k += 8) {
        std::uint64_t a = 0, b = 0;
        std::memcpy(&a, x + k, static_cast<std::size_t>(bytes - k < 8 ? bytes - k : 8));
        std::memcpy(&b, y + k, static_cast<std::size_t>(bytes - k < 8 ? bytes - k : 8));
        counts.both += std::popcount(a & b);
        counts.different += std::popcount(a ^ b);
    }
    return counts;
}

}  // namespace vicinal
