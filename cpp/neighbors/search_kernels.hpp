// Hot code of NeighborIndex, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "neighbors/search_space.hpp"

namespace vicinal {

struct SearchKernels {
    void (*prepare_rows)(Matrix rows, Preparation preparation, RowScale* out, ThreadTeam& team);
    bool (*write_bytes)(Matrix rows, std::uint8_t* out, ThreadTeam& team);
    void (*write_coarse)(const float* sketch, Size n, float unit, std::uint8_t* out, ThreadTeam& team);
    void (*fit_sketch)(const SearchSpace& space, std::uint64_t seed, const SketchBasis& out, ThreadTeam& team);
    void (*project)(const SearchSpace& space, const SketchBasis& basis, float* out, float* length2, float* rest,
                    ThreadTeam& team);
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
};

VICINAL_KERNELS(SearchKernels, search_kernels)

}  // namespace vicinal
