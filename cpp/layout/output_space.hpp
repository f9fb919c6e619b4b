// Distances of the map, and their gradients with respect to the head.
//
// A space returns d² and replaces `delta`, which holds the tail, by half the gradient of d² with respect to the head,
// d * dd/dy. A cost c(d²) then has the gradient coefficient * delta with the coefficients of force.hpp; in a euclidean
// map delta is y_i - y_j, which gives eq. 12 and 13.
//
// x is the head, y the tail, |.| componentwise:
//   minkowski     d = (sum w |x - y|^p)^(1/p);  manhattan is p = 1, seuclidean p = 2 with w = 1/V
//   chebyshev     d = max |x - y|; the first of equal components counts
//   mahalanobis   d = |L^T (x - y)|, L the Cholesky factor of VI
//   canberra      d = sum |x - y| / (|x| + |y|)
//   braycurtis    d = sum |x - y| / sum |x + y|
//   cosine        d = 1 - cos(x, y) = |u - v|² / 2 of the unit vectors, which avoids cancellation
//   correlation   cosine of the centered points
//   haversine     d = 2 asin sqrt(h), h = sin²(D polar / 2) + sin polar sin polar' sin²(D azimuth / 2);
//                 a point is (polar angle, azimuth), as in umap-learn's output
//   hyperboloid   d = acosh(s t - x.y), s = sqrt(1 + |x|²), t likewise: points are the first coordinates of points on
//                 the hyperboloid z² = 1 + |x|²
//   function      a function of the caller, which returns d and dd/dx
//
// If a distance has no gradient (equal components, zero vectors, antipodes), delta is 0 or finite.
#pragma once

#include "base/simd.hpp"
#include "layout/layout_task.hpp"

#if !defined(VICINAL_ONE_LANE)
#include "base/scratch.hpp"
#endif

namespace vicinal::VICINAL_LEVEL {

constexpr float smallest_length = 1e-12f;

VICINAL_INLINE Float zeros() { return splat<Float>(0.0f); }
VICINAL_INLINE Float sign_of(Float x) {
    const Float one = splat<Float>(1.0f);
    return select(x > zeros(), one, select(x < zeros(), -one, zeros()));
}
// x / y, or 0 if y is (nearly) 0.
VICINAL_INLINE Float quotient(Float x, Float y) {
    return select(y > splat<Float>(smallest_length), x / max(y, splat<Float>(smallest_length)), zeros());
}

struct EuclideanSpace {
    explicit EuclideanSpace(const SpaceParameters&) {}

    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        delta[0] = head[0] - delta[0];
        Float d2 = delta[0] * delta[0];
        for (int c = 1; c < dim; ++c) {
            delta[c] = head[c] - delta[c];
            d2 += delta[c] * delta[c];
        }
        return d2;
    }
};

struct MinkowskiSpace {
    float p;
    const float* weights;

    explicit MinkowskiSpace(const SpaceParameters& s) : p(s.values[0]), weights(s.values + 1) {}

    // In units of the largest component, so that powers stay in the range of float32.
    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        Float largest = splat<Float>(smallest_length);
        for (int c = 0; c < dim; ++c) {
            delta[c] = head[c] - delta[c];
            largest = max(largest, abs(delta[c]));
        }
        Float sum = splat<Float>(1e-30f);
        for (int c = 0; c < dim; ++c) {
            const Float part = max(abs(delta[c]) / largest, splat<Float>(smallest_length));
            const Float slope = weights[c] * pow(part, p - 1.0f);
            sum += slope * part;
            delta[c] = slope * sign_of(delta[c]);
        }
        const Float root = pow(sum, 1.0f / p), d = largest * root;
        for (int c = 0; c < dim; ++c) delta[c] *= d * root / sum;
        return d * d;
    }
};

struct ChebyshevSpace {
    explicit ChebyshevSpace(const SpaceParameters&) {}

    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        Float largest = zeros();
        for (int c = 0; c < dim; ++c) {
            delta[c] = head[c] - delta[c];
            largest = max(largest, abs(delta[c]));
        }
        Int open = splat<Int>(-1);
        for (int c = 0; c < dim; ++c) {
            const Int chosen = open & (abs(delta[c]) == largest);
            delta[c] = select(chosen, delta[c], zeros());
            open &= ~chosen;
        }
        return largest * largest;
    }
};

struct MahalanobisSpace {
    const float* factor;  // L, lower triangular, row-major

    explicit MahalanobisSpace(const SpaceParameters& s) : factor(s.values) {}

