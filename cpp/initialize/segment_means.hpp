// The means of sets of rows, estimated from some rows of each set.
#pragma once

#include "base/parallel.hpp"

namespace vicinal {

// Sets of positions in `order`, which holds row numbers: set s has the positions [begin[s], end[s]), at least one.
struct RowSets {
    const Index* order;
    const Size *begin, *end;
    Size count;
};

// Writes the means [sets][columns] of at most `most_rows` rows of each set, evenly spread over its positions, added in
// their order in double precision.
void segment_means(const Matrix& rows, const RowSets& sets, Size most_rows, double* means, ThreadTeam& team);

}  // namespace vicinal
