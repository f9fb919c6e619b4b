// Bindings of the neighbor searches: of given rows, of sparse rows, of points of a map, and of rows in a stream.
#include "bindings/binding.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/online_neighbors.hpp"
#include "neighbors/point_tree.hpp"
#include "neighbors/row_content.hpp"
#include "neighbors/sparse_index.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace vicinal {

namespace {

// A Python function of two rows, which returns their distance, or a pair of the distance and its gradient. It is called
// by one thread only.
class PythonPairs : public PairMetric {
  public:
    PythonPairs(nb::list heads, nb::list tails, nb::object function)
        : heads_(std::move(heads)), tails_(std::move(tails)), function_(std::move(function)) {}

    float rank(Size head, Size tail) const override {
        nb::gil_scoped_acquire gil;
        nb::object value = function_(heads_[head], tails_[tail]);
        if (nb::isinstance<nb::tuple>(value) && nb::len(value) == 2) value = value[0];
        const double number = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return checked_rank(number, head, tail);
    }

  private:
    const nb::list heads_, tails_;
    const nb::object function_;
};

// The content of a scipy.LowLevelCallable: a capsule with the function, named by its signature, and its data.
ForeignFunction foreign_function(nb::tuple callable) {
    constexpr std::pair<const char*, ForeignFunction::Kind> signatures[] = {
        {"double (float *, float *, int, void *)", ForeignFunction::Kind::floats_data},
        {"double (double *, double *, int, void *)", ForeignFunction::Kind::doubles_data},
        {"double (float *, float *, int)", ForeignFunction::Kind::floats},
        {"double (double *, double *, int)", ForeignFunction::Kind::doubles},
    };
    const nb::object capsule = callable[0];
    const char* signature = PyCapsule_GetName(capsule.ptr());
    if (signature == nullptr) throw nb::python_error();
    std::string known;
    for (const auto& [name, kind] : signatures) {
        if (std::string(name) == signature)
            return {kind, PyCapsule_GetPointer(capsule.ptr(), signature), PyCapsule_GetContext(capsule.ptr())};
        known += (known.empty() ? "" : ", ") + std::string("'") + name + "'";
    }
    throw std::invalid_argument("metric is a LowLevelCallable with signature '" + std::string(signature) +
                                "', must be one of " + known);
}

SparseMatrix sparse_view(const In<Size, 1>& indptr, const In<Index, 1>& indices, const In<float, 1>& values,
                         Size cols) {
    const Csr csr = view(indptr, indices, values);
    for (Size i = 0; i < csr.rows; ++i)
        for (Size e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e)
            require(csr.indices[e] >= (e > csr.indptr[i] ? csr.indices[e - 1] + 1 : 0) && csr.indices[e] < cols,
                    "the columns of a sparse row must ascend and be in range");
    return {csr, cols};
}

void bind_pairs(nb::module_& m) {
    nb::class_<PairMetric>(m, "PairMetric").def("rank", &PairMetric::rank, "head"_a, "tail"_a);
    nb::class_<DensePairs, PairMetric>(m, "DensePairs")
        .def(
            "__init__",
            [](DensePairs* self, InRows heads, InRows tails, const std::string& metric, double power) {
                const MetricRule& rule = find_metric(metric);
                const RowMatrix x = view_rows(heads, rule.packed), y = view_rows(tails, rule.packed);
                require(x.cols == y.cols, "queries and rows differ in their number of columns");
                new (self) DensePairs(x, y, rule, power);
            },
            "heads"_a, "tails"_a, "metric"_a, "power"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
    nb::class_<ForeignPairs, PairMetric>(m, "ForeignPairs")
        .def(
            "__init__",
            [](ForeignPairs* self, In<float, 2> heads, In<float, 2> tails, nb::tuple function) {
                require(heads.shape(1) == tails.shape(1), "queries and rows differ in their number of columns");
                new (self) ForeignPairs(view(heads), view(tails), foreign_function(function));
            },
            "heads"_a, "tails"_a, "function"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def_static("check", [](nb::tuple function) { foreign_function(function); }, "function"_a);
    nb::class_<PythonPairs, PairMetric>(m, "PythonPairs")
        .def(nb::init<nb::list, nb::list, nb::object>(), "heads"_a, "tails"_a, "function"_a);
}

void bind_sparse(nb::module_& m) {
    nb::class_<SparseIndex>(m, "SparseIndex")
        .def(
            "__init__",
            [](SparseIndex* self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> values, Size cols,
               const std::string& metric, double power, int n_jobs) {
                const MetricRule& rule = find_metric(metric);
                const SparseMatrix rows = sparse_view(indptr, indices, values, cols);
                run(n_jobs, [&](ThreadTeam& team) { return new (self) SparseIndex(rows, rule, power, team); });
            },
            "indptr"_a, "indices"_a, "values"_a, "cols"_a, "metric"_a, "power"_a, "n_jobs"_a, nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def_prop_ro("additive", &SparseIndex::additive)
        .def_prop_ro("additions", &SparseIndex::additions)
        .def(
            "search",
            [](const SparseIndex& self, Size k, Size budget, Size pool, int n_jobs) {
                const Size n = self.rows().csr.rows;
                require(budget == 0 || pool >= k, "the pool must hold k rows");
                require(k >= 1 && k <= n, "k must lie between 1 and the number of rows");
                auto index = make<Index>(n, k);
                auto distance = make<float>(n, k);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.search(k, budget, pool, index.data(), distance.data(), team);
                    return 0;
                });
                return nb::make_tuple(index, distance);
            },
            "k"_a, "budget"_a, "pool"_a, "n_jobs"_a)
        .def(
            "query",
            [](const SparseIndex& self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> values, Size cols,
               Size k, Size budget, Size pool, int n_jobs) {
                require(budget == 0 || pool >= k, "the pool must hold k rows");
                require(cols == self.rows().cols, "queries and rows differ in their number of columns");
                require(k >= 1 && k <= self.rows().csr.rows, "k must lie between 1 and the number of rows");
                const SparseMatrix queries = sparse_view(indptr, indices, values, cols);
                auto index = make<Index>(queries.rows.rows, k);
                auto distance = make<float>(queries.rows.rows, k);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.query(queries, k, budget, pool, index.data(), distance.data(), team);
                    return 0;
                });
                return nb::make_tuple(index, distance);
            },
            "indptr"_a, "indices"_a, "values"_a, "cols"_a, "k"_a, "budget"_a, "pool"_a, "n_jobs"_a);

