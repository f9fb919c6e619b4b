// The selection by rank: on platforms with libstdc++, it must exchange elements as std::nth_element does there.
#include "base/select.hpp"

#include "checks.hpp"
#include "data.hpp"

namespace {

struct Element {
    float value;
    Index row;
    bool operator==(const Element&) const = default;
};

bool before(const Element& x, const Element& y) { return x.value < y.value || (x.value == y.value && x.row < y.row); }

// Random elements, in ascending or descending order, or in a way that makes medians of three bad pivots.
std::vector<Element> elements(Draws& draws, Size n) {
    const std::uint32_t kind = draws.below(5), values = draws.often() ? 1000000 : 5;
    std::vector<Element> out;
    for (Size i = 0; i < n; ++i) {
        const auto rank = static_cast<float>(i);
        const float organ_pipe = static_cast<float>(std::min(i, n - i));
        const float killer = static_cast<float>(i % 2 == 0 ? i / 2 : n / 2 + i / 2);
        const auto random = static_cast<float>(draws.below(values));
        const float choice[] = {random, rank, -rank, organ_pipe, killer};
        out.push_back({choice[kind], static_cast<Index>(i)});
    }
    return out;
}

void selection_exchanges_as_the_standard_library_does() {
    Draws draws(5);
    using Select = Selection<Element, bool (*)(const Element&, const Element&)>;
    bool (*const order)(const Element&, const Element&) = before;
    for (int round = 0; round < 3000; ++round) {
        const Size n = draws.size(0, round % 10 == 0 ? 3000 : 40), nth = n > 0 ? draws.size(0, n - 1) : 0;
        std::vector<Element> ours = elements(draws, n), theirs = ours, smallest = ours;
        Select(order).select(ours.data(), ours.data() + nth, ours.data() + n);
        std::nth_element(theirs.begin(), theirs.begin() + nth, theirs.end(), before);
        if (n == 0) continue;
        CHECK(ours[nth] == theirs[nth]);
#if defined(__GLIBCXX__)
        CHECK(ours == theirs);
        std::vector<Element> heap = smallest;
        std::__heap_select(heap.begin(), heap.begin() + nth + 1, heap.end(),
                           __gnu_cxx::__ops::__iter_comp_iter(before));
        Select(order).keep_smallest(smallest.data(), smallest.data() + nth + 1, smallest.data() + n);
        CHECK(smallest == heap);
#endif
    }
}

constexpr Test tests[] = {
    TEST(selection_exchanges_as_the_standard_library_does),
};

}  // namespace

int main() { return run_all(tests); }
