// Prepares rows for their metric and sketches them (search_space.hpp), all at once or in batches.
#pragma once

#include "base/parallel.hpp"
#include "neighbors/search_space.hpp"

#include <memory>
#include <vector>

namespace vicinal {

class RowSketcher {
  public:
    RowSketcher(const MetricRule& metric, Size cols);

    // Rows longer than a sketch are projected onto a basis, which must be fitted first.
    bool projects() const { return cols_ > sketch_width; }
    bool fitted() const {
        return !projects() ||
               (static_cast<Size>(mean_.size()) == cols_ && static_cast<Size>(basis_.size()) == cols_ * sketch_width);
    }
    // Whether sketches are also kept as bytes (SearchSpace::coarse).
    bool shortens() const { return projects() && metric_.ranking == Ranking::squared; }
    bool prepares() const { return metric_.preparation != Preparation::none; }
    Size stride() const { return stride_; }

    // Rows that are shorter, or ranked in another way, are not kept as bytes (ByteRows).
    bool reads_bytes() const {
        return projects() && cols_ <= ByteRows::most_cols && metric_.ranking == Ranking::squared && !prepares();
    }
    Size byte_stride() const { return ByteRows::padded(cols_); }
    // Writes rows as bytes, [rows][byte_stride]; false if they contain other numbers.
    bool write_bytes(Matrix rows, std::uint8_t* out, ThreadTeam& team) const;
    // Floats as bytes, or null.
    std::unique_ptr<std::uint8_t[]> bytes_of(const RowMatrix& rows, ThreadTeam& team) const;

    // A space without rows: the ranking and the layout of the sketches.
    SearchSpace space() const;

    void prepare(const RowMatrix& rows, RowScale* out, ThreadTeam& team) const;
    void fit(const SearchSpace& space, std::uint64_t seed, ThreadTeam& team);
    // Writes sketches of rows, [rows][stride], and what they leave out (SearchSpace::rest), if that is wanted and the
    // rows are projected; likewise the squared lengths of the sketches (SearchSpace::shown). Returns the largest
    // squared distance to the mean (sketch_slack). Without a fitted basis sketches are 0, which never rules out a pair.
    float sketch(const RowMatrix& rows, const RowScale* scale, float* out, float* rest, float* shown,
                 ThreadTeam& team) const;

    std::vector<float>& mean() { return mean_; }
    std::vector<float>& basis() { return basis_; }

  private:
    const MetricRule& metric_;
    const Size cols_;
    Size dim_ = 0, stride_ = 0;
    std::vector<float> mean_, basis_;
};

}  // namespace vicinal
