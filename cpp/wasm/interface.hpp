// The core for JavaScript: a C interface of the functions that a fit of one map needs, by one thread.
//
// Objects are made by functions that return a pointer, and freed by the `_free` function of the same name. Arrays are
// in the module's memory: `vicinal_allocate` makes room for those of the caller. A function that fails returns null, or
// false; `vicinal_error` then says why. Counts are 32-bit integers. Seeds are doubles that hold whole numbers.
//
// The functions compute; which of them are called, with which options, is decided in web/src/core, by numbers that the
// Python package exports (web/src/core/defaults.json). Results have the bits of the Python package.
#pragma once

#include <cstddef>
#include <cstdint>

#define VICINAL_EXPORT extern "C" __attribute__((visibility("default"), used))

namespace vicinal {
class NeighborIndex;
namespace wasm {
struct EdgeList;
class MapLayout;
class TsneLayout;
}  // namespace wasm
}  // namespace vicinal

using vicinal::NeighborIndex;
using vicinal::wasm::EdgeList;
using vicinal::wasm::MapLayout;
using vicinal::wasm::TsneLayout;

// Memory, and the reason of the last failure.
VICINAL_EXPORT void* vicinal_allocate(std::size_t bytes);
VICINAL_EXPORT void vicinal_release(void* memory);
VICINAL_EXPORT const char* vicinal_error();
// Prints the golden digests of the core (tests/cpp/golden_maps.cpp), one line "name: digest" each.
VICINAL_EXPORT bool vicinal_golden();

// Neighbors. An index keeps a view of its rows [n][d]. Tables are [rows][k], sorted by (distance, index), the row
// itself first. `options` are the eleven numbers of SearchOptions; `found` receives (share, whether the data has
// structure). A query with `trees` 0 compares all rows, otherwise it follows the edges of `graph`.
VICINAL_EXPORT NeighborIndex* vicinal_index(const float* rows, int n, int d, const char* metric, double seed);
VICINAL_EXPORT void vicinal_index_free(NeighborIndex* index);
VICINAL_EXPORT bool vicinal_index_exact(NeighborIndex* index, int k, std::int32_t* neighbors, float* distance);
VICINAL_EXPORT bool vicinal_index_approximate(NeighborIndex* index, int k, const double* options,
                                              std::int32_t* neighbors, float* distance, double* found);
VICINAL_EXPORT bool vicinal_index_grow(NeighborIndex* index, int trees, int leaf_rows);
// `how` holds k, pool, trees and share.
VICINAL_EXPORT bool vicinal_index_query(const NeighborIndex* index, const float* queries, int m, const EdgeList* graph,
                                        const double* how, std::int32_t* neighbors, float* distance);
// 64-bit hashes of rows [n][d]: equal rows have equal hashes.
VICINAL_EXPORT bool vicinal_hash_rows(const float* rows, int n, int d, std::uint64_t* out);

// Graphs. `fuzzy`: survey eq. 1 to 4 of a table with rows k wide; `entropic`: eq. 18 and 19, not divided by the sum
// unless `normalized`; `to_known`: edges from new rows to `n_tails` known ones, for placing, `relative` to the heaviest
// edge of each row.
VICINAL_EXPORT EdgeList* vicinal_graph(const std::int32_t* indptr, const std::int32_t* indices, const float* weights,
                                       int n);
VICINAL_EXPORT EdgeList* vicinal_graph_fuzzy(const std::int32_t* neighbors, const float* distance, int n, int k,
                                             double local_connectivity, double mix);
VICINAL_EXPORT EdgeList* vicinal_graph_entropic(const std::int32_t* neighbors, const float* distance, int n, int k,
                                                double perplexity, bool normalized);
VICINAL_EXPORT EdgeList* vicinal_graph_to_known(const std::int32_t* neighbors, const float* distance, int m, int k,
                                                double local_connectivity, int n_tails);
