// Walks the own stack where an object is allocated, and all threads from a thread of its own. One of the two
// at a time uses the buffer. It does everything right, or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#define RIGHT 0
// The callback, which is made in cooperative mode, waits for a lock that is held during a suspension.
#define WAIT_IN_CALLBACK 1
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

struct Sampler : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    ICorProfilerInfo10 *runtime = nullptr;
    std::mutex buffer, lock;
    std::condition_variable changed;
    bool wanted = false, ends = false;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        runtime = query<ICorProfilerInfo10>(unknown);
        if (!info || !runtime) return E_FAIL;
        // JIT_COMPILATION, OBJECT_ALLOCATED, ENABLE_OBJECT_ALLOCATED, ENABLE_STACK_SNAPSHOT.
        HRESULT result = info->SetEventMask(0x10200120);
        worker = std::thread([this] { work(); });
        return result;
    }

    void work() {
        runtime->InitializeCurrentThread();
        for (;;) {
            {
                std::unique_lock<std::mutex> guard(lock);
                changed.wait(guard, [this] { return ends || wanted; });
                if (ends) return;
                wanted = false;
            }
            std::lock_guard<std::mutex> guard(buffer);
            if (runtime->SuspendRuntime() < 0) continue;
            ICorProfilerThreadEnum *list = nullptr;
            if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) == S_OK) {
                uint64_t id = 0;
                uint32_t count = 0;
                while (list->Next(1, &id, &count) == S_OK) walk(id);
                list->Release();
            }
            runtime->ResumeRuntime();
        }
    }

    static HRESULT on_frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return S_OK; }

    void walk(uint64_t id) { info->DoStackSnapshot(id, on_frame, 0, nullptr, nullptr, 0); }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        std::lock_guard<std::mutex> guard(lock);
        wanted = true;
        changed.notify_one();
        return S_OK;
    }
    HRESULT ObjectAllocated(uint64_t, uint64_t) override {
        std::unique_lock<std::mutex> guard(buffer, std::defer_lock);
        if (MISTAKE == WAIT_IN_CALLBACK) {
            guard.lock();
        } else if (!guard.try_lock()) {
            return S_OK;
        }
        walk(0);
        return S_OK;
    }
    HRESULT Shutdown() override {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
            changed.notify_one();
        }
        worker.join();
        runtime->Release();
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest
