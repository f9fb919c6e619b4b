#include "layout/sampled_layout.hpp"

#include "base/parallel.hpp"
#include "layout/firing.hpp"
#include "layout/layout_kernels.hpp"
#include "layout/layout_task.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

namespace vicinal {

namespace {

// The edges that fire in the next sweeps, for all blocks of rows (list_firings in layout_sweep.hpp).
class FiringLists {
  public:
    // For all sweeps of one call; the edges must not change meanwhile.
    FiringLists(const LayoutTask& task, int workers);

    // Lists up to `sweeps` sweeps from `number` on, unless this sweep is among those that were listed last.
    void require(const LayoutTask& task, Size number, Size sweeps, ThreadTeam& team);

    const BlockFirings* blocks() const { return views_.data(); }
    // The place of a sweep in the lists.
    Size place(Size number) const { return number - first_sweep_; }

  private:
    struct Lists {
        std::vector<Index> tails, first;
    };

    const Size capacity_;  // of the list of a block and a sweep
    Size first_sweep_ = 0, sweeps_ = 0;
    std::vector<Lists> blocks_, scratch_;
    std::vector<BlockFirings> views_;
};

// Edges in the lists of a worker, unless a block has more: half a megabyte. Rows with very many edges get fewer sweeps.
constexpr Size most_scratch = Size{1} << 17;

Size block_begin(const LayoutTask& task, Size block) { return std::min(block * layout_block_rows, task.n_heads); }

Size n_blocks(const LayoutTask& task) { return (task.n_heads + layout_block_rows - 1) / layout_block_rows; }

Size most_block_edges(const LayoutTask& task) {
    Size most = 0;
    for (Size b = 0; b < n_blocks(task); ++b)
        most = std::max(most, task.indptr[block_begin(task, b + 1)] - task.indptr[block_begin(task, b)]);
    return most;
}

FiringLists::FiringLists(const LayoutTask& task, int workers)
    : capacity_(most_block_edges(task) + most_lanes), blocks_(static_cast<std::size_t>(n_blocks(task))),
      scratch_(static_cast<std::size_t>(workers)), views_(blocks_.size()) {}

void FiringLists::require(const LayoutTask& task, Size number, Size sweeps, ThreadTeam& team) {
    if (first_sweep_ <= number && number < first_sweep_ + sweeps_) return;
    sweeps_ = 0;  // in case of an interruption
    const Size listed = std::min(sweeps, std::clamp(most_scratch / capacity_, Size{1}, most_listed_sweeps));
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        Lists& found = scratch_[worker];
        Lists& kept = blocks_[begin / layout_block_rows];
        const Size stride = end - begin + 1;
        found.tails.resize(static_cast<std::size_t>(listed * capacity_));
        kept.first.resize(static_cast<std::size_t>(listed * stride));
        layout_kernels().list_firings(task, begin, end, number, listed, capacity_, found.tails.data(),
                                      kept.first.data());
        kept.tails.clear();
        for (Size s = 0; s < listed; ++s) {
            Index* first = kept.first.data() + s * stride;
            const Index* tails = found.tails.data() + s * capacity_;
            const auto before = static_cast<Index>(kept.tails.size());
            kept.tails.insert(kept.tails.end(), tails, tails + first[stride - 1]);
            for (Size k = 0; k < stride; ++k) first[k] += before;
        }
        const auto idle = static_cast<Index>(kept.tails.size());
        kept.tails.push_back(0);
        views_[begin / layout_block_rows] = {kept.tails.data(), kept.first.data(), idle};
    });
    first_sweep_ = number;
    sweeps_ = listed;
}

constexpr Size edge_grain = 65536;

bool draws_one(const LayoutOptions& options, Size number) {
    return number < options.single_sweeps && options.negatives > 1;
}

LayoutSweep sweep_of(const LayoutOptions& options, Size number, float learning_rate) {
    LayoutSweep sweep;
    sweep.number = number;
    sweep.key = stream_key(options.seed, Stream::layout, static_cast<std::uint64_t>(number));
    sweep.learning_rate = learning_rate;
    sweep.pulls = options.pulls;
    sweep.negatives = draws_one(options, number) ? 1 : options.negatives;
    if (!draws_one(options, number)) sweep.longest_push = options.longest_push;
    return sweep;
}

LayoutLaw law_of(const LayoutOptions& options, Size number) {
    LayoutLaw law{options.force, {options.space, options.space_values.data(), options.space_function.get()}};
    if (draws_one(options, number)) law.force.gamma *= static_cast<float>(options.negatives);
    return law;
}

}  // namespace

LayoutTask task_of(const PartEdges& part, Matrix points) {
    LayoutTask task;
    task.indptr = part.indptr;
    task.tails = part.tails;
    task.rate = part.rate;
    task.phase = part.phase;
    task.n_heads = part.rows;
    task.head_in = points.data + part.first_row * points.cols;
    task.reference = points.data;
    task.n_reference = points.rows;
    task.dim = points.cols;
    return task;
}