VICINAL_EXPORT EdgeList* vicinal_graph_entropic_to_known(const std::int32_t* neighbors, const float* distance, int m,
                                                         int k, double perplexity, bool relative, int n_tails);
VICINAL_EXPORT void vicinal_graph_free(EdgeList* graph);
VICINAL_EXPORT int vicinal_graph_edges(const EdgeList* graph);
// Copies the edges: indptr [n + 1], indices and weights [edges].
VICINAL_EXPORT void vicinal_graph_copy(const EdgeList* graph, std::int32_t* indptr, std::int32_t* indices,
                                       float* weights);
// Sum, largest weight, and the number of rows that have edges.
VICINAL_EXPORT void vicinal_graph_totals(const EdgeList* graph, double* out);
// The sum of the weights of each row's edges to a power, 0 for rows without edges, which push nobody.
VICINAL_EXPORT bool vicinal_graph_pushes(const EdgeList* graph, double power, float* out);
// The standardized logarithms of the local radii of all rows, which densMAP's map follows (eq. 30).
VICINAL_EXPORT bool vicinal_graph_radii(const EdgeList* graph, const std::int32_t* neighbors, const float* distance,
                                        int k, float* target);

// Start: the smoothest eigenvectors of each connected component, in boxes [n][dim]. `rows` [n][d] decide where the
// components are put; null puts them at random.
VICINAL_EXPORT bool vicinal_start_spectral(const EdgeList* graph, const float* rows, int d, int dim, double seed,
                                           float* out);
VICINAL_EXPORT bool vicinal_start_random(int n, int dim, double seed, float* out);
// The seed that the estimators of the Python package draw from `random_state`: RandomState(s).randint(2^31 - 1).
VICINAL_EXPORT double vicinal_seed(double random_state);
// a and b of the kernel that fits min_dist and spread.
VICINAL_EXPORT void vicinal_fit_kernel(double min_dist, double spread, double* out);

// The sampled layout. `settings` are the numbers of LayoutSettings. Rows without edges are put around the others.
VICINAL_EXPORT MapLayout* vicinal_layout(const EdgeList* graph, const float* places, int dim, const double* settings);
VICINAL_EXPORT void vicinal_layout_free(MapLayout* layout);
// Runs one sweep per learning rate.
VICINAL_EXPORT bool vicinal_layout_step(MapLayout* layout, const float* rates, int sweeps);
VICINAL_EXPORT void vicinal_layout_places(const MapLayout* layout, float* out);
// Negatives are drawn in proportion to numbers of the rows (vicinal_graph_pushes).
VICINAL_EXPORT bool vicinal_layout_weigh_negatives(MapLayout* layout, const float* pushes);
// `how` holds the weight, the shift of the variance, the first sweep and the sweeps between two moves.
VICINAL_EXPORT bool vicinal_layout_add_density(MapLayout* layout, const float* target, const double* how);

// The layout of t-SNE, all pairs. `places` are centered and narrow; `steps` are [n][3]: exaggeration, learning rate,
// momentum.
VICINAL_EXPORT TsneLayout* vicinal_tsne(const EdgeList* graph, const float* places, int dim, double dof);
VICINAL_EXPORT void vicinal_tsne_free(TsneLayout* layout);
VICINAL_EXPORT bool vicinal_tsne_step(TsneLayout* layout, const float* steps, int n);
VICINAL_EXPORT void vicinal_tsne_places(const TsneLayout* layout, float* out);

// Places new rows, the heads of `graph`, among the `n` points of a map, which stay. A row starts at the medoid of its
// neighbors; `keys` are the hashes of the new rows; one sweep per learning rate. Points of the map are drawn as
// negatives in proportion to `pushes`, or all alike if it is null.
VICINAL_EXPORT bool vicinal_place(const EdgeList* graph, const float* map, int dim, const std::uint64_t* keys,
                                  const double* settings, const float* rates, int sweeps, const float* pushes,
                                  float* out);
