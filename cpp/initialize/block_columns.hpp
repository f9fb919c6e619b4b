// Sums over the rows of blocks of vectors, and their rotation. A block is [rows][width] in float32, width a multiple of
// block_columns; sums are in double precision. Each function adds the rows [begin, end) in ascending order and nothing
// is fused, so results do not depend on the level.
#pragma once

#include "base/simd.hpp"
#include "initialize/chebyshev.hpp"

namespace vicinal::VICINAL_LEVEL {

typedef float Columns __attribute__((vector_size(block_columns * sizeof(float))));
typedef double Sums __attribute__((vector_size(block_columns * sizeof(double))));

VICINAL_INLINE Sums in_double(const float* from) { return __builtin_convertvector(load<Columns>(from), Sums); }

// sums[width] += the rows of the block, each times its factor.
inline void add_weighted_rows(const float* block, const double* factor, Size begin, Size end, Size width,
                              double* sums) {
    for (Size at = 0; at < width; at += block_columns) {
        Sums sum = load<Sums>(sums + at);
        for (Size i = begin; i < end; ++i) sum += in_double(block + i * width + at) * factor[i];
        store(sums + at, sum);
    }
}

// row i -= factor[i] * amounts[width]
inline void subtract_multiples(float* block, const double* factor, const double* amounts, Size begin, Size end,
                               Size width) {
    for (Size at = 0; at < width; at += block_columns) {
        const Sums amount = load<Sums>(amounts + at);
        for (Size i = begin; i < end; ++i) {
            float* row = block + i * width + at;
            store(row, __builtin_convertvector(in_double(row) - amount * factor[i], Columns));
        }
    }
}

// products[width][width] += x^T y
inline void add_products(const float* x, const float* y, Size begin, Size end, Size width, double* products) {
    for (Size p = 0; p < width; p += block_columns)
        for (Size q = 0; q < width; q += block_columns) {
            Sums sum[block_columns];
            for (Size l = 0; l < block_columns; ++l) sum[l] = load<Sums>(products + (p + l) * width + q);
            for (Size i = begin; i < end; ++i) {
                const Sums left = in_double(x + i * width + p), right = in_double(y + i * width + q);
                for (Size l = 0; l < block_columns; ++l) sum[l] += right * left[l];
            }
            for (Size l = 0; l < block_columns; ++l) store(products + (p + l) * width + q, sum[l]);
        }
}

// One row times rotation[width][width], columns [at, at + block_columns).
VICINAL_INLINE Sums rotated(const float* row, const double* rotation, Size width, Size at) {
    Sums sum{};
    for (Size k = 0; k < width; ++k) sum += load<Sums>(rotation + k * width + at) * static_cast<double>(row[k]);
    return sum;
}

// to = block * rotation
inline void rotate_rows(const float* block, const double* rotation, Size begin, Size end, Size width, float* to) {
    for (Size i = begin; i < end; ++i)
        for (Size at = 0; at < width; at += block_columns)
            store(to + i * width + at,
                  __builtin_convertvector(rotated(block + i * width, rotation, width, at), Columns));
}

// squares[width] += the squares of (image - block * values) * rotation, column by column.
inline void add_residuals(const float* block, const float* image, const double* rotation, const double* values,
                          Size begin, Size end, Size width, double* squares) {
    for (Size at = 0; at < width; at += block_columns) {
        const Sums value = load<Sums>(values + at);
        Sums sum = load<Sums>(squares + at);
        for (Size i = begin; i < end; ++i) {
            const Sums residual = rotated(image + i * width, rotation, width, at) -
                                  rotated(block + i * width, rotation, width, at) * value;
            sum += residual * residual;
        }
        store(squares + at, sum);
    }
}

}  // namespace vicinal::VICINAL_LEVEL