// Working memory of one worker.
struct SampledLayout::Scratch {
    explicit Scratch(Size dim)
        : rows(5 * capacity), keys(capacity), work(static_cast<std::size_t>((3 * dim + 1) * most_lanes)) {
        // Aligned by hand, because std::vector aligns to 16 bytes only.
        constexpr std::uintptr_t vector_bytes = most_lanes * sizeof(float);
        const auto address = reinterpret_cast<std::uintptr_t>(work.data());
        const auto array = [&](std::size_t k) { return rows.data() + k * capacity; };
        view = {.rows = {array(0), array(1), array(2), array(3), array(4), keys.data()},
                .work = work.data() + (vector_bytes - address % vector_bytes) / sizeof(float)};
    }
    static constexpr std::size_t capacity = layout_block_rows + most_lanes;
    std::vector<Index> rows;
    std::vector<std::uint32_t> keys;
    std::vector<float> work;
    LayoutScratch view;
};

// Working memory of all workers of a team.
struct SampledLayout::TeamScratch {
    TeamScratch(int workers, Size dim) {
        for (int worker = 0; worker < workers; ++worker) {
            scratch.emplace_back(dim);
            views.push_back(scratch.back().view);
        }
    }
    std::vector<Scratch> scratch;
    std::vector<LayoutScratch> views;
};

SampledLayout::SampledLayout(const Csr& graph, float* points, Size n, Size dim, Matrix reference,
                             const std::uint64_t* row_key, const LayoutOptions& options, ThreadTeam& team,
                             const Index* head_row)
    : options_(options), n_heads_(graph.rows), dim_(dim), sweep_(options.first_sweep), reference_(reference),
      indptr_(graph.indptr, graph.indptr + graph.rows + 1), points_(points), n_(n),
      next_(static_cast<std::size_t>(graph.rows * dim)) {
    if (head_row != nullptr) head_row_.assign(head_row, head_row + n_heads_);
    if (head_row == nullptr && graph.rows != n) throw std::invalid_argument("graph and embedding differ in their rows");
    for (const Index row : head_row_)
        if (row < 0 || row >= n) throw std::invalid_argument("a head is no row");
    if (row_key != nullptr) row_key_.assign(row_key, row_key + n_heads_);
    if (options.update_negatives) negative_moves_.assign(static_cast<std::size_t>(n * dim), 0);
    add_edges(graph, team);
}

// A frozen reference, or some moving points among others: weights are probabilities as they are, because whether an
// edge fires must not depend on which other rows are in the same call.
float SampledLayout::heaviest_edge(const Csr& graph, ThreadTeam& team) const {
    if (options_.heaviest > 0.0f) return options_.heaviest;
    if (reference_.data != nullptr || !head_row_.empty()) return 1.0f;
    std::vector<float> most(static_cast<std::size_t>(team.size()), 0.0f);
    team.parallel_for(graph.indptr[graph.rows], edge_grain, [&](Size begin, Size end, int worker) {
        most[worker] = std::max(most[worker], *std::max_element(graph.weights + begin, graph.weights + end));
    });
    const float heaviest = *std::max_element(most.begin(), most.end());
    return heaviest > 0.0f ? heaviest : 1.0f;
}

void SampledLayout::add_edges(const Csr& graph, ThreadTeam& team) {
    const float heaviest = heaviest_edge(graph, team);
    const std::uint64_t key = stream_key(options_.seed, Stream::phase);
    const auto n_slots = static_cast<std::size_t>(graph.indptr[graph.rows] + most_lanes);
    tails_.resize(n_slots);
    rate_.resize(n_slots);
    phase_.resize(n_slots);
    team.parallel_for(n_heads_, layout_block_rows, [&](Size begin, Size end, int) {
        std::vector<FiringEdge> edges;
        for (Size i = begin; i < end; ++i) {
            const Size row = head_row_.empty() ? i : head_row_[i];
            const std::uint64_t name = row_key_.empty() ? static_cast<std::uint64_t>(row) : row_key_[i];
            edges.clear();
            for (Size e = indptr_[i]; e < indptr_[i + 1]; ++e) {
                const Index tail = graph.indices[e];
                if (tail < 0 || tail >= n_reference()) throw std::invalid_argument("a tail is no row");
                edges.push_back({tail, firing_rate(graph.weights[e], heaviest, options_.firings_per_sweep),
                                 firing_phase(key, name, static_cast<std::uint64_t>(tail))});
            }
            std::sort(edges.begin(), edges.end(), in_random_order);
            for (Size e = indptr_[i]; const FiringEdge& edge : edges) {
                tails_[e] = edge.tail;
                rate_[e] = edge.rate;
                phase_[e++] = edge.phase;
            }
        }
    });
}

SampledLayout::SampledLayout(const Csr& graph, Matrix points, Matrix reference, const std::uint64_t* row_key,
                             const LayoutOptions& options, ThreadTeam& team, const Index* head_row)
    : SampledLayout(graph, nullptr, points.rows, points.cols, reference, row_key, options, team, head_row) {
    own_.assign(points.data, points.data + points.rows * points.cols);
    points_ = own_.data();
}

