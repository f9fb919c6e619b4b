// The neighbor search on a GPU: ranks of pairs in the arithmetic of the CPU, selection of the best, rows in half
// precision for the products that propose candidates, and merging of lists that were found in several groups of rows.
//
// A pair of short rows is summed column by column, as the join of exact sketches does it (neighbors/join.hpp), a pair
// of long rows in 64 virtual lanes that are reduced by one tree (neighbors/metric.hpp), here two per lane of a warp.
#include "cuda/device.hpp"

#include "neighbors/metric.hpp"
#include "neighbors/row_content.hpp"

#ifndef VICINAL_RANK
#define VICINAL_RANK Squared
#endif

namespace vicinal {

constexpr float no_rank_value = 3.0e38f;

// Unsigned integers in the order of the numbers: keys that sort by (value, index).
VICINAL_INLINE std::uint32_t ordered_bits(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
VICINAL_INLINE float value_of(std::uint32_t ordered) {
    const std::uint32_t bits = (ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
// Sorts by (value, index).
VICINAL_INLINE std::uint64_t sort_key(float value, std::uint32_t index) {
    return static_cast<std::uint64_t>(ordered_bits(value)) << 32 | index;
}
constexpr std::uint64_t no_key = 0xffffffffffffffffull;

// Sorts `size` keys in shared memory, a power of two, by the lanes of a warp (Batcher's bitonic sort).
VICINAL_INLINE void sort_keys(std::uint64_t* keys, int size) {
    sync_lanes();
    for (int run = 2; run <= size; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) {
            FOR_LANES(lane) {
                for (int pair = lane; pair < size / 2; pair += warp_lanes) {
                    const int at = 2 * pair - pair % apart, other = at + apart;
                    const bool ascending = (at & run) == 0;
                    const std::uint64_t x = keys[at], y = keys[other];
                    if ((x > y) == ascending) {
                        keys[at] = y;
                        keys[other] = x;
                    }
                }
            }
            sync_lanes();
        }
}

#if defined(__CUDACC_RTC__)
extern __shared__ std::uint64_t dynamic_shared[];
VICINAL_INLINE std::uint64_t* warp_memory(int size) { return dynamic_shared + (threadIdx.x / warp_lanes) * size; }
#else
VICINAL_INLINE std::uint64_t* warp_memory(int) { return host_shared_memory; }
#endif

// The k smallest of the keys that are offered, by a warp. `size` is a power of two, at least 2 k and 64.
class BestKeys {
  public:
    VICINAL_INLINE BestKeys(std::uint64_t* keys, int size, int k) : keys_(keys), size_(size), k_(k) {}

    // A key per lane; no_key is none.
    VICINAL_INLINE void offer(PerLane<std::uint64_t>& key) {
        PerLane<bool> better;
        FOR_LANES(lane) better[lane] = key[lane] < worst_;
        std::uint32_t votes = ballot(better);
        if (votes == 0) return;
        if (count_ + bit_count(votes) > size_) {
            sort();
            count_ = k_;
            worst_ = keys_[k_ - 1];
            FOR_LANES(lane) better[lane] = key[lane] < worst_;
            votes = ballot(better);
        }
        sync_lanes();
        FOR_LANES(lane) if (better[lane]) keys_[count_ + bit_count(votes & ((1u << lane) - 1u))] = key[lane];
        count_ += bit_count(votes);
        sync_lanes();
    }

    // The keys in order, padded with no_key.
    VICINAL_INLINE const std::uint64_t* sorted() {
        sort();
        return keys_;
    }

  private:
    VICINAL_INLINE void sort() {
        FOR_LANES(lane) for (int e = count_ + lane; e < size_; e += warp_lanes) keys_[e] = no_key;
        sort_keys(keys_, size_);
    }

    std::uint64_t* keys_;
    int size_, k_, count_ = 0;
    std::uint64_t worst_ = no_key;
};

using Rank = gpu::VICINAL_RANK;
constexpr int virtual_lanes = 64;

struct RankedRows {
    const float* rows;
    Size cols;
    const bool* without_direction;  // null unless the metric prepares rows and they are long
};

VICINAL_INLINE float rank_step(float sum, float x, float y) { return Rank::step(sum, x, y)[0]; }

// In one lane, column by column.
VICINAL_INLINE float rank_in_order(const float* x, const float* y, Size cols) {
    float sum = 0.0f;
    for (Size k = 0; k < cols; ++k) sum = rank_step(sum, x[k], y[k]);
    return sum;
}

// By all lanes of a warp; every lane receives the rank.
VICINAL_INLINE float rank_by_lanes(const float* x, const float* y, Size cols) {
    PerLane<float> sum;
    FOR_LANES(lane) {
        float low = 0.0f, high = 0.0f;
        for (Size k = lane; k < cols; k += virtual_lanes) {
            low = rank_step(low, x[k], y[k]);
            if (k + warp_lanes < cols) high = rank_step(high, x[k + warp_lanes], y[k + warp_lanes]);
        }
        sum[lane] = Rank::merge(low, high);
    }
    for (int width = warp_lanes / 2; width > 0; width /= 2) {
        PerLane<float> other = from_above(sum, width);
        FOR_LANES(lane) sum[lane] = Rank::merge(sum[lane], other[lane]);
    }
    return of_first_lane(sum);
}

VICINAL_INLINE float with_direction(float rank, const bool* x_without, Size x, const bool* y_without, Size y) {
    if (x_without == nullptr) return rank;
    return Rank::merge(rank, x_without[x] != y_without[y] ? 1.0f : 0.0f);
}

// Offers the rows of a cell, which are stored column by column. A lane ranks several of them at a time, since they
// share the loads of x.
constexpr int packed_ahead = 4;

VICINAL_INLINE void offer_packed(BestKeys& best_keys, const float* x, const float* packed, Size cols,
                                 const Index* members, Size count) {
    for (Size from = 0; from < count; from += packed_ahead * warp_lanes) {
        PerLane<std::uint64_t> key[packed_ahead];
        FOR_LANES(lane) {
            float sum[packed_ahead] = {};
            const float* column = packed + from + lane;
            for (Size k = 0; k < cols; ++k, column += count) {
                const float own = x[k];
                // Beyond the last row these are numbers of the next column, or of the padding; they do not count.
                VICINAL_UNROLL
                for (int u = 0; u < packed_ahead; ++u) sum[u] = rank_step(sum[u], own, column[u * warp_lanes]);
            }
            VICINAL_UNROLL
            for (int u = 0; u < packed_ahead; ++u) {
                const Size at = from + u * warp_lanes + lane;
                key[u][lane] = at < count ? sort_key(sum[u], static_cast<std::uint32_t>(members[at])) : no_key;
            }
        }
        for (int u = 0; u < packed_ahead; ++u) best_keys.offer(key[u]);
    }
}

}  // namespace vicinal

using namespace vicinal;

// Shift and scale of every row (metric.hpp), applied; thread per row. `out` has `out_cols` columns; column `cols`,
// if there is one, marks rows without direction.
extern "C" __global__ void prepare_rows(const float* rows, Size n, Size cols, bool centered, Size out_cols, float* out,
                                        bool* without_direction) {
    const Size i = thread_number();
    if (i >= n) return;
    const float* x = rows + i * cols;
    const RowScale own = gpu::row_scale(x, cols, centered);
    for (Size k = 0; k < cols; ++k) out[i * out_cols + k] = (x[k] - own.shift) * own.scale;
    if (out_cols > cols) out[i * out_cols + cols] = own.scale == 0.0f ? 1.0f : 0.0f;
    without_direction[i] = own.scale == 0.0f;
}
THREAD_KERNEL(prepare_rows)

// Ranks of heads [first, first + n_heads) with all rows, short rows; thread per pair. `columns` are the rows
// transposed.
extern "C" __global__ void rank_all_short(const float* heads, const float* columns, Size first, Size n_heads, Size n,
                                          Size cols, float* ranks) {
    const Size at = thread_number();
    if (at >= n_heads * n) return;
    const float* x = heads + (first + at / n) * cols;
    const Size j = at % n;
    float sum = 0.0f;
    for (Size k = 0; k < cols; ++k) sum = rank_step(sum, x[k], columns[k * n + j]);
    ranks[at] = sum;
}
THREAD_KERNEL(rank_all_short)

// The same for long rows; warp per pair.
extern "C" __global__ void rank_all_long(const float* heads, const bool* heads_without, const float* rows,
                                         const bool* rows_without, Size first, Size n_heads, Size n, Size cols,
                                         float* ranks) {
    const Size at = warp_number();
    if (at >= n_heads * n) return;
    const Size i = first + at / n, j = at % n;
    const float rank =
        with_direction(rank_by_lanes(heads + i * cols, rows + j * cols, cols), heads_without, i, rows_without, j);
    FOR_LANES(lane) if (lane == 0) ranks[at] = rank;
}
WARP_KERNEL(rank_all_long)

// The `k` columns of smallest `sign * values + bias` of every row, by (value, column); warp per row. Row r belongs to
// batch r / batch_rows, whose first `valid` columns count. Column `skip_from + r` is left out if skip_from >= 0.
// `names` maps columns of a batch to the numbers that are written; -1 fills the rest. `size` keys of shared memory, a
// power of two, at least 2 k and 64.
extern "C" __global__ void select_columns(const float* values, const float* bias, Size n_rows, Size n_columns,
                                          Size batch_rows, const Index* valid, const Index* names, Size skip_from,
                                          float sign, int k, int size, Index* index, float* best) {
    const Size r = warp_number();
    if (r >= n_rows) return;
    const Size batch = r / batch_rows;
    const Size columns = valid != nullptr ? valid[batch] : n_columns;
    const bool counts = valid == nullptr || r % batch_rows < columns;
    const float* row = values + r * n_columns;
    BestKeys best_keys(warp_memory(size), size, k);
    for (Size from = 0; counts && from < columns; from += warp_lanes) {
        PerLane<std::uint64_t> key;
        FOR_LANES(lane) {
            const Size c = from + lane;
            const bool present = c < columns && !(skip_from >= 0 && c == skip_from + r);
            const float own_bias = present && bias != nullptr ? bias[batch * n_columns + c] : 0.0f;
            key[lane] = present ? sort_key(sign * row[c] + own_bias, static_cast<std::uint32_t>(c)) : no_key;
        }
        best_keys.offer(key);
    }
    const std::uint64_t* keys = best_keys.sorted();
    FOR_LANES(lane) for (int e = lane; e < k; e += warp_lanes) {
        const bool known = keys[e] != no_key;
        const auto c = static_cast<Index>(keys[e] & 0xffffffffu);
        index[r * k + e] = !known ? -1 : names != nullptr ? names[batch * n_columns + c] : c;
        best[r * k + e] = known ? value_of(static_cast<std::uint32_t>(keys[e] >> 32)) : no_rank_value;
    }
}
WARP_KERNEL(select_columns)

// The `k` best of `m` candidates per head, ranked as the CPU ranks them, by (rank, index), each once and without the
// head itself if `same`; warp per head. Candidates below 0 are none. `size` is a power of two, at least m and 32.
extern "C" __global__ void rank_candidates(const float* heads, const bool* heads_without, const float* rows,
                                           const bool* rows_without, Size first, Size n_heads, Size cols, bool in_order,
                                           const Index* candidates, int m, bool same, int k, int size, Index* index,
                                           float* ranks) {
    const Size at = warp_number();
    if (at >= n_heads) return;
    const Size i = first + at;
    const float* x = heads + i * cols;
    std::uint64_t* keys = warp_memory(size);
    FOR_LANES(lane) for (int e = lane; e < size; e += warp_lanes) {
        const Index j = e < m ? candidates[at * m + e] : -1;
        keys[e] = j < 0 || (same && j == i) ? no_key : static_cast<std::uint64_t>(j);
    }
    sort_keys(keys, size);
    int present = 0;
    for (int from = 0; from < size; from += warp_lanes) {
        PerLane<std::uint64_t> kept;
        PerLane<bool> unique;
        FOR_LANES(lane) {
            const int e = from + lane;
            kept[lane] = keys[e];
            unique[lane] = kept[lane] != no_key && (e == 0 || keys[e - 1] != kept[lane]);
        }
        const std::uint32_t votes = ballot(unique);
        // The kept entries move to the front. Entry from + 31, with which the next step begins its comparison, is only
        // overwritten by itself.
        sync_lanes();
        FOR_LANES(lane) if (unique[lane]) keys[present + bit_count(votes & ((1u << lane) - 1u))] = kept[lane];
        present += bit_count(votes);
        sync_lanes();
    }
    if (in_order) {
        FOR_LANES(lane) for (int e = lane; e < size; e += warp_lanes) {
            const Size j = e < present ? static_cast<Size>(keys[e]) : 0;
            keys[e] =
                e < present ? sort_key(rank_in_order(x, rows + j * cols, cols), static_cast<std::uint32_t>(j)) : no_key;
        }
    } else {
        for (int e = 0; e < present; ++e) {
            const Size j = static_cast<Size>(keys[e]);
            const float rank =
                with_direction(rank_by_lanes(x, rows + j * cols, cols), heads_without, i, rows_without, j);
            sync_lanes();
            FOR_LANES(lane) if (lane == 0) keys[e] = sort_key(rank, static_cast<std::uint32_t>(j));
        }
        FOR_LANES(lane) for (int e = present + lane; e < size; e += warp_lanes) keys[e] = no_key;
    }
    sort_keys(keys, size);
    FOR_LANES(lane) for (int e = lane; e < k; e += warp_lanes) {
        const bool known = e < size && keys[e] != no_key;
        index[at * k + e] = known ? static_cast<Index>(keys[e] & 0xffffffffu) : -1;
        ranks[at * k + e] = known ? value_of(static_cast<std::uint32_t>(keys[e] >> 32)) : no_rank_value;
    }
}
WARP_KERNEL(rank_candidates)

// The rows of every cell column by column, so that neighboring lanes read neighboring words; thread per member. Column
// k of the rows of cell c begins at begin[c] * cols + k * (rows of the cell).
extern "C" __global__ void pack_cells(const float* rows, Size cols, const Index* members, const Index* cell_of,
                                      const Size* begin, Size n_members, float* packed) {
    const Size p = thread_number();
    if (p >= n_members) return;
    const Size first = begin[cell_of[p]], count = begin[cell_of[p] + 1] - first;
    const float* row = rows + static_cast<Size>(members[p]) * cols;
    for (Size k = 0; k < cols; ++k) packed[first * cols + k * count + (p - first)] = row[k];
}
THREAD_KERNEL(pack_cells)

// The `k` best rows of some cells for every head, ranked as the CPU ranks them; warp per head, in the given order.
// Head i visits the cells visited[i * n_visited ...]; the rows of cell c are members[begin[c] ... begin[c + 1]), and no
// row is in two cells. Short rows come from `packed`, others from `rows`.
extern "C" __global__ void rank_cells(const float* heads, const bool* heads_without, const float* rows,
                                      const bool* rows_without, const float* packed, const Size* order, Size n_heads,
                                      Size cols, const Index* visited, int n_visited, const Index* members,
                                      const Size* begin, int k, int size, Index* index, float* ranks) {
    const Size w = warp_number();
    if (w >= n_heads) return;
    const Size i = order[w];
    const float* x = heads + i * cols;
    BestKeys best_keys(warp_memory(size), size, k);
    for (int v = 0; v < n_visited; ++v) {
        const Index cell = visited[i * n_visited + v];
        if (cell < 0) continue;
        const Size first = begin[cell], end = begin[cell + 1];
        if (packed != nullptr)
            offer_packed(best_keys, x, packed + first * cols, cols, members + first, end - first);
        else
            for (Size from = first; from < end; from += warp_lanes) {
                PerLane<std::uint64_t> key;
                FOR_LANES(lane) key[lane] = no_key;
                for (Size at = from; at < end && at < from + warp_lanes; ++at) {
                    const Size j = members[at];
                    const float rank =
                        with_direction(rank_by_lanes(x, rows + j * cols, cols), heads_without, i, rows_without, j);
                    FOR_LANES(lane) if (from + lane == at) key[lane] = sort_key(rank, static_cast<std::uint32_t>(j));
                }
                best_keys.offer(key);
            }
    }
    const std::uint64_t* keys = best_keys.sorted();
    FOR_LANES(lane) for (int e = lane; e < k; e += warp_lanes) {
        const bool known = keys[e] != no_key;
        index[i * k + e] = known ? static_cast<Index>(keys[e] & 0xffffffffu) : -1;
        ranks[i * k + e] = known ? value_of(static_cast<std::uint32_t>(keys[e] >> 32)) : no_rank_value;
    }
}
WARP_KERNEL(rank_cells)

// Rows in half precision relative to a center, times a scale, with padding columns of 0, and half of their squared
// lengths; warp per slot. Slot s belongs to batch s / batch_rows and holds the row slots[s], or zeros if that is below
// 0.
extern "C" __global__ void halve_rows(const float* rows, Size cols, const Index* slots, Size n_slots, Size batch_rows,
                                      const float* centers, const float* scales, Size out_cols, std::uint16_t* out,
                                      float* half_length2) {
    const Size s = warp_number();
    if (s >= n_slots) return;
    const Size row = slots != nullptr ? slots[s] : s, batch = s / batch_rows;
    const float* center = centers + batch * cols;
    const float scale = scales[batch];
    PerLane<float> sum;
    FOR_LANES(lane) {
        sum[lane] = 0.0f;
        for (Size k = lane; k < out_cols; k += warp_lanes) {
            float x = row >= 0 && k < cols ? (rows[row * cols + k] - center[k]) * scale : 0.0f;
            x = x > 30000.0f ? 30000.0f : x < -30000.0f ? -30000.0f : x;
            const std::uint16_t bits = half_bits(x);
            out[s * out_cols + k] = bits;
            const float kept = half_value(bits);
            sum[lane] += kept * kept;
        }
    }
    for (int width = warp_lanes / 2; width > 0; width /= 2) {
        PerLane<float> other = from_above(sum, width);
        FOR_LANES(lane) sum[lane] += other[lane];
    }
    FOR_LANES(lane) if (lane == 0) half_length2[s] = 0.5f * sum[lane];
}
WARP_KERNEL(halve_rows)

// 8 divided by the root mean square length of up to 64 rows of each cell, relative to its center; warp per cell.
extern "C" __global__ void cell_scales(const float* rows, Size cols, const Index* members, const Size* begin,
                                       Size n_cells, const float* centers, float* scales) {
    const Size c = warp_number();
    if (c >= n_cells) return;
    constexpr Size most = 64;
    const Size count = begin[c + 1] - begin[c], sample = count < most ? count : most;
    PerLane<float> sum;
    FOR_LANES(lane) {
        sum[lane] = 0.0f;
        for (Size s = 0; s < sample; ++s) {
            const float* x = rows + static_cast<Size>(members[begin[c] + s * count / sample]) * cols;
            for (Size k = lane; k < cols; k += warp_lanes) {
                const float apart = x[k] - centers[c * cols + k];
                sum[lane] += apart * apart;
            }
        }
    }
    for (int width = warp_lanes / 2; width > 0; width /= 2) {
        PerLane<float> other = from_above(sum, width);
        FOR_LANES(lane) sum[lane] += other[lane];
    }
    FOR_LANES(lane) if (lane == 0) {
        const float length2 = sample > 0 ? sum[lane] / static_cast<float>(sample) : 0.0f;
        scales[c] = length2 > 1e-30f ? 8.0f / std::sqrt(length2) : 1.0f;
    }
}
WARP_KERNEL(cell_scales)

// Distances of ranks (metric_table.hpp); thread per rank.
extern "C" __global__ void finish_ranks(const float* rank, Size n, int finish, float* distance) {
    const Size e = thread_number();
    if (e < n) distance[e] = finish_distance(static_cast<Finish>(finish), rank[e]);
}
THREAD_KERNEL(finish_ranks)

// Hashes of rows (row_content.hpp); thread per row.
extern "C" __global__ void hash_rows(const float* rows, Size n, Size cols, std::uint64_t* out) {
    const Size i = thread_number();
    if (i < n) out[i] = hash_row(rows + i * cols, cols);
}
THREAD_KERNEL(hash_rows)

// Means of the rows of each cell; block per cell, thread per column. The rows of cell c are members[begin[c] ...
// begin[c + 1]).
extern "C" __global__ void cell_means(const float* rows, Size cols, const Index* members, const Size* begin,
                                      Size n_cells, float* means) {
    const Size c = blockIdx.x;
    if (c >= n_cells || begin[c] == begin[c + 1]) return;
    for (Size k = threadIdx.x; k < cols; k += blockDim.x) {
        double sum = 0.0;
        for (Size e = begin[c]; e < begin[c + 1]; ++e) sum += rows[static_cast<Size>(members[e]) * cols + k];
        means[c * cols + k] = static_cast<float>(sum / static_cast<double>(begin[c + 1] - begin[c]));
    }
}
THREAD_KERNEL(cell_means)

// Merges the lists of a group into those of all rows, in place; warp per row of the group. Row r of the group is row
// members[r]; its neighbors are the columns 1 to `found_k` - 1 of its line of `found`, numbered within the group, or
// -1. A row that is in both lists is kept once. `size` is a power of two, at least k + found_k and 32.
extern "C" __global__ void merge_lists(const Size* members, Size n, const Index* found, const float* found_distance,
                                       int found_k, int k, int size, Index* index, float* distance) {
    const Size r = warp_number();
    if (r >= n) return;
    Index* own = index + members[r] * k;
    float* own_distance = distance + members[r] * k;
    std::uint64_t* keys = warp_memory(size);
    FOR_LANES(lane) for (int e = lane; e < size; e += warp_lanes) {
        const bool before = e < k;
        const Size at = r * found_k + (e - k + 1);
        const bool added = !before && e - k + 1 < found_k && found[at] >= 0;
        keys[e] = no_key;
        if (before && own[e] >= 0) keys[e] = sort_key(own_distance[e], static_cast<std::uint32_t>(own[e]));
        if (added) keys[e] = sort_key(found_distance[at], static_cast<std::uint32_t>(members[found[at]]));
    }
    sort_keys(keys, size);
    // The first of equal rows is never marked, so that it does not matter in which order the lanes mark the others.
    FOR_LANES(lane) for (int e = lane; e < size; e += warp_lanes) {
        bool again = false;
        for (int earlier = 0; earlier < e && keys[e] != no_key && !again; ++earlier)
            again = (keys[earlier] & 0xffffffffu) == (keys[e] & 0xffffffffu);
        if (again) keys[e] = no_key;
    }
    sort_keys(keys, size);
    FOR_LANES(lane) for (int e = lane; e < k; e += warp_lanes) {
        const bool known = keys[e] != no_key;
        own[e] = known ? static_cast<Index>(keys[e] & 0xffffffffu) : -1;
        own_distance[e] = known ? value_of(static_cast<std::uint32_t>(keys[e] >> 32)) : no_rank_value;
    }
}
WARP_KERNEL(merge_lists)

// The rank, counted from 1, of some columns of each row in the order of (distance, column); warp per row and column.
extern "C" __global__ void count_ranks(const double* distance, Size n_rows, Size n_columns, const Size* columns, int k,
                                       Size* ranks) {
    const Size at = warp_number();
    if (at >= n_rows * k) return;
    const double* row = distance + at / k * n_columns;
    const Size wanted = columns[at];
    const double value = row[wanted];
    PerLane<int> before;
    FOR_LANES(lane) {
        before[lane] = 0;
        for (Size c = lane; c < n_columns; c += warp_lanes) {
            const double other = row[c];
            if (other < value || (other == value && c <= wanted)) ++before[lane];
        }
    }
    for (int width = warp_lanes / 2; width > 0; width /= 2) {
        PerLane<int> other = from_above(before, width);
        FOR_LANES(lane) before[lane] += other[lane];
    }
    FOR_LANES(lane) if (lane == 0) ranks[at] = before[lane];
}
WARP_KERNEL(count_ranks)
