#include "initialize/segment_means.hpp"

#include <algorithm>

namespace vicinal {

void segment_means(const Matrix& rows, const RowSets& sets, Size most_rows, double* means, ThreadTeam& team) {
    team.parallel_for(sets.count, 1, [&](Size first, Size last, int) {
        for (Size s = first; s < last; ++s) {
            const Size size = sets.end[s] - sets.begin[s], taken = std::min(size, most_rows);
            double* mean = means + s * rows.cols;
            std::fill_n(mean, rows.cols, 0.0);
            for (Size t = 0; t < taken; ++t) {
                const float* row = rows.row(sets.order[sets.begin[s] + t * size / taken]);
                for (Size c = 0; c < rows.cols; ++c) mean[c] += row[c];
            }
            for (Size c = 0; c < rows.cols; ++c) mean[c] /= static_cast<double>(taken);
        }
    });
}

}  // namespace vicinal
