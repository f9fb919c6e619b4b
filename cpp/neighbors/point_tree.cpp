#include "neighbors/point_tree.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace vicinal {

namespace {

constexpr Size leaf_points = 12;  // the most points of a leaf

struct Candidate {
    double d2;
    Index row;

    bool operator<(const Candidate& other) const { return d2 < other.d2 || (d2 == other.d2 && row < other.row); }
};

struct Keyed {
    float value;
    Index row;

    bool operator<(const Keyed& other) const {
        return value < other.value || (value == other.value && row < other.row);
    }
};

void require_finite(Matrix points, const char* message) {
    for (Size e = 0; e < points.rows * points.cols; ++e)
        if (!std::isfinite(points.data[e])) throw std::invalid_argument(message);
}

std::vector<Index> sort_by_leaf(const std::vector<Index>& leaf, Size leaves) {
    std::vector<Size> start(static_cast<std::size_t>(leaves + 1), 0);
    for (const Index l : leaf) ++start[l + 1];
    for (Size l = 0; l < leaves; ++l) start[l + 1] += start[l];
    std::vector<Index> order(leaf.size());
    for (std::size_t i = 0; i < leaf.size(); ++i) order[start[leaf[i]]++] = static_cast<Index>(i);
    return order;
}

// The k best candidates. Few are kept sorted, many in a heap.
class Best {
  public:
    explicit Best(Size k) : k_(k), sorted_(k <= most_sorted), entries_(static_cast<std::size_t>(k)) {}

    void clear() {
        n_ = 0;
        worst_ = {std::numeric_limits<double>::infinity(), std::numeric_limits<Index>::max()};
    }

    const Candidate& worst() const { return worst_; }

    void offer(const Candidate& candidate) {
        if (sorted_)
            insert(candidate);
        else
            push(candidate);
    }

    const std::vector<Candidate>& sorted() {
        if (!sorted_) std::sort(entries_.begin(), entries_.end());
        return entries_;
    }

  private:
    static constexpr Size most_sorted = 256;

    void insert(const Candidate& candidate) {
        Size at = n_ < k_ ? n_++ : k_ - 1;
        for (; at > 0 && candidate < entries_[at - 1]; --at) entries_[at] = entries_[at - 1];
        entries_[at] = candidate;
        if (n_ == k_) worst_ = entries_[k_ - 1];
    }

    void push(const Candidate& candidate) {
        if (n_ < k_) {
            entries_[n_++] = candidate;
            std::push_heap(entries_.begin(), entries_.begin() + n_);
        } else {
            std::pop_heap(entries_.begin(), entries_.end());
            entries_.back() = candidate;
            std::push_heap(entries_.begin(), entries_.end());
        }
        if (n_ == k_) worst_ = entries_.front();
    }

    const Size k_;
    const bool sorted_;
    Size n_ = 0;
    Candidate worst_{};
    std::vector<Candidate> entries_;
};

}  // namespace

// Searches of one thread. Dim > 0 fixes the number of components at compile time.
template <int Dim>
class PointSearch {
  public:
    PointSearch(const PointTree& tree, Size k) : tree_(tree), best_(k) {}

    void run(const float* query, Index* index, float* distance) {
        query_ = query;
        best_.clear();
        visit(0, 0);
        for (const Candidate& candidate : best_.sorted()) {
            *index++ = candidate.row;
            *distance++ = static_cast<float>(std::sqrt(candidate.d2));
        }
    }

    // The leaf that a search visits first.
    Index leaf_of(const float* query) {
        query_ = query;
        Size p = 0;
        for (Size level = 0; level < tree_.depth_; ++level) {
            const Size left = (Size{2} << level) - 1 + 2 * p;
            p = 2 * p + (bound(left + 1) < bound(left) ? 1 : 0);
        }
        return static_cast<Index>(p);
    }

    Size compared() const { return compared_; }

  private:
    Size dim() const { return Dim > 0 ? Dim : tree_.dim_; }

    // At most the squared distance to any point of a node: the same operations on differences that are not longer.
    double bound(Size node) const {
        const float* box = tree_.box_.data() + node * dim() * 2;
        double d2 = 0.0;
        for (Size c = 0; c < dim(); ++c) {
            const double x = query_[c];
            const double outside = std::max(std::max(box[2 * c] - x, x - box[2 * c + 1]), 0.0);
            d2 += outside * outside;
        }
        return d2;
    }

    void visit(Size level, Size p) {
        if (level == tree_.depth_) return scan(tree_.begin_of(level, p), tree_.begin_of(level, p + 1));
        const Size left = (Size{2} << level) - 1 + 2 * p;
        const double left_bound = bound(left), right_bound = bound(left + 1);
        const Size near = right_bound < left_bound ? 1 : 0;
        const double bounds[2] = {left_bound, right_bound};
        for (const Size side : {near, 1 - near})
            if (Candidate{bounds[side], tree_.first_row_[left + side]} < best_.worst()) visit(level + 1, 2 * p + side);
    }

