#include "neighbors/online_neighbors.hpp"

#include "base/rng.hpp"
#include "neighbors/neighbor_kernels.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace vicinal {

// One empty leaf per tree.
GrowingForest::GrowingForest(Size trees, std::uint64_t seed)
    : forest_{.trees = trees, .n_nodes = trees, .n_leaves = trees} {
    reserve(0);
    const std::uint64_t key = stream_key(seed, Stream::forest);
    for (Size tree = 0; tree < trees; ++tree)
        nodes_[tree] = {.key = row_key(key, static_cast<std::uint64_t>(tree)), .leaf = static_cast<Index>(tree)};
}

// A row causes at most one split per tree.
void GrowingForest::reserve(Size rows) {
    const Size splits = rows * forest_.trees;
    nodes_.resize(forest_.n_nodes + 2 * splits);
    forest_.nodes = nodes_.data();
    normals_.resize((forest_.n_nodes + 2 * splits) * split_columns);
    forest_.normals = normals_.data();
    members_.resize((forest_.n_leaves + splits) * online_leaf_rows);
    forest_.members = members_.data();
}

void GrowingForest::plant(const SearchSpace& space, Size begin, Size end, const Index* above, ThreadTeam& team) {
    for (Size first = begin; first < end; first += whole_rows) {
        const Size last = std::min(first + whole_rows, end);
        if (first > begin) team.check_interrupt();
        reserve(last - first);
        const Index* nodes = above == nullptr ? nullptr : above + (first - begin) * forest_.trees;
        neighbor_kernels().insert_rows(space, forest_, first, last, nodes, team);
    }
}

namespace {

// Operations between two checks of the clock.
constexpr Size timed_rows = 32;

static_assert(OnlineNeighbors::chunk_rows <= most_tails);
static_assert(OnlineNeighbors::chunk_rows <= GrowingForest::whole_rows);

Size padded(Size width) { return (width + heap_pad - 1) / heap_pad * heap_pad; }

}  // namespace

OnlineNeighbors::OnlineNeighbors(Size cols, Size pair_cols, const MetricRule& metric, double power, std::uint64_t seed,
                                 OnlineOptions options)
    : cols_(cols), pair_cols_(pair_cols), metric_(metric), power_(power), seed_(seed), options_(options),
      width_(options.k - 1 + options.spare), stride_(padded(width_)), sketcher_(metric, cols),
      forest_(options.trees, seed) {}

void OnlineNeighbors::reserve(Size n) {
    rows_.reserve(n * cols_);
    pair_rows_.reserve(n * pair_cols_);
}

// Everything that may throw comes first.
void OnlineNeighbors::insert(Matrix rows, Matrix pair_rows, ThreadTeam& team) {
    const Size n = n_ + rows.rows;
    if (sketcher_.prepares()) {
        scale_.resize(n);
        sketcher_.prepare(rows, scale_.data() + n_, team);
    }
    reserve(n);
    if (by_pairs()) {
        pairs_ = std::make_unique<DensePairs>(Matrix{pair_rows_.data(), n, pair_cols_},
                                              Matrix{pair_rows_.data(), n, pair_cols_}, metric_, power_);
    }
    ranks_.reserve(n * stride_);
    tags_.reserve(n * stride_);
    changes_.reserve(n);
    resize_table(n);
    keep_bytes(rows, n_, team);
    team.parallel_for(rows.rows, 64, [&](Size begin, Size end, int) {
        std::copy(rows.row(begin), rows.row(begin) + (end - begin) * cols_, rows_.data() + (n_ + begin) * cols_);
    });
    rows_.resize(n * cols_);
    if (by_pairs()) pair_rows_.append(pair_rows.data, rows.rows * pair_cols_);
    ranks_.resize(n * stride_);
    tags_.resize(n * stride_);
    changes_.resize(n, 0);
    heap(n).clear(n_, n);
    n_ = n;
}

// Everything that may throw comes first: what follows the reservations moves memory only.
std::vector<Size> OnlineNeighbors::keep(const Index* rows, Size n, ThreadTeam& team) {
    if (closing_ || kind_ != Kind::none) close(team);
    std::vector<Index> number(static_cast<std::size_t>(n_), -1);
    for (Size i = 0; i < n; ++i) number[rows[i]] = static_cast<Index>(i);
    const auto kept_below = [&](Size end) { return static_cast<Size>(std::lower_bound(rows, rows + n, end) - rows); };
    std::vector<Size> changed;
    changed.reserve(updated_.size() + static_cast<std::size_t>(kept_below(searched_)));
    queue_.reserve(queue_.size() + n);
    GrowingForest forest(options_.trees, seed_);
    rows_.own();
    pair_rows_.own();

    for (Size i = 0; i < n && rows[i] < searched_; ++i)
        if (drop_entries(rows[i], number)) changed.push_back(i);
    rows_.keep(rows, n, cols_);
    if (by_pairs()) pair_rows_.keep(rows, n, pair_cols_);
    if (sketcher_.prepares()) scale_.keep(rows, n, 1);
    sketch_.keep(rows, n, sketcher_.stride());
    if (sketcher_.shortens()) coarse_.keep(rows, n, sketch_width);
    if (bytes_.size() > 0) bytes_.keep(rows, n, sketcher_.byte_stride());
    ranks_.keep(rows, n, stride_);
    tags_.keep(rows, n, stride_);
    worst_.keep(rows, n, 1);
    changes_.keep(rows, n, 1);
    for (GrowingArray<std::uint8_t>* flags : {&locks_, &queued_, &marked_}) flags->keep(rows, n, 1);
    for (Size* end : {&sketched_, &searched_, &merged_, &first_new_, &fitted_rows_}) *end = kept_below(*end);
    share_rows_ = std::min(share_rows_, merged_);
    removed_ += n_ - n;
    n_ = n;
    if (by_pairs()) pairs_ = std::make_unique<DensePairs>(pair_matrix(), pair_matrix(), metric_, power_);
    forest_ = std::move(forest);
    planted_ = 0;
    renumber_queue(number, changed);
    // Changes that are still to be reported, some by the end of a chunk above.
    for (const Size row : updated_) {
        if (number[row] < 0) continue;
        marked_[number[row]] = 0;
        changed.push_back(number[row]);
    }
    updated_.clear();
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    return changed;
}

// Removes the entries of a list whose rows have no new number, and returns whether any of them was reported. The others
// become fresh then, so that a refresh follows all of them.
bool OnlineNeighbors::drop_entries(Size row, const std::vector<Index>& number) {
    float* rank = ranks_.data() + row * stride_;
    std::uint32_t* tag = tags_.data() + row * stride_;
    bool lost = false;
    Size held = 0;
    for (Size e = 0; e < width_ && tag[e] != no_tag; ++e) {
        const Index other = number[index_of(tag[e])];
        lost = lost || (other < 0 && e < listed());
        if (other < 0) continue;
        rank[held] = rank[e];
        tag[held++] = static_cast<std::uint32_t>(other) << 1 | (tag[e] & 1u);
    }
    for (Size e = held; e < width_; ++e) {
        rank[e] = no_rank;
        tag[e] = no_tag;
    }
    for (Size e = 0; lost && e < held; ++e) tag[e] |= 1u;
    worst_[row] = rank[listed() - 1];
    return lost;
}

// The memory is there.
void OnlineNeighbors::renumber_queue(const std::vector<Index>& number, const std::vector<Size>& changed) {
    Size waiting = 0;
    for (Size e = queue_head_; e < queue_.size(); ++e)
        if (const Index row = number[queue_[e]]; row >= 0) queue_[waiting++] = row;
    queue_.resize(waiting);
    queue_head_ = 0;
    for (const Size row : changed) {
        if (queued_[row] != 0) continue;
        queued_[row] = 1;
        queue_.push(static_cast<Index>(row));
    }
    for (GrowingArray<Index>* rows : {&chunk_, &leaves_}) rows->clear();
    staged_ranks_.clear();
    staged_tags_.clear();
}

