// Bindings of sums over pairs of points.
#include "bindings/binding.hpp"
#include "losses/loss_sums.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <type_traits>

namespace vicinal {

namespace {

using Rows = std::optional<In<Index, 1>>;

PairHeads chosen_heads(const Rows& rows, Size n) {
    if (!rows) return {nullptr, n};
    const PairHeads heads{rows->data(), static_cast<Size>(rows->shape(0))};
    for (Size i = 0; i < heads.n; ++i) require(heads.rows[i] >= 0 && heads.rows[i] < n, "a row number is out of range");
    return heads;
}

}  // namespace

void bind_losses(nb::module_& m) {
    nb::class_<PairQuantity>(m, "PairQuantity")
        .def(
            "__init__",
            [](PairQuantity* self, const std::string& term, const std::string& force, float a, float b, float gamma) {
                new (self) PairQuantity{named<PairTerm>(term_names, term), force_of(force, a, b, gamma)};
            },
            "term"_a, "force"_a, "a"_a, "b"_a, "gamma"_a);

    nb::class_<PairSums>(m, "PairSums")
        .def(
            "__init__",
            [](PairSums* self, In<float, 2> embedding, std::optional<In<float, 1>> weight) {
                require(!weight || weight->shape(0) == embedding.shape(0), "weight has the wrong length");
                new (self) PairSums(view(embedding), weight ? weight->data() : nullptr);
            },
            "embedding"_a, "weight"_a.none())
        .def(
            "costs",
            [](const PairSums& self, const PairQuantity& quantity, int n_jobs) {
                auto out = make<double>(self.rows());
                run(n_jobs, [&](ThreadTeam& team) {
                    self.costs(quantity, out.data(), team);
                    return 0;
                });
                return out;
            },
            "quantity"_a, "n_jobs"_a)
        .def(
            "forces",
            [](const PairSums& self, const PairQuantity& quantity, Rows rows, int n_jobs) {
                const PairHeads heads = chosen_heads(rows, self.rows());
                auto out = make<double>(heads.n, self.dim());
                run(n_jobs, [&](ThreadTeam& team) {
                    self.forces(quantity, heads, out.data(), team);
                    return 0;
                });
                return out;
            },
            "quantity"_a, "rows"_a.none(), "n_jobs"_a)
        .def(
            "edges",
            [](const PairSums& self, const PairQuantity& quantity, bool vectors, In<Size, 1> indptr,
               In<Index, 1> indices, In<float, 1> weights, Rows rows, int n_jobs) {
                const PairHeads heads = chosen_heads(rows, self.rows());
                const Csr graph = view(indptr, indices, weights);
                require(graph.rows == self.rows(), "graph and embedding differ in their rows");
                for (std::size_t e = 0; e < indices.shape(0); ++e)
                    require(graph.indices[e] >= 0 && graph.indices[e] < graph.rows, "a tail is no row");
                auto out = make<double>(heads.n, vectors ? self.dim() : 1);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.edges(quantity, vectors, heads, graph, out.data(), team);
                    return 0;
                });
                return out;
            },
            "quantity"_a, "vectors"_a, "indptr"_a, "indices"_a, "weights"_a, "rows"_a.none(), "n_jobs"_a)
        .def(
            "draws",
            [](const PairSums& self, const PairQuantity& quantity, Size groups, std::uint64_t seed, int n_jobs) {
                require(self.rows() >= 2 && groups >= 2, "draws need at least two rows and two groups");
                auto value = make<double>(self.rows());
                auto variance = make<double>(self.rows());
                run(n_jobs, [&](ThreadTeam& team) {
                    self.draws(quantity, groups, seed, {value.data(), variance.data()}, team);
                    return 0;
                });
                return nb::make_tuple(value, variance);
            },
            "quantity"_a, "groups"_a, "seed"_a, "n_jobs"_a);
}

}  // namespace vicinal
