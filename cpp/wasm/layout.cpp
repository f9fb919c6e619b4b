// Layouts of the interface.
#include "layout/layout_kernels.hpp"
#include "wasm/map_layout.hpp"

#include <algorithm>
#include <cmath>

using namespace vicinal;
using wasm::call;

namespace vicinal::wasm {

LayoutOptions options_of(const LayoutSettings& settings) {
    LayoutOptions options;
    options.force = {settings.largevis != 0.0 ? ForceKind::largevis : ForceKind::umap, static_cast<float>(settings.a),
                     static_cast<float>(settings.b), static_cast<float>(settings.repulsion_strength)};
    options.negatives = static_cast<int>(settings.negatives);
    options.update_negatives = settings.update_negatives != 0.0;
    options.pulls = static_cast<int>(settings.pulls);
    options.firings_per_sweep = settings.firings_per_sweep;
    options.single_sweeps = static_cast<Size>(settings.single_sweeps);
    options.longest_push = static_cast<float>(settings.longest_push);
    options.seed = static_cast<std::uint64_t>(settings.seed);
    options.heaviest = static_cast<float>(settings.heaviest);
    return options;
}

LinkedRows::LinkedRows(const EdgeList& graph) : all_(graph), linked_{{{0}, {}, {}}, 0} {
    const Size n = graph.n();
    for (Size i = 0; i < n; ++i)
        if (!graph.is_isolated(i)) rows_.push_back(static_cast<Index>(i));
    if (static_cast<Size>(rows_.size()) == n) {
        rows_.clear();
        return;
    }
    if (rows_.empty()) throw std::invalid_argument("the graph has no edges");
    std::vector<Index> number(static_cast<std::size_t>(n));
    for (std::size_t r = 0; r < rows_.size(); ++r) number[rows_[r]] = static_cast<Index>(r);
    linked_.csr.weights = graph.csr.weights;
    for (const Index tail : graph.csr.indices) linked_.csr.indices.push_back(number[tail]);
    for (const Index row : rows_) linked_.csr.indptr.push_back(graph.csr.indptr[row + 1]);
    linked_.n_tails = static_cast<Size>(rows_.size());
}

std::vector<float> LinkedRows::take(const float* values, Size columns) const {
    if (rows_.empty()) return {values, values + all_.n() * columns};
    std::vector<float> out;
    for (const Index row : rows_) out.insert(out.end(), values + row * columns, values + (row + 1) * columns);
    return out;
}

namespace {

// Unit vectors in all directions, one per whole number.
void direction(double number, Size dim, double* out) {
    if (dim == 2) {
        constexpr double golden_turn = 0.6180339887498949, full = 2.0 * 3.141592653589793;
        const double angle = full * std::fmod(number * golden_turn, 1.0);
        out[0] = std::cos(angle);
        out[1] = std::sin(angle);
        return;
    }
    double squares = 0.0;
    for (Size c = 0; c < dim; ++c) {
        auto bits = static_cast<std::uint64_t>(number * static_cast<double>(dim) + static_cast<double>(c));
        for (const std::uint64_t step : {0x9E3779B97F4A7C15u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu})
            bits = (bits ^ (bits >> 31)) * step;
        out[c] = (static_cast<double>(bits >> 40) + 0.5) / 0x1p23 - 1.0;
        squares += out[c] * out[c];
    }
    for (Size c = 0; c < dim; ++c) out[c] /= std::sqrt(squares);
}

// Writes the places of rows without edges: one per square (cube) of a fixed width, outside of a circle (sphere) around
// all other points.
template <class Rows>
void surround(Matrix places, const Rows& rows, float* out) {
    constexpr double inner = 1.2, room = 0.04, least_radius = 1.0;
    const Size dim = places.cols;
    std::vector<double> center(static_cast<std::size_t>(dim)), toward(center.size());
    for (Size c = 0; c < dim; ++c) {
        float low = places.data[c], high = low;
        for (Size i = 0; i < places.rows; ++i) {
            low = std::min(low, places.row(i)[c]);
            high = std::max(high, places.row(i)[c]);
        }
        center[c] = (static_cast<double>(low) + high) / 2.0;
    }
    double radius = least_radius;
    for (Size i = 0; i < places.rows; ++i) {
        double squares = 0.0;
        for (Size c = 0; c < dim; ++c) {
            const double apart = places.row(i)[c] - center[c];
            squares += apart * apart;
        }
        radius = std::max(radius, std::sqrt(squares));
    }
    const double power = static_cast<double>(dim);
    double number = 0.0;
    for (const Index row : rows) {
        number += 1.0;
        direction(number, dim, toward.data());
        const double distance = inner * std::pow(1.0 + number * std::pow(room / inner, power), 1.0 / power);
        for (Size c = 0; c < dim; ++c)
            out[row * dim + c] = static_cast<float>(center[c] + radius * distance * toward[c]);
    }
}

}  // namespace

void LinkedRows::spread(Matrix places, float* out) const {
    if (rows_.empty()) {
        std::copy(places.data, places.data + places.rows * places.cols, out);
        return;
    }
    for (std::size_t r = 0; r < rows_.size(); ++r)
        std::copy(places.row(static_cast<Size>(r)), places.row(static_cast<Size>(r)) + places.cols,
                  out + rows_[r] * places.cols);
    std::vector<Index> isolated;
    for (Size i = 0; i < all_.n(); ++i)
        if (all_.is_isolated(i)) isolated.push_back(static_cast<Index>(i));
    surround(places, isolated, out);
}

Orientation::Orientation(const EdgeList& graph, Matrix start, ThreadTeam& team) {
    Components found = connected_components(graph.view(), team);
    if (found.count() <= 1) return;
    component_ = std::move(found.of_row);
    count_ = found.count();
    const std::vector<double> middle = means(start.data);
    for (std::size_t i = 0; i < component_.size(); ++i)
        for (int c = 0; c < 2; ++c) start_.push_back(start.data[2 * i + c] - middle[2 * component_[i] + c]);
}

std::vector<double> Orientation::means(const float* places) const {
    std::vector<double> sum(static_cast<std::size_t>(2 * count_)), rows(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < component_.size(); ++i) {
        rows[component_[i]] += 1.0;
        for (int c = 0; c < 2; ++c) sum[2 * component_[i] + c] += places[2 * i + c];
    }
    for (Size k = 0; k < count_; ++k)
        for (int c = 0; c < 2; ++c) sum[2 * k + c] /= rows[k];
    return sum;
}

void Orientation::restore(float* places) const {
    if (component_.empty()) return;
    const std::vector<double> middle = means(places);
    std::vector<double> along(static_cast<std::size_t>(count_)), across(along.size());
    const auto apart = [&](std::size_t i, int c) { return places[2 * i + c] - middle[2 * component_[i] + c]; };
    for (std::size_t i = 0; i < component_.size(); ++i) {
        const double x = apart(i, 0), y = apart(i, 1), u = start_[2 * i], v = start_[2 * i + 1];
        along[component_[i]] += x * u + y * v;
        across[component_[i]] += x * v - y * u;
    }
    for (Size k = 0; k < count_; ++k) {
        const double length = std::sqrt(along[k] * along[k] + across[k] * across[k]);
        const bool turned = std::isfinite(length) && length > 0.0;
        along[k] = turned ? along[k] / length : 1.0;
        across[k] = turned ? across[k] / length : 0.0;
    }
    for (std::size_t i = 0; i < component_.size(); ++i) {
        const double cosine = along[component_[i]], sine = across[component_[i]];
        const double x = apart(i, 0), y = apart(i, 1);
        places[2 * i] = static_cast<float>(middle[2 * component_[i]] + (cosine * x - sine * y));
        places[2 * i + 1] = static_cast<float>(middle[2 * component_[i] + 1] + (sine * x + cosine * y));
    }
}

MapLayout::MapLayout(const EdgeList& graph, const float* places, Size dim, const LayoutSettings& settings,
                     ThreadTeam& team)
    : graph_(graph), linked_(graph_) {
    const EdgeList& edges = linked_.graph();
    const std::vector<float> start = linked_.take(places, dim);
    const Matrix from{start.data(), edges.n(), dim};
    if (dim == 2 && static_cast<double>(edges.n()) <= settings.most_turned_rows)
        orientation_ = Orientation(edges, from, team);
    layout_ = std::make_unique<SampledLayout>(edges.view(), from, Matrix{}, nullptr, options_of(settings), team);
}

void MapLayout::places(float* out) const {
    const Matrix now = layout_->embedding();
    std::vector<float> turned(now.data, now.data + now.rows * now.cols);
    orientation_.restore(turned.data());
    linked_.spread({turned.data(), now.rows, now.cols}, out);
}

void MapLayout::weigh_negatives(const float* pushes) { layout_->weigh_negatives(linked_.take(pushes, 1).data()); }

void MapLayout::add_density(const float* target, const DensityOptions& options) {
    layout_->add_density(linked_.take(target, 1).data(), options);
}

TsneLayout::TsneLayout(const EdgeList& graph, const float* places, Size dim, float dof)
    : graph_(graph), linked_(graph_) {
    const EdgeList& edges = linked_.graph();
    const std::vector<float> start = linked_.take(places, dim);
    layout_ = std::make_unique<FullLayout>(edges.view(), Matrix{start.data(), edges.n(), dim}, Matrix{}, dof);
}

namespace {

// The place of the tail that is closest to all tails of a row, weighted by their edges; in single precision and in the
// order of the edges, as src/vicinal/backends/cpu.py computes it.
void put_at_medoid(const EdgeList& graph, Size row, const float* map, Size dim, float* out) {
    const Size begin = graph.csr.indptr[row], end = graph.csr.indptr[row + 1];
    const auto place = [&](Size e) { return map + graph.csr.indices[e] * dim; };
    float least = 0.0f;
    Size chosen = -1;
    for (Size e = begin; e < end; ++e) {
        float total = 0.0f;
        for (Size other = begin; other < end; ++other) {
            float d2 = 0.0f;
            for (Size c = 0; c < dim; ++c) {
                const float apart = place(other)[c] - place(e)[c];
                d2 = c == 0 ? apart * apart : d2 + apart * apart;
            }
            total += graph.csr.weights[other] * std::sqrt(d2);
        }
        if (chosen < 0 || total < least) {
            least = total;
            chosen = e;
        }
    }
    if (chosen >= 0) {
        std::copy(place(chosen), place(chosen) + dim, out);
        return;
    }
    for (Size c = 0; c < dim; ++c) {  // the middle of the map
        double sum = 0.0;
        for (Size i = 0; i < graph.n_tails; ++i) sum += map[i * dim + c];
        out[c] = static_cast<float>(sum / static_cast<double>(graph.n_tails));
    }
}

}  // namespace

}  // namespace vicinal::wasm

