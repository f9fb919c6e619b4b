// Prints a digest of the result of every stage for fixed data: one line "name: digest". Equal lines on two platforms
// mean equal bits. tests/portable/golden_maps.json holds the expected lines; `make golden` writes them again.
//
// The data has two kinds. "pixels" are rows of small integers, as in images: their sums of squares are exact, with
// fused multiply-add and without, so everything computed from them is the same at every instruction-set level. "reals"
// are rows of arbitrary numbers, whose distances are the same at levels with fused multiply-add only.
#include "checks.hpp"
#include "data.hpp"
#include "graph/perplexity.hpp"
#include "initialize/components.hpp"

#include <cinttypes>
#include <string>

namespace {

constexpr Size n = 700, k = 10;

template <class T>
void print(const std::string& name, const std::vector<T>& values) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t b = 0; b < values.size() * sizeof(T); ++b) hash = (hash ^ bytes[b]) * 0x100000001b3u;
    std::printf("%s: %016" PRIx64 "\n", name.c_str(), hash);
}

void print(const std::string& name, const Table& table) {
    print(name + " index", table.index);
    print(name + " distance", table.distance);
}

// Images of 8 x 8 pixels from 0 to 31, around ten patterns.
std::vector<float> pixels() {
    std::vector<float> out(static_cast<std::size_t>(n * 64));
    for (std::uint32_t i = 0; i < n; ++i)
        for (std::uint32_t c = 0; c < 64; ++c)
            out[i * 64 + c] =
                static_cast<float>(below(draw32(1, i % 10 * 64 + c), 24) + below(draw32(2, i * 64 + c), 8));
    return out;
}

std::vector<float> layout_of(const FuzzyGraph& graph, Size dim, const LayoutOptions& options, ThreadTeam& team) {
    constexpr Size sweeps = 60;
    const auto start = random_points(n, dim, 10.0f);
    std::vector<float> rates;
    for (Size t = 0; t < sweeps; ++t) rates.push_back(1.0f - static_cast<float>(t) / static_cast<float>(sweeps));
    SampledLayout layout(graph.view(), {start.data(), n, dim}, {}, nullptr, options, team);
    layout.step({rates.data(), sweeps, 1}, team);
    return copied(layout.embedding());
}

void print_neighbors(const std::string& data, Matrix rows, std::initializer_list<const char*> metrics,
                     ThreadTeam& team) {
    for (const char* metric : metrics) {
        print(data + " neighbors " + metric, exact_neighbors(rows, k, metric, team));
        NeighborIndex index(rows, find_metric(metric), 3, nullptr, team);
        Table table(rows.rows, k);
        index.search_approximate(k, search_options(), table.index.data(), table.distance.data(), team);
        print(data + " approximate " + metric, table);
    }
}

void print_map(const std::string& data, Matrix rows, ThreadTeam& team) {
    const Table table = exact_neighbors(rows, k, "euclidean", team);
    const FuzzyGraph graph = fuzzy_graph(table, team);
    print(data + " graph indices", graph.csr.indices);
    print(data + " graph weights", graph.csr.weights);

    std::vector<float> conditional(table.index.size()), sigma(static_cast<std::size_t>(n));
    const NeighborTable view{table.index.data(), table.distance.data(), n, k};
    PerplexityCalibration(view, 5.0, false).run(conditional.data(), sigma.data(), team);
    print(data + " entropic graph", conditional);

    std::vector<float> start(static_cast<std::size_t>(2 * n));
    component_eigenmaps(graph.view(), connected_components(graph.view(), team), 2, 3, start.data(), team);
    print(data + " spectral start", start);

    for (Size dim : {1, 2, 3, 5})
        print(data + " map in " + std::to_string(dim), layout_of(graph, dim, layout_options(), team));
}

// A layout depends on the graph, the start and the seed. These are integers scaled by powers of two here.
void print_layouts(ThreadTeam& team) {
    Table table(n, k);
    for (Size i = 0; i < n; ++i)
        for (Size c = 0; c < k; ++c) table.index[i * k + c] = static_cast<Index>((i + (c == 0 ? 0 : c * c)) % n);
    std::vector<float> p(table.index.size());
    for (std::size_t e = 0; e < p.size(); ++e)
        p[e] = static_cast<float>(1 + below(draw32(4, static_cast<std::uint32_t>(e)), 255)) / 256.0f;
    const NeighborTable view{table.index.data(), table.distance.data(), n, k};
    const FuzzyGraph graph{Symmetrizer(view, p.data(), Mean{}).run(team)};
    for (Size dim : {1, 2, 3, 6}) {
        LayoutOptions options = layout_options();
        options.seed = 7;
        print("layout umap in " + std::to_string(dim), layout_of(graph, dim, options, team));
        options.update_negatives = true;
        print("layout moving negatives in " + std::to_string(dim), layout_of(graph, dim, options, team));
        options.update_negatives = false;
        options.force = {ForceKind::largevis, 1.0f, 1.0f, 7.0f};
        print("layout largevis in " + std::to_string(dim), layout_of(graph, dim, options, team));
    }
    LayoutOptions sphere = layout_options();
    sphere.space = SpaceKind::haversine;
    print("layout haversine", layout_of(graph, 2, sphere, team));
}

}  // namespace

int main() {
    ThreadTeam team(2);
    const auto images = pixels(), numbers = grouped_rows(n, 40, 8, 5), wide = grouped_rows(n, 150, 8, 6);
    print_layouts(team);
    print_neighbors("pixels", {images.data(), n, 64}, {"euclidean", "manhattan", "chebyshev"}, team);
    print_map("pixels", {images.data(), n, 64}, team);
    print_neighbors("reals", {numbers.data(), n, 40}, {"euclidean", "cosine", "correlation", "manhattan"}, team);
    print_neighbors("wide reals", {wide.data(), n, 150}, {"euclidean", "cosine", "manhattan"}, team);
    print_map("reals", {numbers.data(), n, 40}, team);
    return 0;
}
