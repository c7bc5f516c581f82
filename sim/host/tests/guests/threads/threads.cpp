// Programs with threads, one for each export: right ones, and each mistake that a search has to find.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

extern "C" {

// A worker takes what the main thread has put, in this order.
void hand_over() {
    std::mutex lock;
    std::condition_variable changed;
    std::vector<int> queue;
    bool last = false;
    int sum = 0;
    std::thread worker([&] {
        for (;;) {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [&] { return last || !queue.empty(); });
            if (queue.empty()) return;
            sum = sum * 10 + queue.front();
            queue.erase(queue.begin());
        }
    });
    for (int item = 1; item <= 3; item++) {
        std::lock_guard<std::mutex> guard(lock);
        queue.push_back(item);
        changed.notify_one();
    }
    {
        std::lock_guard<std::mutex> guard(lock);
        last = true;
        changed.notify_one();
    }
    worker.join();
    if (sum != 123) std::abort();
}

// The flag is set without the lock: the notification may come between the test and the wait.
void lost_wake_up() {
    std::mutex lock;
    std::condition_variable changed;
    volatile bool ready = false;
    std::thread worker([&] {
        std::unique_lock<std::mutex> guard(lock);
        while (!ready) changed.wait(guard);
    });
    ready = true;
    changed.notify_one();
    worker.join();
}

// Two threads take two locks in different order.
void crossed_locks() {
    std::mutex one, two;
    std::thread worker([&] {
        std::lock_guard<std::mutex> first(two);
        std::lock_guard<std::mutex> second(one);
    });
    {
        std::lock_guard<std::mutex> first(one);
        std::lock_guard<std::mutex> second(two);
    }
    worker.join();
}

// The object is used before the thread that makes it has made it.
void used_too_early() {
    std::mutex lock;
    int *object = nullptr;
    static int made = 1;
    std::thread worker([&] {
        std::lock_guard<std::mutex> guard(lock);
        object = &made;
    });
    {
        std::lock_guard<std::mutex> guard(lock);
        made += *const_cast<int *volatile &>(object);
    }
    worker.join();
}

// Sleeps and time limits: time passes only where somebody waits for it.
void patience() {
    std::timed_mutex lock;
    std::mutex other;
    std::condition_variable never;
    auto before = std::chrono::steady_clock::now();
    lock.lock();
    std::thread worker([&] {
        if (lock.try_lock_for(std::chrono::seconds(5))) lock.unlock();
        std::unique_lock<std::mutex> guard(other);
        never.wait_for(guard, std::chrono::hours(1));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lock.unlock();
    worker.join();
    if (std::chrono::steady_clock::now() - before < std::chrono::hours(1)) std::abort();
}

struct Slow {
    Slow() { std::this_thread::yield(); value = 7; }
    int value;
};

static thread_local struct Ends {
    std::mutex *lock = nullptr;
    int *count = nullptr;
    ~Ends() {
        if (!lock) return;
        std::lock_guard<std::mutex> guard(*lock);
        ++*count;
    }
} ends;

// Static and thread-local variables, shared and recursive locks, a thread that starts a thread.
void the_rest() {
    std::shared_mutex tables;
    std::recursive_mutex again;
    std::mutex lock;
    int ended = 0, read = 0;
    auto reader = [&] {
        static Slow slow;
        ends.lock = &lock;
        ends.count = &ended;
        std::shared_lock<std::shared_mutex> guard(tables);
        std::lock_guard<std::recursive_mutex> outer(again);
        std::lock_guard<std::recursive_mutex> inner(again);
        read += slow.value;
    };
    std::thread one([&] { std::thread inner(reader); reader(); inner.join(); });
    {
        std::unique_lock<std::shared_mutex> guard(tables);
        read++;
    }
    one.join();
    if (read != 15 || ended != 2) std::abort();
}

// The scheduler cannot see it.
void spins() {
    for (;;) { __asm__ volatile(""); }
}

// Ends its process.
void leaves() { std::_Exit(3); }

}
