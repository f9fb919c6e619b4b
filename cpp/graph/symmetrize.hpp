// The symmetric graph of directed memberships: a row has edges to the rows that it lists and to the rows that list it.
// The weight of a pair is
//
//   FuzzyMix  p_ij = mix * (p_{j|i} + p_{i|j} - p_{j|i} p_{i|j}) + (1 - mix) * p_{j|i} p_{i|j}    (survey eq. 4),
//             mix = 1 is the fuzzy union, mix = 0 the fuzzy intersection;
//   Mean      p_ij = (p_{j|i} + p_{i|j}) / 2                                                      (eq. 19 times n).
//
// The rules of one row are shared with the GPU (cuda/graph.cu); the loops over all rows are for the CPU.
#pragma once

#include "base/types.hpp"

#if !defined(VICINAL_ONE_LANE)
#include "base/parallel.hpp"

#include <algorithm>
#include <vector>
#endif

namespace vicinal {

struct FuzzyMix {
    float mix;
    float operator()(float p, float q) const {
        const float product = p * q;
        return mix * (p + q - product) + (1.0f - mix) * product;
    }
};

struct Mean {
    float operator()(float p, float q) const { return 0.5f * (p + q); }
};

struct DirectedEdge {
    Index to;
    float p;
};

// Calls emit(j, w) for every edge of one row. [x, x_end) are the edges from the row, [y, y_end) those to it, both in
// ascending order.
template <class Combine, class Emit>
void merge_directions(const DirectedEdge* x, const DirectedEdge* x_end, const DirectedEdge* y,
                      const DirectedEdge* y_end, const Combine& combine, const Emit& emit) {
    while (x != x_end || y != y_end) {
        const bool take_x = y == y_end || (x != x_end && x->to <= y->to);
        const bool take_y = x == x_end || (y != y_end && y->to <= x->to);
        const Index j = take_x ? x->to : y->to;
        const float p = take_x ? (x++)->p : 0.0f, q = take_y ? (y++)->p : 0.0f;
        const float w = combine(p, q);
        if (w > 0.0f) emit(j, w);
    }
}

}  // namespace vicinal

// The loops over all rows, on the CPU.
#if !defined(VICINAL_ONE_LANE)

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

// The symmetric graph of a whole neighbor table.
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

// The distance of entry `wanted` of a row of the table; -1 if the row does not list it.
inline float table_distance(const NeighborTable& table, Size row, Index wanted) {
    const Index* begin = table.index + row * table.k;
    const Index* found = std::find(begin, begin + table.k, wanted);
    return found == begin + table.k ? -1.0f : table.distance[row * table.k + (found - begin)];
}

// The input distance of every edge (i, j) of a graph that was made from the table: the distance of entry j of row i, or
// of entry i of row j. It is -1 if neither exists, which happens if other graphs were merged in.
inline void edge_distances(const Csr& graph, const NeighborTable& table, float* out, ThreadTeam& team) {
    team.parallel_for(graph.rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
                // An approximate table may contain a pair in one direction only.
                out[e] = std::max(table_distance(table, i, graph.indices[e]),
                                  table_distance(table, graph.indices[e], static_cast<Index>(i)));
    });
}

}  // namespace vicinal

#endif  // VICINAL_ONE_LANE