    m.def(
        "hash_sparse_rows",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> values, Size cols, int n_jobs) {
            const SparseMatrix rows = sparse_view(indptr, indices, values, cols);
            auto out = make<std::uint64_t>(rows.rows.rows);
            run(n_jobs, [&](ThreadTeam& team) {
                hash_sparse_rows(rows.rows, cols, out.data(), team);
                return 0;
            });
            return out;
        },
        "indptr"_a, "indices"_a, "values"_a, "cols"_a, "n_jobs"_a);
}

void bind_point_tree(nb::module_& m) {
    nb::class_<PointTree>(m, "PointTree")
        .def(
            "__init__",
            [](PointTree* self, In<float, 2> points, int n_jobs) {
                require(points.shape(1) >= 1, "points need at least one component");
                require(points.shape(0) < static_cast<std::size_t>(std::numeric_limits<Index>::max()),
                        "too many points");
                run(n_jobs, [&](ThreadTeam& team) { return new (self) PointTree(view(points), team); });
            },
            "points"_a, "n_jobs"_a = 1)
        .def(
            "query",
            [](const PointTree& self, In<float, 2> queries, Size k, int n_jobs) {
                const Matrix rows = view(queries);
                require(rows.cols == self.dim(), "queries and points differ in their number of components");
                require(k >= 1 && k <= self.n(), "k must lie between 1 and the number of points");
                auto index = make<Index>(rows.rows, k);
                auto distance = make<float>(rows.rows, k);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.query(rows, k, index.data(), distance.data(), team);
                    return 0;
                });
                return nb::make_tuple(index, distance);
            },
            "queries"_a, "k"_a, "n_jobs"_a);
}

}  // namespace

