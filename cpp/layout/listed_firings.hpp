// The edges that fire in the next sweeps, for all blocks of rows (firing_lists.hpp).
#pragma once

#include "base/parallel.hpp"
#include "layout/layout_task.hpp"

#include <vector>

namespace vicinal {

class ListedFirings {
  public:
    // For all sweeps of one call; the edges must not change meanwhile.
    ListedFirings(const LayoutTask& task, int workers);

    // Lists up to `sweeps` sweeps from `number` on, unless this sweep is among those that were listed last.
    void require(const LayoutTask& task, Size number, Size sweeps, ThreadTeam& team);

    const BlockFirings* blocks() const { return views_.data(); }
    // The place of a sweep in the lists.
    Size place(Size number) const { return number - first_sweep_; }

  private:
    struct Lists {
        std::vector<Index> tails, first;
    };

    const Size capacity_;  // of the list of a block and a sweep
    Size first_sweep_ = 0, sweeps_ = 0;
    std::vector<Lists> blocks_, scratch_;
    std::vector<BlockFirings> views_;
};

}  // namespace vicinal
