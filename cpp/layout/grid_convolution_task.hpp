// Arguments of the convolution of a grid (grid_fourier.hpp). Plain data, shared by all levels.
#pragma once

#include "base/types.hpp"

namespace vicinal {

// exp(-2 pi i t / N).
struct Turn {
    float cosine, sine;
};

// One of three axes; one that is not used has one node and no padding.
struct FourierAxis {
    Size nodes = 1, padded = 1;
    const Turn* turns = nullptr;  // [padded]
};

// Rows of waves are whole vectors of any level long, and a line has at least two of them.
constexpr Size widest_lanes = 16;

struct ConvolutionTask {
    FourierAxis axes[3];
    Size stride;            // from one row of waves to the next
    const float* transfer;  // the kernel's transform, for waves up to half the padded length of each axis
    const float* values;    // at the nodes
    float* found;           // at the nodes
    float scale;            // 1 / padded nodes
    float *re, *im;         // waves [nodes 0][padded 1][stride]
    float* scratch;         // aligned to 64 bytes; per worker 4 * (longest padded + widest_lanes) * widest_lanes floats

    VICINAL_INLINE Size waves() const { return axes[2].padded / 2 + 1; }
};

}  // namespace vicinal
