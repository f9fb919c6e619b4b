// A team of threads that lives exactly as long as one call into the core.
//
// There is no global pool: nothing is left in a broken state after a fork, any number of Python threads may call the
// core at once, and an idle process has no extra threads. If the body of a loop throws, or the poll reports an
// interruption, the loop stops at the next chunk boundary and the exception is rethrown in the calling thread.
#pragma once

#include "base/types.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace vicinal {

// The user interrupted the call (Ctrl-C); the bindings raise KeyboardInterrupt.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// A reference to a callable (begin, end, worker), which must outlive the call that it is passed to.
class LoopBody {
  public:
    template <class F>
    VICINAL_INLINE LoopBody(const F& f)
        : object_(&f), call_([](const void* object, Size begin, Size end, int worker) {
              (*static_cast<const F*>(object))(begin, end, worker);
          }) {}
    VICINAL_INLINE void operator()(Size begin, Size end, int worker) const { call_(object_, begin, end, worker); }

  private:
    const void* object_;
    void (*call_)(const void*, Size, Size, int);
};

class ThreadTeam {
  public:
    using Poll = bool (*)();  // true if the user wants to stop; only called in the thread that owns the team

    // Between two polls. Short enough that Ctrl-C feels immediate, long enough that polling costs nothing.
    static constexpr std::chrono::milliseconds poll_interval{50};

    explicit ThreadTeam(int n_threads, Poll poll = nullptr, std::chrono::milliseconds interval = poll_interval);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return size_; }

    // Runs body(begin, end, worker) over [0, n) in chunks of at most `grain`; worker < size(). Which worker takes
    // which chunk is not determined, so results must not depend on it.
    void parallel_for(Size n, Size grain, LoopBody body);

    // The same for work that must not be left half done: interrupts wait. The body must not throw.
    void parallel_for_whole(Size n, Size grain, LoopBody body);

    // Throws Interrupted if the user wants to stop. For serial code of the owning thread.
    void check_interrupt();

  private:
    void work(int worker);
    void run_chunks(int worker);
    void worker_main(int worker);
    void start_threads();
    template <class Condition>
    bool spin_until(const Condition& condition) const;

    int size_;
    Poll poll_;
    const std::chrono::milliseconds interval_;
    std::chrono::steady_clock::time_point last_poll_;
    std::vector<std::thread> threads_;

    std::mutex mutex_;
    std::condition_variable start_, done_;
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<int> busy_{0};
    std::atomic<bool> closing_{false};
    int spins_ = 0;

    const LoopBody* body_ = nullptr;
    Size n_ = 0, grain_ = 1;
    std::atomic<Size> next_{0};
    std::atomic<bool> stop_{false};
    std::exception_ptr error_;
};

// Number of threads for n_jobs: a positive count is taken as it is, -1 means all processors of the process, -2 all but
// one, and so on.
int resolve_jobs(int n_jobs);

}  // namespace vicinal
