// The part that these profilers share: a walk of all threads while the runtime is suspended.
#ifndef STRANGERS_SAMPLER_HPP
#define STRANGERS_SAMPLER_HPP

#include "guest.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace guest {

constexpr uint32_t JIT = 0x20, THREADS = 0x200, SNAPSHOT = 0x10000000;
constexpr std::chrono::milliseconds TICK(5);

struct Sampler : Profiler {
    const int form;
    ICorProfilerInfo2 *info = nullptr;
    ICorProfilerInfo10 *runtime = nullptr;
    std::atomic<uint64_t> frames{0};

    explicit Sampler(int form) : form(form) {}

    HRESULT open(void *unknown, uint32_t events) {
        info = query<ICorProfilerInfo2>(unknown);
        runtime = query<ICorProfilerInfo10>(unknown);
        return info && runtime ? info->SetEventMask(events) : E_FAIL;
    }

    void close() {
        runtime->Release();
        info->Release();
    }

    static HRESULT on_frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *data) {
        ++static_cast<Sampler *>(data)->frames;
        return S_OK;
    }

    void sample() {
        // Memory for the list is there before the suspension.
        std::vector<uint64_t> threads;
        threads.reserve(16);
        if (runtime->SuspendRuntime() < 0) return;
        ICorProfilerThreadEnum *list = nullptr;
        if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) == S_OK) {
            uint64_t id = 0;
            uint32_t count = 0;
            while (threads.size() < 16 && list->Next(1, &id, &count) == S_OK) threads.push_back(id);
            list->Release();
        }
        for (uint64_t thread : threads) info->DoStackSnapshot(thread, on_frame, 0, this, nullptr, 0);
        runtime->ResumeRuntime();
    }
};

// A sampler with a thread, which goes on until Shutdown.
struct TickingSampler : Sampler {
    std::atomic<bool> ends{false};
    std::thread worker;

    using Sampler::Sampler;

    HRESULT Shutdown() override {
        ends = true;
        worker.join();
        close();
        return S_OK;
    }
};

} // namespace guest

#endif
