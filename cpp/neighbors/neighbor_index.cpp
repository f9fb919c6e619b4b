#include "neighbors/neighbor_index.hpp"

#include "base/rng.hpp"
#include "neighbors/neighbor_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace vicinal {

namespace {

constexpr Size piece_rows = 512;
// Copies of a piece's first row, of the first row of the cycle that its last row belongs to, and of another row.
enum Which : Size { first_of_piece, first_of_cycle, spare, copies };

}  // namespace

LeafOrder::LeafOrder(const Index* order, Size n) : places_(static_cast<std::size_t>(n), -1) {
    chain_.reserve(static_cast<std::size_t>(n));
    for (Size first = 0; first < n; ++first) {
        if (places_[order[first]] >= 0) continue;
        for (auto i = static_cast<Index>(first); places_[order[i]] < 0; i = order[i]) {
            places_[order[i]] = i;
            chain_.push_back(i);
        }
        ends_.push_back(static_cast<Size>(chain_.size()));
    }
}

LeafOrder::~LeafOrder() {
    if (!moved_) return;
    ThreadTeam alone(1);
    restore(alone);
}

void LeafOrder::add_bytes(std::byte* rows, Size row_bytes) {
    arrays_.push_back({rows, row_bytes});
    most_bytes_ = std::max(most_bytes_, row_bytes);
    const auto pieces = (static_cast<Size>(chain_.size()) + piece_rows - 1) / piece_rows;
    saved_.resize(static_cast<std::size_t>(pieces * copies * most_bytes_));
}

void LeafOrder::apply(ThreadTeam& team) {
    move(team);
    moved_ = true;
}

void LeafOrder::restore(ThreadTeam& team) {
    const auto n = static_cast<Size>(chain_.size());
    std::reverse(chain_.begin(), chain_.end());
    // The first ends become begins, and the last end stays.
    std::reverse(ends_.begin(), ends_.end() - 1);
    for (auto end = ends_.begin(); end + 1 < ends_.end(); ++end) *end = n - *end;
    move(team);
    moved_ = false;
}

Size LeafOrder::piece_end(Size piece) const {
    return std::min((piece + 1) * piece_rows, static_cast<Size>(chain_.size()));
}

std::byte* LeafOrder::saved(Size piece, Size which) const {
    return saved_.data() + (piece * copies + which) * most_bytes_;
}

// Interrupts wait, because an array that is half reordered cannot be put back.
void LeafOrder::move(ThreadTeam& team) {
    const auto n = static_cast<Size>(chain_.size()), pieces = (n + piece_rows - 1) / piece_rows;
    for (const Rows& rows : arrays_) {
        const auto save = [&](Size position, Size piece, Size which) {
            std::memcpy(saved(piece, which), rows.row(chain_[position]), static_cast<std::size_t>(rows.row_bytes));
        };
        team.parallel_for_whole(pieces, 4, [&](Size begin, Size end, int) {
            for (Size p = begin; p < end; ++p) {
                save(p * piece_rows, p, first_of_piece);
                const auto cycle = std::upper_bound(ends_.begin(), ends_.end(), piece_end(p) - 1);
                save(cycle == ends_.begin() ? 0 : *(cycle - 1), p, first_of_cycle);
            }
        });
        team.parallel_for_whole(pieces, 4, [&](Size begin, Size end, int) {
            for (Size p = begin; p < end; ++p) move_piece(rows, p);
        });
    }
}

void LeafOrder::move_piece(const Rows& rows, Size piece) const {
    const auto bytes = static_cast<std::size_t>(rows.row_bytes);
    const Size begin = piece * piece_rows, end = piece_end(piece);
    auto cycle = std::upper_bound(ends_.begin(), ends_.end(), begin);
    for (Size low = begin; low < end; low = *cycle++) {
        const Size first = cycle == ends_.begin() ? 0 : *(cycle - 1), high = std::min(*cycle, end);
        const std::byte* after = saved(piece, spare);  // what the last row of this part becomes
        if (first >= begin && *cycle <= end)
            std::memcpy(saved(piece, spare), rows.row(chain_[low]), bytes);
        else
            after = *cycle <= end ? saved(first / piece_rows, first_of_cycle) : saved(piece + 1, first_of_piece);
        for (Size t = low; t + 1 < high; ++t) std::memcpy(rows.row(chain_[t]), rows.row(chain_[t + 1]), bytes);
        std::memcpy(rows.row(chain_[high - 1]), after, bytes);
    }
}

const MetricRule& find_metric(const std::string& name) {
    for (const MetricRule& rule : metric_table)
        if (name == rule.name) return rule;
    throw std::invalid_argument("unknown metric '" + name + "'");
}

