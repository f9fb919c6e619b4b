#include "neighbors/online_neighbors.hpp"

#include "neighbors/online_kernels.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace vicinal {

namespace {

// Operations between two checks of the clock.
constexpr Size timed_rows = 32;
// The basis of the sketches is fitted again whenever the number of rows has tripled, up to this many rows.
constexpr Size enough_to_fit = 6000;

static_assert(OnlineNeighbors::chunk_rows <= most_tails);

Size padded(Size width) { return (width + heap_pad - 1) / heap_pad * heap_pad; }

}  // namespace

OnlineNeighbors::OnlineNeighbors(Size cols, Size pair_cols, const MetricRule& metric, double power, std::uint64_t seed,
                                 OnlineOptions options)
    : cols_(cols), pair_cols_(pair_cols), metric_(metric), power_(power), seed_(seed), options_(options),
      width_(options.k - 1 + options.spare), stride_(padded(width_)), sketcher_(metric, cols) {
    clear_forest();
}

// Everything that may throw comes first.
void OnlineNeighbors::insert(Matrix rows, Matrix pair_rows, ThreadTeam& team) {
    const Size n = n_ + rows.rows;
    if (sketcher_.prepares()) {
        scale_.resize(n);
        sketcher_.prepare(rows, scale_.data() + n_, team);
    }
    rows_.reserve(n * cols_);
    if (by_pairs()) {
        pair_rows_.reserve(n * pair_cols_);
        pairs_ = std::make_unique<DensePairs>(Matrix{pair_rows_.data(), n, pair_cols_},
                                              Matrix{pair_rows_.data(), n, pair_cols_}, metric_, power_);
    }
    ranks_.reserve(n * stride_);
    tags_.reserve(n * stride_);
    changes_.reserve(n);
    resize_table(n);
    keep_bytes(rows, n_, team);
    rows_.append(rows.data, rows.rows * cols_);
    if (by_pairs()) pair_rows_.append(pair_rows.data, rows.rows * pair_cols_);
    ranks_.resize(n * stride_);
    tags_.resize(n * stride_);
    changes_.resize(n, 0);
    heap(n).clear(n_, n);
    n_ = n;
}

void OnlineNeighbors::keep_bytes(Matrix rows, Size begin, ThreadTeam& team) {
    if (!all_bytes_ || !sketcher_.reads_bytes()) return;
    bytes_.resize((begin + rows.rows) * sketcher_.byte_stride());
    all_bytes_ = sketcher_.write_bytes(rows, bytes_.data() + begin * sketcher_.byte_stride(), team);
    if (!all_bytes_) bytes_ = {};
}

// Values beyond the present rows may remain from an insertion that failed.
void OnlineNeighbors::resize_table(Size n) {
    sketch_.resize(n * sketcher_.stride());
    worst_.resize(std::min(worst_.size(), n_));
    worst_.resize(n, no_rank);
    for (GrowingArray<std::uint8_t>* flags : {&locks_, &queued_, &marked_}) {
        flags->resize(std::min(flags->size(), n_));
        flags->resize(n, 0);
    }
}

void OnlineNeighbors::adopt(const Index* index, Size k, ThreadTeam& team) {
    fit_basis(team);
    sketch_until(n_, team);
    std::vector<Index> rows(static_cast<std::size_t>(n_));
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<Size> compared(static_cast<std::size_t>(n_));
    Exploration task;
    task.heads = space();
    task.rows = rows.data();
    task.n = n_;
    task.given = index;
    task.n_given = k;
    task.width = width_;
    task.stride = stride_;
    task.ranks = ranks_.data();
    task.tags = tags_.data();
    task.compared = compared.data();
    online_kernels().explore(view(), task, team);
    for (Size i = 0; i < n_; ++i) worst_[i] = ranks_[i * stride_ + listed() - 1];
    plant_rows(0, n_);
    merged_ = searched_ = first_new_ = n_;
    fit_sketches(team);
}

NeighborHeap OnlineNeighbors::heap(Size rows) const {
    return {ranks_.data(), tags_.data(), worst_.data(), locks_.data(), rows, width_, stride_};
}

SearchSpace OnlineNeighbors::space() const {
    SearchSpace space = sketcher_.space();
    space.rows = row_matrix();
    space.scale = sketcher_.prepares() ? scale_.data() : nullptr;
    space.pairs = by_pairs() ? static_cast<const PairMetric*>(pairs_.get()) : &ordered_;
    if (bytes_.size() > 0) space.bytes = {bytes_.data(), sketcher_.byte_stride()};
    space.sketch = sketch_.data();
    space.slack = sketch_slack(metric_.ranking, longest2_);
    return space;
}

