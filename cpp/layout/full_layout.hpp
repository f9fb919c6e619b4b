// Gradient descent of t-SNE on all rows at once: attraction along the graph, repulsion between all pairs, exact or
// from a grid. The formulas are in student_field.hpp, the step of a row in full_layout_task.hpp. The map is centered
// after each iteration, and the graph never changes.
//
// With a frozen reference the heads are unseen rows. Each has its own normalizer, the potential at its point, so that
// it does not depend on the others, and nothing is centered.
#pragma once

#include "base/parallel.hpp"
#include "layout/full_layout_task.hpp"

#include <vector>

namespace vicinal {

class FullLayout {
  public:
    // Copies the points [n][dim]. `reference` is null if the points repel each other; otherwise it is not copied.
    FullLayout(const Csr& graph, Matrix heads, Matrix reference, float dof);

    // Repulsion from all pairs.
    void step_exact(const FullStep* steps, Size n, ThreadTeam& team);
    // Repulsion from a potential at the nodes of a grid: the potential of the present points, or of the reference.
    void step_grid(const Grid& grid, const float* potential, const FullStep* steps, Size n, ThreadTeam& team);

    // Spreads unit masses at the sources of the repulsion onto a grid.
    void spread(const Grid& grid, float* density, ThreadTeam& team);
    // The smallest and largest coordinates of these sources.
    void bounds(float* low, float* high) const;

    Size epoch() const { return epoch_; }
    Matrix embedding() const { return {now_.places.data(), n_, dim_}; }

  private:
    struct State {
        std::vector<float> places, velocity, gain;
    };
    Matrix sources() const { return reference_.data != nullptr ? reference_ : embedding(); }
    void pad(const Csr& graph);
    void find_field(ThreadTeam& team);
    void advance(const FullStep& step, double own_potential, ThreadTeam& team);
    void move_rows(const FullStep& step, float normalizer, Size begin, Size end);
    void center(std::vector<float>& places) const;
    float normalizer(double own_potential) const;

    Size n_, dim_, epoch_ = 0;
    Matrix reference_;
    float dof_;
    std::vector<Size> start_;
    std::vector<Index> tails_;
    std::vector<float> weights_;
    // An iteration writes to next_, so an interrupted one has no effect.
    State now_, next_;
    std::vector<float> pull_, potential_, field_, columns_, shares_;
};

// Coordinates by component, padded to whole vectors with points so far away that their weight is 0.
struct SourceColumns {
    SourceColumns(Matrix places, std::vector<float>& memory);
    const float* data;
    Size stride;
};

}  // namespace vicinal
