// A layout as it is shown: the rows that have edges move, components are turned back as they started, and rows without
// edges are put around the others. The same as src/vicinal/layout/surroundings.py, with the same bits.
#pragma once

#include "initialize/components.hpp"
#include "layout/full_layout.hpp"
#include "layout/sampled_layout.hpp"
#include "wasm/calls.hpp"

namespace vicinal::wasm {

// The numbers of a layout, as JavaScript passes them.
struct LayoutSettings {
    double a, b, repulsion_strength;
    double negatives, update_negatives;
    double firings_per_sweep, single_sweeps, longest_push;
    double largevis;  // 1: the forces of LargeVis, 0: of UMAP
    double pulls, heaviest, seed;
    double most_turned_rows;  // maps of more rows are not turned back
};

LayoutOptions options_of(const LayoutSettings& settings);

// The rows of a graph that have edges, with its edges among them.
class LinkedRows {
  public:
    explicit LinkedRows(const EdgeList& graph);

    const EdgeList& graph() const { return rows_.empty() ? all_ : linked_; }
    std::vector<float> take(const float* values, Size columns) const;
    // Writes the places of all rows: of the linked ones as given, of the others around them.
    void spread(Matrix places, float* out) const;

  private:
    const EdgeList& all_;
    EdgeList linked_;
    std::vector<Index> rows_;  // empty if all rows have edges
};

// The component of each row, and where its rows started relative to their mean.
class Orientation {
  public:
    Orientation() = default;
    Orientation(const EdgeList& graph, Matrix start, ThreadTeam& team);

    // Turns every component about its mean as close to its start as possible.
    void restore(float* places) const;

  private:
    std::vector<double> means(const float* places) const;

    std::vector<Index> component_;  // empty if nothing is turned
    std::vector<double> start_;
    Size count_ = 0;
};

class MapLayout {
  public:
    MapLayout(const EdgeList& graph, const float* places, Size dim, const LayoutSettings& settings, ThreadTeam& team);

    void step(const float* rates, Size sweeps, ThreadTeam& team) { layout_->step({rates, sweeps, 1}, team); }
    void places(float* out) const;
    void weigh_negatives(const float* pushes);
    void add_density(const float* target, const DensityOptions& options);

  private:
    EdgeList graph_;
    LinkedRows linked_;
    Orientation orientation_;
    std::unique_ptr<SampledLayout> layout_;
};

class TsneLayout {
  public:
    TsneLayout(const EdgeList& graph, const float* places, Size dim, float dof);

    void step(const FullStep* steps, Size n, ThreadTeam& team) { layout_->step_exact(steps, n, team); }
    void places(float* out) const { linked_.spread(layout_->embedding(), out); }

  private:
    EdgeList graph_;
    LinkedRows linked_;
    std::unique_ptr<FullLayout> layout_;
};

}  // namespace vicinal::wasm
