// Waits on atomic variables of C++20, which libstdc++ makes of futexes.
#include <atomic>
#include <cstdlib>
#include <thread>

extern "C" {

// Two threads take turns by the parity of a number.
void atomic_turns() {
    std::atomic<int> turn{0};
    auto take = [&](int mine) {
        for (int round = 0; round < 2; round++) {
            for (int now = turn; now % 2 != mine; now = turn) turn.wait(now);
            turn++;
            turn.notify_all();
        }
    };
    std::thread other(take, 1);
    take(0);
    other.join();
    if (turn != 4) std::abort();
}

// The number changes, and nothing says so to a thread that waits already.
void atomic_not_notified() {
    std::atomic<int> ready{0};
    std::thread worker([&] { ready.wait(0); });
    std::this_thread::yield();
    ready = 1;
    worker.join();
}

}
