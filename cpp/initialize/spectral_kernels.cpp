// Compiled once per level with VICINAL_LEVEL set. Nothing is fused, so results have the same bits at every level.
#include "initialize/spectral_kernels.hpp"

#include "initialize/chebyshev_step.hpp"

namespace vicinal::VICINAL_LEVEL {

const SpectralKernels spectral_kernels{
    .chebyshev_step = chebyshev_step,
};

}  // namespace vicinal::VICINAL_LEVEL
