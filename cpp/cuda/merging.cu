// Lists of neighbors that were found in several groups of rows.
#include "cuda/sorted_keys.hpp"

using namespace vicinal;

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
