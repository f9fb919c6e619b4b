// What the standard library of an older Emscripten lacks, for one thread; included before every source of that build.
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <type_traits>
#include <version>

namespace std {

#if !defined(__cpp_lib_bit_cast)
template <class To, class From>
constexpr To bit_cast(const From& from) {
    return __builtin_bit_cast(To, from);
}
#endif

#if !defined(__cpp_lib_smart_ptr_for_overwrite)
template <class T>
unique_ptr<T> make_unique_for_overwrite(size_t n) {
    return unique_ptr<T>(new remove_extent_t<T>[n]);
}
#endif

#if !defined(__cpp_lib_atomic_ref)
template <class T>
class atomic_ref {
  public:
    explicit atomic_ref(T& value) : value_(value) {}
    T load(memory_order = memory_order_seq_cst) const { return value_; }
    void store(T value, memory_order = memory_order_seq_cst) const { value_ = value; }
    bool compare_exchange_weak(T& expected, T wanted, memory_order = memory_order_seq_cst) const {
        const bool equal = value_ == expected;
        (equal ? value_ : expected) = equal ? wanted : value_;
        return equal;
    }
    bool compare_exchange_strong(T& expected, T wanted, memory_order order = memory_order_seq_cst) const {
        return compare_exchange_weak(expected, wanted, order);
    }

  private:
    T& value_;
};
#endif

}  // namespace std
