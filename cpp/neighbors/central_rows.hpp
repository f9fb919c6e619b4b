// Neighbors in data without structure, such as noise in hundreds of dimensions. Neither trees nor neighbors of
// neighbors lead anywhere there, but the rows nearest to the mean are neighbors of most others (hubness; Radovanovic,
// Nanopoulos, Ivanovic 2010): for 50,000 rows of 500 normal numbers, a twentieth of the rows holds 0.6 of all
// neighbors. So every row is compared with central rows, by sketches first, the most central ones before the others.
// A part of 128 finds 0.29 of these neighbors in 1.55 s, one of 64 0.38 in 1.95 s; pynndescent 0.19 in 1.86 s.
#pragma once

#include "neighbors/nn_descent.hpp"

#include <algorithm>

namespace vicinal::VICINAL_LEVEL {

constexpr Size central_part = 128, most_central_rows = 4096;

// The rows nearest to the mean, in this order.
inline Size find_central_rows(const SearchSpace& space, Scratch<Index>& central, ThreadTeam& team) {
    struct Length {
        float length2;
        Index row;
    };
    const Size n = space.rows.rows,
               count = std::min(n, std::max(most_tails, std::min(n / central_part, most_central_rows)));
    Scratch<Length> lengths(n);
    team.parallel_for(n, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            lengths[i] = {dot(space.sketch_row(i), space.sketch_row(i), space.sketch_stride) + space.rest[i],
                          static_cast<Index>(i)};
    });
    std::partial_sort(lengths.data(), lengths.data() + count, lengths.data() + n,
                      [](const Length& x, const Length& y) { return precedes(x.length2, x.row, y.length2, y.row); });
    central.resize(count);
    for (Size c = 0; c < count; ++c) central[c] = lengths[c].row;
    return count;
}

// Returns the share of a neighbor's rank that its sketch shows, for later queries.
template <class Rank, Source source>
float compare_central(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team) {
    const Size n = heap.rows;
    Scratch<Index> central, ids(n);
    const Size count = find_central_rows(space, central, team);
    for (Size i = 0; i < n; ++i) ids[i] = static_cast<Index>(i);
    Scratch<float> limit(n), scratch(team.size() * join_scratch_floats(space.sketch_dim));
    for (Size i = 0; i < n; ++i) limit[i] = no_rank;
    // Limits are fixed for a pass, and each pass compares as many rows as all before it.
    for (Size from = 0, to = most_tails; from < count; from = to, to = std::min(2 * to, count)) {
        if (from > 0) {
            const float share = sketch_share<Rank>(space, heap, team);
            for (Size i = 0; i < n; ++i) limit[i] = share * heap.worst[i] + space.product_slack;
        }
        team.parallel_for(n, most_tails, [&](Size begin, Size end, int worker) {
            Join<Rank, source, FixedLimit> join(space, heap, FixedLimit{limit.data()},
                                                scratch.data() + worker * join_scratch_floats(space.sketch_dim));
            for (Size tails = from; tails < to; tails += most_tails)
                join.run(ids.data() + begin, end - begin, central.data() + tails, std::min(most_tails, to - tails),
                         false);
        });
    }
    SearchSpace plain = space;
    plain.rest_weight = 0.0f;
    return sketch_share<Rank>(plain, heap, team);
}

}  // namespace vicinal::VICINAL_LEVEL
