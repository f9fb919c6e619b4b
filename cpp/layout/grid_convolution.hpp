// Convolution of the values at the nodes of grids with one kernel (grid_fourier.hpp).
#pragma once

#include "base/parallel.hpp"
#include "layout/grid_convolution_task.hpp"

#include <array>
#include <vector>

namespace vicinal {

class GridConvolution {
  public:
    // `padded` has even numbers with the factors 2, 3 and 5 only, the last at least 2 * widest_lanes, or 1 for an axis
    // that is not used. `transfer` is the transform of a kernel that is even along each axis, at waves from 0 to half
    // of these numbers.
    GridConvolution(std::array<Size, 3> padded, std::vector<float> transfer);

    const std::array<Size, 3>& padded() const { return padded_; }

    // Writes the convolved values of a grid with at most half as many nodes as `padded` to `found`.
    void run(const float* values, std::array<Size, 3> nodes, float* found, ThreadTeam& team);

  private:
    std::array<Size, 3> padded_;
    std::vector<float> transfer_, waves_, scratch_;
    std::array<std::vector<Turn>, 3> turns_;
};

// exp(-2 pi i t / n) for t from 0 to n - 1, with the same bits on every machine.
std::vector<Turn> turns_of(Size n);

}  // namespace vicinal
