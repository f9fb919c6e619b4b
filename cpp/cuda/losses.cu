// Sums over pairs of points on a GPU, with the terms of the CPU (loss_term.hpp) and its lanes, blocks and tree: results
// have the CPU's bits.
#include "cuda/device.hpp"

#include "base/rng.hpp"
#include "losses/loss_term.hpp"

#include <algorithm>

#ifndef VICINAL_DIM
#define VICINAL_DIM 2
#define VICINAL_TERM AttractCost
#endif

namespace vicinal {

constexpr int dim = VICINAL_DIM;
static_assert(row_lanes == most_lanes);

namespace gpu {

template <class Term>
VICINAL_INLINE Term term_of(const ForceParameters& force) {
    return Term{PowerLaw(force)};
}
template <>
VICINAL_INLINE Cauchy term_of<Cauchy>(const ForceParameters&) {
    return Cauchy{};
}
template <>
VICINAL_INLINE Student term_of<Student>(const ForceParameters& force) {
    return Student{force.a};
}

using Term = VICINAL_TERM;

VICINAL_INLINE Float squared_distance(const float* points, Size head, Size tail) {
    Float d2{};
    for (int c = 0; c < dim; ++c) {
        const Float difference = points[head * dim + c] - points[tail * dim + c];
        d2 += difference * difference;
    }
    return d2;
}

// Adds a block of tails, summed up in single precision by lane, to the totals of the rows.
VICINAL_INLINE void add_block(PerLane<float>& sums, PerLane<double>& totals) {
    PerLane<double> wide;
    FOR_LANES(lane) { wide[lane] = sums[lane]; }
    add_lanes(wide);
    FOR_LANES(lane) { totals[lane] += wide[lane]; }
}

VICINAL_INLINE void clear(PerLane<double>& totals) {
    FOR_LANES(lane) { totals[lane] = 0.0; }
}

}  // namespace gpu

}  // namespace vicinal

using namespace vicinal;

// Every pair once, with the weights of both points, as a sum per head over the points after it; 16 lanes per head.
extern "C" __global__ void pair_costs(const float* __restrict__ points, const float* __restrict__ weight, Size n,
                                      float a, float b, double* __restrict__ out) {
    using namespace vicinal::gpu;
    const Term term = term_of<Term>({ForceKind::umap, a, b, 1.0f});
    const Size padded = (n + most_lanes - 1) / most_lanes * most_lanes;
    const Size first = warp_number() * warp_rows / pair_heads * pair_heads;  // of the chunk of these heads
    PerLane<double> totals;
    clear(totals);
    for (Size block = first; block < padded; block += pair_tails) {
        PerLane<float> sums;
        FOR_LANES(lane) {
            const Size head = row_of(lane), end = std::min(block + pair_tails, padded);
            Float sum{};
            for (Size tail = block + lane % row_lanes; head < n && tail < end; tail += row_lanes) {
                // Padding has the weight 0, and so have the points up to the head.
                if (tail > head && tail < n)
                    sum += (weight[head] + weight[tail]) * term(squared_distance(points, head, tail));
            }
            sums[lane] = sum[0];
        }
        add_block(sums, totals);
    }
    FOR_LANES(lane) {
        if (lane % row_lanes == 0 && row_of(lane) < n) out[row_of(lane)] = totals[lane];
    }
}
WARP_KERNEL(pair_costs)

// The sum over the edges of every head, weighted by the graph; 16 lanes per head.
extern "C" __global__ void edge_costs(const float* __restrict__ points, const Size* __restrict__ indptr,
                                      const Index* __restrict__ tails, const float* __restrict__ weights, Size n,
                                      float a, float b, double* __restrict__ out) {
    using namespace vicinal::gpu;
    const Term term = term_of<Term>({ForceKind::umap, a, b, 1.0f});
    PerLane<double> totals;
    clear(totals);
    // The lanes of a warp stay together, so that both of its rows have the blocks of the longer one.
    Size most_edges = 0;
    for (Size head = row_of(0); head < std::min(row_of(0) + warp_rows, n); ++head)
        most_edges = std::max(most_edges, indptr[head + 1] - indptr[head]);
    for (Size block = 0; block < most_edges; block += pair_tails) {
        PerLane<float> sums;
        FOR_LANES(lane) {
            const Size head = row_of(lane);
            Float sum{};
            if (head < n) {
                const Size begin = indptr[head] + block, end = std::min(begin + pair_tails, indptr[head + 1]);
                for (Size e = begin + lane % row_lanes; e < end; e += row_lanes)
                    sum += weights[e] * term(squared_distance(points, head, tails[e]));
            }
            sums[lane] = sum[0];
        }
        add_block(sums, totals);
    }
    FOR_LANES(lane) {
        if (lane % row_lanes == 0 && row_of(lane) < n) out[row_of(lane)] = totals[lane];
    }
}
WARP_KERNEL(edge_costs)

// The sum over all other points, estimated from groups of 16 draws, and the variance of the estimate; 16 lanes per
// head.
extern "C" __global__ void drawn_costs(const float* __restrict__ points, Size n, Size groups, std::uint64_t key,
                                       float a, float b, double* __restrict__ value, double* __restrict__ variance) {
    using namespace vicinal::gpu;
    const Term term = term_of<Term>({ForceKind::umap, a, b, 1.0f});
    const auto others = static_cast<std::uint32_t>(n - 1);
    PerLane<double> totals, squares;
    clear(totals);
    clear(squares);
    for (Size g = 0; g < groups; ++g) {
        PerLane<float> sums;
        FOR_LANES(lane) {
            const Size head = row_of(lane);
            sums[lane] = 0.0f;
            if (head < n) {
                const std::uint32_t own = row_key(key, static_cast<std::uint64_t>(head));
                const auto draw = static_cast<std::uint32_t>(g * row_lanes + lane % row_lanes);
                auto tail = static_cast<Size>(below(draw32(own, draw), others));
                if (tail >= head) ++tail;
                sums[lane] = (1.0f * term(squared_distance(points, head, tail)))[0];
            }
        }
        PerLane<double> group;
        clear(group);
        add_block(sums, group);
        FOR_LANES(lane) {
            totals[lane] += group[lane];
            squares[lane] += group[lane] * group[lane];
        }
    }
    const auto count = static_cast<double>(groups), scale = static_cast<double>(others) / most_lanes;
    FOR_LANES(lane) {
        const Size head = row_of(lane);
        if (lane % row_lanes == 0 && head < n) {
            const double total = totals[lane], spread = squares[lane] - total * total / count;
            value[head] = scale * total / count;
            variance[head] = scale * scale * (spread > 0.0 ? spread : 0.0) / (count * (count - 1.0));
        }
    }
}
WARP_KERNEL(drawn_costs)
