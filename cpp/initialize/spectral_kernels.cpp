// Compiled once per level. Nothing is fused, so the results have the same bits at every level.
#include "initialize/spectral_kernels.hpp"

#include "initialize/chebyshev_step.hpp"

namespace vicinal::VICINAL_LEVEL {

const SpectralKernels spectral_kernels{
    .chebyshev_step = chebyshev_step,
};

}  // namespace vicinal::VICINAL_LEVEL
