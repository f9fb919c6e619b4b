// What a few nodes of the first tree tell about the data before it is searched: some rows are compared in full with all
// rows of their node.
//
// The rest of a row is what its sketch leaves out. Two neighbors differ there by a share of the sum of both squared
// lengths, which is 1 if the rests are unrelated, and 0 if neighbors agree in them. The weight of the rests in an
// estimate is the mean of this share minus one standard deviation: an estimate that is too large favors short rows.
//
// The contrast is the rank of the nearest row over the mean rank. It approaches 1 in data without structure.
#pragma once

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "neighbors/metric.hpp"

#include <cmath>

namespace vicinal::VICINAL_LEVEL {

struct SampledRow {
    float nearest, mean;
    float rest_share;
};

template <class Rank, Source source>
SampledRow sample_row(const SearchSpace& space, Index head, const Index* rows, Size n) {
    float nearest = no_rank;
    double sum = 0.0;
    Index best = head;
    for (Size j = 0; j < n; ++j) {
        if (j + 1 < n) prefetch_row(space, rows[j + 1]);
        const float rank = rank_rows<Rank, source>(space, head, rows[j]);
        sum += rank;
        if (rank > 0.0f && rank < nearest) {
            nearest = rank;
            best = rows[j];
        }
    }
    if (best == head) return {0.0f, 0.0f, 0.0f};
    const float rests = space.rest[head] + space.rest[best];
    const float shown = rank_sketches<Rank>(space, head, best);
    const float share = rests > 0.0f && nearest > shown ? (nearest - shown) / rests : 0.0f;
    return {nearest, static_cast<float>(sum / static_cast<double>(n)), share};
}

template <class Rank, Source source>
NodeSample sample_nodes(const SearchSpace& space, const ForestView& forest, Size level, ThreadTeam& team) {
    constexpr Size most_nodes = 32, node_heads = 8;
    const Size nodes = Size{1} << level, sampled = (nodes < most_nodes ? nodes : most_nodes) * node_heads;
    Scratch<SampledRow> sample(sampled);
    team.parallel_for(sampled, 1, [&](Size begin, Size end, int) {
        for (Size s = begin; s < end; ++s) {
            const Size node = s / node_heads * nodes / (sampled / node_heads);
            const Size first = forest.begin_of(level, node), n = forest.begin_of(level, node + 1) - first;
            const Index* rows = forest.order + first;
            sample[s] = sample_row<Rank, source>(space, rows[s % node_heads * n / node_heads], rows, n);
        }
    });
    double nearest = 0.0, mean = 0.0, shares = 0.0, squares = 0.0;
    for (Size s = 0; s < sampled; ++s) {
        nearest += sample[s].nearest;
        mean += sample[s].mean;
        shares += sample[s].rest_share;
        squares += static_cast<double>(sample[s].rest_share) * sample[s].rest_share;
    }
    const double share = shares / static_cast<double>(sampled);
    const double variance = squares / static_cast<double>(sampled) - share * share;
    const double weight = share - std::sqrt(variance > 0.0 ? variance : 0.0);
    return {weight > 0.0 ? static_cast<float>(weight) : 0.0f, mean > 0.0 ? static_cast<float>(nearest / mean) : 0.0f};
}

}  // namespace vicinal::VICINAL_LEVEL
