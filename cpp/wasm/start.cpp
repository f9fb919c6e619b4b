// First places, and the kernel of the map.
#include "base/rng.hpp"
#include "initialize/components.hpp"
#include "initialize/symmetric_eigen.hpp"
#include "neighbors/point_tree.hpp"
#include "wasm/calls.hpp"

#include <algorithm>
#include <cmath>
#include <random>

using namespace vicinal;
using wasm::call;

namespace vicinal::wasm {

namespace {

// As in src/vicinal/initialize: the width of the box of few rows and the room of a row in larger ones, the noise that
// separates rows at one place, and the rows that decide how an eigenmap is evened.
constexpr double least_extent = 10.0, spacing = 0.07, noise = 1e-4;
constexpr Size evened_rows = 500, median_rows = 1023;
constexpr double near = 0.3;
constexpr int halvings = 5;
// The width of a component's box as a share of the distance to the nearest other center, or by its rows.
constexpr double box_share = 0.25, large_share = 0.5;
constexpr Size sample_rows = 256;

double extent(Size n, Size dim) {
    return std::max(least_extent,
                    spacing * std::pow(static_cast<double>(n), 1.0 / static_cast<double>(std::max<Size>(dim, 2))));
}

class Draws {
  public:
    Draws(std::uint64_t seed, std::uint64_t part) : key_(row_key(stream_key(seed, Stream::spectral, part), 0)) {}
    double uniform() { return (static_cast<double>(draw32(key_, at_++)) + 0.5) * 0x1p-32; }
    // The sum of uniform numbers, of deviation 1.
    double normal() {
        double sum = -6.0;
        for (int i = 0; i < 12; ++i) sum += uniform();
        return sum;
    }

