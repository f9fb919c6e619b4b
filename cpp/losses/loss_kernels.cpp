// Compiled once per level with VICINAL_LEVEL set: the loops of loss_sums.hpp, one head against a range of tails, one
// register at a time. Nothing is fused, so results have the same bits at every level.
#include "losses/loss_kernels.hpp"

#include "base/rng.hpp"
#include "base/scratch.hpp"
#include "losses/loss_term.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

// Consecutive rows.
struct RunOfRows {
    const PairPlaces& places;

    VICINAL_INLINE Int index(Size at) const {
        Int step;
        for (int l = 0; l < lanes; ++l) step[l] = l;
        return static_cast<Index>(at) + step;
    }
    VICINAL_INLINE Float place(Size component, Size at) const {
        return load<Float>(places.by_component + component * places.stride + at);
    }
};

// All rows except the head, each with its own weight.
struct OtherTails : RunOfRows {
    VICINAL_INLINE Float weight(Size head, Size at) const {
        return select(index(at) == static_cast<Index>(head), Float{}, load<Float>(places.weight + at));
    }
};

// The rows after the head: every pair once, with the weights of both rows.
struct LaterTails : RunOfRows {
    VICINAL_INLINE Float weight(Size head, Size at) const {
        const Int row = index(at);
        const Int later = (row > static_cast<Index>(head)) & (row < static_cast<Index>(places.n));
        return select(later, places.weight[head] + load<Float>(places.weight + at), Float{});
    }
};

// A list of rows, padded to a multiple of most_lanes with weights of 0.
struct ListedTails {
    const PairPlaces& places;
    const Index* rows;
    const float* weights;

    VICINAL_INLINE Float place(Size component, Size at) const {
        return gather<Float>(places.by_component + component * places.stride, load<Int>(rows + at));
    }
    VICINAL_INLINE Float weight(Size, Size at) const { return load<Float>(weights + at); }
};

// Sums over the tails of one head: values of the term, or vectors along (y_i - y_j). Dim > 0 fixes the number of
// components at compile time; 0 takes it from `places`.
template <class Term, int Dim, bool Vectors>
class HeadSum {
  public:
    HeadSum(const PairPlaces& places, const Term& term)
        : places_(places), term_(term), work_(Dim > 0 ? 0 : (groups + 1) * places.dim * lanes) {}

    // Results per head.
    VICINAL_INLINE Size width() const { return Vectors ? dim() : 1; }

    // Adds the tails [begin, end) to total[width()]; their number is a multiple of most_lanes.
    template <class Tails>
    VICINAL_INLINE void add(Size head, const Tails& tails, Size begin, Size end, double* total) {
        Float local[Dim > 0 ? (groups + 1) * Dim : 1];
        Float* sum = Dim > 0 ? local : reinterpret_cast<Float*>(work_.data());
        Float* delta = sum + groups * width();
        for (Size s = 0; s < groups * width(); ++s) sum[s] = Float{};
        for (Size at = begin; at < end; at += most_lanes)
            for (int g = 0; g < groups; ++g) {
                const Size first = at + g * lanes;
                Float d2{};
                for (Size c = 0; c < dim(); ++c) {
                    const Float difference = places_.by_component[c * places_.stride + head] - tails.place(c, first);
                    if constexpr (Vectors) delta[c] = difference;
                    d2 += difference * difference;
                }
                const Float value = tails.weight(head, first) * term_(d2);
                if constexpr (Vectors)
                    for (Size c = 0; c < dim(); ++c) sum[g * width() + c] += value * delta[c];
                else
                    sum[g] += value;
            }
        for (Size c = 0; c < width(); ++c) total[c] += reduce(sum, c);
    }

  private:
    static constexpr int groups = most_lanes / lanes;
    VICINAL_INLINE Size dim() const { return Dim > 0 ? Dim : places_.dim; }

    VICINAL_INLINE double reduce(const Float* sum, Size component) const {
        double lane[most_lanes];
        for (int l = 0; l < most_lanes; ++l) lane[l] = sum[l / lanes * width() + component][l % lanes];
        for (int half = most_lanes / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        return lane[0];
    }

    const PairPlaces& places_;
    const Term term_;
    Scratch<float> work_;
};

// Adds the tails from `first` on, block by block, for all heads of the chunk.
template <class Tails, class Sum>
void sum_rows(Sum& sum, const PairPlaces& places, const PairHeads& heads, Size begin, Size end, Size first,
              double* out) {
    const Tails tails{places};
    for (Size s = begin * sum.width(); s < end * sum.width(); ++s) out[s] = 0.0;
    for (Size tail = first; tail < places.stride; tail += pair_tails) {
        const Size stop = tail + pair_tails < places.stride ? tail + pair_tails : places.stride;
        for (Size i = begin; i < end; ++i) sum.add(heads.at(i), tails, tail, stop, out + i * sum.width());
    }
}

// Adds the edges of every head, copied to a list of fixed length batch by batch.
template <class Sum>
void sum_listed(Sum& sum, const PairPlaces& places, const PairHeads& heads, const Csr& graph, Size begin, Size end,
                double* out) {
    Index rows[pair_tails];
    float weights[pair_tails];
    for (Size s = begin * sum.width(); s < end * sum.width(); ++s) out[s] = 0.0;
    for (Size i = begin; i < end; ++i) {
        const Size head = heads.at(i);
        for (Size e = graph.indptr[head]; e < graph.indptr[head + 1];) {
            Size filled = 0;
            for (; filled < pair_tails && e < graph.indptr[head + 1]; ++filled, ++e) {
                rows[filled] = graph.indices[e];
                weights[filled] = graph.weights[e];
            }
            for (; filled % most_lanes != 0; ++filled) {
                rows[filled] = 0;
                weights[filled] = 0.0f;
            }
            sum.add(head, ListedTails{places, rows, weights}, 0, filled, out + i * sum.width());
        }
    }
}

// A group of most_lanes draws is one observation: the mean of the groups estimates the sum over the other rows, and
// their spread gives the variance of the estimate.
template <class Sum>
void sum_drawn(Sum& sum, const PairPlaces& places, const PairDraws& draws, Size begin, Size end,
               const PairEstimate& out) {
    Index rows[most_lanes];
    float weights[most_lanes];
    for (float& weight : weights) weight = 1.0f;
    const auto others = static_cast<std::uint32_t>(places.n - 1);
    const auto groups = static_cast<double>(draws.groups), scale = static_cast<double>(others) / most_lanes;
    for (Size head = begin; head < end; ++head) {
        const std::uint32_t key = row_key(draws.key, static_cast<std::uint64_t>(head));
        std::uint32_t draw = 0;
        double total = 0.0, squares = 0.0;
        for (Size g = 0; g < draws.groups; ++g) {
            for (Index& row : rows) {
                row = static_cast<Index>(below(draw32(key, draw++), others));
                if (row >= head) ++row;
            }
            double group = 0.0;
            sum.add(head, ListedTails{places, rows, weights}, 0, most_lanes, &group);
            total += group;
            squares += group * group;
        }
        const double spread = squares - total * total / groups;
        out.value[head] = scale * total / groups;
        out.variance[head] = scale * scale * (spread > 0.0 ? spread : 0.0) / (groups * (groups - 1.0));
    }
}

// Calls f(sum, begin, end) for chunks of heads, with an accumulator for the term and the number of components.
template <bool Vectors, class F>
void for_heads(const PairPlaces& places, const PairQuantity& quantity, Size n_heads, ThreadTeam& team, const F& f) {
    with_term(quantity, [&]<class Term>(const Term& term) {
        const auto run = [&]<int Dim>() {
            team.parallel_for(n_heads, pair_heads, [&](Size begin, Size end, int) {
                HeadSum<Term, Dim, Vectors> sum(places, term);
                f(sum, begin, end);
            });
        };
        places.dim == 2 ? run.template operator()<2>() : run.template operator()<0>();
    });
}

void sum_costs(const PairPlaces& places, const PairQuantity& quantity, double* out, ThreadTeam& team) {
    for_heads<false>(places, quantity, places.n, team, [&](auto& sum, Size begin, Size end) {
        const Size first = begin / most_lanes * most_lanes;
        sum_rows<LaterTails>(sum, places, {nullptr, places.n}, begin, end, first, out);
    });
}

void sum_forces(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads, double* out,
                ThreadTeam& team) {
    for_heads<true>(places, quantity, heads.n, team, [&](auto& sum, Size begin, Size end) {
        sum_rows<OtherTails>(sum, places, heads, begin, end, 0, out);
    });
}

template <bool Vectors>
void sum_edges(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads, const Csr& graph,
               double* out, ThreadTeam& team) {
    for_heads<Vectors>(places, quantity, heads.n, team, [&](auto& sum, Size begin, Size end) {
        sum_listed(sum, places, heads, graph, begin, end, out);
    });
}

void sum_draws(const PairPlaces& places, const PairQuantity& quantity, const PairDraws& draws, const PairEstimate& out,
               ThreadTeam& team) {
    for_heads<false>(places, quantity, places.n, team,
                     [&](auto& sum, Size begin, Size end) { sum_drawn(sum, places, draws, begin, end, out); });
}

}  // namespace

const LossKernels loss_kernels{
    .sum_costs = sum_costs,
    .sum_forces = sum_forces,
    .sum_edge_costs = sum_edges<false>,
    .sum_edge_forces = sum_edges<true>,
    .sum_draws = sum_draws,
};

}  // namespace vicinal::VICINAL_LEVEL
