// Graphs of the interface.
#include "graph/perplexity.hpp"
#include "graph/smooth_knn.hpp"
#include "graph/symmetrize.hpp"
#include "wasm/calls.hpp"

using namespace vicinal;
using wasm::call;

namespace {

void check(const NeighborTable& table, Size n_tails) {
    for (Size e = 0; e < table.rows * table.k; ++e)
        if (table.index[e] >= n_tails) throw std::invalid_argument("a neighbor is no row");
}

// Edges of new rows: every neighbor that is there, in the order of the table.
EdgeList* listed(const NeighborTable& table, const std::vector<float>& weights, Size n_tails) {
    OwnedCsr csr;
    csr.indptr.push_back(0);
    for (Size i = 0; i < table.rows; ++i) {
        for (Size e = i * table.k; e < (i + 1) * table.k; ++e)
            if (table.index[e] >= 0) {
                csr.indices.push_back(table.index[e]);
                csr.weights.push_back(weights[e]);
            }
        csr.indptr.push_back(static_cast<Size>(csr.indices.size()));
    }
    return new EdgeList{std::move(csr), n_tails};
}

// Divides the weights by their sum, which is one of whole numbers: multiples of 2^-36.
void normalize(std::vector<float>& weights) {
    std::int64_t units = 0;
    for (const float w : weights) units += static_cast<std::int64_t>(static_cast<double>(w) * 0x1p36);
    const double total = static_cast<double>(units) / 0x1p36;
    if (total == 1.0) return;
    for (float& w : weights) w = static_cast<float>(static_cast<double>(w) / total);
}

// Mean squared distance of each row's edges, weighted by membership (survey eq. 30); NaN without edges.
std::vector<double> local_radii(const Csr& graph, const std::vector<float>& length) {
    std::vector<double> radius(static_cast<std::size_t>(graph.rows));
    for (Size i = 0; i < graph.rows; ++i) {
        double moment = 0.0, mass = 0.0;
        for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
            const double d = length[e], w = graph.weights[e];
            if (!(d >= 0.0) || !std::isfinite(d) || !(w > 0.0)) continue;
            moment += w * (d * d);
            mass += w;
        }
        radius[i] = mass > 0.0 ? moment / mass : std::numeric_limits<double>::quiet_NaN();
    }
    return radius;
}

// Logarithms in units of their standard deviation; 0 if all are equal.
void standardize(std::vector<double> radius, float* out) {
    constexpr double least_share = 1e-8;  // of the mean radius, under the logarithm: duplicates have radius 0
    const auto mean_of = [&] {
        double sum = 0.0;
        Size count = 0;
        for (const double r : radius)
            if (std::isfinite(r)) {
                sum += r;
                ++count;
            }
        return std::pair{count > 0 ? sum / static_cast<double>(count) : 0.0, count};
    };
    double floor = least_share * mean_of().first;
    if (!(floor > 0.0)) floor = least_share;
    for (double& r : radius) r = std::log(r + floor);
    const auto [mean, count] = mean_of();
    double squares = 0.0;
    for (const double r : radius)
        if (std::isfinite(r)) squares += (r - mean) * (r - mean);
    const double deviation = count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : 0.0;
    for (std::size_t i = 0; i < radius.size(); ++i)
        out[i] = static_cast<float>(deviation > 0.0 ? (radius[i] - mean) / deviation : 0.0 * (radius[i] - mean));
}

}  // namespace

EdgeList* vicinal_graph(const std::int32_t* indptr, const std::int32_t* indices, const float* weights, int n) {
    return call([&](ThreadTeam&) {
        const Size edges = indptr[n];
        if (indptr[0] != 0) throw std::invalid_argument("indptr must begin with 0");
        for (int i = 0; i < n; ++i)
            if (indptr[i] > indptr[i + 1]) throw std::invalid_argument("indptr must not decrease");
        for (Size e = 0; e < edges; ++e)
            if (indices[e] < 0 || indices[e] >= n) throw std::invalid_argument("an edge leads to no row");
        return new EdgeList{{{indptr, indptr + n + 1}, {indices, indices + edges}, {weights, weights + edges}}, n};
    });
}

EdgeList* vicinal_graph_fuzzy(const std::int32_t* neighbors, const float* distance, int n, int k,
                              double local_connectivity, double mix) {
    return call([&](ThreadTeam& team) {
        const NeighborTable table{neighbors, distance, n, k};
        check(table, n);
        std::vector<float> rho(static_cast<std::size_t>(n)), sigma(rho.size()), p(rho.size() * k);
        SmoothKnn(distance, n, k, {static_cast<double>(k), local_connectivity, 1.0, false})
            .run(rho.data(), sigma.data(), team);
        memberships(table, rho.data(), sigma.data(), false, p.data(), team);
        return new EdgeList{Symmetrizer(table, p.data(), FuzzyMix{static_cast<float>(mix)}).run(team), n};
    });
}

