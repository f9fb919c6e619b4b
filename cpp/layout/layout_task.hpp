// What a layout sweep reads and writes. Plain data shared by every instruction-set level.
#pragma once

#include "base/types.hpp"

namespace vicinal {

constexpr int most_lanes = 16;
constexpr float gradient_bound = 4.0f;  // a gradient component is clipped to this, as in umap-learn
constexpr Size layout_block_rows = 256;

// Moves that negatives receive (update_negatives) are summed as whole multiples of this part of a unit of the
// map: whole numbers add up to the same sum in any order. 63 bits hold sums up to 2^39 units.
constexpr double fixed_point_unit = 1.0 / (1 << 24);

struct LayoutTask {
    // Edges in the order they are processed; see sampled_layout.hpp for rate and phase. Each array can be read
    // most_lanes beyond its end.
    const Size* indptr = nullptr;
    const Index* tails = nullptr;
    const std::uint32_t* rate = nullptr;
    const std::uint32_t* phase = nullptr;
    Size n_heads = 0;
    // The row of the reference that each head is, where only some of them move; null means all, in their order.
    const Index* head_row = nullptr;
    // Names the row to the random generator; null means the row number itself.
    const std::uint64_t* row_key = nullptr;

    const float* head_in = nullptr;    // [row]
    float* head_out = nullptr;         // [head]
    const float* reference = nullptr;  // tails and negatives; the snapshot of the heads when fitting
    Size n_reference = 0;
    Size dim = 2;
    // Negatives by weight (alias_table.hpp); null when every row of the reference is drawn equally often.
    const std::uint32_t* negative_keep = nullptr;
    const Index* negative_alias = nullptr;
    std::int64_t* negative_moves = nullptr;  // null unless negatives move too
};

struct LayoutSweep {
    Size number = 0;
    std::uint64_t key = 0;  // of (seed, number)
    float learning_rate = 0.0f;
    const float* head_rates = nullptr;  // one for each head, instead of learning_rate
    int pulls = 0;
    int negatives = 0;
};

// Forces by name (force.hpp holds their formulas).
enum class ForceKind { umap, largevis };
constexpr const char* force_names[] = {"umap", "largevis"};

struct ForceParameters {
    ForceKind kind = ForceKind::umap;
    float a = 0.0f, b = 0.0f, gamma = 0.0f;
};

// Distances of the map by name (output_space.hpp holds their formulas).
enum class SpaceKind {
    euclidean,
    minkowski,
    chebyshev,
    mahalanobis,
    canberra,
    braycurtis,
    cosine,
    correlation,
    haversine,
    hyperboloid
};
constexpr const char* space_names[] = {"euclidean",  "minkowski", "chebyshev",   "mahalanobis", "canberra",
                                       "braycurtis", "cosine",    "correlation", "haversine",   "hyperboloid"};

struct SpaceParameters {
    SpaceKind kind = SpaceKind::euclidean;
    const float* values = nullptr;  // minkowski: p, then a weight for each component; mahalanobis: L, row by row
};

// What moves the rows: the cost of a pair, and what its distance is.
struct LayoutLaw {
    ForceParameters force;
    SpaceParameters space;
};

struct LayoutItem {
    Index head, begin, end;
};

// State of the rows now in the lanes; every array is 64-byte aligned.
struct LaneState {
    Index* head;
    Index* own;  // the row of the reference that the head is
    Index* cursor;
    Index* stop;
    std::uint32_t* key;
    std::uint32_t* draw;
    float* learning_rate;
    float* place;  // [dim][lanes]
    float* work;   // three vectors a component, used when dim is not a compile-time constant
};

struct LayoutScratch {
    Index* fired;  // capacity: the most edges of a block, plus most_lanes
    LayoutItem* items;
    LaneState lane_state;
};

}  // namespace vicinal