    // z = L^T (x - y) in place from the first component on, then L z from the last: no component is overwritten before
    // it is used.
    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        for (int c = 0; c < dim; ++c) delta[c] = head[c] - delta[c];
        Float d2 = zeros();
        for (int c = 0; c < dim; ++c) {
            Float z = zeros();
            for (int r = c; r < dim; ++r) z += factor[r * dim + c] * delta[r];
            delta[c] = z;
            d2 += z * z;
        }
        for (int r = dim - 1; r >= 0; --r) {
            Float back = zeros();
            for (int c = 0; c <= r; ++c) back += factor[r * dim + c] * delta[c];
            delta[r] = back;
        }
        return d2;
    }
};

struct CanberraSpace {
    explicit CanberraSpace(const SpaceParameters&) {}

    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        Float d = zeros();
        for (int c = 0; c < dim; ++c) {
            const Float x = head[c], y = delta[c], size = abs(x) + abs(y);
            const Float part = quotient(abs(x - y), size);
            d += part;
            delta[c] = quotient(sign_of(x - y) - part * sign_of(x), size);
        }
        for (int c = 0; c < dim; ++c) delta[c] *= d;
        return d * d;
    }
};

struct BrayCurtisSpace {
    explicit BrayCurtisSpace(const SpaceParameters&) {}

    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        Float apart = zeros(), together = zeros();
        for (int c = 0; c < dim; ++c) {
            apart += abs(head[c] - delta[c]);
            together += abs(head[c] + delta[c]);
        }
        const Float d = quotient(apart, together);
        for (int c = 0; c < dim; ++c) {
            const Float x = head[c], y = delta[c];
            delta[c] = d * quotient(sign_of(x - y) - d * sign_of(x + y), together);
        }
        return d * d;
    }
};

template <bool Centered>
struct AngleSpace {
    explicit AngleSpace(const SpaceParameters&) {}

    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        const Float middle = mean(head, dim), other = mean(delta, dim);
        Float x2 = zeros(), y2 = zeros();
        for (int c = 0; c < dim; ++c) {
            const Float x = head[c] - middle;
            delta[c] -= other;
            x2 += x * x;
            y2 += delta[c] * delta[c];
        }
        const Float x_length = sqrt(x2), y_length = sqrt(y2);
        const Int known = (x_length > splat<Float>(smallest_length)) & (y_length > splat<Float>(smallest_length));
        Float apart2 = zeros();
        for (int c = 0; c < dim; ++c) {
            const Float difference = quotient(head[c] - middle, x_length) - quotient(delta[c], y_length);
            apart2 += difference * difference;
            delta[c] = difference;
        }
        // A zero vector is at a right angle to other vectors and equal to another zero vector.
        const Int both_zero = (x_length <= splat<Float>(smallest_length)) & (y_length <= splat<Float>(smallest_length));
        const Float d = select(known, 0.5f * apart2, select(both_zero, zeros(), splat<Float>(1.0f)));
        for (int c = 0; c < dim; ++c) {
            const Float slope = delta[c] - d * quotient(head[c] - middle, x_length);
            delta[c] = select(known, d * quotient(slope, x_length), zeros());
        }
        return d * d;
    }

  private:
    VICINAL_INLINE static Float mean(const Float* values, int dim) {
        Float sum = zeros();
        if constexpr (Centered)
            for (int c = 0; c < dim; ++c) sum += values[c];
        return sum / static_cast<float>(dim);
    }
};

struct HaversineSpace {
    explicit HaversineSpace(const SpaceParameters&) {}

    VICINAL_INLINE Float towards(const Float* head, Float* delta, int) const {
        Float sin_head, cos_head, sin_tail, cos_tail, sin_polar, cos_polar, sin_azimuth, cos_azimuth;
        sin_cos(head[0], sin_head, cos_head);
        sin_cos(delta[0], sin_tail, cos_tail);
        sin_cos(0.5f * (head[0] - delta[0]), sin_polar, cos_polar);
        sin_cos(0.5f * (head[1] - delta[1]), sin_azimuth, cos_azimuth);
        const Float product = sin_head * sin_tail, azimuth2 = sin_azimuth * sin_azimuth;
        const Float h = min(max(sin_polar * sin_polar + product * azimuth2, zeros()), splat<Float>(1.0f));

        // asin sqrt(h) = sqrt(h) P(h) for h <= 1/2, otherwise pi/2 minus that of 1 - h.
        const Int near = h <= splat<Float>(0.5f);
        const Float rest = max(1.0f - h, splat<Float>(antipode));
        const Float small = select(near, h, rest), arc = 2.0f * sqrt(small) * asin_ratio(small);
        const Float d = select(near, arc, half_turn - arc);
        const Float scale = select(near, 2.0f * asin_ratio(small), d / sqrt(h)) / sqrt(rest);
        delta[0] = scale * (sin_polar * cos_polar + cos_head * sin_tail * azimuth2);
        delta[1] = scale * product * sin_azimuth * cos_azimuth;
        return d * d;
    }

