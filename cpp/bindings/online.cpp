// Bindings of the neighbor search of streamed rows.
#include "bindings/binding.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/online_neighbors.hpp"
#include "neighbors/sparse_pairs.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace vicinal {

namespace {

// A read-only view, of the given shape, of an array that may grow later; its memory lives as long as the view.
template <class... Sizes>
Out<const float, sizeof...(Sizes)> look_at(const GrowingArray<float>& array, Sizes... sizes) {
    using Held = std::shared_ptr<const MemoryBlock>;
    nb::capsule owner(new Held(array.block()), [](void* p) noexcept { delete static_cast<Held*>(p); });
    return Out<const float, sizeof...(Sizes)>(array.data(), {static_cast<std::size_t>(sizes)...}, owner);
}

// Elements are exported as words of 32 bits: floats as floats, anything else as unsigned integers.
template <class T>
using Word = std::conditional_t<std::is_same_v<T, float>, float, std::uint32_t>;

template <class T>
constexpr std::size_t words = sizeof(T) / sizeof(Word<T>);

// Ranks pairs by `pairs` during one call.
struct RankedBy {
    RankedBy(OnlineNeighbors& online, const PairMetric* pairs) : online(online) {
        require((pairs != nullptr) == online.ranked_by_caller(), "pairs must rank the rows, or be None");
        online.rank_by(pairs);
    }
    ~RankedBy() { online.rank_by(nullptr); }
    OnlineNeighbors& online;
};

struct StateWriter {
    nb::dict& out;

    // A view: elements that never change need no copy.
    void append_only(const char* name, const GrowingArray<float>& array) const {
        out[name] = look_at(array, array.size());
    }

    void operator()(const char* name, Size value) const { out[name] = value; }
    void operator()(const char* name, float value) const { out[name] = static_cast<double>(value); }
    template <class Array>
    void operator()(const char* name, const Array& array) const {
        using T = std::remove_reference_t<decltype(array[0])>;
        auto copy = make<Word<std::remove_const_t<T>>>(static_cast<Size>(array.size()) * words<std::remove_const_t<T>>);
        if (array.size() > 0)
            std::memcpy(copy.data(), array.data(), static_cast<std::size_t>(array.size()) * sizeof(T));
        out[name] = copy;
    }
};

struct StateReader {
    const nb::dict& in;

    void append_only(const char* name, GrowingArray<float>& array) const { (*this)(name, array); }

    void operator()(const char* name, Size& value) const { value = nb::cast<Size>(in[name]); }
    void operator()(const char* name, float& value) const { value = static_cast<float>(nb::cast<double>(in[name])); }
    template <class Array>
    void operator()(const char* name, Array& array) const {
        using T = std::remove_reference_t<decltype(array[0])>;
        const auto given = nb::cast<In<Word<T>, 1>>(in[name]);
        require(given.shape(0) % words<T> == 0, "the state does not fit this search");
        array.resize(given.shape(0) / words<T>);
        if (given.shape(0) > 0) std::memcpy(array.data(), given.data(), given.shape(0) * sizeof(Word<T>));
    }
};

}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<OnlineNeighbors>(m, "OnlineNeighbors")
        .def(
            "__init__",
            [](OnlineNeighbors* self, Size cols, Size pair_cols, const std::string& metric, double power,
               std::uint64_t seed, Size k, Size spare, Size trees, Size refresh_after, Size exact_rows) {
                const MetricRule& rule = find_metric(metric);
                require(cols >= 1 && pair_cols >= 0 && (pair_cols == 0 || rule.ranking == Ranking::pairs),
                        "cols or pair_cols out of range");
                require(k >= 2 && spare >= 0 && trees >= 1 && refresh_after >= 1 && exact_rows >= 0,
                        "an option is out of range");
                new (self)
                    OnlineNeighbors(cols, pair_cols, rule, power, seed, {k, spare, trees, refresh_after, exact_rows});
            },
            "cols"_a, "pair_cols"_a, "metric"_a, "power"_a, "seed"_a, "k"_a, "spare"_a, "trees"_a, "refresh_after"_a,
            "exact_rows"_a)
        .def_prop_ro("n", &OnlineNeighbors::rows)
        .def_prop_ro("n_searched", &OnlineNeighbors::searched)
        .def_prop_ro("pending", &OnlineNeighbors::pending)
        .def_prop_ro("compared", &OnlineNeighbors::compared)
        .def_prop_ro("share", &OnlineNeighbors::share)
        .def("rows",
             [](const OnlineNeighbors& self) { return look_at(self.ranked_rows(), self.rows(), self.ranked_cols()); })
        .def("reserve", &OnlineNeighbors::reserve, "n"_a)
        .def(
            "insert",
            [](OnlineNeighbors& self, In<float, 2> rows, In<float, 2> pair_rows, int n_jobs) {
                require(static_cast<Size>(rows.shape(1)) == self.cols(), "rows have the wrong number of columns");
                require(static_cast<Size>(pair_rows.shape(1)) == self.pair_cols() || self.pair_cols() == 0,
                        "rows have the wrong number of columns");
                require(rows.shape(0) == pair_rows.shape(0), "rows and pair_rows differ in number");
                require(self.rows() + static_cast<Size>(rows.shape(0)) < std::numeric_limits<Index>::max() / 2,
                        "too many rows");
                run(n_jobs, [&](ThreadTeam& team) {
                    self.insert(view(rows), view(pair_rows), team);
                    return 0;
                });
            },
            "rows"_a, "pair_rows"_a, "n_jobs"_a)
        .def(
            "adopt",
            [](OnlineNeighbors& self, In<Index, 2> index, int n_jobs, const PairMetric* pairs) {
                const RankedBy ranked(self, pairs);
                require(static_cast<Size>(index.shape(0)) == self.rows() && self.searched() == 0,
                        "only a table of all rows can be adopted, before any row is searched");
                for (std::size_t e = 0; e < index.size(); ++e)
                    require(index.data()[e] >= -1 && index.data()[e] < self.rows(), "a neighbor index is out of range");
                run(n_jobs, [&](ThreadTeam& team) {
                    self.adopt(index.data(), static_cast<Size>(index.shape(1)), team);
                    return 0;
                });
            },
            "index"_a, "n_jobs"_a, "pairs"_a.none() = nb::none())
        .def("state",
             [](OnlineNeighbors& self) {
                 nb::dict out;
                 self.visit_state(StateWriter{out});
                 return out;
             })
        .def(
            "restore",
            [](OnlineNeighbors& self, nb::dict state, int n_jobs) {
                self.visit_state(StateReader{state});
                run(n_jobs, [&](ThreadTeam& team) {
                    self.restore(team);
                    return 0;
                });
            },
            "state"_a, "n_jobs"_a)
        .def(
            "step",
            [](OnlineNeighbors& self, Size ops, double seconds, int n_jobs, const PairMetric* pairs) {
                const RankedBy ranked(self, pairs);
                OnlineChange change = run(n_jobs, [&](ThreadTeam& team) { return self.step(ops, seconds, team); });
                return nb::make_tuple(change.first_new, change.last_new, own(std::move(change.updated)));
            },
            "ops"_a, "seconds"_a, "n_jobs"_a, "pairs"_a.none() = nb::none())
        .def(
            "table",
            [](const OnlineNeighbors& self, In<Size, 1> rows) {
                const auto n = static_cast<Size>(rows.shape(0));
                for (Size i = 0; i < n; ++i)
                    require(rows.data()[i] >= 0 && rows.data()[i] < self.searched(), "a row has not been searched yet");
                auto index = make<Index>(n, self.options().k);
                auto distance = make<float>(n, self.options().k);
                self.table(rows.data(), n, index.data(), distance.data());
                return nb::make_tuple(index, distance);
            },
            "rows"_a)
        .def(
            "query",
            [](const OnlineNeighbors& self, In<float, 2> queries, In<float, 2> pair_queries, Size k, int n_jobs,
               const PairMetric* pairs) {
                require((pairs != nullptr) == self.ranked_by_caller(), "pairs must rank the queries, or be None");
                require(static_cast<Size>(queries.shape(1)) == self.cols(),
                        "queries and rows differ in their number of columns");
                require(queries.shape(0) == pair_queries.shape(0), "rows and pair_rows differ in number");
                require(k >= 1 && k <= self.searched(), "k must lie between 1 and the number of rows");
                auto index = make<Index>(static_cast<Size>(queries.shape(0)), k);
                auto distance = make<float>(static_cast<Size>(queries.shape(0)), k);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.query(view(queries), view(pair_queries), pairs, k, index.data(), distance.data(), team);
                    return 0;
                });
                return nb::make_tuple(index, distance);
            },
            "queries"_a, "pair_queries"_a, "k"_a, "n_jobs"_a, "pairs"_a.none() = nb::none());

    nb::class_<GrowingSparseRows>(m, "GrowingSparseRows")
        .def(
            "__init__",
            [](GrowingSparseRows* self, Size cols, const std::string& metric) {
                new (self) GrowingSparseRows(cols, find_metric(metric));
            },
            "cols"_a, "metric"_a)
        .def_prop_ro("n", &GrowingSparseRows::rows)
        .def(
            "append",
            [](GrowingSparseRows& self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> values, Size cols) {
                require(cols == self.cols(), "rows have the wrong number of columns");
                const Csr rows = view(indptr, indices, values);
                for (Size e = 0; e < rows.indptr[rows.rows]; ++e)
                    require(rows.indices[e] >= 0 && rows.indices[e] < cols, "a column is out of range");
                self.append(rows);
            },
            "indptr"_a, "indices"_a, "values"_a, "cols"_a)
        .def(
            "truncate",
            [](GrowingSparseRows& self, Size n) {
                require(n >= 0, "n must be at least 0");
                self.truncate(n);
            },
            "n"_a);
    nb::class_<SparsePairs, PairMetric>(m, "SparsePairs")
        .def(nb::init<const GrowingSparseRows&, const GrowingSparseRows&, double>(), "heads"_a, "tails"_a, "power"_a,
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

}  // namespace vicinal
