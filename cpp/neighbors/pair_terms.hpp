// Sums over the columns of two rows, and the rank that they give: for metrics that cannot be sketched, and for sparse
// rows.
//
//   terms          a column adds                                      rank, d columns
//   squared        (x-y)^2                                            s
//   centered       (x-y)^2, x-y                                       s - t^2 / d
//   absolute       |x-y|                                              s
//   maximum        |x-y|, the largest counts                          s
//   power          |x-y|^p                                            s^(1/p)
//   canberra       |x-y| / (|x|+|y|)                                  s
//   braycurtis     |x-y|, |x+y|                                       s / t
//   present        (x-y)^2, 1, if neither is NaN                      s d / t
//   hamming        x != y                                             s / d
//   truth          nonzero: only x, only y, both                      u, v, b, different = u + v:
//     jaccard        different / (different + b)        dice           different / (different + 2 b)
//     sokalsneath    different / (different + b / 2)    matching       different / d
//     rogerstanimoto 2 different / (d + different)      kulsinski      (different - b + d) / (different + d)
//     russellrao     (d - b) / d, 0 for equal rows      yule           2 u v / (b (d - different - b) + u v)
//   dirichlet      log B(x, y) and a part of each row alone           see DirichletTerms
//
// The truth metrics are defined as in umap-learn. A step is written once, for vectors of dense columns and for single
// numbers of sparse ones. Columns in which both rows are 0 add nothing, so sparse rows skip them. A column adds more
// than step(x, 0) + step(0, y) only if both rows store it, so additive terms of all pairs can be computed from lists
// of the rows that store each column (sparse_search.hpp).
#pragma once

#include "base/simd.hpp"
#include "neighbors/pair_metric.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE double abs(double x) { return __builtin_fabs(x); }
VICINAL_INLINE Float choose(Int mask, Float yes, float no) { return select(mask, yes, splat<Float>(no)); }
VICINAL_INLINE double choose(bool mask, double yes, double no) { return mask ? yes : no; }
VICINAL_INLINE Float count(Int mask) { return select(mask, splat<Float>(1.0f), splat<Float>(0.0f)); }
VICINAL_INLINE double count(bool mask) { return mask ? 1.0 : 0.0; }

constexpr double cannot_compare = std::numeric_limits<double>::infinity();

// Shared by most terms.
struct AdditiveTerms {
    static constexpr bool additive = true;  // the sums can be computed from lists of rows by column
    static constexpr bool vector = true;    // step() accepts vectors
    static constexpr float absent = 0.0f;   // a value that adds nothing if both rows have it
};

struct SquaredTerms : AdditiveTerms {
    static constexpr int sums = 1;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        s[0] += (x - y) * (x - y);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule&) { return s[0]; }
};

struct CenteredTerms : AdditiveTerms {
    static constexpr int sums = 2;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        s[0] += (x - y) * (x - y);
        s[1] += x - y;
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule& rule) {
        return s[0] - s[1] * s[1] / static_cast<double>(rule.cols);
    }
};

struct AbsoluteTerms : AdditiveTerms {
    static constexpr int sums = 1;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        s[0] += abs(x - y);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule&) { return s[0]; }
};

struct MaximumTerms : AdditiveTerms {
    static constexpr bool additive = false, vector = false;
    static constexpr int sums = 1;
    static VICINAL_INLINE void step(double x, double y, double* s, const PairRule&) {
        s[0] = abs(x - y) > s[0] ? abs(x - y) : s[0];
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule&) { return s[0]; }
};

// Not additive: the p-th root of two powers that nearly cancel has few correct digits.
struct PowerTerms : AdditiveTerms {
    static constexpr bool additive = false, vector = false;
    static constexpr int sums = 1;
    static VICINAL_INLINE void step(double x, double y, double* s, const PairRule& rule) {
        s[0] += std::pow(abs(x - y), rule.power);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule& rule) {
        return std::pow(s[0], 1.0 / rule.power);
    }
};

struct CanberraTerms : AdditiveTerms {
    static constexpr int sums = 1;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        const V size = abs(x) + abs(y);
        s[0] += choose(size > 0.0f, abs(x - y) / size, 0.0f);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule&) { return s[0]; }
};

struct BrayCurtisTerms : AdditiveTerms {
    static constexpr int sums = 2;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        s[0] += abs(x - y);
        s[1] += abs(x + y);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule&) { return s[1] > 0.0 ? s[0] / s[1] : 0.0; }
};

