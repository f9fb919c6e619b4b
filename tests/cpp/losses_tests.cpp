// Sums over pairs, edges and draws.
#include "checks.hpp"
#include "data.hpp"
#include "losses/loss_sums.hpp"

#include <vector>

namespace {

void sums_do_not_depend_on_threads() {
    const Size n = 1100, dim = 2;
    const FuzzyGraph graph = small_graph(n, 6);
    const auto places = random_points(n, dim, 10.0f), weights = random_points(n, 1, 1.0f);
    for (PairTerm term : {PairTerm::attract_cost, PairTerm::repel_cost, PairTerm::attract, PairTerm::repel}) {
        const PairQuantity quantity{term, umap_force()};
        const bool vectors = term == PairTerm::attract || term == PairTerm::repel;
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            const PairSums sums({places.data(), n, dim}, weights.data());
            std::vector<double> out(static_cast<std::size_t>(n * dim), 0.0), along(out.size(), 0.0);
            if (vectors)
                sums.forces(quantity, {nullptr, n}, out.data(), team);
            else
                sums.costs(quantity, out.data(), team);
            sums.edges(quantity, vectors, {nullptr, n}, graph.view(), along.data(), team);
            out.insert(out.end(), along.begin(), along.end());
            if (!vectors) {
                std::vector<double> value(static_cast<std::size_t>(n)), variance(value.size());
                sums.draws(quantity, 2, 5, {value.data(), variance.data()}, team);
                out.insert(out.end(), value.begin(), value.end());
                out.insert(out.end(), variance.begin(), variance.end());
            }
            return out;
        }));
    }
}

constexpr Test tests[] = {
    TEST(sums_do_not_depend_on_threads),
};

}  // namespace

int main() { return run_all(tests); }
