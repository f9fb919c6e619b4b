// Hot code of the spectral initialization, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "initialize/chebyshev.hpp"

namespace vicinal {

struct SpectralKernels {
    void (*chebyshev_step)(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step,
                           float* next, ThreadTeam& team);
    // The functions of block_columns.hpp, on the rows [begin, end).
    void (*add_weighted_rows)(const float* block, const double* factor, Size begin, Size end, Size width, double* sums);
    void (*subtract_multiples)(float* block, const double* factor, const double* amounts, Size begin, Size end,
                               Size width);
    void (*add_products)(const float* x, const float* y, Size begin, Size end, Size width, double* products);
    void (*rotate_rows)(const float* block, const double* rotation, Size begin, Size end, Size width, float* to);
    void (*add_residuals)(const float* block, const float* image, const double* rotation, const double* values,
                          Size begin, Size end, Size width, double* squares);
};

VICINAL_KERNELS(SpectralKernels, spectral_kernels)

}  // namespace vicinal
