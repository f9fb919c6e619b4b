// The parts of the C++ standard library that the shared headers use, for NVRTC, which has none. Everything is device
// code (--device-as-default-execution-space).
#pragma once

namespace std {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;
using size_t = decltype(sizeof(int));

template <class T>
constexpr const T& min(const T& x, const T& y) {
    return y < x ? y : x;
}
template <class T>
constexpr const T& max(const T& x, const T& y) {
    return x < y ? y : x;
}
template <class T, class U>
T exchange(T& value, U next) {
    T before = value;
    value = static_cast<T>(next);
    return before;
}
template <class T>
void swap(T& x, T& y) {
    const T before = x;
    x = y;
    y = before;
}

__forceinline__ void memcpy(void* to, const void* from, size_t bytes) { ::memcpy(to, from, bytes); }

__forceinline__ float sqrt(float x) { return ::sqrtf(x); }
__forceinline__ double sqrt(double x) { return ::sqrt(x); }
__forceinline__ float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
__forceinline__ double fma(double x, double y, double z) { return ::fma(x, y, z); }
__forceinline__ float fabs(float x) { return ::fabsf(x); }
__forceinline__ double fabs(double x) { return ::fabs(x); }
__forceinline__ float floor(float x) { return ::floorf(x); }
__forceinline__ double floor(double x) { return ::floor(x); }
__forceinline__ float fmin(float x, float y) { return ::fminf(x, y); }
__forceinline__ float asin(float x) { return ::asinf(x); }
__forceinline__ bool isnan(double x) { return x != x; }
__forceinline__ bool isinf(double x) { return ::fabs(x) > 1.7976931348623157e308; }
__forceinline__ bool isfinite(double x) { return ::fabs(x) <= 1.7976931348623157e308; }

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<double> {
    static double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <>
struct numeric_limits<float> {
    static float infinity() { return __int_as_float(0x7f800000); }
    static float quiet_NaN() { return __int_as_float(0x7fc00000); }
};

}  // namespace std
