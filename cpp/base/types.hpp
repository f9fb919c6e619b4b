// Non-owning views of the arrays that are passed between the stages. Plain data: no allocation, no Python.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC_RTC__)
#define VICINAL_INLINE __forceinline__
#define VICINAL_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) || defined(__clang__)
#define VICINAL_INLINE inline __attribute__((always_inline))
#else
#error "vicinal needs GCC's or Clang's vector extensions"
#endif
#ifndef VICINAL_UNROLL
#define VICINAL_UNROLL  // of a loop that a GPU's compiler is told to unroll
#endif

namespace vicinal {

using Size = std::int64_t;   // counts and offsets: n * k may exceed 2^31
using Index = std::int32_t;  // row numbers, as in the Python arrays; -1 means "none"

// Rows of float32, row-major and contiguous.
struct Matrix {
    const float* data = nullptr;
    Size rows = 0;
    Size cols = 0;

    VICINAL_INLINE const float* row(Size i) const { return data + i * cols; }
};

// A neighbor table: k entries per row, sorted by (distance, index).
struct NeighborTable {
    const Index* index = nullptr;
    const float* distance = nullptr;
    Size rows = 0;
    Size k = 0;
};

// Compressed sparse rows; weights are in the order of the indices.
struct Csr {
    const Size* indptr = nullptr;
    const Index* indices = nullptr;
    const float* weights = nullptr;
    Size rows = 0;
};

}  // namespace vicinal