EdgeList* vicinal_graph_entropic(const std::int32_t* neighbors, const float* distance, int n, int k, double perplexity,
                                 bool normalized) {
    return call([&](ThreadTeam& team) {
        const NeighborTable table{neighbors, distance, n, k};
        check(table, n);
        std::vector<float> sigma(static_cast<std::size_t>(n)), p(sigma.size() * k);
        PerplexityCalibration(table, perplexity, false).run(p.data(), sigma.data(), team);
        OwnedCsr csr = Symmetrizer(table, p.data(), Mean{}).run(team);
        if (normalized) normalize(csr.weights);
        return new EdgeList{std::move(csr), n};
    });
}

EdgeList* vicinal_graph_to_known(const std::int32_t* neighbors, const float* distance, int m, int k,
                                 double local_connectivity, int n_tails) {
    return call([&](ThreadTeam& team) {
        const NeighborTable table{neighbors, distance, m, k};
        check(table, n_tails);
        // SmoothKnn skips the first column, which in a table of known rows holds the row itself. A new row is not in
        // its own table, so one neighbor fewer has membership 1.
        std::vector<float> padded, rho(static_cast<std::size_t>(m)), sigma(rho.size()), p(rho.size() * k);
        for (Size i = 0; i < m; ++i) {
            padded.push_back(0.0f);
            padded.insert(padded.end(), distance + i * k, distance + (i + 1) * k);
        }
        SmoothKnn(padded.data(), m, k + 1, {static_cast<double>(k), std::max(0.0, local_connectivity - 1.0), 1.0, true})
            .run(rho.data(), sigma.data(), team);
        memberships(table, rho.data(), sigma.data(), true, p.data(), team);
        return listed(table, p, n_tails);
    });
}

EdgeList* vicinal_graph_entropic_to_known(const std::int32_t* neighbors, const float* distance, int m, int k,
                                          double perplexity, bool relative, int n_tails) {
    return call([&](ThreadTeam& team) {
        const NeighborTable table{neighbors, distance, m, k};
        check(table, n_tails);
        std::vector<float> sigma(static_cast<std::size_t>(m)), p(sigma.size() * k);
        PerplexityCalibration(table, perplexity, true).run(p.data(), sigma.data(), team);
        if (relative)
            for (Size i = 0; i < m; ++i) {
                float* row = p.data() + i * k;
                const float heaviest = *std::max_element(row, row + k);
                for (Size c = 0; heaviest > 0.0f && c < k; ++c) row[c] /= heaviest;
            }
        return listed(table, p, n_tails);
    });
}

void vicinal_graph_free(EdgeList* graph) { delete graph; }

int vicinal_graph_edges(const EdgeList* graph) { return static_cast<int>(graph->csr.indices.size()); }

void vicinal_graph_copy(const EdgeList* graph, std::int32_t* indptr, std::int32_t* indices, float* weights) {
    const OwnedCsr& csr = graph->csr;
    for (const Size at : csr.indptr) *indptr++ = static_cast<std::int32_t>(at);
    std::copy(csr.indices.begin(), csr.indices.end(), indices);
    std::copy(csr.weights.begin(), csr.weights.end(), weights);
}

void vicinal_graph_totals(const EdgeList* graph, double* out) {
    double total = 0.0, heaviest = 0.0, linked = 0.0;
    for (const float w : graph->csr.weights) {
        total += w;
        heaviest = std::max(heaviest, static_cast<double>(w));
    }
    for (Size i = 0; i < graph->n(); ++i) linked += graph->is_isolated(i) ? 0.0 : 1.0;
    out[0] = total;
    out[1] = heaviest;
    out[2] = linked;
}

bool vicinal_graph_pushes(const EdgeList* graph, double power, float* out) {
    return call([&](ThreadTeam&) {
        const Csr edges = graph->view();
        for (Size i = 0; i < edges.rows; ++i) {
            double degree = 0.0;
            for (Size e = edges.indptr[i]; e < edges.indptr[i + 1]; ++e) degree += edges.weights[e];
            out[i] = graph->is_isolated(i) ? 0.0f : static_cast<float>(std::pow(degree, power));
        }
        return true;
    });
}

bool vicinal_graph_radii(const EdgeList* graph, const std::int32_t* neighbors, const float* distance, int k,
                         float* target) {
    return call([&](ThreadTeam& team) {
        std::vector<float> length(graph->csr.indices.size());
        edge_distances(graph->view(), {neighbors, distance, graph->n(), k}, length.data(), team);
        standardize(local_radii(graph->view(), length), target);
        return true;
    });
}
