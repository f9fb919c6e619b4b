// Bindings of the spectral initialization.
#include "bindings/binding.hpp"
#include "initialize/chebyshev.hpp"
#include "initialize/coarsen.hpp"

#include <algorithm>

namespace vicinal {

void bind_initialize(nb::module_& m) {
    m.def(
        "coarsen",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            check_edges(graph);
            Coarse coarse = run(n_jobs, [&](ThreadTeam& team) { return coarsen(graph, team); });
            return nb::make_tuple(own(std::move(coarse.group)), own_graph(std::move(coarse.graph)));
        },
        "indptr"_a, "indices"_a, "weights"_a, "n_jobs"_a);
    m.def(
        "chebyshev_filter",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<float, 2> block, double cut, int degree,
           int n_jobs) {
            const Csr matrix = view(indptr, indices, weights);
            const Matrix from = view(block);
            require(from.rows == matrix.rows && from.cols % block_columns == 0, "the block does not fit the matrix");
            require(degree >= 1 && cut > -1.0, "degree or cut out of range");
            check_edges(matrix);
            auto out = make<float>(from.rows, from.cols);
            std::copy(from.data, from.data + from.rows * from.cols, out.data());
            run(n_jobs, [&](ThreadTeam& team) {
                chebyshev_filter(matrix, out.data(), from.cols, cut, degree, team);
                return 0;
            });
            return out;
        },
        "indptr"_a, "indices"_a, "weights"_a, "block"_a, "cut"_a, "degree"_a, "n_jobs"_a);
}

}  // namespace vicinal