    void scan(Size begin, Size end) {
        double d2[leaf_points];
        const Size n = end - begin;
        compared_ += n;
        for (Size i = 0; i < n; ++i) d2[i] = 0.0;
        for (Size c = 0; c < dim(); ++c) {
            const float* column = tree_.coordinate_.data() + c * tree_.n_ + begin;
            const double x = query_[c];
            for (Size i = 0; i < n; ++i) d2[i] += (x - column[i]) * (x - column[i]);
        }
        for (Size i = 0; i < n; ++i) {
            const Candidate candidate{d2[i], tree_.row_[begin + i]};
            if (candidate < best_.worst()) best_.offer(candidate);
        }
    }

    const PointTree& tree_;
    const float* query_ = nullptr;
    Size compared_ = 0;
    Best best_;
};

PointTree::PointTree(Matrix points, ThreadTeam& team)
    : n_(points.rows), dim_(points.cols), row_(static_cast<std::size_t>(n_)),
      coordinate_(static_cast<std::size_t>(n_ * dim_)) {
    require_finite(points, "points contain NaN or infinity");
    while ((n_ + (Size{1} << depth_) - 1) >> depth_ > leaf_points) ++depth_;
    std::iota(row_.begin(), row_.end(), 0);
    box_.resize(static_cast<std::size_t>(nodes() * dim_ * 2));
    first_row_.resize(static_cast<std::size_t>(nodes()));
    if (n_ == 0) return;
    for (Size level = 0; level <= depth_; ++level) split_level(points, level, team);
    team.parallel_for(n_, 4096, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size c = 0; c < dim_; ++c) coordinate_[c * n_ + i] = points.row(row_[i])[c];
    });
}

void PointTree::split_level(Matrix points, Size level, ThreadTeam& team) {
    const Size grain = std::max<Size>(1, (Size{1} << level) / 256);
    team.parallel_for(Size{1} << level, grain, [&](Size first, Size last, int) {
        std::vector<Keyed> keyed;
        for (Size p = first; p < last; ++p) {
            measure(points, level, p);
            if (level == depth_) continue;
            const float* box = box_.data() + ((Size{1} << level) - 1 + p) * dim_ * 2;
            Size widest = 0;
            for (Size c = 1; c < dim_; ++c)
                if (box[2 * c + 1] - box[2 * c] > box[2 * widest + 1] - box[2 * widest]) widest = c;
            const Size begin = begin_of(level, p), end = begin_of(level, p + 1);
            keyed.resize(static_cast<std::size_t>(end - begin));
            for (Size i = begin; i < end; ++i) keyed[i - begin] = {points.row(row_[i])[widest], row_[i]};
            std::nth_element(keyed.begin(), keyed.begin() + (begin_of(level + 1, 2 * p + 1) - begin), keyed.end());
            for (Size i = begin; i < end; ++i) row_[i] = keyed[i - begin].row;
        }
    });
}

// Box and lowest row of a node.
void PointTree::measure(Matrix points, Size level, Size p) {
    const Size node = (Size{1} << level) - 1 + p, begin = begin_of(level, p), end = begin_of(level, p + 1);
    float* box = box_.data() + node * dim_ * 2;
    for (Size c = 0; c < dim_; ++c) box[2 * c] = box[2 * c + 1] = points.row(row_[begin])[c];
    first_row_[node] = row_[begin];
    for (Size i = begin; i < end; ++i) {
        first_row_[node] = std::min(first_row_[node], row_[i]);
        for (Size c = 0; c < dim_; ++c) {
            box[2 * c] = std::min(box[2 * c], points.row(row_[i])[c]);
            box[2 * c + 1] = std::max(box[2 * c + 1], points.row(row_[i])[c]);
        }
    }
}

Size PointTree::query(Matrix queries, Size k, Index* index, float* distance, ThreadTeam& team) const {
    require_finite(queries, "queries contain NaN or infinity");
    std::atomic<Size> compared{0};
    const auto run = [&]<int Dim>() {
        // Queries of one leaf read the same part of the tree: one after the other they find it in the cache.
        std::vector<Index> leaf(static_cast<std::size_t>(queries.rows));
        team.parallel_for(queries.rows, 256, [&](Size begin, Size end, int) {
            PointSearch<Dim> search(*this, k);
            for (Size i = begin; i < end; ++i) leaf[i] = search.leaf_of(queries.row(i));
        });
        const std::vector<Index> order = sort_by_leaf(leaf, Size{1} << depth_);
        team.parallel_for(queries.rows, 256, [&](Size begin, Size end, int) {
            PointSearch<Dim> search(*this, k);
            for (Size at = begin; at < end; ++at) {
                const Size i = order[at];
                search.run(queries.row(i), index + i * k, distance + i * k);
            }
            compared.fetch_add(search.compared(), std::memory_order_relaxed);
        });
        return compared.load();
    };
    switch (dim_) {
    case 1: return run.template operator()<1>();
    case 2: return run.template operator()<2>();
    case 3: return run.template operator()<3>();
    default: return run.template operator()<0>();
    }
}

}  // namespace vicinal
