#include "initialize/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace vicinal {

namespace {

constexpr int most_rotations = 60;  // per eigenvalue; two or three are usual, and only NaN needs more

// A = Q T Q^T with T tridiagonal. `rows` holds Q^T at first and the eigenvectors of A in the end, so that every update
// runs along contiguous rows.
class Tridiagonal {
  public:
    Tridiagonal(std::vector<double>&& matrix, Size n)
        : n_(n), a_(std::move(matrix)), rows_(n * n, 0.0), diagonal_(n, 0.0), beside_(n, 0.0) {
        for (Size i = 0; i < n; ++i) rows_[i * n + i] = 1.0;
        for (Size k = 0; k + 2 < n; ++k) reflect(k);
        for (Size i = 0; i < n; ++i) diagonal_[i] = a_[i * n + i];
        if (n >= 2) beside_[n - 2] = a_[(n - 1) * n + n - 2];
    }

    void diagonalize() {
        for (Size first = 0; first < n_; ++first)
            for (int t = 0; t < most_rotations; ++t) {
                const Size last = end_of_block(first);
                if (last == first) break;
                rotate(first, last);
            }
    }

    SymmetricEigen sorted() const {
        std::vector<Size> order(static_cast<std::size_t>(n_));
        std::iota(order.begin(), order.end(), Size{0});
        std::stable_sort(order.begin(), order.end(), [&](Size x, Size y) { return diagonal_[x] > diagonal_[y]; });
        SymmetricEigen out;
        for (Size k : order) {
            out.values.push_back(diagonal_[k]);
            out.vectors.insert(out.vectors.end(), row(k), row(k) + n_);
        }
        return out;
    }

  private:
    const double* row(Size i) const { return rows_.data() + i * n_; }

    // Makes column k zero below the subdiagonal by H = I - v v^T / h, and applies H to both sides.
    void reflect(Size k) {
        const Size m = n_ - k - 1;
        std::vector<double> v(static_cast<std::size_t>(m)), w(v.size(), 0.0);
        double norm = 0.0;
        for (Size i = 0; i < m; ++i) {
            v[i] = a_[(k + 1 + i) * n_ + k];
            norm += v[i] * v[i];
        }
        norm = std::sqrt(norm);
        beside_[k] = v[0] > 0.0 ? -norm : norm;
        const double h = norm * (norm + std::fabs(v[0]));
        if (!(h > 0.0)) return;
        v[0] -= beside_[k];
        double* inner = a_.data() + (k + 1) * n_ + k + 1;
        for (Size i = 0; i < m; ++i) {
            for (Size j = 0; j <= i; ++j) w[i] += inner[i * n_ + j] * v[j];
            for (Size j = i + 1; j < m; ++j) w[i] += inner[j * n_ + i] * v[j];
        }
        double along = 0.0;
        for (Size i = 0; i < m; ++i) along += v[i] * w[i];
        for (Size i = 0; i < m; ++i) w[i] = (w[i] - v[i] * (along / (2.0 * h))) / h;
        for (Size i = 0; i < m; ++i)
            for (Size j = 0; j <= i; ++j) inner[i * n_ + j] -= v[i] * w[j] + w[i] * v[j];
        std::vector<double> sum(static_cast<std::size_t>(n_), 0.0);
        for (Size i = 0; i < m; ++i)
            for (Size j = 0; j < n_; ++j) sum[j] += v[i] * rows_[(k + 1 + i) * n_ + j];
        for (Size i = 0; i < m; ++i)
            for (Size j = 0; j < n_; ++j) rows_[(k + 1 + i) * n_ + j] -= v[i] / h * sum[j];
    }

    // The last position that is coupled to `first`.
    Size end_of_block(Size first) const {
        Size last = first;
        while (last + 1 < n_ &&
               std::fabs(beside_[last]) > std::numeric_limits<double>::epsilon() *
                                              (std::fabs(diagonal_[last]) + std::fabs(diagonal_[last + 1])))
            ++last;
        return last;
    }

    // One QL step with Wilkinson's shift on positions first..last.
    void rotate(Size first, Size last) {
        double g = (diagonal_[first + 1] - diagonal_[first]) / (2.0 * beside_[first]);
        const double r = std::sqrt(g * g + 1.0);
        g = diagonal_[last] - diagonal_[first] + beside_[first] / (g + (g < 0.0 ? -r : r));
        double sine = 1.0, cosine = 1.0, shift = 0.0;
        for (Size i = last - 1; i >= first; --i) {
            const double f = sine * beside_[i], b = cosine * beside_[i];
            const double length = std::sqrt(f * f + g * g);
            beside_[i + 1] = length;
            if (length == 0.0) {  // the block has come apart
                diagonal_[i + 1] -= shift;
                beside_[last] = 0.0;
                return;
            }
            sine = f / length;
            cosine = g / length;
            g = diagonal_[i + 1] - shift;
            const double t = (diagonal_[i] - g) * sine + 2.0 * cosine * b;
            shift = sine * t;
            diagonal_[i + 1] = g + shift;
            g = cosine * t - b;
            double *x = rows_.data() + i * n_, *y = x + n_;
            for (Size j = 0; j < n_; ++j) {
                const double below = y[j];
                y[j] = sine * x[j] + cosine * below;
                x[j] = cosine * x[j] - sine * below;
            }
        }
        diagonal_[first] -= shift;
        beside_[first] = g;
        beside_[last] = 0.0;
    }

    Size n_;
    std::vector<double> a_, rows_, diagonal_, beside_;  // beside_[i] couples positions i and i + 1
};

}  // namespace

SymmetricEigen symmetric_eigen(std::vector<double> matrix, Size n) {
    Tridiagonal form(std::move(matrix), n);
    form.diagonalize();
    return form.sorted();
}

}  // namespace vicinal
