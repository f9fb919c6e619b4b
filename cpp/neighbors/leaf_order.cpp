#include "neighbors/leaf_order.hpp"

#include <algorithm>
#include <cstring>

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

}  // namespace vicinal
