// Walks all threads from a thread of its own while the runtime is suspended. It does everything right,
// or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#define RIGHT 0
// No mistake: ThreadDestroyed takes a lock that is held during a sample, and has none that the sample needs.
#define LOCK_IN_THREAD_DESTROYED 1
// The worker is notified without the lock that it waits with.
#define NOTIFY_WITHOUT_LOCK 2
// The runtime stays suspended.
#define RESUME_FORGOTTEN 3
// The threads are walked as they run.
#define WITHOUT_SUSPENSION 4
// The threads are listed before the suspension.
#define LISTED_BEFORE_SUSPENSION 5
// The worker uses a pointer that is set after its start.
#define PUBLISHED_LATE 6
// Shutdown waits for the worker with a lock that the worker takes.
#define JOIN_UNDER_LOCK 7
// The worker logs while the runtime is suspended.
#define LOG_WHILE_SUSPENDED 8
// No mistake: it logs when the runtime runs again.
#define LOG_AFTER_RESUME 9
// A thread is walked from where it was at the sample before.
#define OLD_SEED 10
// ThreadDestroyed waits for the end of a sample with a lock that the callback of its walks takes.
#define WAIT_WITH_LOCK 11
// The worker returns, with the runtime suspended, if the threads cannot be listed.
#define RETURNS_WITHOUT_LIST 12
// The same, if a thread cannot be walked.
#define RETURNS_WITHOUT_WALK 13
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

struct Sampler;

/// The profiler, for the functions that have no pointer to it.
Sampler *volatile instance = nullptr;

struct Sampler : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    ICorProfilerInfo10 *runtime = nullptr;
    std::mutex lock;
    std::condition_variable changed;
    volatile bool wanted = false, ends = false;
    std::mutex listed, sampling;
    std::set<uint64_t> gone;
    std::mutex log;
    volatile uint64_t logged_ip = 0;
    uint64_t walked = 0;
    std::map<uint64_t, std::vector<uint8_t>> seeds;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        runtime = query<ICorProfilerInfo10>(unknown);
        if (!info || !runtime) return E_FAIL;
        // JIT_COMPILATION, THREADS, ENABLE_STACK_SNAPSHOT.
        HRESULT result = info->SetEventMask(0x10000220);
        if (MISTAKE != PUBLISHED_LATE) instance = this;
        worker = std::thread([] { instance->work(); });
        if (MISTAKE == PUBLISHED_LATE) instance = this;
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

    bool list(std::vector<uint64_t> &found) {
        ICorProfilerThreadEnum *list = nullptr;
        if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) != S_OK) return false;
        uint64_t id = 0;
        uint32_t count = 0;
        while (list->Next(1, &id, &count) == S_OK) found.push_back(id);
        list->Release();
        return true;
    }

    void sample() {
        // ThreadDestroyed takes this lock. A thread that ends by itself is there without the runtime's locks.
        std::unique_lock<std::mutex> guard(listed, std::defer_lock), whole(sampling, std::defer_lock);
        if (MISTAKE == LOCK_IN_THREAD_DESTROYED) guard.lock();
        if (MISTAKE == WAIT_WITH_LOCK) whole.lock();
        std::vector<uint64_t> threads;
        if (MISTAKE == LISTED_BEFORE_SUSPENSION) list(threads);
        if (MISTAKE != WITHOUT_SUSPENSION && runtime->SuspendRuntime() < 0) return;
        if (MISTAKE != LISTED_BEFORE_SUSPENSION && !list(threads) && MISTAKE == RETURNS_WITHOUT_LIST) return;
        for (uint64_t id : threads) {
            if (walk(id) < 0 && MISTAKE == RETURNS_WITHOUT_WALK) return;
        }
        if (MISTAKE == LOG_WHILE_SUSPENDED) write_log(0);
        if (MISTAKE != RESUME_FORGOTTEN && MISTAKE != WITHOUT_SUSPENSION) runtime->ResumeRuntime();
        if (MISTAKE == LOG_AFTER_RESUME) write_log(0);
    }

    static HRESULT on_frame(uint64_t function, uint64_t ip, uint64_t, uint32_t size, uint8_t *context, void *data) {
        auto *self = static_cast<Sampler *>(data);
        if (MISTAKE == WAIT_WITH_LOCK) {
            std::lock_guard<std::mutex> guard(self->listed);
            if (self->gone.count(self->walked)) return E_FAIL;
        }
        if (function) self->logged_ip = ip;
        if (MISTAKE == OLD_SEED && function && context && !self->seeds.count(self->walked)) {
            self->seeds[self->walked].assign(context, context + size);
        }
        return S_OK;
    }

    HRESULT walk(uint64_t id) {
        walked = id;
        auto seed = seeds.find(id);
        uint8_t *from = seed == seeds.end() ? nullptr : seed->second.data();
        uint32_t size = seed == seeds.end() ? 0 : static_cast<uint32_t>(seed->second.size());
        // COR_PRF_SNAPSHOT_REGISTER_CONTEXT.
        return info->DoStackSnapshot(id, on_frame, MISTAKE == OLD_SEED, this, from, size);
    }

    // The logger has a lock, as loggers have, and writes the name of the code at an address.
    void write_log(uint64_t ip) {
        std::lock_guard<std::mutex> guard(log);
        uint64_t function = 0;
        if (ip) info->GetFunctionFromIP(reinterpret_cast<const uint8_t *>(ip), &function);
    }

    void set(volatile bool &flag) {
        if (MISTAKE == NOTIFY_WITHOUT_LOCK) {
            flag = true;
            changed.notify_one();
            return;
        }
        std::lock_guard<std::mutex> guard(lock);
        flag = true;
        changed.notify_one();
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        set(wanted);
        if (MISTAKE == LOG_WHILE_SUSPENDED || MISTAKE == LOG_AFTER_RESUME) write_log(logged_ip);
        return S_OK;
    }
    HRESULT ThreadDestroyed(uint64_t id) override {
        std::lock_guard<std::mutex> guard(listed);
        gone.insert(id);
        if (MISTAKE == WAIT_WITH_LOCK) std::lock_guard<std::mutex>{sampling};
        return S_OK;
    }
    HRESULT Shutdown() override {
        set(ends);
        {
            std::unique_lock<std::mutex> guard(lock, std::defer_lock);
            if (MISTAKE == JOIN_UNDER_LOCK) guard.lock();
            worker.join();
        }
        runtime->Release();
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest
