// The sketches of OnlineNeighbors, and the basis onto which rows are projected.
#include "neighbors/online_kernels.hpp"
#include "neighbors/online_neighbors.hpp"
#include "neighbors/search_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vicinal {

namespace {

// The basis of the sketches is fitted again whenever the number of rows has tripled, up to this many rows.
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
        search_kernels().write_coarse(out, rows.rows, coarse_unit_, coarse_.data() + sketched_ * sketch_width, team);
    sketched_ = end;
}

void OnlineNeighbors::fit_sketches(ThreadTeam& team) {
    if (!sketcher_.projects()) return;
    if (n_ >= 3 * fitted_rows_ && fitted_rows_ < enough_to_fit) fit_basis(team);
    if (merged_ < 2 * share_rows_) return;
    share_ = merged_ > 0 ? online_kernels().sketch_share(space(), heap(merged_), team) : 1.0f;
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
    if (unit > 0.0f) search_kernels().write_coarse(sketch.data(), merged_, unit, coarse.data(), team);
    GrowingForest forest(options_.trees, seed_);
    SearchSpace space = fitted.space();
    space.sketch = sketch.data();
    forest.plant(space, 0, merged_, nullptr, team);
    std::swap(sketcher_.mean(), fitted.mean());
    std::swap(sketcher_.basis(), fitted.basis());
    sketch_ = std::move(sketch);
    coarse_ = std::move(coarse);
    forest_ = std::move(forest);
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

}  // namespace vicinal