MapLayout* vicinal_layout(const EdgeList* graph, const float* places, int dim, const double* settings) {
    return call([&](ThreadTeam& team) {
        const auto& given = *reinterpret_cast<const wasm::LayoutSettings*>(settings);
        return new MapLayout(*graph, places, dim, given, team);
    });
}

void vicinal_layout_free(MapLayout* layout) { delete layout; }

bool vicinal_layout_step(MapLayout* layout, const float* rates, int sweeps) {
    return call([&](ThreadTeam& team) {
        layout->step(rates, sweeps, team);
        return true;
    });
}

void vicinal_layout_places(const MapLayout* layout, float* out) { layout->places(out); }

bool vicinal_layout_weigh_negatives(MapLayout* layout, const float* pushes) {
    return call([&](ThreadTeam&) {
        layout->weigh_negatives(pushes);
        return true;
    });
}

bool vicinal_layout_add_density(MapLayout* layout, const float* target, const double* how) {
    return call([&](ThreadTeam&) {
        layout->add_density(target, {static_cast<float>(how[0]), how[1], static_cast<Size>(how[2]),
                                     static_cast<Size>(how[3]), std::nullopt});
        return true;
    });
}

TsneLayout* vicinal_tsne(const EdgeList* graph, const float* places, int dim, double dof) {
    return call([&](ThreadTeam&) { return new TsneLayout(*graph, places, dim, static_cast<float>(dof)); });
}

