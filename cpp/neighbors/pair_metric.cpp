#include "neighbors/pair_metric.hpp"

#include "neighbors/neighbor_kernels.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace vicinal {

float DensePairs::rank(Size head, Size tail) const {
    if (heads_.element == Element::bits && tails_.element == Element::bits)
        return neighbor_kernels().rank_bits(heads_.byte_row(head), tails_.byte_row(tail), rule_);
    thread_local std::vector<float> widened;
    const bool floats = heads_.is_float() && tails_.is_float();
    if (!floats) widened.resize(static_cast<std::size_t>(2 * rule_.cols));
    const float* x = heads_.row(head, widened.data());
    return neighbor_kernels().rank_dense(x, tails_.row(tail, widened.data() + (floats ? 0 : rule_.cols)), rule_);
}

float ForeignPairs::rank(Size head, Size tail) const {
    const float *x = heads_.row(head), *y = tails_.row(tail);
    const auto n = static_cast<int>(tails_.cols);
    const auto doubles = [&](const float* row) { return std::vector<double>(row, row + n); };
    double value = 0.0;
    using Kind = ForeignFunction::Kind;
    switch (function_.kind) {
    case Kind::floats:
        value = reinterpret_cast<double (*)(const float*, const float*, int)>(function_.function)(x, y, n);
        break;
    case Kind::floats_data:
        value = reinterpret_cast<double (*)(const float*, const float*, int, void*)>(function_.function)(
            x, y, n, function_.data);
        break;
    case Kind::doubles:
        value = reinterpret_cast<double (*)(const double*, const double*, int)>(function_.function)(
            doubles(x).data(), doubles(y).data(), n);
        break;
    case Kind::doubles_data:
        value = reinterpret_cast<double (*)(const double*, const double*, int, void*)>(function_.function)(
            doubles(x).data(), doubles(y).data(), n, function_.data);
        break;
    }
    return checked_rank(value, head, tail);
}

float checked_rank(double value, Size head, Size tail) {
    constexpr double rounding = 1e-6;
    if (value >= 0.0) return static_cast<float>(value);
    if (value >= -rounding) return 0.0f;
    throw std::invalid_argument("All distances must be numbers of at least 0, the metric given returned " +
                                std::to_string(value) + " for rows " + std::to_string(head) + " and " +
                                std::to_string(tail));
}

}  // namespace vicinal
