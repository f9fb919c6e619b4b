#include "initialize/coarsen.hpp"

namespace vicinal {

namespace {

constexpr Index no_group = -1;

// Groups are numbered in the order of their first rows, so groups are as local in memory as rows are.
class Grouping {
  public:
    explicit Grouping(const Csr& graph) : graph_(graph), group_(static_cast<std::size_t>(graph.rows), no_group) {}

    std::vector<Index> run(ThreadTeam& team) {
        for (Size i = 0; i < graph_.rows; ++i) {
            if (i % 65536 == 0) team.check_interrupt();
            if (group_[i] == no_group && is_free(i)) found(i);
        }
        const std::vector<Index> seeds = group_;  // remaining rows do not join each other
        for (Size i = 0; i < graph_.rows; ++i) {
            if (i % 65536 == 0) team.check_interrupt();
            if (seeds[i] == no_group) join(i, seeds);
        }
        return std::move(group_);
    }

    Size count() const { return next_; }

  private:
    bool is_free(Size i) const {
        for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e)
            if (group_[graph_.indices[e]] != no_group) return false;
        return true;
    }

    void found(Size i) {
        group_[i] = next_;
        for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e) group_[graph_.indices[e]] = next_;
        ++next_;
    }

    // A row that could not start a group has a neighbor in one.
    void join(Size i, const std::vector<Index>& seeds) {
        float heaviest = -1.0f;
        for (Size e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e)
            if (seeds[graph_.indices[e]] != no_group && graph_.weights[e] > heaviest) {
                heaviest = graph_.weights[e];
                group_[i] = seeds[graph_.indices[e]];
            }
    }

    const Csr& graph_;
    std::vector<Index> group_;
    Index next_ = 0;
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
    void resize(Size groups) {
        place_.assign(groups, -1);
        to_.clear();
    }

    void add(const Csr& graph, const Members& members, const std::vector<Index>& group, Size g) {
        for (Index other : to_) place_[other] = -1;
        to_.clear();
        sum_.clear();
        for (Size m = members.start[g]; m < members.start[g + 1]; ++m)
            for (Size e = graph.indptr[members.row[m]]; e < graph.indptr[members.row[m] + 1]; ++e) {
                const Index other = group[graph.indices[e]];
                if (place_[other] < 0) {
                    place_[other] = static_cast<Index>(to_.size());
                    to_.push_back(other);
                    sum_.push_back(0.0);
                }
                sum_[place_[other]] += graph.weights[e];
            }
    }

    const std::vector<Index>& to() const { return to_; }
    const std::vector<double>& sum() const { return sum_; }

  private:
    std::vector<Index> place_, to_;
    std::vector<double> sum_;
};

}  // namespace

Coarse coarsen(const Csr& graph, ThreadTeam& team) {
    Coarse out;
    Grouping grouping(graph);
    out.group = grouping.run(team);
    const Size groups = grouping.count();
    const Members members(out.group, groups);
    std::vector<Sums> sums(static_cast<std::size_t>(team.size()));
    for (Sums& one : sums) one.resize(groups);
    const auto each_group = [&](const auto& use) {
        team.parallel_for(groups, 64, [&](Size begin, Size end, int worker) {
            for (Size g = begin; g < end; ++g) {
                sums[worker].add(graph, members, out.group, g);
                use(g, sums[worker]);
            }
        });
    };
    OwnedCsr& coarse = out.graph;
    coarse.indptr.assign(groups + 1, 0);
    each_group([&](Size g, const Sums& one) { coarse.indptr[g + 1] = static_cast<Size>(one.to().size()); });
    for (Size g = 0; g < groups; ++g) coarse.indptr[g + 1] += coarse.indptr[g];
    coarse.indices.resize(static_cast<std::size_t>(coarse.indptr[groups]));
    coarse.weights.resize(coarse.indices.size());
    each_group([&](Size g, const Sums& one) {
        for (std::size_t e = 0; e < one.to().size(); ++e) {
            coarse.indices[coarse.indptr[g] + e] = one.to()[e];
            coarse.weights[coarse.indptr[g] + e] = static_cast<float>(one.sum()[e]);
        }
    });
    return out;
}

}  // namespace vicinal
