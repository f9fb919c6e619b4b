#include "initialize/eigenmap.hpp"

#include "base/rng.hpp"
#include "initialize/coarsen.hpp"
#include "initialize/spectral_kernels.hpp"
#include "initialize/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace vicinal {

ChebyshevFilter::ChebyshevFilter(const Csr& matrix, Size width)
    : matrix_(matrix), width_(width), current_(make_floats(matrix.rows * width)),
      next_(make_floats(matrix.rows * width)) {}

void ChebyshevFilter::apply(Floats& block, double cut, int degree, ThreadTeam& team) {
    const auto half = static_cast<float>((cut + 1.0) / 2.0), center = static_cast<float>((cut - 1.0) / 2.0);
    const auto step = [&](const Floats& x, const Floats& previous, ChebyshevStep by, Floats& to) {
        spectral_kernels().chebyshev_step(matrix_, x.get(), previous.get(), width_, by, to.get(), team);
    };
    step(block, block, {1.0f / half, center, 0.0f}, current_);
    for (int t = 1; t < degree; ++t) {
        step(current_, block, {2.0f / half, center, 1.0f}, next_);
        block.swap(current_);
        current_.swap(next_);
    }
    block.swap(current_);
}

void ChebyshevFilter::multiply(const Floats& block, Floats& image, ThreadTeam& team) const {
    spectral_kernels().chebyshev_step(matrix_, block.get(), block.get(), width_, {1.0f, 0.0f, 0.0f}, image.get(), team);
}

namespace {

constexpr Size sum_rows = 1024;  // rows of one partial sum
// A block has at least this many vectors more than wanted, because the last vectors of a block converge slowly.
constexpr Size guard_columns = 4;
constexpr Size coarse_rows = 1000;  // with more rows the iteration starts from the vectors of a coarser graph
constexpr Size large_rows = 100'000;
constexpr int most_degree = 24;
// The polynomial at 1, the eigenvalue of the trivial vector, is limited: rounding errors along this vector grow by it.
constexpr double most_gain = 1e5;

struct Budget {
    int filters;
    double tolerance;  // accepted residual relative to scale_of_errors()
};
// A small graph is cheap, and the finer ones start from its vectors.
constexpr Budget coarsest{.filters = 24, .tolerance = 0.02}, finer{.filters = 6, .tolerance = 0.2};
constexpr double first_cut = 0.5;

// Orthonormal vectors [rows][width], the smoothest first, and an upper bound of the eigenvalues beyond the block.
struct Smooth {
    Floats block;
    double cut = first_cut;
};

// total = the sum over rows of what add(begin, end, sums) adds to `sums`.
template <class F>
std::vector<double> sum_over_rows(Size rows, Size size, ThreadTeam& team, const F& add) {
    const Size chunks = (rows + sum_rows - 1) / sum_rows;
    std::vector<double> partial(static_cast<std::size_t>(chunks * size), 0.0);
    team.parallel_for(chunks, 4, [&](Size begin, Size end, int) {
        for (Size c = begin; c < end; ++c)
            add(c * sum_rows, std::min((c + 1) * sum_rows, rows), partial.data() + c * size);
    });
    for (Size c = 1; c < chunks; ++c)
        for (Size k = 0; k < size; ++k) partial[k] += partial[c * size + k];
    partial.resize(static_cast<std::size_t>(size));
    return partial;
}

// The square roots of the degrees.
std::vector<double> degree_roots(const Csr& graph, ThreadTeam& team) {
    std::vector<double> root(static_cast<std::size_t>(graph.rows));
    team.parallel_for(graph.rows, sum_rows, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            double degree = 0.0;
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) degree += graph.weights[e];
            root[i] = std::sqrt(std::max(degree, std::numeric_limits<double>::min()));
        }
    });
    return root;
}

