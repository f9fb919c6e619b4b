#include "initialize/components.hpp"

#include "graph/symmetrize.hpp"
#include "initialize/eigenmap.hpp"

#include <algorithm>
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

namespace {

// A component of at least `least_shared` rows may be shared by threads. One of more than `most_single` rows is always
// shared: a thread that works alone on more would not answer an interruption in time.
constexpr Size least_shared = 4096, most_single = 65536;

class Solver {
  public:
    Solver(const Csr& graph, const Components& components, Size wanted, std::uint64_t seed, float* out)
        : graph_(graph), components_(components), wanted_(wanted), seed_(seed), out_(out), place_(graph.rows) {}

    void run(ThreadTeam& team) {
        team.parallel_for(components_.count(), 64, [&](Size begin, Size end, int) {
            for (Size c = begin; c < end; ++c)
                for (Size p = components_.bounds[c]; p < components_.bounds[c + 1]; ++p)
                    place_[components_.order[p]] = static_cast<Index>(p - components_.bounds[c]);
        });
        // The longest work first, so that the threads end at about the same time.
        std::vector<Size> by_size(static_cast<std::size_t>(components_.count()));
        for (Size c = 0; c < components_.count(); ++c) by_size[c] = c;
        std::stable_sort(by_size.begin(), by_size.end(), [&](Size x, Size y) { return size(x) > size(y); });
        const Size shared = std::clamp(graph_.rows / (4 * team.size()), least_shared, most_single);
        Size done = 0;
        while (done < components_.count() && size(by_size[done]) > shared) solve(by_size[done++], team);
        team.parallel_for(components_.count() - done, 1, [&](Size begin, Size end, int) {
            ThreadTeam alone(1);
            for (Size c = begin; c < end; ++c) solve(by_size[done + c], alone);
        });
    }

  private:
    Size size(Size c) const { return components_.bounds[c + 1] - components_.bounds[c]; }

    void solve(Size c, ThreadTeam& team) const {
        const OwnedCsr part = extract(c, team);
        const Csr view{part.indptr.data(), part.indices.data(), part.weights.data(), size(c)};
        std::vector<float> vectors(static_cast<std::size_t>(size(c) * wanted_));
        eigenmap(view, wanted_, seed_, vectors.data(), team);
        const Index* rows = components_.order.data() + components_.bounds[c];
        for (Size i = 0; i < size(c); ++i) std::copy_n(vectors.data() + i * wanted_, wanted_, out_ + rows[i] * wanted_);
    }

    // The graph of one component, whose rows are numbered from 0.
    OwnedCsr extract(Size c, ThreadTeam& team) const {
        const Index* rows = components_.order.data() + components_.bounds[c];
        OwnedCsr part;
        part.indptr.assign(static_cast<std::size_t>(size(c)) + 1, 0);
        for (Size i = 0; i < size(c); ++i)
            part.indptr[i + 1] = part.indptr[i] + graph_.indptr[rows[i] + 1] - graph_.indptr[rows[i]];
        part.indices.resize(static_cast<std::size_t>(part.indptr[size(c)]));
        part.weights.resize(part.indices.size());
        team.parallel_for(size(c), 1024, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) {
                Size to = part.indptr[i];
                for (Size e = graph_.indptr[rows[i]]; e < graph_.indptr[rows[i] + 1]; ++e, ++to) {
                    part.indices[to] = place_[graph_.indices[e]];
                    part.weights[to] = graph_.weights[e];
                }
            }
        });
        return part;
    }

    const Csr& graph_;
    const Components& components_;
    Size wanted_;
    std::uint64_t seed_;
    float* out_;
    std::vector<Index> place_;  // of every row, within its component
};

}  // namespace

void component_eigenmaps(const Csr& graph, const Components& components, Size wanted, std::uint64_t seed, float* out,
                         ThreadTeam& team) {
    if (components.count() == 1) return eigenmap(graph, wanted, seed, out, team);
    Solver(graph, components, wanted, seed, out).run(team);
}

void segment_means(const RowMatrix& rows, const RowSets& sets, Size most_rows, double* means, ThreadTeam& team) {
    team.parallel_for(sets.count, 1, [&](Size first, Size last, int) {
        std::vector<float> widened(static_cast<std::size_t>(rows.is_float() ? 0 : rows.cols));
        for (Size s = first; s < last; ++s) {
            const Size size = sets.end[s] - sets.begin[s], taken = std::min(size, most_rows);
            double* mean = means + s * rows.cols;
            std::fill_n(mean, rows.cols, 0.0);
            for (Size t = 0; t < taken; ++t) {
                const float* row = rows.row(sets.order[sets.begin[s] + t * size / taken], widened.data());
                for (Size c = 0; c < rows.cols; ++c) mean[c] += row[c];
            }
            for (Size c = 0; c < rows.cols; ++c) mean[c] /= static_cast<double>(taken);
        }
    });
}

}  // namespace vicinal
