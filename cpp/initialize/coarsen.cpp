#include "initialize/coarsen.hpp"

#include "base/rng.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <tuple>
#include <utility>

namespace vicinal {

namespace {

constexpr Index no_group = -1;
constexpr Size chunk_rows = 1024, chunk_groups = 64;

class Grouping {
  public:
    Grouping(const Csr& graph, ThreadTeam& team)
        : graph_(graph), rank_(static_cast<std::size_t>(graph.rows)), group_(rank_.size(), no_group) {
        each_row(team, [&](Size i) {
            const Size edges = graph_.indptr[i + 1] - graph_.indptr[i];
            rank_[i] = static_cast<std::uint64_t>(edges) << 32 | row_key(0, static_cast<std::uint64_t>(i));
        });
        // Several rows may name the same row; all of them write the same value.
        each_row(team,
                 [&](Size i) { std::atomic_ref<Index>(group_[named_by(i)]).store(0, std::memory_order_relaxed); });
        for (Index& g : group_)
            if (g != no_group) g = count_++;
        std::vector<Index> joined(group_);
        each_row(team, [&](Size i) {
            if (group_[i] == no_group) joined[i] = group_[heaviest_named(i)];
        });
        group_ = std::move(joined);
    }

    std::vector<Index>& group() { return group_; }
    Size count() const { return count_; }

  private:
    template <class F>
    void each_row(ThreadTeam& team, const F& f) const {
        team.parallel_for(graph_.rows, chunk_rows, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) f(i);
        });
    }

    Size named_by(Size i) const {
        Size best = i;
        for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e)
            if (rank_[graph_.indices[e]] > rank_[best]) best = graph_.indices[e];
        return best;
    }

    // A row that no row named has named a neighbor, so there is one.
    Size heaviest_named(Size i) const {
        Size best = i;
        float heaviest = -1.0f;
        for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e)
            if (group_[graph_.indices[e]] != no_group && graph_.weights[e] > heaviest) {
                heaviest = graph_.weights[e];
                best = graph_.indices[e];
            }
        return best;
    }

    const Csr& graph_;
    std::vector<std::uint64_t> rank_;
    std::vector<Index> group_;
    Index count_ = 0;
};

// The rows of every group, in ascending order.
struct Members {
    std::vector<Size> start;
    std::vector<Index> row;

    Members(const std::vector<Index>& group, Size groups) : start(groups + 1, 0), row(group.size()) {
        for (Index g : group) ++start[g + 1];
        for (Size g = 0; g < groups; ++g) start[g + 1] += start[g];
        std::vector<Size> at(start.begin(), start.end() - 1);
        for (std::size_t i = 0; i < group.size(); ++i) row[at[group[i]]++] = static_cast<Index>(i);
    }
};

// The sums of weights from one group to every other, in the order of first occurrence.
class Sums {
  public:
    explicit Sums(Size groups) : place_(groups, -1) {}

    // Appends the edges of group g.
    void add(const Csr& graph, const Members& members, const std::vector<Index>& group, Size g,
             std::vector<Index>& indices, std::vector<float>& weights) {
        sum_.clear();
        const std::size_t first = indices.size();
        for (Size m = members.start[g]; m < members.start[g + 1]; ++m)
            for (Size e = graph.indptr[members.row[m]]; e < graph.indptr[members.row[m] + 1]; ++e) {
                const Index other = group[graph.indices[e]];
                if (place_[other] < 0) {
                    place_[other] = static_cast<Index>(sum_.size());
                    indices.push_back(other);
                    sum_.push_back(0.0);
                }
                sum_[place_[other]] += graph.weights[e];
            }
        for (double sum : sum_) weights.push_back(static_cast<float>(sum));
        for (std::size_t e = first; e < indices.size(); ++e) place_[indices[e]] = -1;
    }

  private:
    std::vector<Index> place_;
    std::vector<double> sum_;
};

