// Vectors as wide as the registers of the level, by the compiler's vector extensions: + - * / and comparisons work
// lane by lane and round exactly, so a lane computes the same bits at every level and on every machine. Operations
// that the extensions lack (gather, high half of a product, mask to bits) use an intrinsic if there is one, otherwise
// a loop over the lanes.
//
// Everything is in the level's own namespace, so the linker cannot mix code of different levels. A GPU is one more
// level: there a thread is a lane, and a vector has one lane (VICINAL_ONE_LANE, defined by cuda/device.hpp).
#pragma once

#include "base/types.hpp"

#ifndef VICINAL_LEVEL
#error "VICINAL_LEVEL names the instruction-set level this file is compiled for"
#endif

#if defined(VICINAL_ONE_LANE)

#include <cmath>
#include <cstring>

// Vectors of one lane. Masks are -1 and 0, as for the compiler's vectors.
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

#else  // several lanes

#include <bit>
#include <cstring>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

namespace vicinal::VICINAL_LEVEL {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX2__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif

typedef float Float __attribute__((vector_size(lanes * 4)));
typedef std::int32_t Int __attribute__((vector_size(lanes * 4)));
typedef std::uint32_t UInt __attribute__((vector_size(lanes * 4)));

template <class V, class T>
VICINAL_INLINE V load(const T* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class V, class T>
VICINAL_INLINE void store(T* to, const V& v) {
    std::memcpy(to, &v, sizeof v);
}

template <class V, class T>
VICINAL_INLINE V splat(T x) {
    // Written out, because the compiler turns this into one broadcast instruction, but not a loop.
    if constexpr (lanes == 16)
        return V{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
    else if constexpr (lanes == 8)
        return V{x, x, x, x, x, x, x, x};
    else
        return V{x, x, x, x};
}

VICINAL_INLINE void prefetch(const void* from, Size bytes) {
    for (Size at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(from) + at);
}

template <class To, class From>
VICINAL_INLINE To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class V>
VICINAL_INLINE V select(Int mask, V yes, V no) {
#if defined(__wasm_simd128__)
    return bits_as<V>(wasm_v128_bitselect(bits_as<v128_t>(yes), bits_as<v128_t>(no), bits_as<v128_t>(mask)));
#else
    return bits_as<V>((mask & bits_as<Int>(yes)) | (~mask & bits_as<Int>(no)));
#endif
}

// The number of each lane, from 0.
VICINAL_INLINE Int lane_numbers() {
    return []<int... lane>(std::integer_sequence<int, lane...>) {
        return Int{lane...};
    }(std::make_integer_sequence<int, lanes>{});
}

// The last lane of `before`, followed by all lanes of `here` but the last.
template <class V>
VICINAL_INLINE V shift_up(V before, V here) {
    return [&]<int... lane>(std::integer_sequence<int, lane...>) {
        return __builtin_shufflevector(before, here, (lanes - 1 + lane)...);
    }(std::make_integer_sequence<int, lanes>{});
}

// x < y ? x : y, which is also what the instructions compute.
VICINAL_INLINE Float min(Float x, Float y) {
#if defined(__AVX512F__)
    return bits_as<Float>(_mm512_min_ps(bits_as<__m512>(x), bits_as<__m512>(y)));
#elif defined(__AVX2__)
    return bits_as<Float>(_mm256_min_ps(bits_as<__m256>(x), bits_as<__m256>(y)));
#elif defined(__wasm_simd128__)
    return bits_as<Float>(wasm_f32x4_pmin(bits_as<v128_t>(y), bits_as<v128_t>(x)));
#else
    return x < y ? x : y;
#endif
}
VICINAL_INLINE Float max(Float x, Float y) {
#if defined(__AVX512F__)
    return bits_as<Float>(_mm512_max_ps(bits_as<__m512>(x), bits_as<__m512>(y)));
#elif defined(__AVX2__)
    return bits_as<Float>(_mm256_max_ps(bits_as<__m256>(x), bits_as<__m256>(y)));
#elif defined(__wasm_simd128__)
    return bits_as<Float>(wasm_f32x4_pmax(bits_as<v128_t>(y), bits_as<v128_t>(x)));
#else
    return x > y ? x : y;
#endif
}
VICINAL_INLINE Float abs(Float x) { return bits_as<Float>(bits_as<Int>(x) & 0x7fffffff); }
VICINAL_INLINE Float clamp(Float x, float bound) { return min(max(x, splat<Float>(-bound)), splat<Float>(bound)); }

VICINAL_INLINE Float sqrt(Float x) {
#if defined(__AVX512F__)
    return bits_as<Float>(_mm512_sqrt_ps(bits_as<__m512>(x)));
#elif defined(__AVX2__)
    return bits_as<Float>(_mm256_sqrt_ps(bits_as<__m256>(x)));
#elif defined(__wasm_simd128__)
    return bits_as<Float>(wasm_f32x4_sqrt(bits_as<v128_t>(x)));
#else
    for (int l = 0; l < lanes; ++l) x[l] = __builtin_sqrtf(x[l]);
    return x;
#endif
}

#if defined(__wasm_simd128__)
// x * y + z of one lane, rounded once. The product is exact in double. The sum is rounded to odd: a float has less than
// half of a double's bits, so rounding this sum again gives the float nearest to the exact sum (Boldo and Melquiond).
VICINAL_INLINE float fused(float x, float y, float z) {
    const double product = static_cast<double>(x) * y, sum = product + z, of_z = sum - product;
    const double error = (product - (sum - of_z)) + (z - of_z);
    auto bits = bits_as<std::int64_t>(sum);
    if ((error < 0.0 || error > 0.0) && bits % 2 == 0) bits += (error > 0.0) == (sum > 0.0) ? 1 : -1;
    return static_cast<float>(bits_as<double>(bits));
}

inline __attribute__((noinline)) Float fused_by_lanes(Float x, Float y, Float z) {
    for (int l = 0; l < lanes; ++l) z[l] = fused(x[l], y[l], z[l]);
    return z;
}

// The same for all lanes. Rounding twice differs from rounding once only if the double lies halfway between two floats,
// or if the float is subnormal: both are rare, and then each lane is computed by itself.
VICINAL_INLINE Float fused(Float x, Float y, Float z) {
    const auto a = bits_as<v128_t>(x), b = bits_as<v128_t>(y), c = bits_as<v128_t>(z);
    const auto low = [](v128_t v) { return wasm_f64x2_promote_low_f32x4(v); };
    const auto high = [](v128_t v) { return wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle(v, v, 1, 1)); };
    const v128_t first = wasm_f64x2_add(wasm_f64x2_mul(low(a), low(b)), low(c));
    const v128_t last = wasm_f64x2_add(wasm_f64x2_mul(high(a), high(b)), high(c));
    const v128_t out =
        wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(first), wasm_f32x4_demote_f64x2_zero(last), 0, 2);
    // The bits of a double that a float lacks are 1000...; those of a subnormal float, doubled, are small.
    const v128_t rest = wasm_i32x4_shuffle(first, last, 0, 2, 4, 6);
    const v128_t halfway = wasm_i32x4_eq(wasm_i32x4_shl(rest, 3), wasm_i32x4_splat(static_cast<int>(0x80000000u)));
    const v128_t tiny =
        wasm_u32x4_lt(wasm_i32x4_sub(wasm_i32x4_shl(out, 1), wasm_i32x4_splat(1)), wasm_i32x4_splat(0x01000000));
    if (__builtin_expect(wasm_v128_any_true(wasm_v128_or(halfway, tiny)), false)) return fused_by_lanes(x, y, z);
    return bits_as<Float>(out);
}
#endif

// Whether a fused multiply-add costs many instructions, so that a bound without it pays where most results are dropped.
#if defined(__wasm_simd128__)
constexpr bool fused_is_slow = true;
#else
constexpr bool fused_is_slow = false;
#endif

// x * y + z, fused if the level has the instruction. This is the only fused operation: the compiler is told not to
// contract others.
VICINAL_INLINE Float multiply_add(Float x, Float y, Float z) {
#if defined(__AVX512F__)
    return bits_as<Float>(_mm512_fmadd_ps(bits_as<__m512>(x), bits_as<__m512>(y), bits_as<__m512>(z)));
#elif defined(__FMA__)
    return bits_as<Float>(_mm256_fmadd_ps(bits_as<__m256>(x), bits_as<__m256>(y), bits_as<__m256>(z)));
#elif defined(__aarch64__)
    return bits_as<Float>(vfmaq_f32(bits_as<float32x4_t>(z), bits_as<float32x4_t>(x), bits_as<float32x4_t>(y)));
#elif defined(__wasm_simd128__)
    return fused(x, y, z);
#else
    return x * y + z;
#endif
}

// One bit per lane, set if the mask is all ones.
VICINAL_INLINE std::uint32_t bits_of(Int mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(bits_as<__m512i>(mask));
#elif defined(__AVX2__)
    return static_cast<std::uint32_t>(_mm256_movemask_ps(bits_as<__m256>(mask)));
#elif defined(__wasm_simd128__)
    return wasm_i32x4_bitmask(bits_as<v128_t>(mask));
#else
    std::uint32_t bits = 0;
    for (int l = 0; l < lanes; ++l) bits |= static_cast<std::uint32_t>(mask[l] & 1) << l;
    return bits;
#endif
}

#if defined(__wasm_simd128__)
// For each pattern of four bits, the bytes of the lanes whose bit is set, next to each other.
struct KeptBytes {
    alignas(16) std::uint8_t of_bits[16][16] = {};

