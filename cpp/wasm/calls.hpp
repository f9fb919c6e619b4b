// Used by all functions of the interface: the team of one thread, and failures as return values.
#pragma once

#include "base/parallel.hpp"
#include "graph/symmetrize.hpp"
#include "wasm/interface.hpp"

#include <stdexcept>
#include <string>

namespace vicinal::wasm {

void remember(const char* message);

// Returns f(team), or a value that says false if it throws.
template <class F>
auto call(const F& f) -> decltype(f(std::declval<ThreadTeam&>())) {
    try {
        ThreadTeam team(1);
        return f(team);
    } catch (const std::bad_alloc&) {
        remember("out of memory");
    } catch (const std::exception& error) {
        remember(error.what());
    }
    return {};
}

// A graph in compressed sparse rows; its tails are rows too, or for new rows those of a map.
struct EdgeList {
    OwnedCsr csr;
    Size n_tails;

    Size n() const { return static_cast<Size>(csr.indptr.size()) - 1; }
    Csr view() const { return {csr.indptr.data(), csr.indices.data(), csr.weights.data(), n()}; }
    bool is_isolated(Size row) const { return csr.indptr[row] == csr.indptr[row + 1]; }
};

}  // namespace vicinal::wasm