struct PresentTerms : AdditiveTerms {
    static constexpr int sums = 2;
    static constexpr float absent = std::numeric_limits<float>::quiet_NaN();
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        const auto both = (x == x) & (y == y);
        s[0] += choose(both, (x - y) * (x - y), 0.0f);
        s[1] += count(both);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule& rule) {
        return s[1] > 0.0 ? s[0] * static_cast<double>(rule.cols) / s[1] : cannot_compare;
    }
};

struct HammingTerms : AdditiveTerms {
    static constexpr int sums = 1;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        s[0] += count(x != y);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule& rule) {
        return s[0] / static_cast<double>(rule.cols);
    }
};

struct TruthTerms : AdditiveTerms {
    static constexpr int sums = 3;
    template <class V>
    static VICINAL_INLINE void step(V x, V y, V* s, const PairRule&) {
        const auto in_x = x != 0.0f, in_y = y != 0.0f;
        s[0] += count(in_x & (y == 0.0f));
        s[1] += count(in_y & (x == 0.0f));
        s[2] += count(in_x & in_y);
    }
    static VICINAL_INLINE double rank(const double* s, const PairRule& rule) {
        const double different = s[0] + s[1], both = s[2], d = static_cast<double>(rule.cols);
        if (different == 0.0) return 0.0;
        switch (rule.terms) {
        case Terms::jaccard: return different / (different + both);
        case Terms::bit_jaccard: return both > 0.0 ? -std::log(both / (different + both)) : cannot_compare;
        case Terms::dice: return different / (different + 2.0 * both);
        case Terms::sokalsneath: return different / (different + 0.5 * both);
        case Terms::rogerstanimoto: return 2.0 * different / (d + different);
        case Terms::kulsinski: return (different - both + d) / (different + d);
        case Terms::russellrao: return (d - both) / d;
        case Terms::yule: {
            const double mixed = s[0] * s[1];
            return mixed == 0.0 ? 0.0 : 2.0 * mixed / (both * (d - different - both) + mixed);
        }
        default: return different / d;
        }
    }
};

// The symmetric relative log likelihood of the counts of one row under the distribution of the other; umap-learn's
// ll_dirichlet with its approximations of log B(x, y) and log B(x, x). The sums are log B(x, y) of the columns in
// which both rows have counts, the part of each row alone, and the totals of both rows.
struct DirichletTerms : AdditiveTerms {
    static constexpr bool vector = false;
    static constexpr int sums = 5;
    static constexpr double counts_from = 0.9, pi = 3.14159265358979323846;

    static VICINAL_INLINE double log_gamma(double x) {
        return x == 1.0 ? 0.0 : x * std::log(x) - x + 0.5 * std::log(2.0 * pi / x) + 1.0 / (12.0 * x);
    }
    static VICINAL_INLINE double log_beta(double x, double y) {
        const double low = x < y ? x : y, high = x < y ? y : x;
        if (high >= 5.0) return log_gamma(x) + log_gamma(y) - log_gamma(x + y);
        double value = -std::log(high);
        for (int i = 1; i < static_cast<int>(low); ++i) value += std::log(static_cast<double>(i)) - std::log(high + i);
        return value;
    }
    static VICINAL_INLINE double log_single_beta(double x) {
        return std::log(2.0) * (0.5 - 2.0 * x) + 0.5 * std::log(2.0 * pi / x) + 0.125 / x;
    }

    static VICINAL_INLINE void step(double x, double y, double* s, const PairRule&) {
        const bool both = x * y > counts_from;
        if (both) s[0] += log_beta(x, y);
        if (both || x > counts_from) s[1] += log_single_beta(x);
        if (both || y > counts_from) s[2] += log_single_beta(y);
        s[3] += x;
        s[4] += y;
    }
    // A row without counts is infinitely far from other rows, and at distance 0 from another such row.
    static VICINAL_INLINE double rank(const double* s, const PairRule&) {
        if (s[3] <= 0.0 || s[4] <= 0.0) return s[3] <= 0.0 && s[4] <= 0.0 ? 0.0 : cannot_compare;
        const double shared = s[0] - log_beta(s[3], s[4]);
        const double squared =
            (shared - (s[2] - log_single_beta(s[4]))) / s[4] + (shared - (s[1] - log_single_beta(s[3]))) / s[3];
        return squared > 0.0 ? std::sqrt(squared) : 0.0;
    }
};

