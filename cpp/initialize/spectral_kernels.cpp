// Compiled once per level with VICINAL_LEVEL set: a step of the Chebyshev recurrence (eigenmap.hpp), sums over the rows
// of blocks of vectors, and their rotation.
//
// A block is [rows][width] in float32, width a multiple of block_columns; sums are in double precision. Each function
// adds the rows [begin, end) in ascending order and nothing is fused, so results have the same bits at every level.
#include "initialize/spectral_kernels.hpp"

#include "base/simd.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

typedef float Columns __attribute__((vector_size(block_columns * sizeof(float))));
typedef double Sums __attribute__((vector_size(block_columns * sizeof(double))));

VICINAL_INLINE Sums in_double(const float* from) { return __builtin_convertvector(load<Columns>(from), Sums); }

// sums[width] += the rows of the block, each times its factor.
void add_weighted_rows(const float* block, const double* factor, Size begin, Size end, Size width, double* sums) {
    for (Size at = 0; at < width; at += block_columns) {
        Sums sum = load<Sums>(sums + at);
        for (Size i = begin; i < end; ++i) sum += in_double(block + i * width + at) * factor[i];
        store(sums + at, sum);
    }
}

// row i -= factor[i] * amounts[width]
void subtract_multiples(float* block, const double* factor, const double* amounts, Size begin, Size end, Size width) {
    for (Size at = 0; at < width; at += block_columns) {
        const Sums amount = load<Sums>(amounts + at);
        for (Size i = begin; i < end; ++i) {
            float* row = block + i * width + at;
            store(row, __builtin_convertvector(in_double(row) - amount * factor[i], Columns));
        }
    }
}

// products[width][width] += x^T y
void add_products(const float* x, const float* y, Size begin, Size end, Size width, double* products) {
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
void rotate_rows(const float* block, const double* rotation, Size begin, Size end, Size width, float* to) {
    for (Size i = begin; i < end; ++i)
        for (Size at = 0; at < width; at += block_columns)
            store(to + i * width + at,
                  __builtin_convertvector(rotated(block + i * width, rotation, width, at), Columns));
}

// squares[width] += the squares of (image - block * values) * rotation, column by column.
void add_residuals(const float* block, const float* image, const double* rotation, const double* values, Size begin,
                   Size end, Size width, double* squares) {
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

// One step of the recurrence. Each row has one writer, so the result does not depend on the number of threads.
void chebyshev_step(const Csr& m, const float* x, const float* previous, Size width, ChebyshevStep step, float* next,
                    ThreadTeam& team) {
    constexpr Size ahead = 32;  // edges whose rows are prefetched
    const Size last = m.indptr[m.rows];
    team.parallel_for(m.rows, step_rows, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size at = 0; at < width; at += block_columns) {
                const auto columns = [&](const float* block, Size row) {
                    return load<Columns>(block + row * width + at);
                };
                Columns sum = columns(x, i) * -step.center;
                for (Size e = m.indptr[i]; e < m.indptr[i + 1]; ++e) {
                    if (e + ahead < last) __builtin_prefetch(x + m.indices[e + ahead] * width + at);
                    sum += columns(x, m.indices[e]) * m.weights[e];
                }
                store(next + i * width + at, sum * step.scale - columns(previous, i) * step.keep);
            }
    });
}

}  // namespace

const SpectralKernels spectral_kernels{
    .chebyshev_step = chebyshev_step,
    .add_weighted_rows = add_weighted_rows,
    .subtract_multiples = subtract_multiples,
    .add_products = add_products,
    .rotate_rows = rotate_rows,
    .add_residuals = add_residuals,
};

}  // namespace vicinal::VICINAL_LEVEL
