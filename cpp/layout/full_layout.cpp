#include "layout/full_layout.hpp"

#include "layout/layout_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace vicinal {

namespace {

Size whole(Size n) { return (n + sum_lanes - 1) / sum_lanes * sum_lanes; }

}  // namespace

SourceColumns::SourceColumns(Matrix places, std::vector<float>& memory) : stride(whole(places.rows)) {
    memory.resize(static_cast<std::size_t>(stride * places.cols));
    for (Size c = 0; c < places.cols; ++c) {
        float* column = memory.data() + c * stride;
        for (Size j = 0; j < places.rows; ++j) column[j] = places.row(j)[c];
        std::fill(column + places.rows, column + stride, far_away);
    }
    data = memory.data();
}

FullLayout::FullLayout(const Csr& graph, Matrix heads, Matrix reference, float dof)
    : n_(heads.rows), dim_(heads.cols), reference_(reference), dof_(dof) {
    if (graph.rows != heads.rows) throw std::invalid_argument("graph and embedding differ in their rows");
    for (Size e = 0; e < graph.indptr[graph.rows]; ++e)
        if (graph.indices[e] < 0 || graph.indices[e] >= sources().rows) throw std::invalid_argument("a tail is no row");
    now_.places.assign(heads.data, heads.data + n_ * dim_);
    now_.velocity.assign(now_.places.size(), 0.0f);
    now_.gain.assign(now_.places.size(), 1.0f);
    next_ = now_;
    pull_.resize(now_.places.size());
    field_.resize(now_.places.size());
    potential_.resize(static_cast<std::size_t>(n_));
    pad(graph);
}

// Padding has weight 0 and tail 0.
void FullLayout::pad(const Csr& graph) {
    start_.resize(static_cast<std::size_t>(n_ + 1));
    for (Size i = 0; i < n_; ++i) start_[i + 1] = start_[i] + whole(graph.indptr[i + 1] - graph.indptr[i]);
    tails_.assign(static_cast<std::size_t>(start_[n_]), 0);
    weights_.assign(tails_.size(), 0.0f);
    for (Size i = 0; i < n_; ++i) {
        std::copy(graph.indices + graph.indptr[i], graph.indices + graph.indptr[i + 1], tails_.begin() + start_[i]);
        std::copy(graph.weights + graph.indptr[i], graph.weights + graph.indptr[i + 1], weights_.begin() + start_[i]);
    }
}

void FullLayout::step_exact(const FullStep* steps, Size n, ThreadTeam& team) {
    for (Size t = 0; t < n; ++t) {
        find_field(team);
        advance(steps[t], 0.0, team);
    }
}

void FullLayout::step_grid(const Grid& grid, const float* potential, const FullStep* steps, Size n, ThreadTeam& team) {
    if (reference_.data == nullptr && n > 1) throw std::invalid_argument("a potential is valid for one iteration only");
    for (Size t = 0; t < n; ++t) {
        layout_kernels().grid_gather(grid, potential, now_.places.data(), n_, potential_.data(), field_.data(), team);
        // A grid does not separate a row from the others: the potential includes w(0) = 1 of the row itself.
        advance(steps[t], 1.0, team);
    }
}

void FullLayout::spread(const Grid& grid, float* density, ThreadTeam& team) {
    shares_.resize(static_cast<std::size_t>(spread_shares * grid.size()));
    layout_kernels().grid_spread(grid, sources().data, sources().rows, shares_.data(), density, team);
}

void FullLayout::bounds(float* low, float* high) const {
    const Matrix places = sources();
    // Blocks of rows, so that the compiler compares whole vectors.
    const Size block = std::min<Size>(sum_lanes, places.rows), width = block * dim_;
    std::vector<float> least(places.data, places.data + width), most = least;
    const auto compare = [&](const float* values) {
        for (Size k = 0; k < width; ++k) least[k] = std::min(least[k], values[k]);
        for (Size k = 0; k < width; ++k) most[k] = std::max(most[k], values[k]);
    };
    for (Size i = 0; i + block <= places.rows && block > 0; i += block) compare(places.row(i));
    if (block > 0) compare(places.row(places.rows - block));
    for (Size c = 0; c < dim_; ++c) low[c] = high[c] = block > 0 ? least[c] : 0.0f;
    for (Size k = 0; k < width; ++k) {
        low[k % dim_] = std::min(low[k % dim_], least[k]);
        high[k % dim_] = std::max(high[k % dim_], most[k]);
    }
}

void FullLayout::find_field(ThreadTeam& team) {
    const SourceColumns columns(sources(), columns_);
    layout_kernels().student_field({columns.data, sources().rows, columns.stride, now_.places.data(), n_, dim_,
                                    reference_.data == nullptr, dof_, potential_.data(), field_.data()},
                                   team);
}

float FullLayout::normalizer(double own) const {
    double z = 0.0;
    for (const float phi : potential_) z += phi - own;
    return static_cast<float>(std::max(z, static_cast<double>(smallest_normalizer)));
}

void FullLayout::advance(const FullStep& step, double own_potential, ThreadTeam& team) {
    layout_kernels().attract({start_.data(), tails_.data(), weights_.data(), now_.places.data(), sources().data, n_,
                              dim_, dof_, pull_.data()},
                             team);
    const float z = reference_.data == nullptr ? normalizer(own_potential) : 0.0f;
    team.parallel_for(n_, 2048, [&](Size begin, Size end, int) { move_rows(step, z, begin, end); });
    if (reference_.data == nullptr) center(next_.places);
    std::swap(now_, next_);
    ++epoch_;
}

void FullLayout::move_rows(const FullStep& step, float normalizer, Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
        const Size at = i * dim_;
        const float z = normalizer > 0.0f ? normalizer : std::max(potential_[i], smallest_normalizer);
        move_row(step, dof_, z, dim_, {pull_.data() + at, field_.data() + at},
                 {now_.places.data() + at, now_.velocity.data() + at, now_.gain.data() + at},
                 {next_.places.data() + at, next_.velocity.data() + at, next_.gain.data() + at});
    }
}

void FullLayout::center(std::vector<float>& places) const {
    std::vector<double> mean(static_cast<std::size_t>(dim_), 0.0);
    for (Size i = 0; i < n_; ++i)
        for (Size c = 0; c < dim_; ++c) mean[c] += places[i * dim_ + c];
    for (double& m : mean) m /= static_cast<double>(std::max<Size>(n_, 1));
    for (Size i = 0; i < n_; ++i)
        for (Size c = 0; c < dim_; ++c) places[i * dim_ + c] -= static_cast<float>(mean[c]);
}

}  // namespace vicinal
