// Profilers that end well, with nothing, little or everything behind it. HABIT says which one is built.

#include "guest.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace guest;

enum Habit { NOTHING, REFUSES, NEVER_WALKS, WALKS_RARELY, WALKS_ALWAYS, WALKS_IN_VAIN, CALLS_WHAT_IS_MISSING, CALLS_WHAT_IS_OBSOLETE, IDLE_WORKER };

constexpr uint32_t JIT = 0x20, SNAPSHOT = 0x10000000;

struct Sampler : Profiler {
    ICorProfilerInfo3 *info = nullptr;
    std::atomic<bool> compiles{false}, wants_walk{false};
    std::mutex lock;
    std::condition_variable condition;
    bool has_work = false;

    HRESULT Initialize(void *unknown) override {
        if (HABIT == REFUSES) return E_FAIL;
        info = query<ICorProfilerInfo3>(unknown);
        if (HABIT == NOTHING) return S_OK;
        if (HABIT == CALLS_WHAT_IS_OBSOLETE) info->EndInprocDebugging(0);
        if (HABIT == WALKS_RARELY) std::thread([this] { ask_for_a_walk(); }).detach();
        // The runtime does not know the calling thread, whose stack is asked for.
        if (HABIT == WALKS_IN_VAIN) std::thread([this] { info->DoStackSnapshot(0, frame, 0, this, nullptr, 0); }).detach();
        if (HABIT == IDLE_WORKER) std::thread([this] { wait(); }).detach();
        bool walks = HABIT == NEVER_WALKS || HABIT == WALKS_RARELY || HABIT == WALKS_ALWAYS || HABIT == WALKS_IN_VAIN;
        return info->SetEventMask(JIT | (walks ? SNAPSHOT : 0));
    }

    HRESULT JITCompilationStarted(uint64_t function, BOOL) override {
        compiles = true;
        if (HABIT == CALLS_WHAT_IS_MISSING) {
            IMetaDataEmit *emit = nullptr;
            mdToken token = 0;
            info->GetTokenAndMetaDataFromFunction(function, IMetaDataEmit::IID, reinterpret_cast<void **>(&emit), &token);
            emit->Save(nullptr, 0);
            emit->Release();
        }
        if (HABIT == WALKS_ALWAYS) info->DoStackSnapshot(0, frame, 0, this, nullptr, 0);
        return S_OK;
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        compiles = false;
        if (wants_walk.exchange(false)) info->DoStackSnapshot(0, frame, 0, this, nullptr, 0);
        return S_OK;
    }

    void ask_for_a_walk() {
        if (compiles) wants_walk = true;
    }

    void wait() {
        std::unique_lock<std::mutex> guard(lock);
        condition.wait(guard, [this] { return has_work; });
    }

    static HRESULT frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return S_OK; }
};

Profiler *guest::make() { return new Sampler(); }
