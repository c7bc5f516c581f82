// A profiler whose library does something at the end of the process, when all of its threads have been ended wherever they were.
// It does everything right, or makes the mistake that MISTAKE names.
#include "guest.hpp"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <cstdlib>
#include <process.h>
#include <thread>

// What comes at the end comes in order, on the thread that ends the process. The worker has ended, and left no lock.
#define RIGHT 0
// A static object waits for a word of the worker, which has ended without it.
#define WAITS_FOR_WORD 1
// The end takes a lock, which the worker may own for ever.
#define TAKES_LOCK 2
// A static std::thread is not joined.
#define NOT_JOINED 3
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

#define CHECK(condition) \
    if (!(condition)) _exit(__LINE__)

namespace guest {

using HRESULT = clrsim::HRESULT;

static int step = 0;
static DWORD ending = 0;

static void comes(int expected) {
    // The library may have been loaded, and nothing else.
    if (ending == 0) return;
    CHECK(step++ == expected);
    CHECK(GetCurrentThreadId() == ending);
}

static void WINAPI value_ends(void *) { comes(0); }

static void NTAPI thread_callback(void *, DWORD reason, void *at_end) {
    if (reason == DLL_PROCESS_DETACH && step > 0) {
        CHECK(at_end != nullptr);
        comes(1);
    }
}

__attribute__((section(".CRT$XLM"), used)) PIMAGE_TLS_CALLBACK in_table = thread_callback;

struct Worker {
    CRITICAL_SECTION lock;
    HANDLE stop = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    HANDLE stopped = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    HANDLE thread = nullptr;
    volatile int samples = 0;

    Worker() { InitializeCriticalSection(&lock); }

    static DWORD WINAPI run(void *argument) {
        auto *self = static_cast<Worker *>(argument);
        while (WaitForSingleObject(self->stop, 1) == WAIT_TIMEOUT) {
            EnterCriticalSection(&self->lock);
            self->samples++;
            Sleep(0);
            LeaveCriticalSection(&self->lock);
        }
        SetEvent(self->stopped);
        return 0;
    }

    void start() { thread = CreateThread(nullptr, 0, run, this, 0, nullptr); }

    ~Worker() {
        comes(3);
        if (thread == nullptr) return;
        if (MISTAKE == WAITS_FOR_WORD) {
            SetEvent(stop);
            WaitForSingleObject(stopped, INFINITE);
        }
        if (MISTAKE == TAKES_LOCK) {
            EnterCriticalSection(&lock);
            LeaveCriticalSection(&lock);
        }
        // A thread that was ended has ended.
        CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    }
};

static Worker worker;
#if MISTAKE == NOT_JOINED
static std::thread other;
#endif

struct Ending final : Profiler {
    HRESULT Initialize(void *unknown) override {
        auto *info = query<ICorProfilerInfo2>(unknown);
        std::atexit([] { comes(2); });
        worker.start();
#if MISTAKE == NOT_JOINED
        other = std::thread([] { Sleep(1); });
#endif
        return info->SetEventMask(0x20);
    }

    HRESULT Shutdown() override {
        ending = GetCurrentThreadId();
        DWORD index = FlsAlloc(value_ends);
        CHECK(index != FLS_OUT_OF_INDEXES && FlsSetValue(index, &step));
        if (MISTAKE == RIGHT) {
            SetEvent(worker.stop);
            WaitForSingleObject(worker.stopped, INFINITE);
        }
        return S_OK;
    }
};

Profiler *make() { return new Ending; }

} // namespace guest