OnlineView OnlineNeighbors::view() const {
    return {space(), heap(merged_), forest_, merged_, options_.exact_rows, share_};
}

// Rows are sketched when they are searched, so that a call pays for its own rows only.
void OnlineNeighbors::sketch_until(Size end, ThreadTeam& team) {
    if (end <= sketched_) return;
    const Matrix rows{rows_.data() + sketched_ * cols_, end - sketched_, cols_};
    const RowScale* scale = sketcher_.prepares() ? scale_.data() + sketched_ : nullptr;
    float* out = sketch_.data() + sketched_ * sketcher_.stride();
    longest2_ = std::max(longest2_, sketcher_.sketch(rows, scale, out, nullptr, nullptr, team));
    sketched_ = end;
}

void OnlineNeighbors::fit_sketches(ThreadTeam& team) {
    if (!sketcher_.projects()) return;
    if (n_ >= 3 * fitted_rows_ && fitted_rows_ < enough_to_fit) fit_basis(team);
    if (merged_ < 2 * share_rows_) return;
    share_ = merged_ > 0 ? online_kernels().sketch_share(space(), heap(merged_), team) : 1.0f;
    share_rows_ = merged_;
}

void OnlineNeighbors::fit_basis(ThreadTeam& team) {
    if (!sketcher_.projects()) return;
    RowSketcher fitted = sketcher_;
    fitted.fit(space(), seed_, team);
    GrowingArray<float> sketch;
    sketch.resize(n_ * fitted.stride());
    const RowScale* scale = fitted.prepares() ? scale_.data() : nullptr;
    const float longest2 =
        merged_ > 0 ? fitted.sketch({rows_.data(), merged_, cols_}, scale, sketch.data(), nullptr, nullptr, team)
                    : 0.0f;
    std::swap(sketcher_.mean(), fitted.mean());
    std::swap(sketcher_.basis(), fitted.basis());
    sketch_ = std::move(sketch);
    longest2_ = longest2;
    sketched_ = merged_;
    share_rows_ = 0;
    clear_forest();
    plant_rows(0, merged_);
    fitted_rows_ = n_;
}

// One empty leaf per tree.
void OnlineNeighbors::clear_forest() {
    forest_ = {.trees = options_.trees, .n_nodes = options_.trees, .n_leaves = options_.trees};
    nodes_.resize(forest_.trees);
    for (Size tree = 0; tree < forest_.trees; ++tree) nodes_[tree] = {.leaf = static_cast<Index>(tree)};
}

// Allocates what planting these rows takes: a row causes at most one split per tree.
void OnlineNeighbors::reserve_rows(Size begin, Size end) {
    const Size splits = options_.trees * (end - begin);
    nodes_.resize(forest_.n_nodes + 2 * splits);
    normals_.resize((forest_.n_nodes + 2 * splits) * split_columns);
    members_.resize((forest_.n_leaves + splits) * online_leaf_rows);
}

void OnlineNeighbors::plant_rows(Size begin, Size end, const Index* above) {
    reserve_rows(begin, end);
    forest_.nodes = nodes_.data();
    forest_.normals = normals_.data();
    forest_.members = members_.data();
    online_kernels().insert_rows(space(), seed_, forest_, begin, end, above);
}

// Space for the nodes where the searches of `n` more rows of the chunk begin; initially the roots.
Index* OnlineNeighbors::start_at_roots(Size n) {
    const Size begin = leaves_.size();
    leaves_.resize(begin + n * options_.trees);
    for (Size e = begin; e < leaves_.size(); ++e) leaves_[e] = static_cast<Index>(e % options_.trees);
    return leaves_.data() + begin;
}

bool OnlineNeighbors::open() {
    chunk_.clear();
    leaves_.clear();
    offers_.clear();
    staged_ranks_.clear();
    staged_tags_.clear();
    kind_ = searched_ < n_ ? Kind::search : queue_head_ < queue_.size() ? Kind::refresh : Kind::none;
    return kind_ != Kind::none;
}

Size OnlineNeighbors::available() const {
    const Size left = kind_ == Kind::search ? n_ - searched_ : queue_.size() - queue_head_;
    return std::min(left, chunk_rows - chunk_.size());
}

