// Puts the element of a rank at its place, smaller ones before it and larger ones behind it, by quickselect with the
// median of three as pivot. The order on both sides depends on how elements are exchanged, which the standard does not
// say, and the trees of the neighbor search depend on that order. So every platform exchanges as libstdc++ does:
// its std::nth_element is used where it is there, and elsewhere the same exchanges are made here.
// tests/cpp/select_tests.cpp compares both.
#pragma once

#include "base/types.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace vicinal {

// Ranges [first, last) of elements T, compared by Before, a strict total order.
template <class T, class Before>
class Selection {
  public:
    explicit Selection(const Before& before) : before_(before) {}

    void select(T* first, T* nth, T* last) const {
        if (first == last || nth == last) return;
        int rounds = 2 * (std::bit_width(static_cast<std::uint64_t>(last - first)) - 1);
        for (; last - first > 3; --rounds) {
            // Pivots were bad many times: a heap of the smallest elements takes n log n steps in any case.
            if (rounds == 0) {
                keep_smallest(first, nth + 1, last);
                std::swap(*first, *nth);
                return;
            }
            T* cut = partition(first, last);
            (cut <= nth ? first : last) = cut;
        }
        insert_all(first, last);
    }

    // Moves the smallest elements to [first, middle), as a heap with the largest of them at the front.
    void keep_smallest(T* first, T* middle, T* last) const {
        const Size n = middle - first;
        for (Size parent = n / 2; parent-- > 0;) sift(first, parent, n, first[parent]);
        for (T* at = middle; at < last; ++at)
            if (before_(*at, *first)) {
                const T value = *at;
                *at = *first;
                sift(first, 0, n, value);
            }
    }

  private:
    // Puts the median of the second, the middle and the last element to the front and divides the others by it.
    T* partition(T* first, T* last) const {
        T *a = first + 1, *b = first + (last - first) / 2, *c = last - 1;
        std::swap(*first, before_(*a, *b) ? (before_(*b, *c)   ? *b
                                             : before_(*a, *c) ? *c
                                                               : *a)
                                          : (before_(*a, *c)   ? *a
                                             : before_(*b, *c) ? *c
                                                               : *b));
        T *low = first + 1, *high = last;
        for (;; ++low) {
            while (before_(*low, *first)) ++low;
            do --high;
            while (before_(*first, *high));
            if (low >= high) return low;
            std::swap(*low, *high);
        }
    }

    void insert_all(T* first, T* last) const {
        for (T* at = first + 1; at < last; ++at) {
            const T value = *at;
            T* hole = at;
            for (; hole > first && before_(value, hole[-1]); --hole) *hole = hole[-1];
            *hole = value;
        }
    }

    // Fills the hole of a heap with its larger child, down to a leaf, and lets the value rise from there.
    void sift(T* heap, Size hole, Size n, T value) const {
        const Size top = hole;
        for (Size child; (child = 2 * hole + 2) <= n; hole = child) {
            if (child == n || before_(heap[child], heap[child - 1])) --child;
            heap[hole] = heap[child];
        }
        for (Size parent; hole > top && before_(heap[parent = (hole - 1) / 2], value); hole = parent)
            heap[hole] = heap[parent];
        heap[hole] = value;
    }

    const Before& before_;
};

template <class T, class Before>
void select_nth(T* first, T* nth, T* last, const Before& before) {
#if defined(__GLIBCXX__)
    std::nth_element(first, nth, last, before);
#else
    Selection<T, Before>(before).select(first, nth, last);
#endif
}

}  // namespace vicinal