    constexpr KeptBytes() {
        for (int bits = 0; bits < 16; ++bits) {
            int n = 0;
            for (int l = 0; l < 4; ++l)
                if (bits >> l & 1)
                    for (int b = 0; b < 4; ++b) of_bits[bits][n++] = static_cast<std::uint8_t>(4 * l + b);
        }
    }
};
constexpr KeptBytes kept_bytes;
#endif

// Writes the lanes whose bit is set next to each other and returns their number. May overwrite a whole vector.
VICINAL_INLINE int compress(std::int32_t* to, Int values, std::uint32_t bits) {
#if defined(__AVX512F__)
    store(to, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), bits_as<__m512i>(values)));
    return std::popcount(bits);
#elif defined(__wasm_simd128__)
    store(to, wasm_i8x16_swizzle(bits_as<v128_t>(values), wasm_v128_load(kept_bytes.of_bits[bits])));
    return std::popcount(bits);
#else
    int n = 0;
    for (int l = 0; l < lanes; ++l) {
        to[n] = values[l];
        n += static_cast<int>(bits >> l & 1u);
    }
    return n;
#endif
}

template <class V, class T>
VICINAL_INLINE V gather(const T* base, Int index) {
    static_assert(sizeof(T) == 4);
#if defined(__AVX512F__)
    return bits_as<V>(_mm512_i32gather_epi32(bits_as<__m512i>(index), base, 4));
#elif defined(__AVX2__)
    return bits_as<V>(_mm256_i32gather_epi32(reinterpret_cast<const int*>(base), bits_as<__m256i>(index), 4));
#elif defined(__wasm_simd128__)
    v128_t v = wasm_v128_load32_zero(base + index[0]);
    v = wasm_v128_load32_lane(base + index[1], v, 1);
    v = wasm_v128_load32_lane(base + index[2], v, 2);
    return bits_as<V>(wasm_v128_load32_lane(base + index[3], v, 3));
#else
    V v{};
    for (int l = 0; l < lanes; ++l) v[l] = base[index[l]];
    return v;
#endif
}

// The points (x, y) at base[2 * index]: one 8-byte load per lane for both coordinates.
VICINAL_INLINE void gather_pairs(const float* base, Int index, Float& x, Float& y) {
#if defined(__AVX512F__)
    alignas(64) std::int32_t at[lanes];
    store(at, index);
    const auto point = [&](int l) { return load<double>(base + 2 * static_cast<Size>(at[l])); };
    const auto two = [&](int l) { return _mm_set_pd(point(l + 1), point(l)); };
    const auto four = [&](int l) { return _mm256_insertf128_pd(_mm256_castpd128_pd256(two(l)), two(l + 2), 1); };
    const auto eight = [&](int l) {
        return _mm512_castpd_si512(_mm512_insertf64x4(_mm512_castpd256_pd512(four(l)), four(l + 4), 1));
    };
    const __m512i low = eight(0), high = eight(8);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    x = bits_as<Float>(_mm512_permutex2var_epi32(low, even, high));
    y = bits_as<Float>(_mm512_permutex2var_epi32(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high));
#elif defined(__AVX2__)
    const __m256i at = bits_as<__m256i>(index);
    const auto* pairs = reinterpret_cast<const long long*>(base);
    const __m256 low = _mm256_castsi256_ps(_mm256_i32gather_epi64(pairs, _mm256_castsi256_si128(at), 8));
    const __m256 high = _mm256_castsi256_ps(_mm256_i32gather_epi64(pairs, _mm256_extracti128_si256(at, 1), 8));
    // (x0 y0 x1 y1 | x2 y2 x3 y3), (x4 ...): shuffle within halves, then put the quarters in order.
    const __m256 xs = _mm256_shuffle_ps(low, high, 0x88), ys = _mm256_shuffle_ps(low, high, 0xdd);
    x = bits_as<Float>(_mm256_permute4x64_epi64(_mm256_castps_si256(xs), 0xd8));
    y = bits_as<Float>(_mm256_permute4x64_epi64(_mm256_castps_si256(ys), 0xd8));
#elif defined(__wasm_simd128__)
    const auto point = [&](int l) { return base + 2 * index[l]; };
    const v128_t low = wasm_v128_load64_lane(point(1), wasm_v128_load64_zero(point(0)), 1);
    const v128_t high = wasm_v128_load64_lane(point(3), wasm_v128_load64_zero(point(2)), 1);
    x = bits_as<Float>(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6));
    y = bits_as<Float>(wasm_i32x4_shuffle(low, high, 1, 3, 5, 7));
