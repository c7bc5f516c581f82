// Profilers whose library does something as it is loaded, before anything of it is called.
#include "guest.hpp"
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace clrsim;

namespace {

std::mutex lock;
std::condition_variable changed;
bool ready = false, seen = false;

// A logger with a thread: it says when it is there, and waits for the end.
void log() {
    std::unique_lock<std::mutex> guard(lock);
    ready = true;
    changed.notify_all();
    changed.wait(guard, [] { return seen; });
}

struct Starts {
    Starts() { std::thread(log).detach(); }
};

struct Crashes {
    Crashes() { *static_cast<volatile int *>(nullptr) = 1; }
};

struct Exits {
    Exits() { std::exit(0); }
};

#define STARTS_THREAD 1
#define WAITS_ANYWAY 2
#define CRASHES 3
#define EXITS 4

#if MISTAKE == CRASHES
Crashes crashes;
#elif MISTAKE == EXITS
Exits exits;
#else
Starts starts;
#endif

struct Waiting : Profiler {
    HRESULT Initialize(void *runtime) override {
        std::unique_lock<std::mutex> guard(lock);
        while (MISTAKE == WAITS_ANYWAY || !ready) {
            changed.wait(guard);
            if (MISTAKE == WAITS_ANYWAY) break;
        }
        return guest::query<ICorProfilerInfo2>(runtime)->SetEventMask(0);
    }

    HRESULT Shutdown() override {
        std::lock_guard<std::mutex> guard(lock);
        seen = true;
        changed.notify_all();
        return guest::S_OK;
    }
};

}

Profiler *guest::make() { return new Waiting; }
