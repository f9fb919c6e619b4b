// Arguments of a layout sweep. Plain data shared by all levels.
#pragma once

#include "base/types.hpp"

#include <limits>

namespace vicinal {

constexpr int most_lanes = 16;
constexpr float gradient_bound = 4.0f;  // gradient components are clipped to this, as in umap-learn
constexpr Size layout_block_rows = 256;
constexpr Size most_listed_sweeps =
    8;  // sweeps whose firing edges are listed at once (list_firings in layout_sweep.hpp)

// Moves of negatives (update_negatives) are summed as integer multiples of this length, because a sum of integers does
// not depend on the order. 63 bits hold sums up to 2^39 units of the map.
constexpr double fixed_point_unit = 1.0 / (1 << 24);

struct LayoutTask {
    // The edges of a row in a random order; firing.hpp explains rate and phase. Each array can be read most_lanes
    // beyond its end.
    const Size* indptr = nullptr;
    const Index* tails = nullptr;
    const std::uint32_t* rate = nullptr;
    const std::uint32_t* phase = nullptr;
    Size n_heads = 0;
    // The row of the reference for each head if only some points move; null means all, in order.
    const Index* head_row = nullptr;
    // The name of a row in the random generator; null means its number.
    const std::uint64_t* row_key = nullptr;

    const float* head_in = nullptr;    // [row]
    float* head_out = nullptr;         // [head]
    const float* reference = nullptr;  // tails and negatives; in a fit, the snapshot of the heads
    Size n_reference = 0;
    Size dim = 2;
    // Weights of negatives (AliasTable); null if they are uniform.
    const std::uint32_t* negative_keep = nullptr;
    const Index* negative_alias = nullptr;
    std::int64_t* negative_moves = nullptr;  // null unless negatives move
};

struct LayoutSweep {
    Size number = 0;
    std::uint64_t key = 0;  // hash of (seed, number)
    float learning_rate = 0.0f;
    const float* head_rates = nullptr;  // one per head, instead of learning_rate
    int pulls = 0;
    int negatives = 0;
    float longest_push = std::numeric_limits<float>::infinity();  // of one negative, along each axis
};

// All forces: the name and the type (force.hpp). A new force is a line here; every backend reads this list.
#define VICINAL_FORCES(X) \
    X(umap, UmapForce)    \
    X(largevis, LargeVisForce)
// The distances of the map (output_space.hpp). A GPU has all of them; `function` is the CPU's alone.
#if defined(VICINAL_SMALL)
#define VICINAL_SPACES(X)        \
    X(euclidean, EuclideanSpace) \
    X(haversine, HaversineSpace)
#else
#define VICINAL_SPACES(X)            \
    X(euclidean, EuclideanSpace)     \
    X(minkowski, MinkowskiSpace)     \
    X(chebyshev, ChebyshevSpace)     \
    X(mahalanobis, MahalanobisSpace) \
    X(canberra, CanberraSpace)       \
    X(braycurtis, BrayCurtisSpace)   \
    X(cosine, AngleSpace<false>)     \
    X(correlation, AngleSpace<true>) \
    X(haversine, HaversineSpace)     \
    X(hyperboloid, HyperboloidSpace)
#endif
#define VICINAL_KIND(name, type) name,
#define VICINAL_NAME(name, type) #name,
#define VICINAL_TYPE(name, type) #type,

enum class ForceKind { VICINAL_FORCES(VICINAL_KIND) };
constexpr const char* force_names[] = {VICINAL_FORCES(VICINAL_NAME)};
constexpr const char* force_types[] = {VICINAL_FORCES(VICINAL_TYPE)};

struct ForceParameters {
    ForceKind kind = ForceKind::umap;
    float a = 0.0f, b = 0.0f, gamma = 0.0f;
};

enum class SpaceKind { VICINAL_SPACES(VICINAL_KIND) function };
constexpr const char* space_names[] = {VICINAL_SPACES(VICINAL_NAME) "function"};
constexpr const char* space_types[] = {VICINAL_SPACES(VICINAL_TYPE) "CalledSpace"};

// A distance that the caller computes, for several pairs of points at a time. Kernels for a GPU cannot call it.
#if defined(VICINAL_ONE_LANE)
class SpaceFunction;
#else
class SpaceFunction {
  public:
    virtual ~SpaceFunction() = default;
    // heads, tails and gradients are [pairs][dim]; a gradient is that of the distance with respect to the head.
    virtual void evaluate(const float* heads, const float* tails, int pairs, int dim, float* distances,
                          float* gradients) const = 0;
};
#endif

struct SpaceParameters {
    SpaceKind kind = SpaceKind::euclidean;
    const float* values = nullptr;          // minkowski: p, then one weight per component; mahalanobis: L, row by row
    const SpaceFunction* called = nullptr;  // function only
};

// The cost of a pair of points, and the distance it depends on.
struct LayoutLaw {
    ForceParameters force;
    SpaceParameters space;
};

// The edges of a block of rows that fire in some sweeps, sweep by sweep and row by row.
struct BlockFirings {
    const Index* tails = nullptr;  // followed by one entry for lanes that have no edge
    const Index* first = nullptr;  // [sweeps][rows + 1]: where the edges of a row begin
    Index idle = 0;                // the entry behind the last edge
};

// The rows of a block that have firing edges, sorted by their number. Capacity: layout_block_rows + most_lanes.
struct LayoutRows {
    Index* head;
    Index* row;  // of the reference
    Index* begin;
    Index* end;
    Index* cursor;  // the edge that comes first; behind the last one comes the one at begin
    std::uint32_t* key;
};

struct LayoutScratch {
    LayoutRows rows;
    float* work;  // three aligned vectors per component, used if dim is not a compile-time constant
};

}  // namespace vicinal
