// NN-descent (Dong, Moses, Li 2011): neighbors of neighbors are likely neighbors. In every round, a sample of each
// row's neighbors, new and old, forward and reverse, is compared with each other.
//
// It runs twice: from the leaves of the forest on the sketches, which are cheap to compare, and, unless the sketches
// are the rows, on the rows, from the best candidates of the first run.
//
// A hashed priority decides which neighbors a row samples. Samples are kept in sorted tables like the neighbors
// themselves, so they do not depend on the order of the threads.
#pragma once

#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/scratch.hpp"
#include "neighbors/join.hpp"
#include "neighbors/rp_forest.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE float priority(std::uint64_t key, Index i, Index j) {
    const auto pair = static_cast<std::uint64_t>(i) << 32 | static_cast<std::uint32_t>(j);
    return static_cast<float>(row_key(key, pair) >> 8);
}

inline void select_candidates(const NeighborHeap& heap, const CandidateTables& tables, const Index* order,
                              std::uint64_t key, ThreadTeam& team) {
    const auto each_neighbor = [&](Size i, const auto& body) {
        const HeapRow row = heap.row(i);
        for (Size e = 0; e < heap.k && row.holds(e); ++e) {
            const Index j = row.index(e);
            body(is_fresh(row.tag[e]) ? tables.fresh : tables.old, j, priority(key, static_cast<Index>(i), j));
        }
    };
    // First the neighbors of a row, which need no lock; many of the rows that list it are then refused without one.
    team.parallel_for(heap.rows, 256, [&](Size begin, Size end, int) {
        tables.fresh.clear(begin, end);
        tables.old.clear(begin, end);
        for (Size i = begin; i < end; ++i)
            each_neighbor(i, [&](const NeighborHeap& table, Index j, float rank) {
                if (rank <= table.bound(i)) push<true>(table, i, rank, j);
            });
    });
    team.parallel_for(heap.rows, 256, [&](Size begin, Size end, int) {
        for (Size at = begin; at < end; ++at)
            each_neighbor(order[at], [&](const NeighborHeap& table, Index j, float rank) {
                if (rank <= table.bound(j)) push(table, j, rank, order[at]);
            });
    });
    // Sampled entries are old from the next round on.
    team.parallel_for(heap.rows, 256, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            const HeapRow row = heap.row(i), chosen = tables.fresh.row(i);
            const Size last = tables.fresh.k - 1;
            for (Size e = 0; e < heap.k && row.holds(e); ++e) {
                const float rank = priority(key, static_cast<Index>(i), row.index(e));
                if (!precedes(chosen.rank[last], chosen.index(last), rank, row.index(e))) row.tag[e] &= ~1u;
            }
        }
    });
}

// Entries that are new since the last selection: the same for any number of threads.
inline Size count_fresh(const NeighborHeap& heap, ThreadTeam& team) {
    Size total = 0;
    team.parallel_for(heap.rows, 4096, [&](Size begin, Size end, int) {
        Size count = 0;
        for (Size e = begin * heap.stride; e < end * heap.stride; ++e) count += is_fresh(heap.tags[e]);
        __atomic_fetch_add(&total, count, __ATOMIC_RELAXED);
    });
    return total;
}