// The trees are those of the present rows in their order, as if there had been no others.
void OnlineNeighbors::plant_missing(ThreadTeam& team) {
    if (planted_ == merged_) return;
    GrowingForest forest(options_.trees, seed_);
    forest.plant(space(), 0, merged_, nullptr, team);
    forest_ = std::move(forest);
    planted_ = merged_;
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
    if (sketcher_.shortens()) coarse_.resize(n * sketch_width);
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
    neighbor_kernels().explore(view(), task, team);
    for (Size i = 0; i < n_; ++i) worst_[i] = ranks_[i * stride_ + listed() - 1];
    forest_.plant(space(), 0, n_, nullptr, team);
    planted_ = merged_ = searched_ = first_new_ = n_;
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
    if (coarse_unit_ > 0.0f) space.coarse = {coarse_.data(), sketch_width};
    space.coarse_unit = coarse_unit_;
    space.slack = sketch_slack(metric_.ranking, longest2_);
    return space;
}

OnlineView OnlineNeighbors::view() const {
    OnlineView all{space(), heap(merged_), forest_.view(), merged_, options_.exact_rows, removed_ > 0, share_};
    if (share_ == 1.0f) all.space.coarse = {};  // lower bounds are needed
    return all;
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
        if (closing_ || (kind_ == Kind::refresh && searched_ < n_)) close(team);
        if (kind_ == Kind::none) {
            if (searched_ < n_) fit_sketches(team);
            if (!open()) break;
        }
        plant_missing(team);
        const Size n = std::min({ops, slice, available()});
        explore(n, team);
        ops -= n;
        if (available() == 0) close(team);
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
    neighbor_kernels().explore(all, task, team);

    chunk_.append(rows.data(), n);
    offers_.reserve(offers_.size() + std::accumulate(n_offers.begin(), n_offers.end(), Size{0}));
    for (Size i = 0; i < n; ++i) {
        offers_.append(found_.data() + i * most_offers, n_offers[i]);
        compared_ += compared[i];
        if (task.unsearched) worst_[rows[i]] = task.ranks[i * stride_ + listed() - 1];
    }
    (task.unsearched ? searched_ : queue_head_) += n;
}

void OnlineNeighbors::close(ThreadTeam& team) {
    closing_ = true;
    if (kind_ == Kind::search)
        close_search(team);
    else
        close_refresh();
    kind_ = Kind::none;
    closing_ = false;
}

// Can be repeated after an exception: a pair that is listed already is not listed again, and what follows the
// comparison does not throw once the memory is there.
void OnlineNeighbors::close_search(ThreadTeam& team) {
    merge_offers();
    OnlineView all = view();
    all.heap.rows = searched_;
    neighbor_kernels().compare_chunk(all, listed(), chunk_.data(), chunk_.size());
    reserve_changes(chunk_.size());
    forest_.reserve(chunk_.size());
    for (const Index row : chunk_)
        for (Size e = 0; e < listed(); ++e)
            if (const std::uint32_t tag = tags_[row * stride_ + e]; tag != no_tag && (tag & 1) != 0) note_change(row);
    forest_.plant(space(), merged_, searched_, leaves_.data(), team);
    planted_ = merged_ = searched_;
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
    neighbor_kernels().accept(view(), listed(), offers_.data(), offers_.size(), outcome.data());
    for (Size e = 0; e < offers_.size(); ++e)
        if (outcome[e] == Outcome::listed) note_change(offers_[e].row);
    offers_.clear();
}

// Allocates the memory to note the changes of at most `rows` rows.
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
                            float* distance, ThreadTeam& team) {
    plant_missing(team);
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
    std::vector<std::uint8_t> coarse(coarse_unit_ > 0.0f ? n * sketch_width : 0);
    task.heads.coarse = {coarse.data(), sketch_width};
    task.heads.scale = sketcher_.prepares() ? scale.data() : nullptr;
    task.heads.pairs = by_pairs() ? &dense : pairs;
    OnlineView all = view();
    const float longest2 = sketcher_.sketch(queries, task.heads.scale, sketch.data(), nullptr, nullptr, team);
    all.space.slack = sketch_slack(metric_.ranking, std::max(longest2, longest2_));
    task.heads.sketch = sketch.data();
    if (coarse_unit_ > 0.0f)
        neighbor_kernels().write_coarse(sketch.data(), queries.rows, coarse_unit_, coarse.data(), team);
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
    neighbor_kernels().explore(all, task, team);
    for (Size i = 0; i < queries.rows; ++i)
        for (Size e = 0; e < k; ++e) {
            const float rank = ranks[i * task.stride + e];
            const bool known = rank < no_rank;
            index[i * k + e] = known ? index_of(tags[i * task.stride + e]) : -1;
            distance[i * k + e] = known ? finish_distance(metric_.finish, rank) : no_rank;
        }
}

