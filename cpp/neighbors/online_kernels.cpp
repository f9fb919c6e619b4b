// Compiled once per level with VICINAL_LEVEL set.
#include "neighbors/online_kernels.hpp"

#include "neighbors/nn_descent.hpp"
#include "neighbors/online_search.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

void explore_any(const OnlineView& view, const Exploration& task, ThreadTeam& team) {
    with_ranking(view.space, [&]<class Rank, Source source>() {
        team.parallel_for(task.n, 1, [&](Size begin, Size end, int) {
            Explorer<Rank, source> explorer(view, task);
            for (Size at = begin; at < end; ++at) explorer.run(at);
        });
    });
}

void compare_chunk_any(const OnlineView& view, Size listed, const Index* rows, Size n) {
    with_ranking(view.space, [&]<class Rank, Source source>() { compare_chunk<Rank, source>(view, listed, rows, n); });
}

void accept(const OnlineView& view, Size listed, const Offer* offers, Size n, Outcome* out) {
    for (Size e = 0; e < n; ++e) {
        const Offer& offer = offers[e];
        if (e + 4 < n) prefetch(view.heap.row(offers[e + 4].row).rank, view.heap.k * static_cast<Size>(sizeof(float)));
        const HeapRow row = view.heap.row(offer.row);
        const Size at = find_place(row, view.heap.k, offer.rank, offer.candidate);
        const bool taken = insert_sorted(row, view.heap.k, offer.rank, offer.candidate);
        out[e] = !taken ? Outcome::refused : at < listed ? Outcome::listed : Outcome::spare;
        view.heap.worst[offer.row] = row.rank[listed - 1];
    }
}

// All trees get all rows: an interrupt waits.
void insert_rows(const SearchSpace& space, OnlineForest& forest, Size begin, Size end, const Index* above,
                 ThreadTeam& team) {
    team.parallel_for_whole(forest.trees, 1, [&](Size first, Size last, int) {
        ForestBuilder builder(space, forest);
        for (Size tree = first; tree < last; ++tree)
            for (Size row = begin; row < end; ++row) {
                const Index* nodes = above == nullptr ? nullptr : above + (row - begin) * forest.trees;
                builder.insert(static_cast<Index>(row), nodes == nullptr ? tree : nodes[tree]);
            }
    });
}

float sketch_share_any(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team) {
    float share = 1.0f;
    with_ranking(space, [&]<class Rank, Source source>() {
        if (source != Source::pairs && !space.sketch_exact) share = sketch_share<Rank>(space, heap, team);
    });
    return share;
}

}  // namespace

const OnlineKernels online_kernels{
    .explore = explore_any,
    .compare_chunk = compare_chunk_any,
    .accept = accept,
    .insert_rows = insert_rows,
    .sketch_share = sketch_share_any,
};

}  // namespace vicinal::VICINAL_LEVEL