OnlineChange OnlineNeighbors::step(Size ops, double seconds, ThreadTeam& team) {
    const auto begin = std::chrono::steady_clock::now();
    const auto is_late = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= seconds;
    };
    const Size slice = seconds < std::numeric_limits<double>::infinity() ? timed_rows : chunk_rows;
    while (ops > 0 && !is_late()) {
        // Rows that arrived in the meantime come first.
        if (closing_ || (kind_ == Kind::refresh && searched_ < n_)) close();
        if (kind_ == Kind::none) {
            if (searched_ < n_) fit_sketches(team);
            if (!open()) break;
        }
        const Size n = std::min({ops, slice, available()});
        explore(n, team);
        ops -= n;
        if (available() == 0) close();
    }
    OnlineChange change{first_new_, searched_, std::move(updated_)};
    updated_.clear();
    first_new_ = searched_;
    std::sort(change.updated.begin(), change.updated.end());
    for (const Size row : change.updated) marked_[row] = 0;
    return change;
}

// Explores the next rows of the chunk; if this fails, they are not part of it.
void OnlineNeighbors::explore(Size n, ThreadTeam& team) {
    const Size rows = chunk_.size(), leaves = leaves_.size(), offers = offers_.size(), staged = staged_ranks_.size();
    try {
        explore_rows(n, team);
    } catch (...) {
        chunk_.resize(rows);
        leaves_.resize(leaves);
        offers_.resize(offers);
        staged_ranks_.resize(staged);
        staged_tags_.resize(staged);
        throw;
    }
}

void OnlineNeighbors::explore_rows(Size n, ThreadTeam& team) {
    Exploration task;
    task.n = n;
    task.unsearched = kind_ == Kind::search;
    task.width = width_;
    task.stride = stride_;
    std::vector<Index> rows(static_cast<std::size_t>(n));
    const Size staged = chunk_.size() * stride_;
    if (task.unsearched) {
        for (Size i = 0; i < n; ++i) rows[i] = static_cast<Index>(searched_ + i);
        sketch_until(searched_ + n, team);
        heap(n_).clear(searched_, searched_ + n);
        task.ranks = ranks_.data() + searched_ * stride_;
        task.tags = tags_.data() + searched_ * stride_;
        task.leaves = start_at_roots(n);
    } else {
        std::copy_n(queue_.data() + queue_head_, n, rows.data());
        staged_ranks_.resize(staged + n * stride_);
        staged_tags_.resize(staged + n * stride_);
        for (Size i = 0; i < n; ++i) {
            std::copy_n(ranks_.data() + rows[i] * stride_, stride_, staged_ranks_.data() + staged + i * stride_);
            std::copy_n(tags_.data() + rows[i] * stride_, stride_, staged_tags_.data() + staged + i * stride_);
        }
        task.ranks = staged_ranks_.data() + staged;
        task.tags = staged_tags_.data() + staged;
    }
    task.rows = rows.data();
    found_.resize(n * most_offers);
    std::vector<Size> n_offers(static_cast<std::size_t>(n)), compared(static_cast<std::size_t>(n));
    task.offers = found_.data();
    task.n_offers = n_offers.data();
    task.compared = compared.data();
    const OnlineView all = view();
    task.heads = all.space;
    online_kernels().explore(all, task, team);

    chunk_.append(rows.data(), n);
    offers_.reserve(offers_.size() + std::accumulate(n_offers.begin(), n_offers.end(), Size{0}));
    for (Size i = 0; i < n; ++i) {
        offers_.append(found_.data() + i * most_offers, n_offers[i]);
        compared_ += compared[i];
        if (task.unsearched) worst_[rows[i]] = task.ranks[i * stride_ + listed() - 1];
    }
    (task.unsearched ? searched_ : queue_head_) += n;
}

void OnlineNeighbors::close() {
    closing_ = true;
    if (kind_ == Kind::search)
        close_search();
    else
        close_refresh();
    kind_ = Kind::none;
    closing_ = false;
}

// Can be repeated after an exception: a pair that is listed already is not listed again.
void OnlineNeighbors::close_search() {
    merge_offers();
    OnlineView all = view();
    all.heap.rows = searched_;
    online_kernels().compare_chunk(all, listed(), chunk_.data(), chunk_.size());
    reserve_changes(chunk_.size());
    reserve_rows(merged_, searched_);
    for (const Index row : chunk_)
        for (Size e = 0; e < listed(); ++e)
            if (const std::uint32_t tag = tags_[row * stride_ + e]; tag != no_tag && (tag & 1) != 0) note_change(row);
    plant_rows(merged_, searched_, leaves_.data());
    merged_ = searched_;
}

