#include "base/level.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vicinal {

namespace {

#if defined(__x86_64__)
// Asks the processor itself: the compiler's __builtin_cpu_supports needs a runtime library that clang-cl does not link.
class Processor {
  public:
    Processor() {
        std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
        if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) basic_ = ecx;
        if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) extended_ = ebx;
        if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0) amd_ = ecx;
        if (all(basic_, {27})) {  // the operating system has enabled xgetbv, which says which registers it saves
            asm volatile("xgetbv" : "=a"(saved_), "=d"(edx) : "c"(0));
        }
    }
    // Bits are those of the registers that the instruction cpuid returns.
    bool v2() const { return all(basic_, {0, 9, 13, 19, 20, 23}) && all(amd_, {0}); }  // SSE3 to SSE4.2, popcnt, lahf
    bool v3() const {  // fma, movbe, avx, f16c; bmi, avx2, bmi2; lzcnt; ymm
        return v2() && all(basic_, {12, 22, 28, 29}) && all(extended_, {3, 5, 8}) && all(amd_, {5}) &&
               all(saved_, {1, 2});
    }
    bool v4() const {  // avx512 f, dq, cd, bw, vl; opmask and zmm
        return v3() && all(extended_, {16, 17, 28, 30, 31}) && all(saved_, {5, 6, 7});
    }

  private:
    static bool all(std::uint32_t flags, std::initializer_list<int> bits) {
        return std::ranges::all_of(bits, [flags](int bit) { return (flags >> bit & 1u) != 0; });
    }
    std::uint32_t basic_ = 0, extended_ = 0, amd_ = 0, saved_ = 0;
};
#endif

[[maybe_unused]] bool processor_supports(std::string_view level) {
#if defined(__x86_64__)
    const Processor processor;
    if (level == "v2") return processor.v2();
    if (level == "v3") return processor.v3();
    if (level == "v4") return processor.v4();
#endif
    return level == "native";
}

Size choose_level() {
    const auto table = levels();
    const auto n = static_cast<Size>(table.size());
    const char* forced = std::getenv("VICINAL_LEVEL");
    if (forced != nullptr && *forced != '\0') {
        for (Size l = 0; l < n; ++l)
            if (std::string_view(table[l].name) == forced) {
                if (table[l].available) return l;
                throw std::runtime_error("VICINAL_LEVEL=" + std::string(forced) + ": not supported by this processor");
            }
        throw std::runtime_error("VICINAL_LEVEL=" + std::string(forced) + ": no such level in this build");
    }
    for (Size l = n - 1; l >= 0; --l)
        if (table[l].available) return l;
    throw std::runtime_error(std::string("vicinal needs a processor that supports at least x86-64-") + table[0].name);
}

}  // namespace

#define VICINAL_LIST_LEVEL(level) {#level, processor_supports(#level)},

std::span<const Level> levels() {
    static const Level table[] = {VICINAL_FOR_EACH_LEVEL(VICINAL_LIST_LEVEL)};
    return table;
}

Size active_level() {
    static const Size level = choose_level();
    return level;
}

}  // namespace vicinal