// The graph of the groups.
OwnedCsr contracted(const Csr& graph, const std::vector<Index>& group, Size groups, ThreadTeam& team) {
    const Size chunks = (groups + chunk_groups - 1) / chunk_groups;
    OwnedCsr coarse;
    coarse.indptr.assign(groups + 1, 0);
    const Members members(group, groups);
    std::vector<Sums> sums(static_cast<std::size_t>(team.size()), Sums(groups));
    std::vector<std::vector<Index>> indices(static_cast<std::size_t>(chunks));
    std::vector<std::vector<float>> weights(indices.size());
    team.parallel_for(chunks, 1, [&](Size begin, Size end, int worker) {
        for (Size c = begin; c < end; ++c)
            for (Size g = c * chunk_groups; g < std::min((c + 1) * chunk_groups, groups); ++g) {
                sums[worker].add(graph, members, group, g, indices[c], weights[c]);
                coarse.indptr[g + 1] = static_cast<Size>(indices[c].size());
            }
    });
    // Offsets within chunks become offsets of the whole.
    Size before = 0;
    for (Size c = 0; c < chunks; ++c) {
        for (Size g = c * chunk_groups; g < std::min((c + 1) * chunk_groups, groups); ++g)
            coarse.indptr[g + 1] += before;
        before += static_cast<Size>(indices[c].size());
    }
    coarse.indices.resize(static_cast<std::size_t>(before));
    coarse.weights.resize(coarse.indices.size());
    team.parallel_for(chunks, 16, [&](Size begin, Size end, int) {
        for (Size c = begin; c < end; ++c) {
            const Size at = coarse.indptr[c * chunk_groups];
            std::copy(indices[c].begin(), indices[c].end(), coarse.indices.begin() + at);
            std::copy(weights[c].begin(), weights[c].end(), coarse.weights.begin() + at);
        }
    });
    return coarse;
}

void sort_rows(OwnedCsr& graph, ThreadTeam& team) {
    team.parallel_for(static_cast<Size>(graph.indptr.size()) - 1, chunk_rows, [&](Size begin, Size end, int) {
        std::vector<std::pair<Index, float>> edges;
        for (Size i = begin; i < end; ++i) {
            const Size at = graph.indptr[i];
            edges.clear();
            for (Size e = at; e < graph.indptr[i + 1]; ++e) edges.emplace_back(graph.indices[e], graph.weights[e]);
            std::sort(edges.begin(), edges.end());
            for (std::size_t e = 0; e < edges.size(); ++e)
                std::tie(graph.indices[at + e], graph.weights[at + e]) = edges[e];
        }
    });
}

