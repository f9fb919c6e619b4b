// Hot code of the spectral initialization, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "initialize/chebyshev.hpp"

namespace vicinal {

struct SpectralKernels {
    void (*chebyshev_step)(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step,
                           float* next, ThreadTeam& team);
};

VICINAL_KERNELS(SpectralKernels, spectral_kernels)

}  // namespace vicinal