SampledLayout SampledLayout::in_place(const Csr& graph, float* points, Size n, Size dim, const LayoutOptions& options,
                                      const Index* head_row, ThreadTeam& team) {
    SampledLayout layout(graph, points, n, dim, {}, nullptr, options, team, head_row);
    layout.in_place_ = true;
    return layout;
}

void SampledLayout::attach(float* points, Size n) {
    if (!in_place_ || n < n_) throw std::invalid_argument("the points cannot be attached to this layout");
    points_ = points;
    n_ = n;
}

void SampledLayout::pin(const bool* fixed) {
    fixed_.assign(fixed, fixed + n_heads_);
    // An edge of rate 0 never fires, and a row moves along its own edges only.
    for (Size i = 0; i < n_heads_; ++i)
        if (fixed_[i]) std::fill(rate_.begin() + indptr_[i], rate_.begin() + indptr_[i + 1], 0u);
}

void SampledLayout::place(Matrix points) {
    if (points.rows != n_ || points.cols != dim_) throw std::invalid_argument("points differ in shape");
    std::copy(points.data, points.data + n_ * dim_, points_);
}

void SampledLayout::step(Matrix learning_rates, ThreadTeam& team) {
    if (n_heads_ == 0) {
        sweep_ += learning_rates.rows;
        return;
    }
    if (!in_place_) return run_sweeps(learning_rates, team);
    const Size first = sweep_;
    std::vector<float> before(next_.size());
    gather_heads(before.data());
    try {
        run_sweeps(learning_rates, team);
    } catch (...) {
        scatter_heads(before.data());
        sweep_ = first;
        throw;
    }
}

void SampledLayout::run_sweeps(Matrix learning_rates, ThreadTeam& team) {
    // Moves of an interrupted sweep are not part of the next one.
    std::fill(negative_moves_.begin(), negative_moves_.end(), 0);
    const TeamScratch scratch(team.size(), dim_);
    FiringLists firings(task(), team.size());
    for (Size t = 0; t < learning_rates.rows; ++t) {
        LayoutSweep sweep = sweep_of(options_, sweep_, *learning_rates.row(t));
        sweep.head_rates = learning_rates.cols > 1 ? learning_rates.row(t) : nullptr;
        firings.require(task(), sweep_, learning_rates.rows - t, team);
        layout_kernels().layout_sweep(task(), sweep, law_of(options_, sweep_), firings.blocks(), firings.place(sweep_),
                                      scratch.views.data(), team);
        if (!negative_moves_.empty()) add_negative_moves(team);
        if (density_ && density_->acts_in(sweep_))
            add_density_moves(density_moves(team), sweep.learning_rate * density_->length(), team);
        if (head_row_.empty()) {
            own_.swap(next_);
            points_ = own_.data();
        } else {
            scatter_heads(next_.data());
        }
        ++sweep_;
    }
}

void SampledLayout::sweep_part(const PartEdges& part, Matrix points, const LayoutOptions& options, Size sweep,
                               float learning_rate, NegativeTable negatives, const float* moves, float move_length,
                               float* out, ThreadTeam& team) {
    std::vector<Index> head_row(static_cast<std::size_t>(part.rows));
    std::iota(head_row.begin(), head_row.end(), static_cast<Index>(part.first_row));
    LayoutTask task = task_of(part, points);
    task.head_row = head_row.data();
    task.head_in = points.data;
    task.head_out = out;
    task.negative_keep = negatives.keep;
    task.negative_alias = negatives.alias;
    const TeamScratch scratch(team.size(), points.cols);
    FiringLists firings(task, team.size());
    firings.require(task, sweep, 1, team);
    layout_kernels().layout_sweep(task, sweep_of(options, sweep, learning_rate), law_of(options, sweep),
                                  firings.blocks(), firings.place(sweep), scratch.views.data(), team);
    if (moves == nullptr) return;
    const float rate = learning_rate * move_length;
    for (Size e = 0; e < part.rows * points.cols; ++e) out[e] += rate * moves[e];
}

void SampledLayout::gather_heads(float* out) const {
    for (Size i = 0; i < n_heads_; ++i)
        for (Size c = 0; c < dim_; ++c) out[i * dim_ + c] = points_[head_row_[i] * dim_ + c];
}

void SampledLayout::scatter_heads(const float* from) {
    const auto scatter = [&](Size dim) {
        for (Size i = 0; i < n_heads_; ++i)
            for (Size c = 0; c < dim; ++c) points_[head_row_[i] * dim + c] = from[i * dim + c];
    };
    if (dim_ == 2)
        scatter(2);
    else
        scatter(dim_);
}

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
    task.head_in = points_;
    task.head_out = next_.data();
    task.reference = reference_.data != nullptr ? reference_.data : points_;
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

std::pair<LayoutSweep, LayoutLaw> sweep_and_law(const LayoutOptions& options, Size number) {
    return {sweep_of(options, number, 0.0f), law_of(options, number)};
}

}  // namespace vicinal
