#include "neighbors/row_sketcher.hpp"

#include "neighbors/neighbor_kernels.hpp"

#include <algorithm>

namespace vicinal {

RowSketcher::RowSketcher(const MetricRule& metric, Size cols) : metric_(metric), cols_(cols) {
    // An additional coordinate separates rows without direction from the others (metric_table.hpp).
    dim_ = projects() ? sketch_width : cols + (prepares() ? 1 : 0);
    stride_ = (dim_ + sketch_pad - 1) / sketch_pad * sketch_pad;
}

SearchSpace RowSketcher::space() const {
    SearchSpace space;
    space.ranking = metric_.ranking;
    space.sketch_dim = dim_;
    space.sketch_stride = stride_;
    space.sketch_exact = !projects() && metric_.ranking != Ranking::pairs;
    return space;
}

void RowSketcher::prepare(const RowMatrix& rows, RowScale* out, ThreadTeam& team) const {
    if (prepares()) neighbor_kernels().prepare_rows(rows, metric_.preparation, out, team);
}

bool RowSketcher::write_bytes(Matrix rows, std::uint8_t* out, ThreadTeam& team) const {
    return neighbor_kernels().write_bytes(rows, out, team);
}

std::unique_ptr<std::uint8_t[]> RowSketcher::bytes_of(const RowMatrix& rows, ThreadTeam& team) const {
    if (!reads_bytes() || rows.rows == 0 || !rows.is_float()) return nullptr;
    // Almost always, the first row already shows that the data cannot be kept as bytes.
    for (const Size n : {Size{1}, rows.rows}) {
        auto bytes = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(n * byte_stride()));
        if (!write_bytes({rows.float_row(0), n, cols_}, bytes.get(), team)) break;
        if (n == rows.rows) return bytes;
    }
    return nullptr;
}

void RowSketcher::fit(const SearchSpace& space, std::uint64_t seed, ThreadTeam& team) {
    std::vector<float> mean(static_cast<std::size_t>(cols_)), basis(static_cast<std::size_t>(cols_ * sketch_width));
    neighbor_kernels().fit_sketch(space, seed, {mean.data(), basis.data()}, team);
    mean_ = std::move(mean);
    basis_ = std::move(basis);
}

float RowSketcher::sketch(const RowMatrix& rows, const RowScale* scale, float* out, float* rest, float* shown,
                          ThreadTeam& team) const {
    SearchSpace space = this->space();
    space.rows = rows;
    space.scale = scale;
    if (!fitted()) {
        std::fill(out, out + rows.rows * stride_, 0.0f);
        return 0.0f;
    }
    if (projects()) {
        std::vector<float> length2(static_cast<std::size_t>(rows.rows));
        const SketchBasis basis{const_cast<float*>(mean_.data()), const_cast<float*>(basis_.data())};
        neighbor_kernels().project(space, basis, out, length2.data(), rest, team);
        if (shown != nullptr)
            for (Size i = 0; i < rows.rows; ++i) shown[i] = length2[i] - rest[i];
        return length2.empty() ? 0.0f : *std::max_element(length2.begin(), length2.end());
    }
    std::fill(out, out + rows.rows * stride_, 0.0f);
    std::vector<float> widened(static_cast<std::size_t>(cols_));
    for (Size i = 0; i < rows.rows; ++i) {
        if (i % 4096 == 0) team.check_interrupt();
        const RowScale own = space.scale_of(i);
        const float* row = rows.row(i, widened.data());
        for (Size k = 0; k < rows.cols; ++k) out[i * stride_ + k] = (row[k] - own.shift) * own.scale;
        if (scale != nullptr) out[i * stride_ + rows.cols] = own.scale == 0.0f ? 1.0f : 0.0f;
    }
    return 0.0f;
}

}  // namespace vicinal
