// Compiled once per level with VICINAL_LEVEL set. Nothing is fused, so results have the same bits at every level.
#include "initialize/spectral_kernels.hpp"

#include "initialize/block_columns.hpp"
#include "initialize/chebyshev_step.hpp"

namespace vicinal::VICINAL_LEVEL {

const SpectralKernels spectral_kernels{
    .chebyshev_step = chebyshev_step,
    .add_weighted_rows = add_weighted_rows,
    .subtract_multiples = subtract_multiples,
    .add_products = add_products,
    .rotate_rows = rotate_rows,
    .add_residuals = add_residuals,
};

}  // namespace vicinal::VICINAL_LEVEL