void vicinal_tsne_free(TsneLayout* layout) { delete layout; }

bool vicinal_tsne_step(TsneLayout* layout, const float* steps, int n) {
    return call([&](ThreadTeam& team) {
        std::vector<FullStep> list;
        for (int t = 0; t < n; ++t) list.push_back({steps[3 * t], steps[3 * t + 1], steps[3 * t + 2]});
        layout->step(list.data(), n, team);
        return true;
    });
}

void vicinal_tsne_places(const TsneLayout* layout, float* out) { layout->places(out); }

bool vicinal_place(const EdgeList* graph, const float* map, int dim, const std::uint64_t* keys, const double* settings,
                   const float* rates, int sweeps, const float* pushes, float* out) {
    return call([&](ThreadTeam& team) {
        const auto& given = *reinterpret_cast<const wasm::LayoutSettings*>(settings);
        for (Size i = 0; i < graph->n(); ++i) wasm::put_at_medoid(*graph, i, map, dim, out + i * dim);
        SampledLayout layout(graph->view(), {out, graph->n(), dim}, {map, graph->n_tails, dim}, keys,
                             wasm::options_of(given), team);
        if (pushes != nullptr) layout.weigh_negatives(pushes);
        layout.step({rates, sweeps, 1}, team);
        const Matrix places = layout.embedding();
        std::copy(places.data, places.data + places.rows * places.cols, out);
        return true;
    });
}