namespace {

// Owns the arrays of a NeighborHeap.
class HeapStorage {
  public:
    HeapStorage(Size rows, Size k, ThreadTeam& team) {
        const Size stride = (k + heap_pad - 1) / heap_pad * heap_pad;
        ranks_.reset(new float[static_cast<std::size_t>(rows * stride)]);
        tags_.reset(new std::uint32_t[static_cast<std::size_t>(rows * stride)]);
        worst_.reset(new float[static_cast<std::size_t>(rows)]);
        locks_.reset(new std::uint8_t[static_cast<std::size_t>(rows)]);
        heap_ = {ranks_.get(), tags_.get(), worst_.get(), locks_.get(), rows, k, stride};
        team.parallel_for(rows, 4096, [&](Size begin, Size end, int) { heap_.clear(begin, end); });
    }
    const NeighborHeap& heap() const { return heap_; }

  private:
    std::unique_ptr<float[]> ranks_, worst_;
    std::unique_ptr<std::uint32_t[]> tags_;
    std::unique_ptr<std::uint8_t[]> locks_;
    NeighborHeap heap_;
};

}  // namespace

NeighborIndex::NeighborIndex(const RowMatrix& rows, const MetricRule& metric, std::uint64_t seed,
                             const PairMetric* pairs, ThreadTeam& team)
    : metric_(metric), seed_(seed), sketcher_(metric, rows.cols) {
    prepare_rows(rows, pairs, own_, team);
    if (sketcher_.fitted() || rows.rows <= rows_without_basis)
        sketch_rows(own_, team);
    else
        fit_sketches(team);
}

void NeighborIndex::fit_sketches(ThreadTeam& team) {
    sketcher_.fit(space_, seed_, team);
    sketch_rows(own_, team);
}

void NeighborIndex::prepare_rows(const RowMatrix& rows, const PairMetric* pairs, Sketched& out,
                                 ThreadTeam& team) const {
    out.space = sketcher_.space();
    out.space.rows = rows;
    out.space.pairs = pairs;
    out.bytes = sketcher_.bytes_of(rows, team);
    out.space.bytes = {out.bytes.get(), sketcher_.byte_stride()};
    if (!sketcher_.prepares()) return;
    out.scale.resize(static_cast<std::size_t>(rows.rows));
    sketcher_.prepare(rows, out.scale.data(), team);
    out.space.scale = out.scale.data();
}

void NeighborIndex::sketch_rows(Sketched& out, ThreadTeam& team) const {
    SearchSpace& space = out.space;
    const auto n_floats = static_cast<std::size_t>(space.rows.rows * space.sketch_stride);
    out.sketch = std::make_unique_for_overwrite<float[]>(n_floats);
    const bool projects = sketcher_.projects();
    for (std::vector<float>* of_rows : {&out.rest, &out.shown})
        if (projects) of_rows->resize(static_cast<std::size_t>(space.rows.rows));
    const float longest2 =
        sketcher_.sketch(space.rows, space.scale, out.sketch.get(), out.rest.data(), out.shown.data(), team);
    space.slack = sketch_slack(metric_.ranking, longest2);
    space.sketch = out.sketch.get();
    space.product_slack = product_slack(longest2);
    if (projects) space.rest = out.rest.data();
}

// Row i of the heap is row order[i] of the table, or row i if `order` is null. Equally near neighbors are sorted again
// if there is an order.
void NeighborIndex::write_table(const NeighborHeap& heap, const Index* order, Size wanted, Index* index,
                                float* distance, ThreadTeam& team) const {
    const Size k = wanted + 1;
    team.parallel_for(heap.rows, 1024, [&](Size begin, Size end, int) {
        for (Size at = begin; at < end; ++at) {
            const HeapRow row = heap.row(at);
            const Size i = order != nullptr ? order[at] : at;
            index[i * k] = static_cast<Index>(i);
            distance[i * k] = 0.0f;
            Size first = 0;  // of those that are as near
            for (Size e = 0; e < wanted; ++e) {
                const bool known = row.rank[e] < no_rank;
                index[i * k + e + 1] = !known ? -1 : order != nullptr ? order[row.index(e)] : row.index(e);
                distance[i * k + e + 1] = known ? finish_distance(metric_.finish, row.rank[e]) : no_rank;
                if (!known || row.rank[e] != row.rank[first]) first = e;
                for (Size f = e; f > first && index[i * k + f] > index[i * k + f + 1]; --f)
                    std::swap(index[i * k + f], index[i * k + f + 1]);
            }
        }
    });
}

void NeighborIndex::search_exact(Size k, Index* index, float* distance, ThreadTeam& team) {
    const HeapStorage storage(space_.rows.rows, k - 1, team);
    if (k > 1) neighbor_kernels().compare_all(space_, storage.heap(), team);
    write_table(storage.heap(), nullptr, k - 1, index, distance, team);
}