#else
    Float xs{}, ys{};
    for (int l = 0; l < lanes; ++l) {
        xs[l] = base[2 * static_cast<Size>(index[l])];
        ys[l] = base[2 * static_cast<Size>(index[l]) + 1];
    }
    x = xs;
    y = ys;
#endif
}

// The high 32 bits of x * n, lane by lane.
VICINAL_INLINE UInt multiply_high(UInt x, std::uint32_t n) {
#if defined(__AVX512F__)
    const __m512i a = bits_as<__m512i>(x), b = _mm512_set1_epi32(static_cast<int>(n));
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
    return bits_as<UInt>(_mm512_mask_blend_epi32(0xaaaa, even, odd));
#elif defined(__AVX2__)
    const __m256i a = bits_as<__m256i>(x), b = _mm256_set1_epi32(static_cast<int>(n));
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
    return bits_as<UInt>(_mm256_blend_epi32(even, odd, 0xaa));
#elif defined(__wasm_simd128__)
    const v128_t a = bits_as<v128_t>(x), b = wasm_u32x4_splat(n);
    const v128_t first = wasm_u64x2_extmul_low_u32x4(a, b), last = wasm_u64x2_extmul_high_u32x4(a, b);
    return bits_as<UInt>(wasm_i32x4_shuffle(first, last, 1, 3, 5, 7));
#else
    UInt high{};
    for (int l = 0; l < lanes; ++l) high[l] = static_cast<std::uint32_t>((static_cast<std::uint64_t>(x[l]) * n) >> 32);
    return high;
#endif
}

VICINAL_INLINE Float to_float(Int x) { return __builtin_convertvector(x, Float); }

// Adds the squared differences of bytes to `sum`: those of bytes 2 l and 2 l + 1 to lane l.
VICINAL_INLINE Int add_squares(Int sum, const std::uint8_t* x, const std::uint8_t* y) {
#if defined(__AVX512F__)
    const __m512i difference =
        _mm512_sub_epi16(_mm512_cvtepu8_epi16(load<__m256i>(x)), _mm512_cvtepu8_epi16(load<__m256i>(y)));
    return sum + bits_as<Int>(_mm512_madd_epi16(difference, difference));
#elif defined(__AVX2__)
    const __m256i difference =
        _mm256_sub_epi16(_mm256_cvtepu8_epi16(load<__m128i>(x)), _mm256_cvtepu8_epi16(load<__m128i>(y)));
    return sum + bits_as<Int>(_mm256_madd_epi16(difference, difference));
#elif defined(__aarch64__)
    const int16x8_t difference = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(x), vld1_u8(y)));
    const int32x4_t low = vmull_s16(vget_low_s16(difference), vget_low_s16(difference));
    return sum + bits_as<Int>(vpaddq_s32(low, vmull_high_s16(difference, difference)));
