// A profiler with static objects, which the exit of the process destroys after Shutdown, while its worker goes on. It does
// everything right, or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

// The worker ends in the destructor of a static object. What a process does in its exit comes in order.
#define RIGHT 0
// The static std::thread is not joined.
#define NOT_JOINED 1
// A static object waits for a worker that does not end.
#define JOINED_FOR_EVER 2
// A static condition variable is destroyed while the worker waits on it: glibc waits, too.
#define DESTROYED_WHILE_WAITED_ON 3
// The worker uses a static object after its destructor.
#define USED_AFTERWARDS 4
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

static int step = 0;

static void comes(int expected) {
    if (step++ != expected) std::abort();
}

__attribute__((destructor)) static void last() { comes(3); }

struct Local {
    bool used = false;
    ~Local() { comes(0); }
};

static thread_local Local local;

struct Samples {
    virtual ~Samples() = default;
    virtual void add() { count++; }
    int count = 0;
};

struct Worker {
    std::mutex lock;
    std::condition_variable changed;
    bool ends = false;
    std::unique_ptr<Samples> samples = std::make_unique<Samples>();
    std::thread thread;

    void run() {
        std::unique_lock<std::mutex> guard(lock);
        if (MISTAKE != USED_AFTERWARDS) {
            changed.wait(guard, [this] { return ends; });
            return;
        }
        for (;;) {
            samples->add();
            changed.wait_for(guard, std::chrono::milliseconds(1));
        }
    }

    void start() {
        thread = std::thread([this] { run(); });
        if (MISTAKE == DESTROYED_WHILE_WAITED_ON || MISTAKE == USED_AFTERWARDS) thread.detach();
    }

    ~Worker() {
        comes(2);
        if (MISTAKE == RIGHT) {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
        }
        if (MISTAKE == RIGHT) changed.notify_one();
        if (MISTAKE == RIGHT || MISTAKE == JOINED_FOR_EVER) thread.join();
    }
};

static Worker worker;

struct Exiting final : Profiler {
    HRESULT Initialize(void *unknown) override {
        auto *info = query<ICorProfilerInfo2>(unknown);
        std::atexit([] { comes(1); });
        worker.start();
        return info->SetEventMask(0x20);
    }

    HRESULT Shutdown() override {
        local.used = true;
        return S_OK;
    }
};

Profiler *make() { return new Exiting; }

} // namespace guest