void OnlineNeighbors::close_refresh() {
    reserve_changes(chunk_.size());
    for (Size i = 0; i < chunk_.size(); ++i) {
        const Size row = chunk_[i];
        const std::uint32_t* found = staged_tags_.data() + i * stride_;
        std::uint32_t* held = tags_.data() + row * stride_;
        bool same = true;
        for (Size e = 0; e < listed(); ++e) same = same && found[e] >> 1 == held[e] >> 1;
        std::copy_n(found, stride_, held);
        std::copy_n(staged_ranks_.data() + i * stride_, stride_, ranks_.data() + row * stride_);
        worst_[row] = ranks_[row * stride_ + listed() - 1];
        queued_[row] = 0;
        if (!same) note_change(row);
        changes_[row] = 0;
    }
    merge_offers();
    // Finished entries are removed when they are most of the queue.
    if (2 * queue_head_ < queue_.size()) return;
    std::copy(queue_.begin() + queue_head_, queue_.end(), queue_.begin());
    queue_.resize(queue_.size() - queue_head_);
    queue_head_ = 0;
}

void OnlineNeighbors::merge_offers() {
    std::vector<Outcome> outcome(static_cast<std::size_t>(offers_.size()));
    reserve_changes(offers_.size());
    online_kernels().accept(view(), listed(), offers_.data(), offers_.size(), outcome.data());
    for (Size e = 0; e < offers_.size(); ++e)
        if (outcome[e] == Outcome::listed) note_change(offers_[e].row);
    offers_.clear();
}

// Allocates what noting the changes of at most so many rows takes.
void OnlineNeighbors::reserve_changes(Size rows) {
    const std::size_t updated = updated_.size() + static_cast<std::size_t>(std::min(rows, first_new_));
    if (updated > updated_.capacity()) updated_.reserve(std::max(updated, 2 * updated_.capacity()));
    queue_.reserve(queue_.size() + std::min(rows, n_));
}

void OnlineNeighbors::note_change(Size row) {
    if (row < first_new_ && marked_[row] == 0) {
        marked_[row] = 1;
        updated_.push_back(row);
    }
    if (++changes_[row] < static_cast<std::uint32_t>(options_.refresh_after) || queued_[row] != 0) return;
    queued_[row] = 1;
    queue_.push(static_cast<Index>(row));
}

void OnlineNeighbors::table(const Size* rows, Size n, Index* index, float* distance) const {
    for (Size i = 0; i < n; ++i) {
        const HeapRow row = heap(n_).row(rows[i]);
        index[i * options_.k] = static_cast<Index>(rows[i]);
        distance[i * options_.k] = 0.0f;
        for (Size e = 0; e < listed(); ++e) {
            const bool known = row.rank[e] < no_rank;
            index[i * options_.k + e + 1] = known ? row.index(e) : -1;
            distance[i * options_.k + e + 1] = known ? finish_distance(metric_.finish, row.rank[e]) : no_rank;
        }
    }
}

void OnlineNeighbors::query(Matrix queries, Matrix pair_queries, const PairMetric* pairs, Size k, Index* index,
                            float* distance, ThreadTeam& team) const {
    const auto n = static_cast<std::size_t>(queries.rows);
    const DensePairs dense(pair_queries, pair_matrix(), metric_, power_);
    std::vector<RowScale> scale(sketcher_.prepares() ? n : 0);
    sketcher_.prepare(queries, scale.data(), team);
    std::vector<float> sketch(n * static_cast<std::size_t>(sketcher_.stride()));
    const auto bytes = sketcher_.bytes_of(queries, team);
    Exploration task;
    task.heads = sketcher_.space();
    task.heads.rows = queries;
    task.heads.bytes = {bytes.get(), sketcher_.byte_stride()};
    task.heads.scale = sketcher_.prepares() ? scale.data() : nullptr;
    task.heads.pairs = by_pairs() ? &dense : pairs;
    OnlineView all = view();
    const float longest2 = sketcher_.sketch(queries, task.heads.scale, sketch.data(), nullptr, nullptr, team);
    all.space.slack = sketch_slack(metric_.ranking, std::max(longest2, longest2_));
    task.heads.sketch = sketch.data();
    task.n = queries.rows;
    task.unsearched = true;
    task.width = std::max(width_, k);
    task.stride = padded(task.width);
    std::vector<float> ranks(n * static_cast<std::size_t>(task.stride), no_rank);
    std::vector<std::uint32_t> tags(ranks.size(), no_tag);
    std::vector<Size> compared(n);
    task.ranks = ranks.data();
    task.tags = tags.data();
    task.compared = compared.data();
    online_kernels().explore(all, task, team);
    for (Size i = 0; i < queries.rows; ++i)
        for (Size e = 0; e < k; ++e) {
            const float rank = ranks[i * task.stride + e];
            const bool known = rank < no_rank;
            index[i * k + e] = known ? index_of(tags[i * task.stride + e]) : -1;
            distance[i * k + e] = known ? finish_distance(metric_.finish, rank) : no_rank;
        }
}

}  // namespace vicinal