SearchResult NeighborIndex::search_approximate(Size k, const SearchOptions& options, Index* index, float* distance,
                                               ThreadTeam& team) {
    grow_forest(options.trees, options.leaf_rows, team);
    const Size n = space_.rows.rows, wanted = k - 1;
    Size level = 0;
    while (level < forest_.depth && (n >> level) > options.node_rows) ++level;
    SearchSpace space = space_;
    const NodeSample sample = neighbor_kernels().sample_nodes(space, forest_, level, team);
    space.rest_weight = sample.rest_weight;
    if (sketcher_.projects() && space.ranking == Ranking::squared) space.shown = own_.shown.data();
    if (sample.contrast > options.structureless && wanted < most_tails / 4) {
        const HeapStorage best(n, wanted, team);
        const float share = neighbor_kernels().compare_central(space, best.heap(), team);
        write_table(best.heap(), nullptr, wanted, index, distance, team);
        return {share, false};
    }
    std::vector<Index> ascending(static_cast<std::size_t>(n));
    std::iota(ascending.begin(), ascending.end(), 0);
    RowNumbers numbers{ascending.data(), forest_.order};
    const Size bytes_per_row = space.sketch_stride * Size{sizeof(float)} + (own_.bytes ? space.bytes.stride : 0);
    std::optional<LeafOrder> leaves;
    if (n * bytes_per_row > options.unordered_bytes) {
        leaves.emplace(forest_.order, n);
        leaves->add(own_.sketch.get(), space.sketch_stride);
        leaves->add(own_.bytes.get(), space.bytes.stride);
        if (space.rest != nullptr) leaves->add(own_.rest.data(), 1);
        if (space.shown != nullptr) leaves->add(own_.shown.data(), 1);
        leaves->apply(team);
        numbers = {leaves->places(), ascending.data()};
        space.number = forest_.order;
    }
    const HeapStorage fresh(n, options.candidates, team), old(n, options.candidates, team);
    const CandidateTables tables{fresh.heap(), old.heap()};
    const Size sought = std::min(wanted + options.spare, n - 1);
    const HeapStorage found(n, sought, team);
    const double enough = space_.sketch_exact ? options.final : options.coarse;
    neighbor_kernels().descend_sketches(space, found.heap(), tables, forest_, level, numbers,
                                        {seed_, options.rounds, enough}, team);
    if (space_.sketch_exact) {
        write_table(found.heap(), space.number, wanted, index, distance, team);
        if (leaves) leaves->restore(team);
        return {1.0f, true};
    }
    const HeapStorage best(n, wanted, team);
    const float share = neighbor_kernels().descend_rows(space, found.heap(), best.heap(), tables, numbers.order,
                                                        {mix64(seed_), options.rounds, options.fine}, team);
    write_table(best.heap(), space.number, wanted, index, distance, team);
    if (leaves) leaves->restore(team);
    return {share, true};
}

void NeighborIndex::grow_forest(Size trees, Size leaf_rows, ThreadTeam& team) {
    const Size n = space_.rows.rows;
    Size depth = 0;
    while ((n >> depth) > leaf_rows) ++depth;
    if (forest_.trees == trees && forest_.depth == depth) return;
    if (!sketcher_.fitted()) fit_sketches(team);
    // Built separately, so that an interruption leaves the previous forest.
    ForestView grown{.trees = trees, .depth = depth, .rows = n};
    std::vector<Index> order(static_cast<std::size_t>(trees * n));
    std::vector<Index> pairs(static_cast<std::size_t>(2 * trees * grown.nodes()));
    std::vector<float> threshold(static_cast<std::size_t>(trees * grown.nodes()));
    grown.order = order.data();
    grown.pairs = pairs.data();
    grown.threshold = threshold.data();
    neighbor_kernels().grow_forest(space_, seed_, grown, team);
    order_ = std::move(order);
    pairs_ = std::move(pairs);
    threshold_ = std::move(threshold);
    forest_ = grown;
}

void NeighborIndex::query(const RowMatrix& queries, const PairMetric* pairs, GraphView graph,
                          const QueryOptions& options, Index* index, float* distance, ThreadTeam& team) const {
    Sketched sketched;
    prepare_rows(queries, pairs, sketched, team);
    sketch_rows(sketched, team);
    QueryTask task;
    task.queries = sketched.space;
    task.graph = graph;
    task.k = options.k;
    task.pool = std::max(options.pool, options.k);
    task.trees = options.trees;
    task.share = options.share;
    task.index = index;
    task.rank = distance;
    neighbor_kernels().query(space_, forest_, task, team);
    for (Size e = 0; e < queries.rows * options.k; ++e) distance[e] = finish_distance(metric_.finish, distance[e]);
}

}  // namespace vicinal