// One graph of the hierarchy: its matrix M and the iteration on it.
class Level {
  public:
    Level(const Csr& graph, const std::vector<double>& root, Size wanted, Size width, ThreadTeam& team)
        : rows_(graph.rows), wanted_(wanted), width_(width), team_(team),
          weights_(make_floats(graph.indptr[graph.rows])),
          filter_({graph.indptr, graph.indices, weights_.get(), graph.rows}, width), spare_(make_floats(rows_ * width)),
          trivial_(root) {
        team.parallel_for(rows_, sum_rows, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i)
                for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
                    weights_[e] = static_cast<float>(graph.weights[e] / (root[i] * root[graph.indices[e]]));
        });
        double norm = 0.0;
        for (double r : root) norm += r * r;
        norm = std::sqrt(norm);
        for (double& t : trivial_) t /= norm;
    }

    // Makes the columns of the block smooth.
    void iterate(Smooth& smooth, const Budget& budget) {
        for (int f = 0; f < budget.filters; ++f) {
            filter_.apply(smooth.block, smooth.cut, degree_for(smooth.cut), team_);
            orthonormalize(smooth.block);
            if (rotate_to_eigenvectors(smooth, budget.tolerance)) return;
        }
    }

    // Makes the columns orthonormal, and orthogonal to the trivial eigenvector. The eigenvectors of their Gram matrix
    // are used twice, because once leaves the rounding error of an ill-conditioned block.
    void orthonormalize(Floats& block) {
        const SpectralKernels& kernels = spectral_kernels();
        for (int pass = 0; pass < 2; ++pass) {
            const std::vector<double> along =
                sum_over_rows(rows_, width_, team_, [&](Size begin, Size end, double* sums) {
                    kernels.add_weighted_rows(block.get(), trivial_.data(), begin, end, width_, sums);
                });
            rotate(block,
                   whitening(sum_over_rows(rows_, width_ * width_, team_, [&](Size begin, Size end, double* sums) {
                       kernels.subtract_multiples(block.get(), trivial_.data(), along.data(), begin, end, width_);
                       kernels.add_products(block.get(), block.get(), begin, end, width_, sums);
                   })));
        }
    }

  private:
    static int degree_for(double cut) {
        const double at_one = (3.0 - cut) / (1.0 + cut);
        return static_cast<int>(std::clamp(std::acosh(most_gain) / std::acosh(at_one), 1.0, double{most_degree}));
    }

    // R with (block R)^T (block R) = I, from the eigenvectors of the Gram matrix with its diagonal scaled to 1.
    std::vector<double> whitening(std::vector<double> gram) const {
        std::vector<double> scale(static_cast<std::size_t>(width_));
        for (Size k = 0; k < width_; ++k)
            scale[k] = 1.0 / std::sqrt(std::max(gram[k * width_ + k], std::numeric_limits<double>::min()));
        for (Size k = 0; k < width_; ++k)
            for (Size l = 0; l < width_; ++l) gram[k * width_ + l] *= scale[k] * scale[l];
        const SymmetricEigen eigen = symmetric_eigen(gram, width_);
        for (Size k = 0; k < width_; ++k)
            for (Size l = 0; l < width_; ++l)
                gram[k * width_ + l] = scale[k] * eigen.vectors[l * width_ + k] /
                                       std::sqrt(std::max(eigen.values[l], 1e-14 * eigen.values[0]));
        return gram;
    }

    void rotate(Floats& block, const std::vector<double>& rotation) {
        team_.parallel_for(rows_, sum_rows, [&](Size begin, Size end, int) {
            spectral_kernels().rotate_rows(block.get(), rotation.data(), begin, end, width_, spare_.get());
        });
        block.swap(spare_);
    }

    // Rayleigh-Ritz; returns whether the wanted vectors are accurate enough.
    bool rotate_to_eigenvectors(Smooth& smooth, double tolerance) {
        const SpectralKernels& kernels = spectral_kernels();
        const float* block = smooth.block.get();
        filter_.multiply(smooth.block, spare_, team_);
        const SymmetricEigen eigen =
            symmetric_eigen(sum_over_rows(rows_, width_ * width_, team_,
                                          [&](Size begin, Size end, double* sums) {
                                              kernels.add_products(block, spare_.get(), begin, end, width_, sums);
                                          }),
                            width_);
        std::vector<double> rotation(eigen.vectors.size());
        for (Size k = 0; k < width_; ++k)
            for (Size l = 0; l < width_; ++l) rotation[k * width_ + l] = eigen.vectors[l * width_ + k];
        const std::vector<double> squares =
            sum_over_rows(rows_, width_, team_, [&](Size begin, Size end, double* sums) {
                kernels.add_residuals(block, spare_.get(), rotation.data(), eigen.values.data(), begin, end, width_,
                                      sums);
            });
        rotate(smooth.block, rotation);
        smooth.cut = std::clamp(eigen.values.back(), 0.0, 1.0 - 1e-6);
        for (Size k = 0; k < wanted_; ++k)
            if (!(std::sqrt(squares[k]) <= tolerance * scale_of_errors(eigen.values[k], smooth.cut))) return false;
        return true;
    }

    // What the residual of a vector is compared with. The part of the vector that lies outside of the block is at most
    // its residual, divided by the distance of its eigenvalue from those beyond the block, which is enough for a large
    // graph. Smaller ones are cheap, and maps of few rows depend more on their start.
    double scale_of_errors(double eigenvalue, double cut) const {
        return std::max(rows_ > large_rows ? eigenvalue - cut : 1.0 - eigenvalue, 1e-4);
    }

    Size rows_, wanted_, width_;
    ThreadTeam& team_;
    Floats weights_;
    ChebyshevFilter filter_;
    Floats spare_;
    std::vector<double> trivial_;
};