// `order` lists rows so that near ones are processed together and share the cache. `refresh` is called before every
// round and updates its limits. Pairs of the table `found`, if there is one, have been offered to `heap`.
template <class Rank, Source source, class Limit, class Refresh>
void descend(const SearchSpace& space, const NeighborHeap& heap, const NeighborHeap* found,
             const CandidateTables& tables, const Index* order, const DescentOptions& options, const Limit& limit,
             const Refresh& refresh, ThreadTeam& team) {
    Scratch<float> scratch(team.size() * join_scratch_floats(space.sketch_dim));
    Scratch<std::uint64_t> recent(team.size() * KnownPairs::slots);
    team.parallel_for(team.size() * KnownPairs::slots, KnownPairs::slots, [&](Size begin, Size end, int) {
        std::memset(recent.data() + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(std::uint64_t));
    });
    for (Size round = 0; round < options.rounds; ++round) {
        const std::uint64_t key = stream_key(options.seed, Stream::candidates, static_cast<std::uint64_t>(round));
        refresh();
        select_candidates(heap, tables, order, key, team);
        team.parallel_for(heap.rows, 64, [&](Size begin, Size end, int worker) {
            const KnownPairs known(recent.data() + worker * KnownPairs::slots, found);
            Join<Rank, source, Limit> join(space, heap, limit,
                                           scratch.data() + worker * join_scratch_floats(space.sketch_dim), &known);
            Index ids[most_tails];
            for (Size at = begin; at < end; ++at) {
                const Size i = order[at];
                Size n = 0;
                for (Size e = 0; e < tables.fresh.k && tables.fresh.row(i).holds(e); ++e)
                    ids[n++] = tables.fresh.row(i).index(e);
                const Size n_fresh = n;
                for (Size e = 0; e < tables.old.k && tables.old.row(i).holds(e); ++e)
                    ids[n++] = tables.old.row(i).index(e);
                if (!Limit::final && at + 1 < end) {
                    const HeapRow next = tables.fresh.row(order[at + 1]);
                    for (Size e = 0; e < tables.fresh.k && next.holds(e); ++e) prefetch_row(space, next.index(e));
                }
                join.run(ids, n_fresh, ids, n, true);
            }
        });
        if (static_cast<double>(count_fresh(heap, team)) < options.enough * static_cast<double>(heap.rows * heap.k))
            break;
    }
}

// The neighbors by sketch: nodes of the forest, then rounds of NN-descent.
template <class Rank>
void descend_sketches(const SearchSpace& space, const NeighborHeap& heap, const CandidateTables& tables,
                      const ForestView& forest, Size level, const RowNumbers& numbers, const DescentOptions& options,
                      ThreadTeam& team) {
    using SketchJoin = Join<Rank, Source::plain, SketchLimit>;
    const SketchLimit limit{heap};
    Scratch<float> scratch(team.size() * join_scratch_floats(space.sketch_dim));
    const Size most_rows = (forest.rows >> level) + 1;
    Scratch<Index> rows(team.size() * most_rows);
    for (Size tree = 0; tree < forest.trees; ++tree)
        team.parallel_for(Size{1} << level, 1, [&](Size begin, Size end, int worker) {
            SketchJoin join(space, heap, limit, scratch.data() + worker * join_scratch_floats(space.sketch_dim));
            for (Size node = begin; node < end; ++node) {
                const Size first = forest.begin_of(level, node), n = forest.begin_of(level, node + 1) - first;
                Index* own = rows.data() + worker * most_rows;
                for (Size j = 0; j < n; ++j) own[j] = numbers.places[forest.order[tree * forest.rows + first + j]];
                join.run_owned(own, n);
            }
        });
    descend<Rank, Source::plain>(space, heap, nullptr, tables, numbers.order, options, limit, [] {}, team);
}

// Ranks the neighbors by sketch again by the rows themselves, every pair once, and offers them to both rows; the best k
// of a row are kept and marked as new.
template <class Rank, Source source>
void rank_again(const SearchSpace& space, const NeighborHeap& found, const NeighborHeap& heap, const Index* order,
                ThreadTeam& team) {
    team.parallel_for(heap.rows, 64, [&](Size begin, Size end, int) {
        for (Size at = begin; at < end; ++at) {
            const Index i = order[at];
            const HeapRow row = found.row(i);
            for (Size e = 0; e < found.k && row.holds(e); ++e) {
                const Index j = row.index(e);
                if (e + 1 < found.k && row.holds(e + 1)) prefetch_row(space, row.index(e + 1));
                if (i < j || !lists(found, j, i)) offer_pair(heap, i, j, rank_rows<Rank, source>(space, i, j));
            }
        }
    });
}

