// Rows in the order of the leaves of a tree, for the time of a search: rows that are near each other are then near in
// memory too. 700,000 images are searched in a tenth less time.
//
// Arrays are reordered in place, along the cycles of the permutation. The cycles are laid end to end and cut into
// pieces, which threads take on their own: of the rows that a piece reads beyond its end, copies were made before.
#pragma once

#include "base/parallel.hpp"

#include <cstddef>
#include <vector>

namespace vicinal {

class LeafOrder {
  public:
    // Row i is to become row `order[i]`, a permutation of n rows.
    LeafOrder(const Index* order, Size n);
    // Puts the rows back if nobody has, for example because the search was interrupted.
    ~LeafOrder();
    LeafOrder(const LeafOrder&) = delete;
    LeafOrder& operator=(const LeafOrder&) = delete;

    // Adds an array of n rows, unless it is null.
    template <class T>
    void add(T* rows, Size columns) {
        if (rows != nullptr) add_bytes(reinterpret_cast<std::byte*>(rows), columns * Size{sizeof(T)});
    }

    void apply(ThreadTeam& team);
    void restore(ThreadTeam& team);

    const Index* places() const { return places_.data(); }  // of the rows as they were before

  private:
    struct Rows {
        std::byte* data;
        Size row_bytes;
        std::byte* row(Size i) const { return data + i * row_bytes; }
    };

    void add_bytes(std::byte* rows, Size row_bytes);
    void move(ThreadTeam& team);
    void move_piece(const Rows& rows, Size piece) const;
    Size piece_end(Size piece) const;
    std::byte* saved(Size piece, Size which) const;

    std::vector<Index> places_;
    std::vector<Index> chain_;  // the rows of all cycles; each becomes the next one, the last of a cycle its first
    std::vector<Size> ends_;    // of the cycles in the chain
    std::vector<Rows> arrays_;
    mutable std::vector<std::byte> saved_;  // copies of three rows per piece
    Size most_bytes_ = 0;                   // of a row
    bool moved_ = false;
};

}  // namespace vicinal