Smooth smooth_vectors(const Csr& graph, Size wanted, Size width, std::uint64_t seed, ThreadTeam& team);

// Extends the smooth vectors of a coarser graph to the rows of this one: all rows of a group have the same
// f = D^{-1/2} v, so the vectors stay orthonormal. The block is null if the graph cannot be made much coarser.
Smooth from_coarser(const Csr& graph, const std::vector<double>& root, Size wanted, Size width, std::uint64_t seed,
                    ThreadTeam& team) {
    const Coarse coarse = coarsen(graph, team);
    const auto groups = static_cast<Size>(coarse.graph.indptr.size()) - 1;
    if (groups < 8 * width || groups > graph.rows / 2) return {};
    const Csr view{coarse.graph.indptr.data(), coarse.graph.indices.data(), coarse.graph.weights.data(), groups};
    Smooth found = smooth_vectors(view, wanted, width, seed, team);
    const std::vector<double> coarse_root = degree_roots(view, team);
    Smooth out{make_floats(graph.rows * width), found.cut};
    team.parallel_for(graph.rows, sum_rows, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i) {
            const Index g = coarse.group[i];
            const auto ratio = static_cast<float>(root[i] / coarse_root[g]);
            for (Size k = 0; k < width; ++k) out.block[i * width + k] = found.block[g * width + k] * ratio;
        }
    });
    return out;
}

Smooth smooth_vectors(const Csr& graph, Size wanted, Size width, std::uint64_t seed, ThreadTeam& team) {
    const std::vector<double> root = degree_roots(graph, team);
    Smooth out;
    if (graph.rows > coarse_rows) out = from_coarser(graph, root, wanted, width, seed, team);
    Level level(graph, root, wanted, width, team);
    const bool extended = out.block != nullptr;
    if (!extended) {
        out.block = make_floats(graph.rows * width);
        const std::uint64_t key = stream_key(seed, Stream::spectral);
        for (Size i = 0; i < graph.rows * width; ++i)
            out.block[i] = static_cast<float>(row_key(key, static_cast<std::uint64_t>(i))) * 0x1p-32f - 0.5f;
        level.orthonormalize(out.block);
    }
    level.iterate(out, extended ? finer : coarsest);
    return out;
}

// All eigenvectors of a small graph.
void dense_eigenmap(const Csr& graph, Size wanted, float* out, ThreadTeam& team) {
    const Size n = graph.rows;
    const std::vector<double> root = degree_roots(graph, team);
    std::vector<double> matrix(static_cast<std::size_t>(n * n), 0.0);
    for (Size i = 0; i < n; ++i)
        for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
            matrix[i * n + graph.indices[e]] = graph.weights[e] / (root[i] * root[graph.indices[e]]);
    const SymmetricEigen eigen = symmetric_eigen(std::move(matrix), n);
    for (Size i = 0; i < n; ++i)
        for (Size k = 0; k < wanted; ++k)
            out[i * wanted + k] = k + 1 < n ? static_cast<float>(eigen.vectors[(k + 1) * n + i]) : 0.0f;
}

}  // namespace

void eigenmap(const Csr& graph, Size wanted, std::uint64_t seed, float* out, ThreadTeam& team) {
    const Size width = (wanted + guard_columns + block_columns - 1) / block_columns * block_columns;
    if (graph.rows <= 2 * width) return dense_eigenmap(graph, wanted, out, team);
    const Smooth found = smooth_vectors(graph, wanted, width, seed, team);
    for (Size i = 0; i < graph.rows; ++i) std::copy_n(found.block.get() + i * width, wanted, out + i * wanted);
}

}  // namespace vicinal
