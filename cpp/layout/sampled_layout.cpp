#include "layout/sampled_layout.hpp"

#include "layout/sampled_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>

namespace vicinal {

namespace {

// An edge of the largest weight fires `firings_per_sweep` times a sweep; the others in proportion.
std::uint32_t firing_rate(float weight, float most, double firings_per_sweep) {
    const double share = static_cast<double>(weight) / most * firings_per_sweep * 4294967296.0;
    return static_cast<std::uint32_t>(std::min(share, 4294967295.0));
}

std::uint32_t firing_phase(std::uint64_t key, std::uint64_t i, std::uint64_t j) {
    return row_key(key, mix64(std::min(i, j)) ^ std::max(i, j));
}

}  // namespace

// Working memory of one worker.
struct SampledLayout::Scratch {
    Scratch(Size edges, Size dim)
        : fired(static_cast<std::size_t>(edges + most_lanes)), items(layout_block_rows),
          lanes(static_cast<std::size_t>((7 + 4 * dim) * vector_bytes + vector_bytes)) {
        // The vectors are aligned by hand: std::vector gives 16 bytes.
        const auto address = reinterpret_cast<std::uintptr_t>(lanes.data());
        std::byte* at = lanes.data() + (vector_bytes - address % vector_bytes);
        const auto take = [&]<class T>(T*& array, Size vectors) {
            array = reinterpret_cast<T*>(std::exchange(at, at + vectors * vector_bytes));
        };
        view.fired = fired.data();
        view.items = items.data();
        take(view.lane_state.head, 1);
        take(view.lane_state.own, 1);
        take(view.lane_state.cursor, 1);
        take(view.lane_state.stop, 1);
        take(view.lane_state.key, 1);
        take(view.lane_state.draw, 1);
        take(view.lane_state.learning_rate, 1);
        take(view.lane_state.place, dim);
        take(view.lane_state.work, 3 * dim);
    }
    static constexpr Size vector_bytes = most_lanes * 4;
    std::vector<Index> fired;
    std::vector<LayoutItem> items;
    std::vector<std::byte> lanes;
    LayoutScratch view;
};

SampledLayout::SampledLayout(const Csr& graph, Matrix places, Matrix reference, const std::uint64_t* row_key,
                             const LayoutOptions& options, const Index* head_row)
    : options_(options), n_heads_(graph.rows), dim_(places.cols), sweep_(options.first_sweep), reference_(reference),
      indptr_(graph.indptr, graph.indptr + graph.rows + 1),
      tails_(graph.indices, graph.indices + graph.indptr[graph.rows]),
      places_(places.data, places.data + places.rows * places.cols),
      next_(static_cast<std::size_t>(graph.rows * places.cols)) {
    if (head_row != nullptr) head_row_.assign(head_row, head_row + n_heads_);
    if (head_row == nullptr && graph.rows != places.rows)
        throw std::invalid_argument("graph and embedding differ in their rows");
    for (const Index row : head_row_)
        if (row < 0 || row >= places.rows) throw std::invalid_argument("a head is no row");
    const Size n_edges = graph.indptr[graph.rows];
    for (const Index tail : tails_)
        if (tail < 0 || tail >= n_reference()) throw std::invalid_argument("an edge leads to no row");
    if (row_key != nullptr) row_key_.assign(row_key, row_key + n_heads_);
    if (options.update_negatives) negative_moves_.assign(places_.size(), 0);

    // Weights of a frozen reference, or of some heads only, are probabilities as they are: what fires for one row must
    // not depend on the weights of those it happens to move with.
    float most = 0.0f;
    for (Size e = 0; e < n_edges; ++e) most = std::max(most, graph.weights[e]);
    if (reference.data != nullptr || head_row != nullptr || most <= 0.0f) most = 1.0f;
    tails_.resize(static_cast<std::size_t>(n_edges + most_lanes), 0);
    rate_.resize(tails_.size(), 0);
    phase_.resize(tails_.size(), 0);
    const std::uint64_t key = stream_key(options.seed, Stream::phase);
    for (Size i = 0; i < n_heads_; ++i)
        for (Size e = indptr_[i]; e < indptr_[i + 1]; ++e) {
            rate_[e] = firing_rate(graph.weights[e], most, options.firings_per_sweep);
            const Size row = head_row != nullptr ? head_row[i] : i;
            phase_[e] = firing_phase(key, row_key != nullptr ? row_key[i] : static_cast<std::uint64_t>(row),
                                     static_cast<std::uint64_t>(tails_[e]));
        }
    for (Size i = 0; i < n_heads_; i += layout_block_rows)
        most_block_edges_ =
            std::max(most_block_edges_, indptr_[std::min(i + layout_block_rows, n_heads_)] - indptr_[i]);
}

void SampledLayout::pin(const bool* fixed) {
    fixed_.assign(fixed, fixed + n_heads_);
    // An edge of rate 0 never fires, and a row moves along its own edges only.
    for (Size i = 0; i < n_heads_; ++i)
        if (fixed_[i]) std::fill(rate_.begin() + indptr_[i], rate_.begin() + indptr_[i + 1], 0u);
}

void SampledLayout::place(Matrix places) {
    if (places.rows != embedding().rows || places.cols != dim_) throw std::invalid_argument("places differ in shape");
    std::copy(places.data, places.data + places.rows * dim_, places_.begin());
}

void SampledLayout::step(Matrix learning_rates, ThreadTeam& team) {
    if (n_heads_ == 0) {
        sweep_ += learning_rates.rows;
        return;
    }
    // Moves of a sweep that was interrupted are not part of the next one.
    std::fill(negative_moves_.begin(), negative_moves_.end(), 0);
    std::vector<Scratch> scratch;
    std::vector<LayoutScratch> views;
    for (int worker = 0; worker < team.size(); ++worker) {
        scratch.emplace_back(most_block_edges_, dim_);
        views.push_back(scratch.back().view);
    }
    const LayoutLaw law{options_.force, {options_.space, options_.space_values.data()}};
    for (Size t = 0; t < learning_rates.rows; ++t) {
        LayoutSweep sweep;
        sweep.number = sweep_;
        sweep.key = stream_key(options_.seed, Stream::layout, static_cast<std::uint64_t>(sweep_));
        sweep.learning_rate = *learning_rates.row(t);
        sweep.head_rates = learning_rates.cols > 1 ? learning_rates.row(t) : nullptr;
        sweep.pulls = options_.pulls;
        sweep.negatives = options_.negatives;
        sampled_kernels().layout_sweep(task(), sweep, law, views.data(), team);
        if (!negative_moves_.empty()) add_negative_moves(team);
        if (density_ && density_->acts_in(sweep_))
            add_density_moves(density_moves(team), sweep.learning_rate * density_->length(), team);
        publish_moves();
        ++sweep_;
    }
}

// What the heads reached becomes the next snapshot.
void SampledLayout::publish_moves() {
    if (head_row_.empty()) {
        places_.swap(next_);
        return;
    }
    const auto publish = [&](Size dim) {
        for (Size i = 0; i < n_heads_; ++i)
            for (Size c = 0; c < dim; ++c) places_[head_row_[i] * dim + c] = next_[i * dim + c];
    };
    if (dim_ == 2)
        publish(2);
    else
        publish(dim_);
}

// The buffers change places after every sweep.
LayoutTask SampledLayout::task() {
    const auto or_null = [](auto& array) { return array.empty() ? nullptr : array.data(); };
    LayoutTask task;
    task.indptr = indptr_.data();
    task.tails = tails_.data();
    task.rate = rate_.data();
    task.phase = phase_.data();
    task.n_heads = n_heads_;
    task.head_row = or_null(head_row_);
    task.row_key = or_null(row_key_);
    task.head_in = places_.data();
    task.head_out = next_.data();
    task.reference = reference_.data != nullptr ? reference_.data : places_.data();
    task.n_reference = n_reference();
    task.dim = dim_;
    task.negative_keep = or_null(negative_table_.keep);
    task.negative_alias = or_null(negative_table_.alias);
    task.negative_moves = or_null(negative_moves_);
    return task;
}

void SampledLayout::add_negative_moves(ThreadTeam& team) {
    team.parallel_for(static_cast<Size>(negative_moves_.size()), 16384, [&](Size begin, Size end, int) {
        for (Size e = begin; e < end; ++e) {
            const std::int64_t units = std::exchange(negative_moves_[e], 0);
            if (!is_fixed(e / dim_)) next_[e] += static_cast<float>(static_cast<double>(units) * fixed_point_unit);
        }
    });
}

void SampledLayout::add_density_moves(const std::vector<float>& moves, float learning_rate, ThreadTeam& team) {
    team.parallel_for(static_cast<Size>(moves.size()), 16384, [&](Size begin, Size end, int) {
        for (Size e = begin; e < end; ++e)
            if (!is_fixed(e / dim_)) next_[e] += learning_rate * moves[e];
    });
}

}  // namespace vicinal
