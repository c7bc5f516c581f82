// A profiler that asks to be detached, from a callback. Its worker ends before, or makes the mistake that MISTAKE names.

// A library with unique symbols, as g++ makes them of what is inline, is never unloaded.
#pragma GCC visibility push(hidden)
#include "guest.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

// ProfilerDetachSucceeded ends the worker, and waits for it.
#define RIGHT 0
// The worker goes on in code that is unloaded.
#define WORKER_GOES_ON 1
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

struct Worker {
    std::mutex lock;
    std::condition_variable changed;
    bool ends = false;
    std::thread thread;

    void run() {
        std::unique_lock<std::mutex> guard(lock);
        while (!ends) changed.wait_for(guard, std::chrono::milliseconds(1));
    }

    void stop() {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
        }
        changed.notify_one();
        thread.join();
    }
};

static Worker *worker = new Worker;

struct Detaching final : Profiler {
    ICorProfilerInfo3 *info = nullptr;
    bool asked = false, detached = false;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo3>(unknown);
        worker->thread = std::thread([] { worker->run(); });
        return info->SetEventMask(0x20);
    }

    HRESULT JITCompilationStarted(uint64_t, BOOL) override {
        // Nothing is called after the request.
        if (asked) std::abort();
        asked = true;
        HRESULT result = info->RequestProfilerDetach(0);
        info->Release();
        return result;
    }

    HRESULT ProfilerDetachSucceeded() override {
        if (MISTAKE == RIGHT) worker->stop();
        return S_OK;
    }
};

Profiler *make() { return new Detaching; }

} // namespace guest