namespace {

// The basis of the sketches is fitted again whenever the rows it was fitted to are no more than a third of the rows, up
// to this many rows.
constexpr Size enough_to_fit = 6000;

}  // namespace

// Rows are sketched when they are searched, so that a call pays for its own rows only.
void OnlineNeighbors::sketch_until(Size end, ThreadTeam& team) {
    if (end <= sketched_) return;
    const Matrix rows{rows_.data() + sketched_ * cols_, end - sketched_, cols_};
    const RowScale* scale = sketcher_.prepares() ? scale_.data() + sketched_ : nullptr;
    float* out = sketch_.data() + sketched_ * sketcher_.stride();
    longest2_ = std::max(longest2_, sketcher_.sketch(rows, scale, out, nullptr, nullptr, team));
    if (coarse_unit_ > 0.0f)
        neighbor_kernels().write_coarse(out, rows.rows, coarse_unit_, coarse_.data() + sketched_ * sketch_width, team);
    sketched_ = end;
}

void OnlineNeighbors::fit_sketches(ThreadTeam& team) {
    if (!sketcher_.projects()) return;
    if (n_ >= 3 * fitted_rows_ && fitted_rows_ < enough_to_fit) fit_basis(team);
    if (merged_ < 2 * share_rows_) return;
    share_ = merged_ > 0 ? neighbor_kernels().sketch_share(space(), heap(merged_), team) : 1.0f;
    share_rows_ = merged_;
}

// Everything is computed before anything is replaced, so an interrupt leaves the previous basis with its sketches.
void OnlineNeighbors::fit_basis(ThreadTeam& team) {
    if (!sketcher_.projects()) return;
    RowSketcher fitted = sketcher_;
    fitted.fit(this->space(), seed_, team);
    GrowingArray<float> sketch;
    sketch.resize(n_ * fitted.stride());
    const RowScale* scale = fitted.prepares() ? scale_.data() : nullptr;
    const float longest2 =
        merged_ > 0 ? fitted.sketch({rows_.data(), merged_, cols_}, scale, sketch.data(), nullptr, nullptr, team)
                    : 0.0f;
    const float unit = coarse_unit_of(fitted, n_, team);
    GrowingArray<std::uint8_t> coarse;
    if (fitted.shortens()) coarse.resize(n_ * sketch_width);
    if (unit > 0.0f) neighbor_kernels().write_coarse(sketch.data(), merged_, unit, coarse.data(), team);
    GrowingForest forest(options_.trees, seed_);
    SearchSpace space = fitted.space();
    space.sketch = sketch.data();
    forest.plant(space, 0, merged_, nullptr, team);
    std::swap(sketcher_.mean(), fitted.mean());
    std::swap(sketcher_.basis(), fitted.basis());
    sketch_ = std::move(sketch);
    coarse_ = std::move(coarse);
    forest_ = std::move(forest);
    planted_ = merged_;
    coarse_unit_ = unit;
    longest2_ = longest2;
    sketched_ = merged_;
    share_rows_ = 0;
    fitted_rows_ = n_;
}

// A byte covers three standard deviations of the longest column of a sketch, to both sides, as the first n rows have
// them; 0 if the sketches are not kept as bytes.
float OnlineNeighbors::coarse_unit_of(const RowSketcher& sketcher, Size n, ThreadTeam& team) const {
    if (!sketcher.shortens() || !sketcher.fitted()) return 0.0f;
    constexpr Size most_rows = 512;
    const Size m = std::min(n, most_rows), stride = sketcher.stride();
    std::vector<float> rows(static_cast<std::size_t>(m * cols_)), sketch(static_cast<std::size_t>(m * stride));
    std::vector<RowScale> scale(sketcher.prepares() ? static_cast<std::size_t>(m) : 0);
    for (Size i = 0; i < m; ++i) {
        const Size row = i * n / m;
        std::copy_n(rows_.data() + row * cols_, cols_, rows.data() + i * cols_);
        if (sketcher.prepares()) scale[i] = scale_[row];
    }
    sketcher.sketch({rows.data(), m, cols_}, sketcher.prepares() ? scale.data() : nullptr, sketch.data(), nullptr,
                    nullptr, team);
    std::vector<double> squares(static_cast<std::size_t>(stride));
    for (Size e = 0; e < m * stride; ++e) squares[e % stride] += static_cast<double>(sketch[e]) * sketch[e];
    const double most = *std::max_element(squares.begin(), squares.end()) / static_cast<double>(std::max(m, Size{1}));
    return static_cast<float>(3.0 * std::sqrt(most) / 127.0);
}

