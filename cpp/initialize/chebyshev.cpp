#include "initialize/chebyshev.hpp"

#include "initialize/spectral_kernels.hpp"

namespace vicinal {

ChebyshevFilter::ChebyshevFilter(const Csr& matrix, Size width)
    : matrix_(matrix), width_(width), current_(make_floats(matrix.rows * width)),
      next_(make_floats(matrix.rows * width)) {}

void ChebyshevFilter::apply(Floats& block, double cut, int degree, ThreadTeam& team) {
    const auto half = static_cast<float>((cut + 1.0) / 2.0), center = static_cast<float>((cut - 1.0) / 2.0);
    const auto step = [&](const Floats& x, const Floats& previous, ChebyshevStep by, Floats& to) {
        spectral_kernels().chebyshev_step(matrix_, x.get(), previous.get(), width_, by, to.get(), team);
    };
    step(block, block, {1.0f / half, center, 0.0f}, current_);
    for (int t = 1; t < degree; ++t) {
        step(current_, block, {2.0f / half, center, 1.0f}, next_);
        block.swap(current_);
        current_.swap(next_);
    }
    block.swap(current_);
}

void ChebyshevFilter::multiply(const Floats& block, Floats& image, ThreadTeam& team) const {
    spectral_kernels().chebyshev_step(matrix_, block.get(), block.get(), width_, {1.0f, 0.0f, 0.0f}, image.get(), team);
}

}  // namespace vicinal
