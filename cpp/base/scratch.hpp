// An owning, uninitialized array, aligned to 64 bytes, in the level's own namespace. std::vector is not used in code
// compiled per level: the linker would share its members between levels, although they may contain instructions that
// another level does not support.
#pragma once

#include "base/types.hpp"

#include <new>
#include <type_traits>

namespace vicinal::VICINAL_LEVEL {

template <class T>
class Scratch {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    Scratch() = default;
    explicit Scratch(Size n) { resize(n); }
    ~Scratch() { release(); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    void resize(Size n) {
        release();
#if defined(_GLIBCXX_ASSERTIONS)
        size_ = n;
#endif
        data_ = static_cast<T*>(::operator new(static_cast<std::size_t>(n) * sizeof(T) + 64, std::align_val_t{64}));
    }
    VICINAL_INLINE T* data() { return data_; }
    VICINAL_INLINE const T* data() const { return data_; }
    VICINAL_INLINE T& operator[](Size i) { return data_[checked(i)]; }
    VICINAL_INLINE const T& operator[](Size i) const { return data_[checked(i)]; }

  private:
    // Builds with assertions check every index (make assertions, make sanitize).
#if defined(_GLIBCXX_ASSERTIONS)
    VICINAL_INLINE Size checked(Size i) const {
        if (i < 0 || i >= size_) __builtin_trap();
        return i;
    }
    Size size_ = 0;
#else
    VICINAL_INLINE static Size checked(Size i) { return i; }
#endif
    void release() {
        if (data_ != nullptr) ::operator delete(data_, std::align_val_t{64});
        data_ = nullptr;
    }
    T* data_ = nullptr;
};

}  // namespace vicinal::VICINAL_LEVEL
