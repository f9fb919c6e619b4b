// Neighbours of unseen rows. With a forest: the leaves a query falls into give the start, then the nearest
// unexpanded row of the pool is expanded through the neighbour graph until the pool holds nothing unexpanded.
// Without one (small data): every row is looked at. Each query is alone, so its answer depends on nothing else.
#pragma once

#include "join.hpp"
#include "parallel.hpp"
#include "rp_forest.hpp"
#include "scratch.hpp"

namespace vicinal::VICINAL_LEVEL {

// Rows already looked at: open addressing, emptied for each query.
class VisitedSet {
  public:
    VisitedSet() : slots_(first_capacity) { clear(); }

    void clear() {
        for (Size s = 0; s < capacity_; ++s) slots_[s] = -1;
        used_ = 0;
    }

    bool insert(Index row) {
        Size s = slot(row);
        for (; slots_[s] >= 0; s = (s + 1) & (capacity_ - 1))
            if (slots_[s] == row) return false;
        slots_[s] = row;
        if (2 * ++used_ > capacity_) grow();
        return true;
    }

  private:
    static constexpr Size first_capacity = 2048;

    VICINAL_INLINE Size slot(Index row) const {
        return static_cast<Size>(finalize32(static_cast<std::uint32_t>(row))) & (capacity_ - 1);
    }

    void grow() {
        Scratch<Index> rows(capacity_);
        const Size old = capacity_;
        std::memcpy(rows.data(), slots_.data(), static_cast<std::size_t>(old) * sizeof(Index));
        capacity_ *= 2;
        slots_.resize(capacity_);
        clear();
        for (Size s = 0; s < old; ++s)
            if (rows[s] >= 0) insert(rows[s]);
    }

    Size capacity_ = first_capacity;
    Size used_ = 0;
    Scratch<Index> slots_;
};

template <class Rank, bool Prepared>
class Searcher {
  public:
    Searcher(const SearchSpace& space, const ForestView& forest, const QueryTask& task)
        : space_(space), forest_(forest), task_(task), ranks_(task.pool + heap_pad), tags_(task.pool + heap_pad),
          pool_{ranks_.data(), tags_.data()}, normal_(split_width(space)) {}

    void run(Size query) {
        query_ = query;
        for (Size e = 0; e < task_.pool + heap_pad; ++e) {
            pool_.rank[e] = no_rank;
            pool_.tag[e] = no_tag;
        }
        visited_.clear();
        if (forest_.trees == 0)
            for (Size i = 0; i < space_.rows.rows; ++i) consider(static_cast<Index>(i));
        else
            descend_graph();
        for (Size e = 0; e < task_.k; ++e) {
            task_.index[query * task_.k + e] = pool_.holds(e) ? pool_.index(e) : -1;
            task_.rank[query * task_.k + e] = pool_.rank[e];
        }
    }

  private:
    void descend_graph() {
        for (Size tree = 0; tree < forest_.trees; ++tree) {
            const Size leaf = find_leaf(space_, forest_, tree, task_.queries.sketch_row(query_), normal_.data());
            const Index* order = forest_.order + tree * forest_.rows;
            for (Size i = forest_.begin_of(forest_.depth, leaf); i < forest_.begin_of(forest_.depth, leaf + 1); ++i)
                if (visited_.insert(order[i])) consider(order[i]);
        }
        for (Size e = 0; e < task_.pool && pool_.holds(e);) {
            if (!is_fresh(pool_.tag[e])) {
                ++e;
                continue;
            }
            pool_.tag[e] &= ~1u;
            const Size row = pool_.index(e);
            for (Size g = task_.graph.indptr[row]; g < task_.graph.indptr[row + 1]; ++g)
                if (visited_.insert(task_.graph.indices[g])) consider(task_.graph.indices[g]);
            e = 0;
        }
    }

    VICINAL_INLINE void consider(Index row) {
        const float worst = pool_.rank[task_.pool - 1];
        float rank = rank_pair<Rank, false>(task_.queries.sketch_row(query_), {}, space_.sketch_row(row), {},
                                            space_.sketch_stride);
        if (rank > (task_.share < 1.0f ? task_.share * worst : space_.relaxed(worst))) return;
        if (!space_.sketch_exact)
            rank = rank_pair<Rank, Prepared>(task_.queries.rows.row(query_), task_.queries.scale_of(query_),
                                             space_.rows.row(row), space_.scale_of(row), space_.rows.cols);
        insert_sorted(pool_, task_.pool, rank, row);
    }

    const SearchSpace& space_;
    const ForestView& forest_;
    const QueryTask& task_;
    Scratch<float> ranks_;
    Scratch<std::uint32_t> tags_;
    HeapRow pool_;
    Scratch<float> normal_;
    VisitedSet visited_;
    Size query_ = 0;
};

}  // namespace vicinal::VICINAL_LEVEL
