// A profiler of Windows that suspends one thread at a time, unwinds it to its first managed frame, and walks it from there
// with a seed. MISTAKE chooses what is wrong.
#include "guest.hpp"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#define RIGHT 0
#define ALLOCATES_WHILE_SUSPENDED 1
#define RESUME_FORGOTTEN 2
#define SEED_OF_ANOTHER_THREAD 3
#define LOG_WHILE_SUSPENDED 4

namespace guest {

using HRESULT = clrsim::HRESULT;

struct Sampler : Profiler {
    ICorProfilerInfo10 *info = nullptr;
    std::mutex lock;
    std::condition_variable changed;
    // Threads of the program, with their numbers. A thread is not walked after it was removed.
    std::map<uint64_t, DWORD> threads;
    bool ends = false, has_begun = false;
    std::mutex log;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo10>(unknown);
        // Threads, JIT compilation, stack snapshots.
        HRESULT result = info->SetEventMask(0x10000220);
        worker = std::thread([this] { work(); });
        return result;
    }
    HRESULT ThreadAssignedToOSThread(uint64_t thread, uint32_t number) override {
        std::lock_guard<std::mutex> guard(lock);
        threads[thread] = number;
        return S_OK;
    }
    HRESULT ThreadDestroyed(uint64_t thread) override {
        std::lock_guard<std::mutex> guard(lock);
        threads.erase(thread);
        return S_OK;
    }
    HRESULT JITCompilationFinished(uint64_t, HRESULT, clrsim::BOOL) override {
        {
            std::lock_guard<std::mutex> guard(lock);
            has_begun = true;
        }
        changed.notify_all();
        std::lock_guard<std::mutex> guard(log);
        Sleep(1);
        return S_OK;
    }
    HRESULT Shutdown() override {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
        }
        changed.notify_all();
        worker.join();
        info->Release();
        return S_OK;
    }

    void work() {
        info->InitializeCurrentThread();
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return ends || has_begun; });
        for (int round = 0; round < 3 && !ends; round++) {
            for (const auto &thread : threads) sample(thread.first, thread.second);
            guard.unlock();
            Sleep(10);
            guard.lock();
        }
    }

    // Unwinds to the first frame of managed code.
    bool find_managed(CONTEXT &context) {
        for (int frame = 0; frame < 50 && context.Rip != 0; frame++) {
            uint64_t function = 0;
            if (info->GetFunctionFromIP(reinterpret_cast<uint8_t *>(context.Rip), &function) == S_OK) return true;
            DWORD64 base = 0, establisher = 0;
            void *data = nullptr;
            auto *entry = RtlLookupFunctionEntry(context.Rip, &base, nullptr);
            if (entry) {
                RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, entry, &context, &data, &establisher, nullptr);
            } else {
                // A leaf function.
                auto *stack = reinterpret_cast<void *>(context.Rsp);
                if (!ReadProcessMemory(GetCurrentProcess(), stack, &context.Rip, 8, nullptr)) return false;
                context.Rsp += 8;
            }
        }
        return false;
    }

    struct Walk {
        uint64_t functions[64];
        int count;
    };
    static HRESULT on_frame(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *, void *data) {
        auto *walk = static_cast<Walk *>(data);
        if (walk->count < 64) walk->functions[walk->count++] = function;
        return S_OK;
    }

    void sample(uint64_t thread, DWORD number) {
        HANDLE handle = OpenThread(THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT, FALSE, number);
        if (!handle) return;
        static CONTEXT context;
        Walk walk = {};
#if MISTAKE == SEED_OF_ANOTHER_THREAD
        // The context of the thread that was walked before is used again.
        static bool has_one = false;
#else
        bool has_one = false;
#endif
        if (SuspendThread(handle) != static_cast<DWORD>(-1)) {
            if (!has_one) {
                context.ContextFlags = CONTEXT_FULL;
                has_one = GetThreadContext(handle, &context) && find_managed(context);
            }
            if (has_one)
                info->DoStackSnapshot(thread, on_frame, 0, &walk, reinterpret_cast<uint8_t *>(&context), sizeof context);
#if MISTAKE == ALLOCATES_WHILE_SUSPENDED
            std::string name(100, 'x');
            if (walk.count > 0) name += "y";
#elif MISTAKE == LOG_WHILE_SUSPENDED
            { std::lock_guard<std::mutex> guard(log); }
#endif
#if MISTAKE == RESUME_FORGOTTEN
            if (walk.count == 0) {
                CloseHandle(handle);
                return;
            }
#endif
            ResumeThread(handle);
        }
        CloseHandle(handle);
        for (int frame = 0; frame < walk.count; frame++) name_of(reinterpret_cast<ICorProfilerInfo2 *>(info), walk.functions[frame]);
    }
};

Profiler *make() { return new Sampler; }

}  // namespace guest
