// An uninitialized array, aligned to 64 bytes, that grows at its end in amortized constant time per element. When it
// outgrows a block that another owner still reads, it copies the block, which stays with that owner. Otherwise
// realloc() may move its pages without copying.
#pragma once

#include "base/types.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace vicinal {

// Memory that is freed with its last owner.
class MemoryBlock {
  public:
    explicit MemoryBlock(std::size_t bytes) : base_(std::malloc(bytes)) {
        if (base_ == nullptr) throw std::bad_alloc();
    }
    ~MemoryBlock() { std::free(base_); }
    MemoryBlock(const MemoryBlock&) = delete;
    MemoryBlock& operator=(const MemoryBlock&) = delete;

    void resize(std::size_t bytes) {
        void* base = std::realloc(base_, bytes);
        if (base == nullptr) throw std::bad_alloc();
        base_ = base;
    }
    char* base() const { return static_cast<char*>(base_); }
    char* aligned(std::size_t alignment) const {
        const auto address = reinterpret_cast<std::uintptr_t>(base_);
        return base() + (alignment - address % alignment) % alignment;
    }

  private:
    void* base_;
};

template <class T>
class GrowingArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    Size size() const { return size_; }
    T* data() const { return data_; }
    T& operator[](Size i) const { return data_[i]; }
    T* begin() const { return data_; }
    T* end() const { return data_ + size_; }

    // Keeps the memory behind the present data() alive and unmoved.
    std::shared_ptr<const MemoryBlock> block() const { return block_; }

    void reserve(Size n) {
        if (n <= capacity_) return;
        const Size capacity = n > 2 * capacity_ ? n : 2 * capacity_;
        const auto bytes = static_cast<std::size_t>(capacity) * sizeof(T) + alignment;
        const auto used = static_cast<std::size_t>(size_) * sizeof(T);
        if (block_.use_count() == 1) {
            const auto offset = reinterpret_cast<char*>(data_) - block_->base();
            block_->resize(bytes);
            char* data = block_->aligned(alignment);
            if (data - block_->base() != offset) std::memmove(data, block_->base() + offset, used);
            data_ = reinterpret_cast<T*>(data);
        } else {
            auto block = std::make_shared<MemoryBlock>(bytes);
            auto* data = reinterpret_cast<T*>(block->aligned(alignment));
            if (used > 0) std::memcpy(data, data_, used);
            block_ = std::move(block);
            data_ = data;
        }
        capacity_ = capacity;
    }

    void resize(Size n) {
        reserve(n);
        size_ = n;
    }

    void resize(Size n, T value) {
        const Size before = size_;
        resize(n);
        for (Size i = before; i < n; ++i) data_[i] = value;
    }

    void append(const T* values, Size n) {
        const Size before = size_;
        resize(before + n);
        if (n > 0) std::memcpy(data_ + before, values, static_cast<std::size_t>(n) * sizeof(T));
    }

    void push(T value) { append(&value, 1); }

    // Makes this the only owner of its block.
    void own() {
        if (block_ == nullptr || block_.use_count() == 1) return;
        GrowingArray copy;
        copy.append(data_, size_);
        *this = std::move(copy);
    }

    // Keeps the given groups of `stride` elements, whose numbers ascend, and overwrites the memory of the others. Only
    // an array that owns its block may be told to, see own().
    void keep(const Index* groups, Size n, Size stride) {
        const auto bytes = static_cast<std::size_t>(stride) * sizeof(T);
        for (Size i = 0; i < n; ++i)
            if (groups[i] != i) std::memmove(data_ + i * stride, data_ + groups[i] * stride, bytes);
        const Size before = std::exchange(size_, n * stride);
        std::fill(data_ + size_, data_ + before, T{});
        if (4 * size_ < capacity_) shrink();
    }
    void clear() { size_ = 0; }

  private:
    static constexpr std::size_t alignment = 64;

    void shrink() noexcept {
        try {
            GrowingArray copy;
            copy.append(data_, size_);
            *this = std::move(copy);
        } catch (const std::bad_alloc&) {  // the larger block serves as well
        }
    }

    std::shared_ptr<MemoryBlock> block_;
    T* data_ = nullptr;
    Size size_ = 0, capacity_ = 0;
};

}  // namespace vicinal
