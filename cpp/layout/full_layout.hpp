// Gradient descent of t-SNE on all rows at once: attraction along the graph, repulsion between all pairs, exact or
// from a grid. Formulas are in student_field.hpp. An iteration with momentum m, rate eta and exaggeration x moves
//
//   gain     <- gain + 0.2 where velocity and gradient do not point the same way, else 0.8 gain + 0.01
//   velocity <- m velocity - eta gain gradient, shortened to at most 5
//   y        <- y + velocity, then centred
//
// the gradient's attractive part being multiplied by x; the graph itself never changes. With a frozen reference the
// rows are new ones: each has a normaliser of its own, the potential at its place, so that it knows nothing of the
// others, and nothing is centred.
#pragma once

#include "base/parallel.hpp"
#include "layout/full_layout_task.hpp"

#include <vector>

namespace vicinal {

struct FullStep {
    float exaggeration;
    float learning_rate;
    float momentum;
};

class FullLayout {
  public:
    // Places [n][dim] are copied. `reference` is null when the rows repel each other; otherwise it is not copied.
    FullLayout(const Csr& graph, Matrix heads, Matrix reference, float dof);

    // Repulsion by every pair.
    void step_exact(const FullStep* steps, Size n, ThreadTeam& team);
    // Repulsion from a potential at the nodes of a grid: that of the present places, or of the reference.
    void step_grid(const Grid& grid, const float* potential, const FullStep* steps, Size n, ThreadTeam& team);

    // Unit masses at the sources of the repulsion, spread onto a grid.
    void spread(const Grid& grid, float* density, ThreadTeam& team);
    // The least and the greatest coordinates of those sources.
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
    void move_rows(const FullStep& step, float normaliser, Size begin, Size end);
    void centre(std::vector<float>& places) const;
    float normaliser(double own_potential) const;

    Size n_, dim_, epoch_ = 0;
    Matrix reference_;
    float dof_;
    std::vector<Size> start_;
    std::vector<Index> tails_;
    std::vector<float> weights_;
    // An iteration writes to next_, so that an interrupted one leaves no trace.
    State now_, next_;
    std::vector<float> pull_, potential_, field_, columns_, shares_;
};

// Coordinates by column, padded to whole vectors with places so far away that they weigh nothing.
struct SourceColumns {
    SourceColumns(Matrix places, std::vector<float>& memory);
    const float* data;
    Size stride;
};

}  // namespace vicinal