#elif defined(__wasm_simd128__)
    const v128_t difference = wasm_i16x8_sub(wasm_u16x8_load8x8(x), wasm_u16x8_load8x8(y));
    return sum + bits_as<Int>(wasm_i32x4_dot_i16x8(difference, difference));
#else
    for (int l = 0; l < lanes; ++l) {
        const std::int32_t even = x[2 * l] - y[2 * l], odd = x[2 * l + 1] - y[2 * l + 1];
        sum[l] += even * even + odd * odd;
    }
    return sum;
#endif
}

}  // namespace vicinal::VICINAL_LEVEL

#endif  // VICINAL_ONE_LANE

namespace vicinal::VICINAL_LEVEL {

// log2 for positive, normal x: exponent plus a minimax polynomial of the mantissa in [sqrt(1/2), sqrt(2));
// relative error of the mantissa part 1.1e-6.
VICINAL_INLINE Float log2(Float x) {
    const Int bits = bits_as<Int>(x);
    const Int exponent = (bits - 0x3f3504f3) >> 23;
    const Float t = bits_as<Float>(bits - (exponent << 23)) - 1.0f;
    Float p = splat<Float>(0.1716245710849762f);
    p = p * t - 0.2693202793598175f;
    p = p * t + 0.2956995368003845f;
    p = p * t - 0.3593716323375702f;
    p = p * t + 0.48062676191329956f;
    p = p * t - 0.7213636040687561f;
    p = p * t + 1.442696452140808f;
    return to_float(exponent) + p * t;
}

// 2^x, with x clamped to [-126, 126]; relative error 7.5e-8 plus that of x.
VICINAL_INLINE Float exp2(Float x) {
    constexpr float round_shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    x = clamp(x, 126.0f);
    const Float shifted = x + round_shift;
    const Float f = x - (shifted - round_shift);
    Float p = splat<Float>(0.0013276472454890609f);
    p = p * f + 0.009675541892647743f;
    p = p * f + 0.05550713092088699f;
    p = p * f + 0.24022120237350464f;
    p = p * f + 0.6931469440460205f;
    p = p * f + 1.0000001192092896f;
    return bits_as<Float>(bits_as<Int>(p) + (bits_as<Int>(shifted) << 23));
}

// Sine and cosine. The nearest multiple of pi/2 is subtracted in three parts, so |x| up to a few thousand keeps its
// precision; absolute error 1.2e-7.
VICINAL_INLINE void sin_cos(Float x, Float& sine, Float& cosine) {
    constexpr float round_shift = 12582912.0f;
    constexpr float quarter_high = 1.5703125f, quarter_middle = 4.837512969970703e-4f,
                    quarter_low = 7.549790126404332e-8f;
    const Float shifted = x * 0.6366197723675814f + round_shift, turns = shifted - round_shift;
    const Int quarter = bits_as<Int>(shifted);
    x = ((x - turns * quarter_high) - turns * quarter_middle) - turns * quarter_low;
    const Float x2 = x * x;
    Float s = splat<Float>(-1.9501763745211065e-4f);
    s = s * x2 + 8.332015946507454e-3f;
    s = s * x2 - 0.16666650772094727f;
    s = x + x * x2 * s;
    Float c = splat<Float>(2.4372629923163913e-5f);
    c = c * x2 - 1.3886528322473168e-3f;
    c = c * x2 + 0.04166661202907562f;
    c = c * x2 - 0.5f;
    c = c * x2 + 1.0f;
    const Int swapped = (quarter & 1) != 0;
    const Float a = select(swapped, c, s), b = select(swapped, s, c);
    sine = bits_as<Float>(bits_as<Int>(a) ^ ((quarter & 2) << 30));
    cosine = bits_as<Float>(bits_as<Int>(b) ^ (((quarter + 1) & 2) << 30));
}

VICINAL_INLINE Float pow(Float x, float exponent) { return exp2(log2(x) * exponent); }

// A sum of integers that several threads add to at once. It does not depend on the order of the threads.
VICINAL_INLINE void add_atomically(std::int64_t* to, std::int64_t amount) {
#if defined(__CUDACC_RTC__)
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(amount));
#else
    __atomic_fetch_add(to, amount, __ATOMIC_RELAXED);
#endif
}

}  // namespace vicinal::VICINAL_LEVEL
