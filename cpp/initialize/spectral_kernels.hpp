// Hot code of the spectral initialization, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"

namespace vicinal {

// Vectors of a block that are processed together.
constexpr Size block_columns = 8;
// Rows of a step that a thread takes at a time.
constexpr Size step_rows = 256;

struct ChebyshevStep {
    float scale, center, keep;  // next = scale * (M x - center * x) - keep * previous
};

struct SpectralKernels {
    void (*chebyshev_step)(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step,
                           float* next, ThreadTeam& team);
    // The others work on the rows [begin, end).
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