// The state may come from a damaged or forged file, so all of it is checked before it is used.
void OnlineNeighbors::restore(ThreadTeam& team) {
    n_ = rows_.size() / cols_;
    check_state();
    resize_table(n_);
    all_bytes_ = true;
    keep_bytes(row_matrix(), 0, team);
    if (sketcher_.prepares()) {
        scale_.resize(n_);
        sketcher_.prepare(row_matrix(), scale_.data(), team);
    }
    if (by_pairs()) pairs_ = std::make_unique<DensePairs>(pair_matrix(), pair_matrix(), metric_, power_);
    if (removed_ == 0) coarse_unit_ = coarse_unit_of(sketcher_, fitted_rows_, team);
    const Size sketched = std::exchange(sketched_, 0);
    if (sketched > 0) sketch_until(sketched, team);
    for (Size i = 0; i < searched_; ++i) worst_[i] = ranks_[i * stride_ + listed() - 1];
    for (Size e = queue_head_; e < queue_.size(); ++e) queued_[queue_[e]] = 1;
    if (kind_ == Kind::refresh)
        for (const Index row : chunk_) queued_[row] = 1;
    planted_ = 0;
    forest_ = GrowingForest(options_.trees, seed_);
    plant_missing(team);
    leaves_.clear();
    start_at_roots(kind_ == Kind::search ? chunk_.size() : 0);
}

void OnlineNeighbors::check_state() const {
    const auto require = [](bool holds) {
        if (!holds) throw std::invalid_argument("the state does not fit this search");
    };
    const auto known = [&](Index row, Size below) { return row >= 0 && row < below; };
    const Size n = n_, staged = kind_ == Kind::refresh ? chunk_.size() * stride_ : 0;
    require(rows_.size() == n * cols_ && pair_rows_.size() == n * pair_cols_ &&
            n < std::numeric_limits<Index>::max() / 2);
    require(ranks_.size() == n * stride_ && tags_.size() == n * stride_ && changes_.size() == n);
    require(0 <= merged_ && merged_ <= searched_ && searched_ <= sketched_ && sketched_ <= n);
    require(0 <= first_new_ && first_new_ <= searched_ && 0 <= queue_head_ && queue_head_ <= queue_.size());
    require(kind_ >= Kind::none && kind_ <= Kind::refresh && share_rows_ >= 0 && 0 <= fitted_rows_ &&
            fitted_rows_ <= n);
    require(sketched_ == 0 || sketcher_.fitted());
    require(removed_ >= 0 && longest2_ >= 0.0f && coarse_unit_ >= 0.0f && std::isfinite(coarse_unit_));
    require(coarse_unit_ == 0.0f || (sketcher_.shortens() && sketcher_.fitted()));
    require(kind_ == Kind::search ? searched_ - merged_ == chunk_.size() : searched_ == merged_);
    require(chunk_.size() <= chunk_rows && staged_ranks_.size() >= staged && staged_tags_.size() >= staged);
    for (const std::uint32_t tag : tags_) require(tag == no_tag || known(index_of(tag), searched_));
    for (const std::uint32_t tag : staged_tags_) require(tag == no_tag || known(index_of(tag), merged_));
    for (const Index row : queue_) require(known(row, merged_));
    for (const Index row : chunk_) require(known(row, searched_));
    for (const Offer& offer : offers_) require(known(offer.row, merged_) && known(offer.candidate, searched_));
}

}  // namespace vicinal
