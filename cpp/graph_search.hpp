// Neighbours of unseen rows. With a forest: the leaves a query falls into give the start, then the nearest
// unexpanded row of the pool is expanded through the neighbour graph until the pool holds nothing unexpanded.
// Without one (small data), or without trees to start from: every row is looked at. Each query is alone, so its answer
// depends on nothing else.
#pragma once

#include "join.hpp"
#include "parallel.hpp"
#include "rp_forest.hpp"
#include "scratch.hpp"

#include <algorithm>

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

template <class Rank, Source source>
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
        if (forest_.trees == 0 || task_.trees == 0)
            look_at_all();
        else
            descend_graph();
        for (Size e = 0; e < task_.k; ++e) {
            task_.index[query * task_.k + e] = pool_.rank[e] < no_rank ? pool_.index(e) : -1;
            task_.rank[query * task_.k + e] = pool_.rank[e];
        }
    }

  private:
    struct Candidate {
        float rank;
        Index row;
    };

    void look_at_all() {
        Index rows[most_tails];
        for (Size begin = 0; begin < space_.rows.rows; begin += most_tails) {
            const Size n = std::min(most_tails, space_.rows.rows - begin);
            for (Size i = 0; i < n; ++i) rows[i] = static_cast<Index>(begin + i);
            consider_all(rows, n);
        }
    }

    void descend_graph() {
        const Size trees = task_.trees < forest_.trees ? task_.trees : forest_.trees;
        for (Size tree = 0; tree < trees; ++tree) {
            const Size leaf = find_leaf(space_, forest_, tree, task_.queries.sketch_row(query_), normal_.data());
            const Size begin = forest_.begin_of(forest_.depth, leaf), end = forest_.begin_of(forest_.depth, leaf + 1);
            consider_all(forest_.order + tree * forest_.rows + begin, end - begin);
        }
        for (Size e = 0; e < task_.pool && pool_.holds(e);) {
            if (!is_fresh(pool_.tag[e])) {
                ++e;
                continue;
            }
            pool_.tag[e] &= ~1u;
            const Size row = pool_.index(e);
            consider_all(task_.graph.indices + task_.graph.indptr[row],
                         task_.graph.indptr[row + 1] - task_.graph.indptr[row]);
            e = 0;
        }
    }

    // Rows not looked at before, nearest sketch first, so that the limit is tight when the rest come. The sketches
    // are asked for before the first is needed.
    void consider_all(const Index* rows, Size n) {
        Candidate fresh[most_tails];
        for (Size begin = 0; begin < n; begin += most_tails) {
            Size count = 0;
            for (Size i = begin; i < n && i < begin + most_tails; ++i)
                if (visited_.insert(rows[i])) {
                    prefetch(space_.sketch_row(rows[i]), space_.sketch_stride * static_cast<Size>(sizeof(float)));
                    fresh[count++].row = rows[i];
                }
            const float* query = task_.queries.sketch_row(query_);
            Size kept = 0;
            for (Size i = 0; i < count; ++i) {
                const float* sketch = space_.sketch_row(fresh[i].row);
                const float rank = rank_pair<Rank, false>(query, {}, sketch, {}, space_.sketch_stride);
                if (rank <= limit()) fresh[kept++] = {rank, fresh[i].row};
            }
            std::sort(fresh, fresh + kept,
                      [](const Candidate& x, const Candidate& y) { return precedes(x.rank, x.row, y.rank, y.row); });
            for (Size i = 0; i < kept && fresh[i].rank <= limit(); ++i) {
                if (i + 1 < kept) prefetch_row(space_, fresh[i + 1].row);
                consider(fresh[i]);
            }
        }
    }

    // The largest sketch rank worth a full evaluation.
    VICINAL_INLINE float limit() const {
        if constexpr (source == Source::pairs) return no_rank;
        const float worst = pool_.rank[task_.pool - 1];
        return task_.share < 1.0f ? task_.share * worst : space_.relaxed(worst);
    }

    VICINAL_INLINE void consider(Candidate candidate) {
        if (!space_.sketch_exact)
            candidate.rank = rank_rows<Rank, source>(task_.queries, query_, space_, candidate.row);
        insert_sorted(pool_, task_.pool, candidate.rank, candidate.row);
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
