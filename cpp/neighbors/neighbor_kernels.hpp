// Hot code of the neighbor searches, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "neighbors/search_space.hpp"
#include "neighbors/sparse_index.hpp"

namespace vicinal {

struct NeighborKernels {
    // Rows and their sketches.
    void (*prepare_rows)(const RowMatrix& rows, Preparation preparation, RowScale* out, ThreadTeam& team);
    bool (*write_bytes)(Matrix rows, std::uint8_t* out, ThreadTeam& team);
    void (*write_coarse)(const float* sketch, Size n, float unit, std::uint8_t* out, ThreadTeam& team);
    void (*fit_sketch)(const SearchSpace& space, std::uint64_t seed, const SketchBasis& out, ThreadTeam& team);
    void (*project)(const SearchSpace& space, const SketchBasis& basis, float* out, float* length2, float* rest,
                    ThreadTeam& team);

    // NeighborIndex.
    void (*grow_forest)(const SearchSpace& space, std::uint64_t seed, const ForestView& forest, ThreadTeam& team);
    void (*compare_all)(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team);
    NodeSample (*sample_nodes)(const SearchSpace& space, const ForestView& forest, Size level, ThreadTeam& team);
    float (*compare_central)(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team);
    void (*descend_sketches)(const SearchSpace& space, const NeighborHeap& heap, const CandidateTables& tables,
                             const ForestView& forest, Size level, const RowNumbers& numbers,
                             const DescentOptions& options, ThreadTeam& team);
    float (*descend_rows)(const SearchSpace& space, const NeighborHeap& found, const NeighborHeap& heap,
                          const CandidateTables& tables, const Index* order, const DescentOptions& options,
                          ThreadTeam& team);
    void (*query)(const SearchSpace& space, const ForestView& forest, const QueryTask& task, ThreadTeam& team);

    // OnlineNeighbors.
    void (*explore)(const OnlineView& view, const Exploration& task, ThreadTeam& team);
    void (*compare_chunk)(const OnlineView& view, Size listed, const Index* rows, Size n);
    void (*accept)(const OnlineView& view, Size listed, const Offer* offers, Size n, Outcome* out);
    void (*insert_rows)(const SearchSpace& space, OnlineForest& forest, Size begin, Size end, const Index* above,
                        ThreadTeam& team);
    float (*sketch_share)(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team);

    // Metrics that are sums over the columns of a pair (pair_terms.hpp), and SparseIndex.
    float (*rank_dense)(const float* x, const float* y, const PairRule& rule);
    float (*rank_bits)(const std::uint8_t* x, const std::uint8_t* y, const PairRule& rule);
    float (*rank_sparse)(const SparseView& heads, Size head, const SparseView& tails, Size tail, const PairRule& rule);
    void (*sparse_nearest)(const Postings& postings, const SparseTask& task, ThreadTeam& team);
    void (*sum_alone)(const SparseView& rows, const PairRule& rule, double* out, ThreadTeam& team);
};

VICINAL_KERNELS(NeighborKernels, neighbor_kernels)

}  // namespace vicinal