// Aggregates that are joined in one round.
class Pairing {
  public:
    Pairing(const Csr& graph, const std::vector<float>& mass, ThreadTeam& team)
        : graph_(graph), team_(team), likeness_(static_cast<std::size_t>(graph.indptr[graph.rows])),
          partner_(mass.size(), no_group), group_(mass.size(), no_group) {
        each_row([&](Size i) {
            for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e) {
                const Size j = graph_.indices[e];
                const double root = std::sqrt(static_cast<double>(mass[i]) * mass[j]);
                likeness_[e] = static_cast<float>(graph_.weights[e] / root * (1.0 + tie_share * tie(i, j)));
            }
        });
        for (int pass = 0; pass < passes; ++pass) join_pairs();
        number_groups();
    }

    std::vector<Index>& group() { return group_; }
    Size count() const { return count_; }

  private:
    // Many edges have the weight 1: a small random number, the same in both directions, decides between them.
    static constexpr double tie_share = 1e-3;
    static constexpr int passes = 4;
    static double tie(Size i, Size j) {
        const auto low = static_cast<std::uint64_t>(std::min(i, j)), high = static_cast<std::uint64_t>(std::max(i, j));
        return static_cast<double>(mix64(low << 32 | high) >> 40) * 0x1p-24;
    }

    template <class F>
    void each_row(const F& f) const {
        team_.parallel_for(graph_.rows, chunk_rows, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) f(i);
        });
    }

    // The most similar neighbor, or no_group; only free ones count if `free`.
    Index best_neighbor(Size i, bool free) const {
        Index best = no_group;
        float most = 0.0f;
        for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e) {
            const Index j = graph_.indices[e];
            if (likeness_[e] > most && j != i && !(free && partner_[j] != no_group)) {
                most = likeness_[e];
                best = j;
            }
        }
        return best;
    }

    void join_pairs() {
        std::vector<Index> wish(partner_.size(), no_group);
        each_row([&](Size i) {
            if (partner_[i] == no_group) wish[i] = best_neighbor(i, true);
        });
        each_row([&](Size i) {
            if (wish[i] != no_group && wish[wish[i]] == i) partner_[i] = wish[i];
        });
    }

    void number_groups() {
        std::vector<Index> first(partner_.size());
        each_row([&](Size i) {
            Index row = static_cast<Index>(i);
            if (partner_[i] == no_group) {
                const Index best = best_neighbor(i, false);
                if (best != no_group && partner_[best] != no_group) row = best;
            }
            first[i] = partner_[row] == no_group ? row : std::min(row, partner_[row]);
        });
        for (std::size_t i = 0; i < first.size(); ++i)
            if (first[i] == static_cast<Index>(i)) group_[i] = count_++;
        std::vector<Index> of_row(first.size());
        each_row([&](Size i) { of_row[i] = group_[first[i]]; });
        group_ = std::move(of_row);
    }

    const Csr& graph_;
    ThreadTeam& team_;
    std::vector<float> likeness_;
    std::vector<Index> partner_, group_;
    Index count_ = 0;
};

}  // namespace

Coarse coarsen(const Csr& graph, ThreadTeam& team) {
    Grouping grouping(graph, team);
    Coarse out;
    out.group = std::move(grouping.group());
    out.graph = contracted(graph, out.group, grouping.count(), team);
    return out;
}

Aggregates aggregate(const Csr& graph, int rounds, ThreadTeam& team) {
    Aggregates out{std::vector<Index>(static_cast<std::size_t>(graph.rows)),
                   std::vector<float>(static_cast<std::size_t>(graph.rows), 1.0f),
                   {}};
    for (Size i = 0; i < graph.rows; ++i) out.group[i] = static_cast<Index>(i);
    for (int round = 0; round < rounds; ++round) {
        const OwnedCsr& last = out.graph;
        const Csr finer = round == 0 ? graph
                                     : Csr{last.indptr.data(), last.indices.data(), last.weights.data(),
                                           static_cast<Size>(last.indptr.size()) - 1};
        Pairing pairing(finer, out.mass, team);
        const std::vector<Index>& group = pairing.group();
        OwnedCsr coarse = contracted(finer, group, pairing.count(), team);
        std::vector<float> mass(static_cast<std::size_t>(pairing.count()), 0.0f);
        for (std::size_t i = 0; i < group.size(); ++i) mass[group[i]] += out.mass[i];
        for (Index& g : out.group) g = group[g];
        out.mass = std::move(mass);
        out.graph = std::move(coarse);
    }
    sort_rows(out.graph, team);
    return out;
}

void neighbor_means(const Csr& graph, const Matrix& places, float* out, ThreadTeam& team) {
    const Size cols = places.cols;
    team.parallel_for(graph.rows, chunk_rows, [&](Size begin, Size end, int) {
        std::vector<double> sum(static_cast<std::size_t>(cols));
        for (Size i = begin; i < end; ++i) {
            std::fill(sum.begin(), sum.end(), 0.0);
            double total = 0.0;
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
                const double weight = graph.weights[e];
                const float* place = places.data + static_cast<Size>(graph.indices[e]) * cols;
                for (Size c = 0; c < cols; ++c) sum[c] += weight * place[c];
                total += weight;
            }
            for (Size c = 0; c < cols; ++c)
                out[i * cols + c] = total > 0.0 ? static_cast<float>(sum[c] / total) : places.data[i * cols + c];
        }
    });
}

}  // namespace vicinal