// The share of a neighbor's rank that its sketch shows: mean plus one standard deviation over the neighbors of a
// sample of rows. A pair whose sketch exceeds this share of a row's k-th rank is unlikely to be a neighbor. (The mean
// alone saves 4 % of the search of 70,000 images and loses 0.008 of the recall.)
template <class Rank>
float sketch_share(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team) {
    constexpr Size sample_rows = 2048;
    const Size step = heap.rows / sample_rows + 1, sampled = (heap.rows + step - 1) / step;
    Scratch<double> shares(sampled * heap.k);  // -1 where there is none
    team.parallel_for(sampled, 64, [&](Size begin, Size end, int) {
        for (Size s = begin; s < end; ++s)
            for (Size e = 0; e < heap.k; ++e) {
                const HeapRow row = heap.row(s * step);
                const float rank = row.holds(e) ? row.rank[e] : 0.0f;
                shares[s * heap.k + e] =
                    rank > 0.0f ? rank_sketches<Rank>(space, s * step, row.index(e)) / static_cast<double>(rank) : -1.0;
            }
    });
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (Size e = 0; e < sampled * heap.k; ++e) {
        if (shares[e] < 0.0) continue;
        n += 1.0;
        sum += shares[e];
        squares += shares[e] * shares[e];
    }
    if (n == 0.0) return 1.0f;
    const double mean = sum / n, variance = squares / n - mean * mean;
    return static_cast<float>(mean + std::sqrt(variance > 0.0 ? variance : 0.0));
}

// Adds random rows to the candidates, because a metric function may be unrelated to the sketches.
template <class Rank, Source source>
void add_random_rows(const SearchSpace& space, const NeighborHeap& heap, std::uint64_t seed, ThreadTeam& team) {
    constexpr std::uint32_t random_rows = 4;
    const std::uint64_t key = stream_key(seed, Stream::candidates, ~std::uint64_t{0});
    team.parallel_for(heap.rows, 64, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            const std::uint32_t own = row_key(key, static_cast<std::uint64_t>(i));
            for (std::uint32_t e = 0; e < random_rows; ++e) {
                const auto j = static_cast<Index>(below(draw32(own, e), static_cast<std::uint32_t>(heap.rows)));
                if (j != i) push(heap, i, rank_rows<Rank, source>(space, i, j), j);
            }
        }
    });
}

// The largest sketch rank among the neighbors of a row: pairs beyond it are not evaluated. If the metric is unrelated
// to the sketches, random rows make this limit so large that nothing is rejected.
template <class Rank>
float farthest_sketch(const SearchSpace& space, const NeighborHeap& heap, Size i) {
    float farthest = 0.0f;
    for (Size e = 0; e < heap.k && heap.row(i).holds(e); ++e) {
        const float rank = rank_sketches<Rank>(space, i, heap.row(i).index(e));
        farthest = rank > farthest ? rank : farthest;
    }
    return farthest;
}

// Rounds on the rows themselves. Returns the share (sketch_share), which later queries use too.
template <class Rank, Source source>
float descend_rows(const SearchSpace& space, const NeighborHeap& found, const NeighborHeap& heap,
                   const CandidateTables& tables, const Index* order, const DescentOptions& options, ThreadTeam& team) {
    rank_again<Rank, source>(space, found, heap, order, team);
    if (source == Source::pairs) add_random_rows<Rank, source>(space, heap, options.seed, team);
    const float share = source == Source::pairs ? 1.0f : sketch_share<Rank>(space, heap, team);
    Scratch<float> limit(heap.rows);
    const auto refresh = [&] {
        team.parallel_for(heap.rows, 1024, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i)
                limit[i] = source == Source::pairs ? farthest_sketch<Rank>(space, heap, i)
                                                   : share * heap.bound(i) + space.product_slack;
        });
    };
    descend<Rank, source>(space, heap, &found, tables, order, options, FixedLimit{limit.data()}, refresh, team);
    if (source == Source::pairs || space.rest_weight == 0.0f) return share;
    SearchSpace plain = space;
    plain.rest_weight = 0.0f;
    return sketch_share<Rank>(plain, heap, team);
}

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

// Neighbors in data without structure, such as noise in hundreds of dimensions. Neither trees nor neighbors of
// neighbors lead anywhere there, but the rows nearest to the mean are neighbors of most others (hubness; Radovanovic,
// Nanopoulos, Ivanovic 2010): for 50,000 rows of 500 normal numbers, a twentieth of the rows holds 0.6 of all
// neighbors. So every row is compared with central rows, by sketches first, the most central ones before the others.
// A part of 128 (central_part) finds 0.29 of these neighbors in 1.55 s, one of 64 0.38 in 1.95 s; pynndescent 0.19
// in 1.86 s.
//
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
