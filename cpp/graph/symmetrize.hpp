// Combines directed memberships into one symmetric graph, by a rule of merge_directions.hpp.
#pragma once

#include "base/parallel.hpp"
#include "graph/merge_directions.hpp"

#include <algorithm>
#include <vector>

namespace vicinal {

struct OwnedCsr {
    std::vector<Size> indptr;
    std::vector<Index> indices;
    std::vector<float> weights;
};

// The rows of a graph: merge(i, emit) calls emit(j, w) for every edge of row i, once to count and once to store them.
template <class Merge>
OwnedCsr collect_rows(Size rows, const Merge& merge, ThreadTeam& team) {
    OwnedCsr out;
    out.indptr.assign(static_cast<std::size_t>(rows + 1), 0);
    team.parallel_for(rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) merge(i, [&](Index, float) { ++out.indptr[i + 1]; });
    });
    for (Size i = 0; i < rows; ++i) out.indptr[i + 1] += out.indptr[i];
    out.indices.resize(static_cast<std::size_t>(out.indptr[rows]));
    out.weights.resize(out.indices.size());
    team.parallel_for(rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            Size at = out.indptr[i];
            merge(i, [&](Index j, float w) {
                out.indices[at] = j;
                out.weights[at++] = w;
            });
        }
    });
    return out;
}

// The edges of consecutive rows from both directions: `from` lists the edges of each row, `to` those that lead to it,
// both with ascending indices. The same edges as a Symmetrizer finds in a table of all rows.
template <class Combine>
OwnedCsr join_directions(const Csr& from, const Csr& to, const Combine& combine, ThreadTeam& team) {
    const auto merge = [&](Size i, const auto& emit) {
        std::vector<DirectedEdge> x, y;
        for (Size e = from.indptr[i]; e < from.indptr[i + 1]; ++e) x.push_back({from.indices[e], from.weights[e]});
        for (Size e = to.indptr[i]; e < to.indptr[i + 1]; ++e) y.push_back({to.indices[e], to.weights[e]});
        merge_directions(x.data(), x.data() + x.size(), y.data(), y.data() + y.size(), combine, emit);
    };
    return collect_rows(from.rows, merge, team);
}

template <class Combine>
class Symmetrizer {
  public:
    Symmetrizer(const NeighborTable& table, const float* membership, const Combine& combine)
        : table_(table), membership_(membership), combine_(combine) {}

    OwnedCsr run(ThreadTeam& team) {
        sort_rows(team);
        transpose();
        const auto merge_row = [&](Size i, const auto& emit) { merge(i, emit); };
        return collect_rows(table_.rows, merge_row, team);
    }

  private:
    using Edge = DirectedEdge;

    // Sorts the entries of every row by index and drops missing ones and those of membership 0.
    void sort_rows(ThreadTeam& team) {
        forward_.resize(static_cast<std::size_t>(table_.rows * table_.k));
        count_.assign(static_cast<std::size_t>(table_.rows), 0);
        team.parallel_for(table_.rows, 1024, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) {
                Edge* row = forward_.data() + i * table_.k;
                for (Size e = i * table_.k; e < (i + 1) * table_.k; ++e)
                    if (membership_[e] > 0.0f) row[count_[i]++] = {table_.index[e], membership_[e]};
                std::sort(row, row + count_[i], [](const Edge& x, const Edge& y) { return x.to < y.to; });
            }
        });
    }

    // A counting sort by target keeps the sources in order, so transposed rows are sorted too.
    void transpose() {
        const auto n = static_cast<std::size_t>(table_.rows);
        start_.assign(n + 1, 0);
        for_each_edge([&](Size, const Edge& edge) { ++start_[edge.to + 1]; });
        for (std::size_t i = 0; i < n; ++i) start_[i + 1] += start_[i];
        backward_.resize(static_cast<std::size_t>(start_[n]));
        std::vector<Size> at(start_.begin(), start_.end() - 1);
        for_each_edge([&](Size i, const Edge& edge) { backward_[at[edge.to]++] = {static_cast<Index>(i), edge.p}; });
    }

    template <class F>
    void for_each_edge(const F& f) const {
        for (Size i = 0; i < table_.rows; ++i)
            for (Size e = 0; e < count_[i]; ++e) f(i, forward_[i * table_.k + e]);
    }

    template <class F>
    void merge(Size i, const F& emit) const {
        const Edge* x = forward_.data() + i * table_.k;
        const Edge* x_end = x + count_[i];
        const Edge* y = backward_.data() + start_[i];
        const Edge* y_end = backward_.data() + start_[i + 1];
        merge_directions(x, x_end, y, y_end, combine_, emit);
    }

    const NeighborTable& table_;
    const float* membership_;
    const Combine combine_;
    std::vector<Edge> forward_, backward_;
    std::vector<Size> count_, start_;
};

}  // namespace vicinal
