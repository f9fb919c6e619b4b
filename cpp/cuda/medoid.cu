// First places of new rows on a GPU: the medoid of their neighbors, with the bits of src/vicinal/initialize/medoid.py.
#include "cuda/device.hpp"

#include <cmath>

using namespace vicinal;

// The tail of every row whose weighted distances to all tails of the row have the smallest sum, the first of equal
// ones, or -1 for a row without edges; thread per row.
extern "C" __global__ void neighbor_medoids(const Size* indptr, const Index* tails, const float* weights,
                                            const float* reference, const float* middle, int dim, Size n, float* out) {
    const Size i = thread_number();
    if (i >= n) return;
    float least = 0.0f;
    Index chosen = -1;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e) {
        const float* place = reference + static_cast<Size>(tails[e]) * dim;
        float total = 0.0f;
        for (Size other = indptr[i]; other < indptr[i + 1]; ++other) {
            const float* its = reference + static_cast<Size>(tails[other]) * dim;
            float d2 = (place[0] - its[0]) * (place[0] - its[0]);
            for (int c = 1; c < dim; ++c) d2 += (place[c] - its[c]) * (place[c] - its[c]);
            total += weights[other] * std::sqrt(d2);
        }
        if (chosen < 0 || total < least) {
            least = total;
            chosen = tails[e];
        }
    }
    const float* place = chosen < 0 ? middle : reference + static_cast<Size>(chosen) * dim;
    for (int c = 0; c < dim; ++c) out[i * dim + c] = place[c];
}
THREAD_KERNEL(neighbor_medoids)
