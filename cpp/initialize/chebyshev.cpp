#include "initialize/chebyshev.hpp"

#include "initialize/spectral_kernels.hpp"

#include <algorithm>
#include <vector>

namespace vicinal {

void chebyshev_filter(const Csr& m, float* block, Size width, double cut, int degree, ThreadTeam& team) {
    const auto size = static_cast<std::size_t>(m.rows * width);
    const auto half = static_cast<float>((cut + 1.0) / 2.0), center = static_cast<float>((cut - 1.0) / 2.0);
    std::vector<float> previous(block, block + size), current(size), next(size);
    spectral_kernels().chebyshev_step(m, previous.data(), previous.data(), width, {1.0f / half, center, 0.0f},
                                      current.data(), team);
    for (int t = 1; t < degree; ++t) {
        spectral_kernels().chebyshev_step(m, current.data(), previous.data(), width, {2.0f / half, center, 1.0f},
                                          next.data(), team);
        previous.swap(current);
        current.swap(next);
    }
    std::copy(current.begin(), current.end(), block);
}

}  // namespace vicinal
