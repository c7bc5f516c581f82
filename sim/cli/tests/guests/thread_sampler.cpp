// Walks all threads from a thread of its own while the runtime is suspended. It does everything right,
// or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#define RIGHT 0
#define LOCK_IN_THREAD_DESTROYED 1
#define NOTIFY_WITHOUT_LOCK 2
#define RESUME_FORGOTTEN 3
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

struct Sampler : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    ICorProfilerInfo10 *runtime = nullptr;
    std::mutex lock;
    std::condition_variable changed;
    volatile bool wanted = false, ends = false;
    std::mutex listed;
    std::set<uint64_t> gone;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        runtime = query<ICorProfilerInfo10>(unknown);
        if (!info || !runtime) return E_FAIL;
        // JIT_COMPILATION, THREADS, ENABLE_STACK_SNAPSHOT.
        HRESULT result = info->SetEventMask(0x10000220);
        worker = std::thread([this] { work(); });
        return result;
    }

    void work() {
        runtime->InitializeCurrentThread();
        for (;;) {
            {
                std::unique_lock<std::mutex> guard(lock);
                while (!wanted && !ends) changed.wait(guard);
                if (ends) return;
                wanted = false;
            }
            sample();
        }
    }

    std::vector<uint64_t> threads() {
        std::vector<uint64_t> found;
        ICorProfilerThreadEnum *list = nullptr;
        if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) != S_OK) return found;
        uint64_t id = 0;
        uint32_t count = 0;
        while (list->Next(1, &id, &count) == S_OK) found.push_back(id);
        list->Release();
        return found;
    }

    void sample() {
        // ThreadDestroyed takes this lock, and the runtime waits there with the lock of its list of threads.
        std::unique_lock<std::mutex> guard(listed, std::defer_lock);
        if (MISTAKE == LOCK_IN_THREAD_DESTROYED) guard.lock();
        if (runtime->SuspendRuntime() < 0) return;
        for (uint64_t id : threads()) walk(id);
        if (MISTAKE != RESUME_FORGOTTEN) runtime->ResumeRuntime();
    }

    void walk(uint64_t id) {
        Frames frames{info};
        info->DoStackSnapshot(id, Frames::on_frame, 0, &frames, nullptr, 0);
    }

    void notify() {
        if (MISTAKE == NOTIFY_WITHOUT_LOCK) {
            changed.notify_one();
            return;
        }
        std::lock_guard<std::mutex> guard(lock);
        changed.notify_one();
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        wanted = true;
        notify();
        return S_OK;
    }
    HRESULT ThreadDestroyed(uint64_t id) override {
        std::lock_guard<std::mutex> guard(listed);
        gone.insert(id);
        return S_OK;
    }
    HRESULT Shutdown() override {
        ends = true;
        notify();
        worker.join();
        runtime->Release();
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest
