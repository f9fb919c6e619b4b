// Compiled once per level with VICINAL_LEVEL set. Nothing is fused, so results have the same bits at every level.
#include "losses/loss_kernels.hpp"

#include "losses/loss_loop.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

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