void bind_neighbors(nb::module_& m) {
    bind_point_tree(m);
    bind_pairs(m);
    bind_sparse(m);
    m.def("metrics", [] {
        std::vector<std::pair<std::string, bool>> names;
        for (const MetricRule& rule : metric_table) names.emplace_back(rule.name, rule.ranking == Ranking::pairs);
        return names;
    });
    // (name, Preparation, Ranking, Finish): the lines of metric_table.hpp that a GPU follows.
    m.def("metric_rules", [] {
        std::vector<std::tuple<std::string, int, int, int>> rules;
        for (const MetricRule& rule : metric_table)
            rules.emplace_back(rule.name, static_cast<int>(rule.preparation), static_cast<int>(rule.ranking),
                               static_cast<int>(rule.finish));
        return rules;
    });
    nb::class_<NeighborIndex>(m, "NeighborIndex")
        .def(
            "__init__",
            [](NeighborIndex* self, InRows rows, const std::string& metric, std::uint64_t seed, int n_jobs,
               const PairMetric* pairs) {
                const MetricRule& rule = find_metric(metric);
                require(rule.ranking != Ranking::pairs || pairs != nullptr, "this metric needs a PairMetric");
                const RowMatrix from = view_rows(rows, rule.packed);
                run(n_jobs, [&](ThreadTeam& team) { return new (self) NeighborIndex(from, rule, seed, pairs, team); });
            },
            "rows"_a, "metric"_a, "seed"_a, "n_jobs"_a, "pairs"_a.none() = nb::none(), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 6>())
        .def(
            "search_exact",
            [](NeighborIndex& self, Size k, int n_jobs) {
                const Size n = self.rows().rows;
                require(k >= 1 && k <= n, "k must lie between 1 and the number of rows");
                auto index = make<Index>(n, k);
                auto distance = make<float>(n, k);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.search_exact(k, index.data(), distance.data(), team);
                    return 0;
                });
                return nb::make_tuple(index, distance);
            },
            "k"_a, "n_jobs"_a)
        .def(
            "search_approximate",
            [](NeighborIndex& self, Size k, Size trees, Size leaf_rows, Size node_rows, Size candidates, Size spare,
               Size rounds, double coarse, double fine, double final, double structureless, Size unordered_bytes,
               int n_jobs) {
                const Size n = self.rows().rows;
                require(k >= 2 && k <= n, "k must lie between 2 and the number of rows");
                require(trees >= 1 && leaf_rows >= 2 && leaf_rows < most_tails, "trees or leaf_rows out of range");
                require(candidates >= 1 && 2 * candidates <= most_tails, "candidates out of range");
                auto index = make<Index>(n, k);
                auto distance = make<float>(n, k);
                const SearchResult result = run(n_jobs, [&](ThreadTeam& team) {
                    return self.search_approximate(k,
                                                   {trees, leaf_rows, node_rows, candidates, spare, rounds, coarse,
                                                    fine, final, structureless, unordered_bytes},
                                                   index.data(), distance.data(), team);
                });
                return nb::make_tuple(index, distance, result.share, result.structured);
            },
            "k"_a, "trees"_a, "leaf_rows"_a, "node_rows"_a, "candidates"_a, "spare"_a, "rounds"_a, "coarse"_a, "fine"_a,
            "final"_a, "structureless"_a, "unordered_bytes"_a, "n_jobs"_a)
        .def(
            "grow_forest",
            [](NeighborIndex& self, Size trees, Size leaf_rows, int n_jobs) {
                require(trees >= 1 && leaf_rows >= 2 && leaf_rows < most_tails, "trees or leaf_rows out of range");
                run(n_jobs, [&](ThreadTeam& team) {
                    self.grow_forest(trees, leaf_rows, team);
                    return 0;
                });
            },
            "trees"_a, "leaf_rows"_a, "n_jobs"_a)
        .def(
            "query",
            [](const NeighborIndex& self, InRows queries, In<Size, 1> indptr, In<Index, 1> indices, Size k, Size pool,
               Size trees, float share, int n_jobs, const PairMetric* pairs) {
                const RowMatrix heads = view_rows(queries, self.rows().element == Element::bits);
                require(heads.cols == self.rows().cols, "queries and rows differ in their number of columns");
                require(k >= 1 && k <= self.rows().rows, "k must lie between 1 and the number of rows");
                require(static_cast<Size>(indptr.shape(0)) == self.rows().rows + 1,
                        "graph and index differ in their rows");
                auto index = make<Index>(heads.rows, k);
                auto distance = make<float>(heads.rows, k);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.query(heads, pairs, {indptr.data(), indices.data()}, {k, pool, trees, share}, index.data(),
                               distance.data(), team);
                    return 0;
                });
                return nb::make_tuple(index, distance);
            },
            "queries"_a, "indptr"_a, "indices"_a, "k"_a, "pool"_a, "trees"_a, "share"_a, "n_jobs"_a,
            "pairs"_a.none() = nb::none());

    m.def(
        "hash_rows",
        [](InRows rows, int n_jobs) {
            auto out = make<std::uint64_t>(static_cast<Size>(rows.shape(0)));
            run(n_jobs, [&](ThreadTeam& team) {
                hash_rows(view_rows(rows), out.data(), team);
                return 0;
            });
            return out;
        },
        "rows"_a, "n_jobs"_a);

    m.def(
        "scan_rows",
        [](InRows rows, int n_jobs, bool allow_nan) {
            const RowMatrix from = view_rows(rows);
            const RowScan scan = run(n_jobs, [&](ThreadTeam& team) { return scan_rows(from, allow_nan, team); });
            return nb::make_tuple(scan.largest, scan.first_bad_row);
        },
        "rows"_a, "n_jobs"_a, "allow_nan"_a = false);
}