// Calls f.template operator()<T>() with the struct of the terms. New terms are added here.
template <class F>
VICINAL_INLINE auto with_terms(Terms terms, const F& f) {
    switch (terms) {
    case Terms::squared: return f.template operator()<SquaredTerms>();
    case Terms::centered: return f.template operator()<CenteredTerms>();
    case Terms::absolute: return f.template operator()<AbsoluteTerms>();
    case Terms::maximum: return f.template operator()<MaximumTerms>();
    case Terms::power: return f.template operator()<PowerTerms>();
    case Terms::canberra: return f.template operator()<CanberraTerms>();
    case Terms::braycurtis: return f.template operator()<BrayCurtisTerms>();
    case Terms::present: return f.template operator()<PresentTerms>();
    case Terms::hamming: return f.template operator()<HammingTerms>();
    case Terms::dirichlet: return f.template operator()<DirichletTerms>();
    default: return f.template operator()<TruthTerms>();
    }
}

constexpr int term_lanes = 16;  // virtual lanes, so that all levels agree
constexpr int term_parts = term_lanes / lanes;

// Differences are divided by the largest, so that powers stay in range.
inline double rank_power(const float* x, const float* y, const PairRule& rule) {
    constexpr float smallest = 1e-30f;
    float most = 0.0f;
    for (Size k = 0; k < rule.cols; ++k) most = std::fabs(x[k] - y[k]) > most ? std::fabs(x[k] - y[k]) : most;
    if (!(most > 0.0f)) return 0.0;
    Float sum[term_parts] = {};
    for (Size k = 0; k < rule.cols; k += term_lanes) {
        alignas(64) float share[term_lanes];
        for (int l = 0; l < term_lanes; ++l)
            share[l] = k + l < rule.cols ? std::fabs(x[k + l] - y[k + l]) / most : 0.0f;
        for (int p = 0; p < term_parts; ++p) {
            const Float t = load<Float>(share + p * lanes);
            const Float raised = pow(max(t, splat<Float>(smallest)), static_cast<float>(rule.power));
            sum[p] += choose(t > smallest, raised, 0.0f);
        }
    }
    double total = 0.0;
    for (int p = 0; p < term_parts; ++p)
        for (int l = 0; l < lanes; ++l) total += static_cast<double>(sum[p][l]);
    return most * std::pow(total, 1.0 / rule.power);
}

// The rank of two dense rows.
template <class T>
VICINAL_INLINE double rank_dense(const float* x, const float* y, const PairRule& rule) {
    if constexpr (std::is_same_v<T, PowerTerms>) return rank_power(x, y, rule);
    const Size d = rule.cols;
    double total[T::sums] = {};
    if constexpr (!T::vector) {
        for (Size k = 0; k < d; ++k) T::step(x[k], y[k], total, rule);
    } else {
        Float sum[term_parts][T::sums] = {};
        Size k = 0;
        for (; k + term_lanes <= d; k += term_lanes)
            for (int p = 0; p < term_parts; ++p)
                T::step(load<Float>(x + k + p * lanes), load<Float>(y + k + p * lanes), sum[p], rule);
        if (k < d) {
            alignas(64) float tail_x[term_lanes], tail_y[term_lanes];
            for (int l = 0; l < term_lanes; ++l) {
                tail_x[l] = k + l < d ? x[k + l] : T::absent;
                tail_y[l] = k + l < d ? y[k + l] : T::absent;
            }
            for (int p = 0; p < term_parts; ++p)
                T::step(load<Float>(tail_x + p * lanes), load<Float>(tail_y + p * lanes), sum[p], rule);
        }
        for (int s = 0; s < T::sums; ++s)
            for (int p = 0; p < term_parts; ++p)
                for (int l = 0; l < lanes; ++l) total[s] += static_cast<double>(sum[p][s][l]);
    }
    return T::rank(total, rule);
}

// A prepared sparse row; columns ascend.
struct SparseRow {
    const Index* column;
    const float* value;
    Size n;
};

// The rank of two sparse rows.
template <class T>
VICINAL_INLINE double rank_sparse(const SparseRow& x, const SparseRow& y, const PairRule& rule) {
    double total[T::sums] = {};
    Size i = 0, j = 0;
    while (i < x.n || j < y.n) {
        const bool take_x = i < x.n && (j >= y.n || x.column[i] <= y.column[j]);
        const bool take_y = j < y.n && (i >= x.n || y.column[j] <= x.column[i]);
        T::step(static_cast<double>(take_x ? x.value[i] : 0.0f), static_cast<double>(take_y ? y.value[j] : 0.0f), total,
                rule);
        i += take_x;
        j += take_y;
    }
    return T::rank(total, rule);
}

}  // namespace vicinal::VICINAL_LEVEL
