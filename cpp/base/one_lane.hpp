// The vectors of simd.hpp with one lane: a thread of a GPU is a lane. Operations round exactly, as those of wider
// vectors do, so a lane computes the same bits. Masks are -1 and 0, as for the compiler's vectors.
#pragma once

#include "base/types.hpp"

#include <cmath>
#include <cstring>

namespace vicinal::VICINAL_LEVEL {

constexpr int lanes = 1;

template <class T>
struct Lane {
    T value;

    Lane() = default;
    VICINAL_INLINE Lane(T x) : value(x) {}

    VICINAL_INLINE T operator[](int) const { return value; }
    VICINAL_INLINE explicit operator bool() const { return value != T{}; }

    friend VICINAL_INLINE Lane operator+(Lane x, Lane y) { return x.value + y.value; }
    friend VICINAL_INLINE Lane operator-(Lane x, Lane y) { return x.value - y.value; }
    friend VICINAL_INLINE Lane operator*(Lane x, Lane y) { return x.value * y.value; }
    friend VICINAL_INLINE Lane operator/(Lane x, Lane y) { return x.value / y.value; }
    friend VICINAL_INLINE Lane operator&(Lane x, Lane y) { return x.value & y.value; }
    friend VICINAL_INLINE Lane operator|(Lane x, Lane y) { return x.value | y.value; }
    friend VICINAL_INLINE Lane operator^(Lane x, Lane y) { return x.value ^ y.value; }
    VICINAL_INLINE Lane operator>>(int bits) const { return value >> bits; }
    VICINAL_INLINE Lane operator<<(int bits) const { return value << bits; }
    VICINAL_INLINE Lane operator-() const { return -value; }
    VICINAL_INLINE Lane operator~() const { return ~value; }
    VICINAL_INLINE Lane& operator+=(Lane y) { return *this = *this + y; }
    VICINAL_INLINE Lane& operator-=(Lane y) { return *this = *this - y; }
    VICINAL_INLINE Lane& operator*=(Lane y) { return *this = *this * y; }
    VICINAL_INLINE Lane& operator&=(Lane y) { return *this = *this & y; }
    VICINAL_INLINE Lane& operator|=(Lane y) { return *this = *this | y; }
    VICINAL_INLINE Lane& operator^=(Lane y) { return *this = *this ^ y; }

    using Mask = Lane<std::int32_t>;
    friend VICINAL_INLINE Mask operator<(Lane x, Lane y) { return x.value < y.value ? -1 : 0; }
    friend VICINAL_INLINE Mask operator<=(Lane x, Lane y) { return x.value <= y.value ? -1 : 0; }
    friend VICINAL_INLINE Mask operator>(Lane x, Lane y) { return x.value > y.value ? -1 : 0; }
    friend VICINAL_INLINE Mask operator==(Lane x, Lane y) { return x.value == y.value ? -1 : 0; }
    friend VICINAL_INLINE Mask operator!=(Lane x, Lane y) { return x.value != y.value ? -1 : 0; }
};

typedef Lane<float> Float;
typedef Lane<std::int32_t> Int;
typedef Lane<std::uint32_t> UInt;

template <class V, class T>
VICINAL_INLINE V load(const T* from) {
    return V(*from);
}

template <class V, class T>
VICINAL_INLINE void store(T* to, const V& v) {
    *to = v.value;
}

template <class V, class T>
VICINAL_INLINE V splat(T x) {
    return V(x);
}

VICINAL_INLINE void prefetch(const void*, Size) {}

template <class To, class From>
VICINAL_INLINE To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

VICINAL_INLINE Float select(Int mask, Float yes, Float no) { return mask.value != 0 ? yes : no; }
VICINAL_INLINE Float min(Float x, Float y) { return x.value < y.value ? x : y; }
VICINAL_INLINE Float max(Float x, Float y) { return x.value > y.value ? x : y; }
VICINAL_INLINE Float abs(Float x) { return bits_as<Float>(bits_as<Int>(x) & 0x7fffffff); }
VICINAL_INLINE Float clamp(Float x, float bound) { return min(max(x, splat<Float>(-bound)), splat<Float>(bound)); }
VICINAL_INLINE Float sqrt(Float x) { return std::sqrt(x.value); }
VICINAL_INLINE Float multiply_add(Float x, Float y, Float z) { return std::fma(x.value, y.value, z.value); }
VICINAL_INLINE Float to_float(Int x) { return static_cast<float>(x.value); }

VICINAL_INLINE std::uint32_t bits_of(Int mask) { return mask.value != 0 ? 1u : 0u; }

VICINAL_INLINE int compress(std::int32_t* to, Int values, std::uint32_t bits) {
    *to = values.value;
    return static_cast<int>(bits & 1u);
}

template <class V, class T>
VICINAL_INLINE V gather(const T* base, Int index) {
    return V(base[index.value]);
}

// A pair of floats is loaded at once, so its address must be a multiple of 8.
struct alignas(8) FloatPair {
    float x, y;
};

VICINAL_INLINE void gather_pairs(const float* base, Int index, Float& x, Float& y) {
    const FloatPair pair = reinterpret_cast<const FloatPair*>(base)[index.value];
    x = pair.x;
    y = pair.y;
}

VICINAL_INLINE UInt multiply_high(UInt x, std::uint32_t n) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(x.value) * n) >> 32);
}

}  // namespace vicinal::VICINAL_LEVEL
