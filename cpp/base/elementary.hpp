// exp and log in double precision by additions, multiplications and one division, so that they have the same bits on
// every processor, with every C library and on a GPU. Errors are below 2 units in the last place.
#pragma once

#include "base/types.hpp"

#include <cstring>

namespace vicinal {

// The nearest multiple of ln 2 is subtracted in two parts; the rest is at most 0.347 and has a Taylor series of 13
// terms. Below -708 the result is 0: subnormal numbers are not needed.
VICINAL_INLINE double exp_exact(double x) {
    constexpr double round_shift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    constexpr double ln_2_high = 6.93147180369123816490e-01, ln_2_low = 1.90821492927058770002e-10;
    if (!(x >= -708.0)) return x != x ? x : 0.0;
    if (x > 709.0) x = 709.0;
    const double shifted = x * 1.4426950408889634 + round_shift, turns = shifted - round_shift;
    const double r = (x - turns * ln_2_high) - turns * ln_2_low, r2 = r * r, r4 = r2 * r2;
    const double low = (1.0 + r) + r2 * (0.5 + r * 1.6666666666666666e-1);
    const double middle =
        (4.1666666666666664e-2 + r * 8.3333333333333332e-3) + r2 * (1.3888888888888889e-3 + r * 1.9841269841269841e-4);
    const double high =
        (2.4801587301587302e-5 + r * 2.7557319223985893e-6) + r2 * (2.7557319223985888e-7 + r * 2.5052108385441719e-8);
    const double highest = 2.0876756987868099e-9 + r * 1.6059043836821613e-10;
    const double p = low + r4 * (middle + r4 * (high + r4 * highest));
    std::int64_t exponent, bits;
    std::memcpy(&exponent, &shifted, sizeof exponent);
    std::memcpy(&bits, &p, sizeof bits);
    bits += static_cast<std::int64_t>(static_cast<std::uint64_t>(exponent) << 52);
    double scaled;
    std::memcpy(&scaled, &bits, sizeof scaled);
    return scaled;
}

// For positive, normal x: the exponent, and 2 atanh(f) with f = (m - 1) / (m + 1) of the mantissa m in [sqrt(1/2),
// sqrt(2)).
VICINAL_INLINE double log_exact(double x) {
    constexpr double ln_2_high = 6.93147180369123816490e-01, ln_2_low = 1.90821492927058770002e-10;
    std::int64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const std::int64_t exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
    bits -= static_cast<std::int64_t>(static_cast<std::uint64_t>(exponent) << 52);
    double m;
    std::memcpy(&m, &bits, sizeof m);
    const double f = (m - 1.0) / (m + 1.0), f2 = f * f;
    double series = 0.08695652173913043;  // 2/23
    series = series * f2 + 0.09523809523809523;
    series = series * f2 + 0.10526315789473684;
    series = series * f2 + 0.11764705882352941;
    series = series * f2 + 0.13333333333333333;
    series = series * f2 + 0.15384615384615385;
    series = series * f2 + 0.18181818181818182;
    series = series * f2 + 0.2222222222222222;
    series = series * f2 + 0.2857142857142857;
    series = series * f2 + 0.4;
    series = series * f2 + 0.6666666666666666;
    const double rest = (f + f) + f * f2 * series, whole = static_cast<double>(exponent);
    return whole * ln_2_high + (rest + whole * ln_2_low);
}

}  // namespace vicinal
