#include "initialize/components.hpp"

#include <atomic>
#include <utility>

namespace vicinal {

namespace {

class Forest {
  public:
    Forest(Size n, ThreadTeam& team) : parent_(static_cast<std::size_t>(n)) {
        team.parallel_for(n, 65536, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) parent_[i] = static_cast<Index>(i);
        });
    }

    void unite(Index i, Index j) {
        for (;;) {
            i = root(i);
            j = root(j);
            if (i == j) return;
            if (i < j) std::swap(i, j);
            Index expected = i;
            if (at(i).compare_exchange_strong(expected, j, std::memory_order_relaxed)) return;
        }
    }

    // Shortens the path on the way; every parent stays an ancestor.
    Index root(Index i) {
        for (;;) {
            const Index up = at(i).load(std::memory_order_relaxed);
            if (up == i) return i;
            const Index above = at(up).load(std::memory_order_relaxed);
            if (above == up) return up;
            at(i).store(above, std::memory_order_relaxed);
            i = above;
        }
    }

  private:
    std::atomic_ref<Index> at(Index i) { return std::atomic_ref<Index>(parent_[i]); }

    std::vector<Index> parent_;
};

}  // namespace

Components connected_components(const Csr& graph, ThreadTeam& team) {
    Forest forest(graph.rows, team);
    team.parallel_for(graph.rows, 2048, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
                forest.unite(static_cast<Index>(i), graph.indices[e]);
    });
    Components out;
    out.of_row.resize(static_cast<std::size_t>(graph.rows));
    out.bounds.push_back(0);
    for (Size i = 0; i < graph.rows; ++i) {
        const Index root = forest.root(static_cast<Index>(i));
        if (root == i) {
            out.of_row[i] = static_cast<Index>(out.count());
            out.bounds.push_back(0);
        } else {
            out.of_row[i] = out.of_row[root];
        }
        ++out.bounds[out.of_row[i] + 1];
    }
    for (Size c = 0; c < out.count(); ++c) out.bounds[c + 1] += out.bounds[c];
    out.order.resize(out.of_row.size());
    std::vector<Size> at(out.bounds.begin(), out.bounds.end() - 1);
    for (Size i = 0; i < graph.rows; ++i) out.order[at[out.of_row[i]]++] = static_cast<Index>(i);
    return out;
}

}  // namespace vicinal
