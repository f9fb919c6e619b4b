// The hot code as a table of functions, compiled once for every instruction-set level (kernels_*.cpp) and
// chosen when it is first used. VICINAL_LEVEL in the environment forces a level: v2, v3, v4 or native.
#pragma once

#include "chebyshev.hpp"
#include "density_task.hpp"
#include "full_layout_task.hpp"
#include "layout_task.hpp"
#include "loss_sums.hpp"
#include "parallel.hpp"
#include "search_space.hpp"
#include "sparse_index.hpp"

namespace vicinal {

// online_task.hpp
struct OnlineView;
struct OnlineForest;
struct Exploration;
struct Offer;
enum class Outcome : std::uint8_t;

struct Kernels {
    // Neighbours
    void (*prepare_rows)(Matrix rows, Preparation preparation, RowScale* out, ThreadTeam& team);
    void (*fit_sketch)(const SearchSpace& space, std::uint64_t seed, const SketchBasis& out, ThreadTeam& team);
    void (*project)(const SearchSpace& space, const SketchBasis& basis, float* out, float* length2, ThreadTeam& team);
    void (*grow_forest)(const SearchSpace& space, std::uint64_t seed, const ForestView& forest, ThreadTeam& team);
    void (*compare_all)(const SearchSpace& space, const NeighborHeap& heap, ThreadTeam& team);
    void (*descend_sketches)(const SearchSpace& space, const NeighborHeap& heap, const CandidateTables& tables,
                             const ForestView& forest, const DescentOptions& options, ThreadTeam& team);
    float (*descend_rows)(const SearchSpace& space, const NeighborHeap& found, const NeighborHeap& heap,
                          const CandidateTables& tables, const Index* order, const DescentOptions& options,
                          ThreadTeam& team);
    void (*query)(const SearchSpace& space, const ForestView& forest, const QueryTask& task, ThreadTeam& team);
    // Neighbours of rows that keep coming
    void (*explore)(const OnlineView& view, const Exploration& task, ThreadTeam& team);
    void (*meet)(const OnlineView& view, Size listed, const Index* rows, Size n);
    void (*accept)(const OnlineView& view, Size listed, const Offer* offers, Size n, Outcome* out);
    void (*plant)(const SearchSpace& space, std::uint64_t seed, OnlineForest& forest, Size begin, Size end,
                  const Index* above);
    float (*sketch_share)(const SearchSpace& space, const NeighborHeap& heap);
    // Pairs of rows by sums over their columns
    float (*rank_dense)(const float* x, const float* y, const PairRule& rule);
    void (*sparse_nearest)(const Postings& postings, const SparseTask& task, ThreadTeam& team);
    void (*sum_alone)(const SparseView& rows, const PairRule& rule, double* out, ThreadTeam& team);
    // Spectral start
    void (*chebyshev_step)(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step,
                           float* next, ThreadTeam& team);
    // Layout
    void (*layout_epoch)(const LayoutTask& task, const LayoutEpoch& epoch, const LayoutLaw& law,
                         const LayoutScratch* scratch, ThreadTeam& team);
    void (*density_measure)(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                            ThreadTeam& team);
    void (*density_move)(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                         ThreadTeam& team);
    void (*force_table)(const ForceParameters& force, const float* d2, Size n, float* attract, float* repel);
    void (*space_table)(const SpaceParameters& space, Matrix heads, Matrix tails, float* d2, float* delta);
    // Losses
    void (*sum_costs)(const PairPlaces& places, const PairQuantity& quantity, double* out, ThreadTeam& team);
    void (*sum_forces)(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads, double* out,
                       ThreadTeam& team);
    void (*sum_edge_costs)(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads,
                           const Csr& graph, double* out, ThreadTeam& team);
    void (*sum_edge_forces)(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads,
                            const Csr& graph, double* out, ThreadTeam& team);
    void (*sum_draws)(const PairPlaces& places, const PairQuantity& quantity, const PairDraws& draws,
                      const PairEstimate& out, ThreadTeam& team);
    // Full layout
    void (*attract)(const AttractTask& task, ThreadTeam& team);
    void (*student_field)(const FieldTask& task, ThreadTeam& team);
    void (*grid_spread)(const Grid& grid, const float* points, Size n, float* shares, float* out, ThreadTeam& team);
    void (*grid_gather)(const Grid& grid, const float* nodes, const float* points, Size n, float* potential,
                        float* field, ThreadTeam& team);
};

struct Level {
    const char* name;
    bool available;
    Kernels kernels;
};

// Every level compiled into this build, best last.
const Level* levels(Size& count);

// The level in use: forced by the environment, or the best the processor has.
const Level& active_level();
inline const Kernels& kernels() { return active_level().kernels; }

}  // namespace vicinal
