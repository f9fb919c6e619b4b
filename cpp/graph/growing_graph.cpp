#include "graph/growing_graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace vicinal {

namespace {

constexpr Size rows_per_block = 256;

}  // namespace

void GrowingGraph::extend(Size n) {
    if (n <= this->n()) return;
    index_.resize(static_cast<std::size_t>(n * k_), -1);
    membership_.resize(static_cast<std::size_t>(n * k_), 0.0f);
    listed_by_.resize(static_cast<std::size_t>(n));
}

bool GrowingGraph::lists(Size row, Index tail) const {
    const auto first = index_.begin() + row * k_;
    return std::find(first, first + k_, tail) != first + k_;
}

float GrowingGraph::membership_of(Size row, Index tail) const {
    const auto first = index_.begin() + row * k_;
    return membership_[std::find(first, first + k_, tail) - index_.begin()];
}

// Prefetches the scattered memory that the edges of a row need while another row is processed.
void GrowingGraph::prefetch_edges(Index row) const {
    for (const Index other : listed_by_[row]) {
        __builtin_prefetch(index_.data() + other * k_);
        __builtin_prefetch(membership_.data() + other * k_);
    }
}

void GrowingGraph::replace(const Index* rows, Size count, const Index* index, const float* membership) {
    for (Size i = 0; i < count; ++i)
        if (rows[i] < 0 || rows[i] >= n()) throw std::invalid_argument("a row to replace does not exist");
    for (Size e = 0; e < count * k_; ++e)
        if (index[e] >= n()) throw std::invalid_argument("a tail is no row");
    std::vector<Index> old(static_cast<std::size_t>(k_));
    for (Size i = 0; i < count; ++i) {
        const Index row = rows[i];
        Index* mine = index_.data() + row * k_;
        std::copy(mine, mine + k_, old.begin());
        for (Size e = 0; e < k_; ++e) {
            const float p = membership[i * k_ + e];
            const Index tail = index[i * k_ + e];
            const bool counts = p > 0.0f && tail >= 0 && tail != row && std::find(mine, mine + e, tail) == mine + e;
            mine[e] = counts ? tail : -1;
            membership_[row * k_ + e] = counts ? std::min(p, 1.0f) : 0.0f;
        }
        for (const Index gone : old)
            if (gone >= 0 && !lists(row, gone)) {
                std::vector<Index>& from = listed_by_[gone];
                *std::find(from.begin(), from.end(), row) = from.back();
                from.pop_back();
            }
        for (Size e = 0; e < k_; ++e)
            if (mine[e] >= 0 && std::find(old.begin(), old.end(), mine[e]) == old.end())
                listed_by_[mine[e]].push_back(row);
    }
}

void GrowingGraph::keep(const Index* rows, Size count) {
    for (Size i = 0; i < count; ++i)
        if (rows[i] >= n() || rows[i] < (i > 0 ? rows[i - 1] + 1 : 0))
            throw std::invalid_argument("the rows to keep must exist, and their numbers ascend");
    std::vector<Index> number(listed_by_.size(), -1);
    for (Size i = 0; i < count; ++i) number[rows[i]] = static_cast<Index>(i);
    for (Size i = 0; i < count; ++i) {
        const Size from = rows[i] * k_, to = i * k_;
        for (Size e = 0; e < k_; ++e) {
            const Index tail = index_[from + e];
            index_[to + e] = tail < 0 ? -1 : number[tail];
            membership_[to + e] = index_[to + e] < 0 ? 0.0f : membership_[from + e];
        }
        std::vector<Index>& listed_by = listed_by_[rows[i]];
        for (Index& other : listed_by) other = number[other];
        std::erase(listed_by, -1);
        if (rows[i] != i) listed_by_[i] = std::move(listed_by);
    }
    index_.resize(static_cast<std::size_t>(count * k_));
    membership_.resize(static_cast<std::size_t>(count * k_));
    listed_by_.resize(static_cast<std::size_t>(count));
    if (4 * index_.size() > index_.capacity()) return;
    index_.shrink_to_fit();
    membership_.shrink_to_fit();
    listed_by_.shrink_to_fit();
}

std::vector<Size> GrowingGraph::empty_rows() const {
    std::vector<Size> empty;
    for (Size row = 0; row < n(); ++row) {
        const auto first = index_.begin() + row * k_;
        if (std::all_of(first, first + k_, [](Index tail) { return tail < 0; })) empty.push_back(row);
    }
    return empty;
}

OwnedCsr GrowingGraph::edges(const Index* rows, Size count, ThreadTeam& team) const {
    // Every row has space for all edges that it could have; unused space is removed afterwards.
    std::vector<Size> room(static_cast<std::size_t>(count + 1), 0);
    for (Size i = 0; i < count; ++i) {
        if (rows[i] < 0 || rows[i] >= n())
            throw std::invalid_argument("a row whose edges are requested does not exist");
        room[i + 1] = room[i] + k_ + static_cast<Size>(listed_by_[rows[i]].size());
    }
    std::vector<DirectedEdge> merged(static_cast<std::size_t>(room[count]));
    OwnedCsr out;
    out.indptr.assign(static_cast<std::size_t>(count + 1), 0);
    team.parallel_for(count, rows_per_block, [&](Size begin, Size end, int) {
        std::vector<DirectedEdge> from, to;
        const auto ascending = [](const DirectedEdge& x, const DirectedEdge& y) { return x.to < y.to; };
        for (Size i = begin; i < end; ++i) {
            const Index row = rows[i];
            from.clear();
            to.clear();
            if (i + 1 < end) prefetch_edges(rows[i + 1]);
            for (Size e = row * k_; e < (row + 1) * k_; ++e)
                if (index_[e] >= 0) from.push_back({index_[e], membership_[e]});
            for (const Index other : listed_by_[row]) to.push_back({other, membership_of(other, row)});
            std::sort(from.begin(), from.end(), ascending);
            std::sort(to.begin(), to.end(), ascending);
            Size at = room[i];
            merge_directions(from.data(), from.data() + from.size(), to.data(), to.data() + to.size(), mix_,
                             [&](Index j, float w) { merged[at++] = {j, w}; });
            out.indptr[i + 1] = at - room[i];
        }
    });
    for (Size i = 0; i < count; ++i) out.indptr[i + 1] += out.indptr[i];
    out.indices.resize(static_cast<std::size_t>(out.indptr[count]));
    out.weights.resize(static_cast<std::size_t>(out.indptr[count]));
    team.parallel_for(count, rows_per_block, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size e = out.indptr[i]; e < out.indptr[i + 1]; ++e) {
                const DirectedEdge& edge = merged[room[i] + e - out.indptr[i]];
                out.indices[e] = edge.to;
                out.weights[e] = edge.p;
            }
    });
    return out;
}

}  // namespace vicinal
