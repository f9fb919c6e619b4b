#include "base/parallel.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#endif

namespace vicinal {

namespace {
constexpr int most_threads = 1024;

// A thread allocates its exception state when it throws for the first time, and glibc ends the process if that
// allocation fails. So memory for it is reserved before the thread starts, released in the thread and used at once. It
// is reserved as pages, because a new thread allocates from the system and not from another thread's heap.
class ExceptionState {
  public:
#if defined(__linux__)
    ExceptionState() : pages_(mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        if (pages_ == MAP_FAILED) throw std::bad_alloc();
    }
    ExceptionState(ExceptionState&& other) noexcept : pages_(std::exchange(other.pages_, MAP_FAILED)) {}
    ~ExceptionState() { release(); }
#endif
    void make() {
        release();
        [[maybe_unused]] const volatile int made = std::uncaught_exceptions();
    }

  private:
#if defined(__linux__)
    void release() {
        if (pages_ != MAP_FAILED) munmap(std::exchange(pages_, MAP_FAILED), reserved);
    }
    static constexpr std::size_t reserved = std::size_t{1} << 18;
    void* pages_;
#else
    void release() {}
#endif
};

// Waking a sleeping thread takes longer than many loops. So a waiting thread checks this many times, for about 50
// microseconds, before it sleeps.
constexpr int spins = 1000;

VICINAL_INLINE void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}
}  // namespace

ThreadTeam::ThreadTeam(int n_threads, Poll poll, std::chrono::milliseconds interval)
    : size_(std::clamp(n_threads, 1, most_threads)), poll_(poll), interval_(interval),
      last_poll_(std::chrono::steady_clock::now()) {}

ThreadTeam::~ThreadTeam() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    start_.notify_all();
    for (auto& thread : threads_) thread.join();
}

// Threads start at the first loop that is long enough to share, so small fits never start any.
void ThreadTeam::start_threads() {
    threads_.reserve(static_cast<std::size_t>(size_ - 1));
    spins_ = size_ <= resolve_jobs(-1) ? spins : 0;  // no spinning if there are more threads than processors
    try {
        for (int worker = 1; worker < size_; ++worker)
            threads_.emplace_back([this, worker, state = ExceptionState()]() mutable {
                state.make();
                worker_main(worker);
            });
    } catch (const std::system_error&) {
        // The system has no more threads: continue with fewer, which gives the same results.
        size_ = static_cast<int>(threads_.size()) + 1;
    } catch (const std::bad_alloc&) {
        size_ = static_cast<int>(threads_.size()) + 1;
    }
}

template <class Condition>
bool ThreadTeam::spin_until(const Condition& condition) const {
    for (int spin = 0; spin < spins_; ++spin) {
        if (condition()) return true;
        pause();
    }
    return false;
}

void ThreadTeam::worker_main(int worker) {
    std::uint64_t seen = 0;
    const auto is_called = [&] { return closing_ || generation_ != seen; };
    for (;;) {
        if (!spin_until(is_called)) {
            std::unique_lock lock(mutex_);
            start_.wait(lock, is_called);
        }
        if (closing_) return;
        seen = generation_;
        work(worker);
        if (--busy_ == 0) {
            std::lock_guard lock(mutex_);
            done_.notify_one();
        }
    }
}

void ThreadTeam::work(int worker) {
    try {
        run_chunks(worker);
    } catch (...) {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        stop_.store(true, std::memory_order_relaxed);
    }
}

void ThreadTeam::run_chunks(int worker) {
    while (!stop_.load(std::memory_order_relaxed)) {
        const Size begin = next_.fetch_add(grain_, std::memory_order_relaxed);
        if (begin >= n_) return;
        (*body_)(begin, std::min(begin + grain_, n_), worker);
        if (worker == 0) check_interrupt();
    }
}

void ThreadTeam::check_interrupt() {
    if (poll_ == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_poll_ < interval_) return;
    last_poll_ = now;
    if (poll_()) throw Interrupted();
}

void ThreadTeam::parallel_for_whole(Size n, Size grain, LoopBody body) {
    const Poll poll = std::exchange(poll_, nullptr);
    parallel_for(n, grain, body);
    poll_ = poll;
}

void ThreadTeam::parallel_for(Size n, Size grain, LoopBody body) {
    if (n <= 0) return;
    body_ = &body;
    n_ = n;
    grain_ = std::max<Size>(grain, 1);
    next_.store(0, std::memory_order_relaxed);
    stop_.store(false, std::memory_order_relaxed);
    error_ = nullptr;

    if (size_ == 1 || n <= grain_) {
        run_chunks(0);
        return;
    }
    if (threads_.empty()) start_threads();
    {
        std::lock_guard lock(mutex_);
        busy_ = static_cast<int>(threads_.size());
        ++generation_;
    }
    start_.notify_all();
    work(0);

    const auto all_done = [&] { return busy_ == 0; };
    spin_until(all_done);
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, poll_interval, all_done)) {
        if (error_) continue;
        lock.unlock();
        try {
            check_interrupt();
            lock.lock();
        } catch (...) {
            lock.lock();
            error_ = std::current_exception();
            stop_.store(true, std::memory_order_relaxed);
        }
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

int resolve_jobs(int n_jobs) {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
    return 1;  // there are no threads, whatever is asked for
#endif
    int available = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) available = std::max(1, CPU_COUNT(&allowed));
#endif
    if (n_jobs > 0) return n_jobs;
    return std::max(1, available + 1 + n_jobs);
}

}  // namespace vicinal
