// Random-projection trees over the sketches: a node is split at the median along the difference of two of its rows, so
// all leaves of a level have the same size, and a tree is two arrays. The first columns of a sketch, which have the
// largest variance, are enough for the splits.
#pragma once

#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/scratch.hpp"
#include "base/select.hpp"
#include "neighbors/metric.hpp"
#include "neighbors/search_space.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE Size split_width(const SearchSpace& space) {
    return space.sketch_stride < split_columns ? space.sketch_stride : split_columns;
}

struct Projected {
    float value;
    Index row;
};

// `columns` is a multiple of 16.
VICINAL_INLINE float dot(const float* x, const float* y, Size columns) {
    Float sum[parts] = {};
    for (Size k = 0; k < columns; k += block_lanes)
        for (int p = 0; p < parts; ++p)
            sum[p] = multiply_add(load<Float>(x + k + p * lanes), load<Float>(y + k + p * lanes), sum[p]);
    alignas(64) float lane[block_lanes];
    std::memcpy(lane, sum, sizeof lane);
    for (int width = block_lanes / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
    return lane[0];
}

class TreeGrower {
  public:
    TreeGrower(const SearchSpace& space, const ForestView& forest, std::uint64_t seed)
        : space_(space), forest_(forest), key_(stream_key(seed, Stream::forest)) {}

    void split(Size tree, Size level, Size position, Scratch<Projected>& projected, float* normal) const {
        const Size begin = forest_.begin_of(level, position), end = forest_.begin_of(level, position + 1);
        const Size middle = forest_.begin_of(level + 1, 2 * position + 1), n = end - begin;
        Index* order = forest_.order + tree * forest_.rows;
        const Size node = tree * forest_.nodes() + (Size{1} << level) - 1 + position;
        const std::uint32_t key = row_key(key_, static_cast<std::uint64_t>(node));

        const auto first = static_cast<Size>(below(draw32(key, 0), static_cast<std::uint32_t>(n)));
        const auto other = static_cast<Size>(below(draw32(key, 1), static_cast<std::uint32_t>(n - 1)));
        const Index a = order[begin + first], b = order[begin + other + (other >= first ? 1 : 0)];
        const Size width = split_width(space_);
        for (Size k = 0; k < width; ++k) normal[k] = space_.sketch_row(a)[k] - space_.sketch_row(b)[k];
        for (Size i = 0; i < n; ++i) {
            const Index row = order[begin + i];
            if (i + ahead < n) prefetch(space_.sketch_row(order[begin + i + ahead]), width * Size{sizeof(float)});
            projected[i] = {dot(space_.sketch_row(row), normal, width), row};
        }
        const auto before = [](const Projected& x, const Projected& y) {
            return x.value < y.value || (x.value == y.value && x.row < y.row);
        };
        select_nth(projected.data(), projected.data() + (middle - begin), projected.data() + n, before);
        for (Size i = 0; i < n; ++i) order[begin + i] = projected[i].row;
        forest_.pairs[2 * node] = a;
        forest_.pairs[2 * node + 1] = b;
        forest_.threshold[node] = projected[middle - begin].value;
    }

  private:
    static constexpr Size ahead = 16;  // sketches that are prefetched

    const SearchSpace& space_;
    const ForestView& forest_;
    const std::uint64_t key_;
};

inline void grow_forest(const SearchSpace& space, std::uint64_t seed, const ForestView& forest, ThreadTeam& team) {
    for (Size tree = 0; tree < forest.trees; ++tree)
        for (Size i = 0; i < forest.rows; ++i) forest.order[tree * forest.rows + i] = static_cast<Index>(i);
    const TreeGrower grower(space, forest, seed);
    for (Size level = 0; level < forest.depth; ++level) {
        const Size nodes = Size{1} << level;
        team.parallel_for(forest.trees * nodes, std::max<Size>(1, nodes / 64), [&](Size begin, Size end, int) {
            Scratch<Projected> projected((forest.rows >> level) + 2);
            Scratch<float> normal(split_width(space));
            for (Size task = begin; task < end; ++task)
                grower.split(task / nodes, level, task % nodes, projected, normal.data());
        });
    }
}

// The leaf whose region contains a sketch.
VICINAL_INLINE Size find_leaf(const SearchSpace& space, const ForestView& forest, Size tree, const float* sketch,
                              float* normal) {
    Size position = 0;
    const Size width = split_width(space);
    for (Size level = 0; level < forest.depth; ++level) {
        const Size node = tree * forest.nodes() + (Size{1} << level) - 1 + position;
        const float* a = space.sketch_row(forest.pairs[2 * node]);
        const float* b = space.sketch_row(forest.pairs[2 * node + 1]);
        for (Size k = 0; k < width; ++k) normal[k] = a[k] - b[k];
        const bool right = dot(sketch, normal, width) >= forest.threshold[node];
        position = 2 * position + (right ? 1 : 0);
    }
    return position;
}

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

// Measures a few nodes of the first tree before the data is searched: some rows are compared in full with all rows of
// their node.
//
// The rest of a row is what its sketch leaves out. Two neighbors differ there by a share of the sum of both squared
// lengths, which is 1 if the rests are unrelated, and 0 if neighbors agree in them. The weight of the rests in an
// estimate is the mean of this share minus one standard deviation: an estimate that is too large favors short rows.
//
// The contrast is the rank of the nearest row over the mean rank. It approaches 1 in data without structure.
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
