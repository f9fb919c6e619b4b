// Hashes of rows: equal rows have equal hashes. They seed the random generator of transform, so that the point of a row
// does not depend on its position in the batch, and they find rows that were seen before. Also finds values that are
// too large or not finite.
//
// The hash of a dense row is shared with the GPU (cuda/neighbors.cu); the loops over all rows are for the CPU.
#pragma once

#include "base/rng.hpp"

#include <cstring>
#include <limits>

#if !defined(VICINAL_ONE_LANE)
#include "base/parallel.hpp"
#include "base/row_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>
#endif

namespace vicinal {

// -0 equals 0, and all NaNs are equal: they stand for missing values.
inline float canonical(float x) { return x == x ? x + 0.0f : std::numeric_limits<float>::quiet_NaN(); }

inline std::uint64_t add_word(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 35;
}

inline std::uint64_t hash_row(const float* row, Size d) {
    std::uint64_t hash = mix64(static_cast<std::uint64_t>(d));
    for (Size k = 0; k < d; k += 2) {
        const float pair[2] = {canonical(row[k]), k + 1 < d ? canonical(row[k + 1]) : 0.0f};
        std::uint64_t word;
        std::memcpy(&word, pair, sizeof word);
        hash = add_word(hash, word);
    }
    return mix64(hash);
}

}  // namespace vicinal

// The loops over all rows, on the CPU.
#if !defined(VICINAL_ONE_LANE)

namespace vicinal {

// Stored zeros are ignored.
inline std::uint64_t hash_sparse_row(const Index* column, const float* value, Size n, Size d) {
    std::uint64_t hash = mix64(static_cast<std::uint64_t>(d));
    for (Size e = 0; e < n; ++e)
        if (value[e] != 0.0f)
            hash = add_word(
                hash, static_cast<std::uint64_t>(column[e]) << 32 | std::bit_cast<std::uint32_t>(canonical(value[e])));
    return mix64(hash);
}

inline void hash_rows(const RowMatrix& rows, std::uint64_t* out, ThreadTeam& team) {
    team.parallel_for(rows.rows, 512, [&](Size begin, Size end, int) {
        std::vector<float> widened(static_cast<std::size_t>(rows.is_float() ? 0 : rows.cols));
        for (Size i = begin; i < end; ++i) out[i] = hash_row(rows.row(i, widened.data()), rows.cols);
    });
}

inline void hash_sparse_rows(const Csr& rows, Size d, std::uint64_t* out, ThreadTeam& team) {
    team.parallel_for(rows.rows, 512, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            const Size from = rows.indptr[i];
            out[i] = hash_sparse_row(rows.indices + from, rows.weights + from, rows.indptr[i + 1] - from, d);
        }
    });
}

// The largest magnitude in the rows, and the first row that contains NaN or infinity (-1 if there is none).
struct RowScan {
    float largest = 0.0f;
    Size first_bad_row = -1;
};

// With `allow_nan`, NaN stands for a missing value and is accepted.
inline RowScan scan_rows(const RowMatrix& rows, bool allow_nan, ThreadTeam& team) {
    constexpr Size grain = 256;
    struct Part {
        float largest = 0.0f;
        Size bad = -1;
    };
    std::vector<Part> parts(static_cast<std::size_t>((rows.rows + grain - 1) / grain));
    team.parallel_for(rows.rows, grain, [&](Size begin, Size end, int) {
        Part& part = parts[begin / grain];
        std::vector<float> widened(static_cast<std::size_t>(rows.is_float() ? 0 : rows.cols));
        for (Size i = begin; i < end; ++i) {
            const float* x = rows.row(i, widened.data());
            float largest = 0.0f, poison = 0.0f;
            for (Size k = 0; k < rows.cols; ++k) {
                const float magnitude = std::fabs(x[k]);
                largest = magnitude > largest ? magnitude : largest;
                poison += x[k] * 0.0f;  // NaN if x is NaN or infinite
            }
            part.largest = std::max(part.largest, largest);
            if (allow_nan) poison = largest * 0.0f;  // `largest` ignores NaN, because comparisons with it are false
            if (!(poison == 0.0f) && part.bad < 0) part.bad = i;
        }
    });
    RowScan scan;
    for (const Part& part : parts) {
        scan.largest = std::max(scan.largest, part.largest);
        if (scan.first_bad_row < 0) scan.first_bad_row = part.bad;
    }
    return scan;
}

}  // namespace vicinal

#endif  // VICINAL_ONE_LANE
