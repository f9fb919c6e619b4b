// Sums of integers by several threads at once: they do not depend on the order of the threads.
#pragma once

#include "base/types.hpp"

namespace vicinal::VICINAL_LEVEL {

VICINAL_INLINE void add_atomically(std::int64_t* to, std::int64_t amount) {
#if defined(__CUDACC_RTC__)
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(amount));
#else
    __atomic_fetch_add(to, amount, __ATOMIC_RELAXED);
#endif
}

}  // namespace vicinal::VICINAL_LEVEL