  private:
    static constexpr float half_turn = 3.14159265358979f;
    static constexpr float antipode = 1e-7f;  // if 1 - h is smaller, all directions reduce the distance equally

    // asin(sqrt h) / sqrt h for h in [0, 1/2]; relative error 9e-8.
    VICINAL_INLINE static Float asin_ratio(Float h) {
        Float p = splat<Float>(0.11113052070140839f);
        p = p * h - 0.0926022008061409f;
        p = p * h + 0.0772433802485466f;
        p = p * h + 0.01616097427904606f;
        p = p * h + 0.0465785376727581f;
        p = p * h + 0.07487321645021439f;
        p = p * h + 0.1666697859764099f;
        return p * h + 1.0f;
    }
};

struct HyperboloidSpace {
    explicit HyperboloidSpace(const SpaceParameters&) {}

    // With h = cosh d - 1 = (|x - y|² - (s - t)²) / 2 and s - t = (x - y).(x + y) / (s + t), near points far from the
    // origin keep their precision.
    VICINAL_INLINE Float towards(const Float* head, Float* delta, int dim) const {
        Float x2 = zeros(), y2 = zeros(), apart2 = zeros(), cross = zeros();
        for (int c = 0; c < dim; ++c) {
            const Float x = head[c], y = delta[c];
            x2 += x * x;
            y2 += y * y;
            delta[c] = x - y;
            apart2 += delta[c] * delta[c];
            cross += delta[c] * (x + y);
        }
        const Float s = sqrt(1.0f + x2), t = sqrt(1.0f + y2), lead = cross / (s + t);
        const Float h = max(0.5f * (apart2 - lead * lead), splat<Float>(smallest_length));
        const Float sinh = sqrt(h * (h + 2.0f));
        // acosh(1 + h): a series for small h, which the sum 1 + h would round away.
        const Float series = sqrt(2.0f * h) * (1.0f + h * (-1.0f / 12 + h * (3.0f / 160 - h * (5.0f / 896))));
        const Float d = select(h < splat<Float>(0.05f), series, ln_2 * log2(1.0f + h + sinh));
        const Float scale = d / sinh;
        for (int c = 0; c < dim; ++c) delta[c] = scale * (delta[c] - head[c] * (lead / s));
        return d * d;
    }

  private:
    static constexpr float ln_2 = 0.693147180559945f;
};

#if !defined(VICINAL_ONE_LANE)
struct CalledSpace {
    const SpaceFunction& function;

    explicit CalledSpace(const SpaceParameters& s) : function(*s.called) {}

    // A call costs far more than copying the lanes into rows and back.
    Float towards(const Float* head, Float* delta, int dim) const {
        const Size size = static_cast<Size>(lanes) * dim;
        Scratch<float> heads(size), tails(size), gradients(size);
        float distances[lanes];
        for (int lane = 0; lane < lanes; ++lane)
            for (int c = 0; c < dim; ++c) {
                heads[lane * dim + c] = head[c][lane];
                tails[lane * dim + c] = delta[c][lane];
            }
        function.evaluate(heads.data(), tails.data(), lanes, dim, distances, gradients.data());
        Float d2 = zeros();
        for (int lane = 0; lane < lanes; ++lane) {
            d2[lane] = distances[lane] * distances[lane];
            for (int c = 0; c < dim; ++c) delta[c][lane] = distances[lane] * gradients[lane * dim + c];
        }
        return d2;
    }
};

#endif

// Calls f(space) with the space of the parameters.
template <class F>
void with_space(const SpaceParameters& parameters, const F& f) {
    switch (parameters.kind) {
#define VICINAL_CASE(name, type) \
    case SpaceKind::name: return f(type(parameters));
        VICINAL_SPACES(VICINAL_CASE)
#undef VICINAL_CASE
#if defined(VICINAL_SMALL)
    case SpaceKind::function: return;
#elif !defined(VICINAL_ONE_LANE)
    case SpaceKind::function: return f(CalledSpace(parameters));
#endif
    }
}

}  // namespace vicinal::VICINAL_LEVEL