  private:
    std::uint32_t key_, at_ = 0;
};

// Scales each axis of some rows to [0, width]; an axis on which all places are equal is set to the middle.
void stretch(std::vector<double>& places, Size dim, double width) {
    const Size n = static_cast<Size>(places.size()) / dim;
    for (Size c = 0; c < dim; ++c) {
        double low = INFINITY, high = -INFINITY;
        for (Size i = 0; i < n; ++i) {
            low = std::min(low, places[i * dim + c]);
            high = std::max(high, places[i * dim + c]);
        }
        for (Size i = 0; i < n; ++i)
            places[i * dim + c] = high > low ? width * (places[i * dim + c] - low) / (high - low) : width / 2.0;
    }
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

// Brings rows far from the middle of a component closer: a distance from the median, in units of `near` times the
// median distance, becomes its inverse hyperbolic sine.
void even(const Components& components, Size component, Size dim, std::vector<double>& places) {
    const Size begin = components.bounds[component], size = components.bounds[component + 1] - begin;
    if (size < evened_rows) return;
    for (Size c = 0; c < dim; ++c) {
        std::vector<double> some;
        for (Size s = 0; s < median_rows; ++s)
            some.push_back(places[components.order[begin + s * size / median_rows] * dim + c]);
        const double middle = median(some);
        for (double& x : some) x = std::fabs(x - middle);
        const double unit = near * median(some);
        if (!(unit > 0.0)) continue;
        for (Size s = begin; s < begin + size; ++s) {
            double& x = places[components.order[s] * dim + c];
            x = (x - middle) / unit;
            for (int h = 0; h < halvings; ++h) x /= std::sqrt(2.0 + 2.0 * std::sqrt(1.0 + x * x));
        }
    }
}

// Principal components of the means of the components, or random centers if there are no rows.
std::vector<double> centers_of(const Components& components, const float* rows, Size n, Size d, Size dim, Draws& draws,
                               ThreadTeam& team) {
    const Size count = components.count();
    std::vector<double> centers;
    for (Size e = 0; e < count * dim; ++e) centers.push_back(least_extent * draws.uniform());
    if (rows == nullptr) return centers;
    std::vector<double> means(static_cast<std::size_t>(count * d)), mean(static_cast<std::size_t>(d));
    segment_means(RowMatrix{rows, n, d, Element::float32},
                  {components.order.data(), components.bounds.data(), components.bounds.data() + 1, count}, sample_rows,
                  means.data(), team);
    for (Size i = 0; i < count; ++i)
        for (Size c = 0; c < d; ++c) mean[c] += means[i * d + c] / static_cast<double>(count);
    for (Size i = 0; i < count; ++i)
        for (Size c = 0; c < d; ++c) means[i * d + c] -= mean[c];
    // The smaller of the matrices M M' and M' M, whose eigenvectors give the scores of the components.
    const bool by_rows = count <= d;
    const Size side = by_rows ? count : d;
    std::vector<double> gram(static_cast<std::size_t>(side * side));
    for (Size i = 0; i < side; ++i)
        for (Size j = 0; j <= i; ++j) {
            double sum = 0.0;
            for (Size k = 0; k < (by_rows ? d : count); ++k)
                sum += by_rows ? means[i * d + k] * means[j * d + k] : means[k * d + i] * means[k * d + j];
            gram[i * side + j] = sum;
        }
    const SymmetricEigen eigen = symmetric_eigen(std::move(gram), side);
    if (!(eigen.values[0] > 0.0)) return centers;
    std::fill(centers.begin(), centers.end(), 0.0);
    for (Size axis = 0; axis < std::min(dim, side); ++axis) {
        const double* vector = eigen.vectors.data() + axis * side;
        for (Size i = 0; i < count; ++i) {
            double score = by_rows ? vector[i] * std::sqrt(std::max(eigen.values[axis], 0.0)) : 0.0;
            if (!by_rows)
                for (Size c = 0; c < d; ++c) score += means[i * d + c] * vector[c];
            centers[i * dim + axis] = score;
        }
    }
    stretch(centers, dim, extent(count, dim));
    for (double& x : centers) x += noise * draws.normal();
    return centers;
}

// Puts the map of every component into a box around its center.
void put_side_by_side(const Components& components, const std::vector<double>& centers, Size dim, Draws& draws,
                      std::vector<double>& places, ThreadTeam& team) {
    const Size count = components.count(), n = static_cast<Size>(components.order.size());
    const std::vector<float> rounded(centers.begin(), centers.end());
    const Matrix points{rounded.data(), count, dim};
    std::vector<Index> nearest(static_cast<std::size_t>(2 * count));
    std::vector<float> apart(nearest.size());
    PointTree(points, team).query(points, 2, nearest.data(), apart.data(), team);
    double widest = 0.0;
    for (Size c = 0; c < dim; ++c) {
        double low = centers[c], high = low;
        for (Size i = 0; i < count; ++i) {
            low = std::min(low, centers[i * dim + c]);
            high = std::max(high, centers[i * dim + c]);
        }
        widest = std::max(widest, high - low);
    }
    for (Size k = 0; k < count; ++k) {
        const Size begin = components.bounds[k], size = components.bounds[k + 1] - begin;
        const double share = static_cast<double>(size) / static_cast<double>(n);
        const double width = share > large_share ? widest * std::sqrt(share) : box_share * apart[2 * k + 1];
        std::vector<double> own;
        for (Size s = begin; s < begin + size; ++s)
            for (Size c = 0; c < dim; ++c)
                own.push_back(size <= std::max<Size>(dim + 1, 4) ? draws.uniform()
                                                                 : places[components.order[s] * dim + c]);
        stretch(own, dim, 1.0);
        for (Size s = 0; s < size; ++s)
            for (Size c = 0; c < dim; ++c)
                places[components.order[begin + s] * dim + c] = centers[k * dim + c] + width * (own[s * dim + c] - 0.5);
    }
}

void finish(std::vector<double>& places, Size dim, Draws& draws, float* out) {
    const double width = extent(static_cast<Size>(places.size()) / dim, dim);
    stretch(places, dim, width);
    for (double& x : places) x += noise * draws.normal();
    stretch(places, dim, width);
    std::copy(places.begin(), places.end(), out);
}

}  // namespace

}  // namespace vicinal::wasm

bool vicinal_start_spectral(const EdgeList* graph, const float* rows, int d, int dim, double seed, float* out) {
    return call([&](ThreadTeam& team) {
        const Size n = graph->n();
        const auto whole_seed = static_cast<std::uint64_t>(seed);
        wasm::Draws draws(whole_seed, 1);
        const Components components = connected_components(graph->view(), team);
        component_eigenmaps(graph->view(), components, dim, whole_seed, out, team);
        std::vector<double> places(out, out + n * dim);
        for (Size k = 0; k < components.count(); ++k) wasm::even(components, k, dim, places);
        if (components.count() > 1) {
            const std::vector<double> centers = wasm::centers_of(components, rows, n, d, dim, draws, team);
            wasm::put_side_by_side(components, centers, dim, draws, places, team);
        }
        wasm::finish(places, dim, draws, out);
        return true;
    });
}

bool vicinal_start_random(int n, int dim, double seed, float* out) {
    return call([&](ThreadTeam&) {
        wasm::Draws draws(static_cast<std::uint64_t>(seed), 2);
        std::vector<double> places;
        for (Size e = 0; e < Size{n} * dim; ++e) places.push_back(draws.uniform());
        wasm::finish(places, dim, draws, out);
        return true;
    });
}

double vicinal_seed(double random_state) {
    std::mt19937 twister(static_cast<std::uint32_t>(random_state));
    for (;;) {
        const std::uint32_t bits = static_cast<std::uint32_t>(twister()) & 0x7fffffffu;
        if (bits < 0x7fffffffu) return bits;
    }
}

// Damped Gauss-Newton steps on (ln a, b), which minimize the squared difference of the kernel and the wanted curve, as
// src/vicinal/layout/forces.py does.
void vicinal_fit_kernel(double min_dist, double spread, double* out) {
    constexpr int points = 299;
    const double within = min_dist / spread;
    double x[points], wanted[points];
    for (int i = 0; i < points; ++i) {
        const double d = 3.0 * (i + 1) / points;
        x[i] = 2.0 * std::log(d);
        wanted[i] = d < within ? 1.0 : std::exp(-(d - within));
    }
    const auto kernel = [&](const double* at, int i) {
        return 1.0 / (1.0 + std::exp(std::min(at[0] + x[i] * at[1], 700.0)));
    };
    const auto loss = [&](const double* at) {
        double sum = 0.0;
        for (int i = 0; i < points; ++i) sum += (kernel(at, i) - wanted[i]) * (kernel(at, i) - wanted[i]);
        return sum;
    };
    double at[2] = {0.0, 1.0}, damping = 1e-3;
    for (int round = 0; round < 200; ++round) {
        double aa = 0.0, ab = 0.0, bb = 0.0, ra = 0.0, rb = 0.0;
        for (int i = 0; i < points; ++i) {
            const double q = kernel(at, i), slope = -q * (1.0 - q), rest = wanted[i] - q;
            aa += slope * slope;
            ab += slope * slope * x[i];
            bb += slope * slope * x[i] * x[i];
            ra += slope * rest;
            rb += slope * x[i] * rest;
        }
        const double da = aa * (1.0 + damping), db = bb * (1.0 + damping), determinant = da * db - ab * ab;
        const double step[2] = {(ra * db - rb * ab) / determinant, (rb * da - ra * ab) / determinant};
        const double there[2] = {at[0] + step[0], at[1] + step[1]};
        if (loss(there) <= loss(at)) {
            at[0] = there[0];
            at[1] = there[1];
            damping *= 0.1;
            if (std::max(std::fabs(step[0]), std::fabs(step[1])) < 1e-12) break;
        } else {
            damping *= 10.0;
        }
    }
    out[0] = std::exp(at[0]) / std::pow(spread, 2.0 * at[1]);
    out[1] = at[1];
}
