#include "layout/grid_convolution.hpp"

#include "layout/layout_kernels.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace vicinal {

namespace {

constexpr double pi = 3.14159265358979323846;

// The series of sine (odd) or cosine for angles up to pi / 4, to the precision of double.
double series(double angle, bool odd) {
    double term = odd ? angle : 1.0, sum = 0.0;
    for (int k = odd ? 1 : 0; k < 20; k += 2) {
        sum += term;
        term *= -angle * angle / ((k + 1.0) * (k + 2.0));
    }
    return sum;
}

bool is_length(Size n) {
    if (n == 1) return true;
    if (n < 2 || n % 2 != 0) return false;
    for (const Size factor : {2, 3, 5})
        while (n % factor == 0) n /= factor;
    return n == 1;
}

constexpr std::size_t alignment = 64;

float* aligned(std::vector<float>& memory) {
    auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    at = (at + alignment - 1) / alignment * alignment;
    return reinterpret_cast<float*>(at);
}

}  // namespace

std::vector<Turn> turns_of(Size n) {
    std::vector<Turn> turns(static_cast<std::size_t>(n));
    for (Size t = 0; t < n; ++t) {
        // The nearest quarter turn, and the rest in eighths of a turn at most.
        const Size quarter = (4 * t + n / 2) / n;
        const double angle = 2.0 * pi * static_cast<double>(4 * t - quarter * n) / (4.0 * static_cast<double>(n));
        double cosine = series(angle, false), sine = series(angle, true);
        for (Size q = 0; q < quarter; ++q) cosine = std::exchange(sine, cosine) * -1.0;
        turns[static_cast<std::size_t>(t)] = {static_cast<float>(cosine), static_cast<float>(-sine)};
    }
    return turns;
}

GridConvolution::GridConvolution(std::array<Size, 3> padded, std::vector<float> transfer)
    : padded_(padded), transfer_(std::move(transfer)) {
    Size waves = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        if (!is_length(padded[axis])) throw std::invalid_argument("a padded length must be even, with factors 2, 3, 5");
        turns_[axis] = turns_of(padded[axis]);
        waves *= padded[axis] / 2 + 1;
    }
    if (padded[2] < 2 * widest_lanes) throw std::invalid_argument("the last axis is too short");
    if (static_cast<Size>(transfer_.size()) != waves) throw std::invalid_argument("the transfer has another shape");
}

void GridConvolution::run(const float* values, std::array<Size, 3> nodes, float* found, ThreadTeam& team) {
    ConvolutionTask task{};
    Size longest = 0;
    double all = 1.0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        if (nodes[axis] < 1 || nodes[axis] > std::max<Size>(1, padded_[axis] / 2))
            throw std::invalid_argument("a grid must have at most half as many nodes as padding provides");
        task.axes[axis] = {nodes[axis], padded_[axis], turns_[axis].data()};
        longest = std::max(longest, padded_[axis]);
        all *= static_cast<double>(padded_[axis]);
    }
    task.stride = (task.waves() + widest_lanes - 1) / widest_lanes * widest_lanes;
    const Size size = nodes[0] * padded_[1] * task.stride;
    waves_.resize(static_cast<std::size_t>(2 * size) + widest_lanes);
    // Per worker two buffers of complex numbers, with one vector beyond the end.
    scratch_.resize(static_cast<std::size_t>(team.size() * 4 * (longest + widest_lanes) * widest_lanes) + widest_lanes);
    task.transfer = transfer_.data();
    task.values = values;
    task.found = found;
    task.scale = static_cast<float>(1.0 / all);
    task.re = aligned(waves_);
    task.im = task.re + size;
    task.scratch = aligned(scratch_);
    layout_kernels().convolve_grid(task, team);
}

}  // namespace vicinal