namespace {

// Rows in a stream.

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

    template <class Field>
    void later(const char* name, const Field& field) const {
        (*this)(name, field);
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

    template <class Field>
    void later(const char* name, Field& field) const {
        if (in.contains(name)) (*this)(name, field);
    }

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
            "keep",
            [](OnlineNeighbors& self, In<Index, 1> rows, int n_jobs, const PairMetric* pairs) {
                const RankedBy ranked(self, pairs);
                const auto n = static_cast<Size>(rows.shape(0));
                require(n >= 1, "at least one row must stay");
                for (Size i = 0; i < n; ++i)
                    require(rows.data()[i] < self.rows() && rows.data()[i] >= (i > 0 ? rows.data()[i - 1] + 1 : 0),
                            "the rows to keep must exist, and their numbers ascend");
                return own(run(n_jobs, [&](ThreadTeam& team) { return self.keep(rows.data(), n, team); }));
            },
            "rows"_a, "n_jobs"_a, "pairs"_a.none() = nb::none())
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
            [](OnlineNeighbors& self, In<float, 2> queries, In<float, 2> pair_queries, Size k, int n_jobs,
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
            "n"_a)
        .def(
            "taken",
            [](const GrowingSparseRows& self, In<Index, 1> rows) {
                const auto n = static_cast<Size>(rows.shape(0));
                for (Size i = 0; i < n; ++i)
                    require(rows.data()[i] >= 0 && rows.data()[i] < self.rows(), "a row does not exist");
                return self.taken(rows.data(), n);
            },
            "rows"_a);
    nb::class_<SparsePairs, PairMetric>(m, "SparsePairs")
        .def(nb::init<const GrowingSparseRows&, const GrowingSparseRows&, double>(), "heads"_a, "tails"_a, "power"_a,
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

}  // namespace vicinal
