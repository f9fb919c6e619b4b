// A team of threads that lives exactly as long as one call into the core.
//
// There is no global pool, so nothing survives a fork in a broken state, any number of Python threads
// may be inside the core at once, and a process that is idle has no threads of ours.
// Exceptions thrown by the body and a positive answer of the interruption poll stop the loop at the
// next chunk boundary and are rethrown in the calling thread.
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

// The call was interrupted by the user (Ctrl-C); the module turns it into KeyboardInterrupt.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// A reference to a callable (begin, end, worker); it must outlive the call it is passed to.
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
    using Poll = bool (*)();  // true: the user asks to stop. Called in the thread that owns the team only.

    explicit ThreadTeam(int n_threads, Poll poll = nullptr);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return size_; }

    // Runs body(begin, end, worker) over [0, n) in chunks of at most `grain`; worker < size().
    // Which worker takes which chunk is not determined: a body must not let it matter.
    void parallel_for(Size n, Size grain, LoopBody body);

    // Throws Interrupted when the user asks to stop; for serial stretches of the owning thread.
    void check_interrupt();

  private:
    void work(int worker);
    void run_chunks(int worker);
    void worker_main(int worker);
    void start_threads();
    template <class Condition>
    bool comes_soon(const Condition& condition) const;

    int size_;
    Poll poll_;
    std::chrono::steady_clock::time_point last_poll_;
    std::vector<std::thread> threads_;

    std::mutex mutex_;
    std::condition_variable start_, done_;
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<int> busy_{0};
    std::atomic<bool> closing_{false};
    int looks_ = 0;

    const LoopBody* body_ = nullptr;
    Size n_ = 0, grain_ = 1;
    std::atomic<Size> next_{0};
    std::atomic<bool> stop_{false};
    std::exception_ptr error_;
};

// n_jobs as users write it: -1 all processors the process may use, -2 all but one, ..., or a count.
int resolve_jobs(int n_jobs);

}  // namespace vicinal
