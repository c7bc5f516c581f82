// A thread of the program calls RequestSample, which waits until a worker has walked all threads. It does
// everything right, or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#define RIGHT 0
// The wait for the answer does not look whether it has come.
#define ANSWER_MISSED 1
// The requesting thread waits with a lock that the worker takes to publish.
#define PUBLISHED_UNDER_LOCK 2
// A request after the worker's end is never answered.
#define ENDED_WORKER_ASKED 3
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

struct Sampler;
Sampler *instance = nullptr;

struct Sampler : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    ICorProfilerInfo10 *runtime = nullptr;
    std::mutex lock, published;
    std::condition_variable requests, answers;
    unsigned requested = 0, answered = 0, frames = 0;
    uint32_t depth = 0;
    bool ends = false;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        runtime = query<ICorProfilerInfo10>(unknown);
        if (!info || !runtime) return E_FAIL;
        instance = this;
        // ENABLE_STACK_SNAPSHOT.
        HRESULT result = info->SetEventMask(0x10000000);
        worker = std::thread([this] { work(); });
        return result;
    }

    void work() {
        runtime->InitializeCurrentThread();
        for (;;) {
            {
                std::unique_lock<std::mutex> guard(lock);
                requests.wait(guard, [this] { return ends || requested != answered; });
                if (ends) return;
            }
            sample();
            if (MISTAKE == PUBLISHED_UNDER_LOCK) published.lock();
            std::lock_guard<std::mutex> guard(lock);
            answered++;
            answers.notify_all();
            if (MISTAKE == PUBLISHED_UNDER_LOCK) published.unlock();
            if (MISTAKE == ENDED_WORKER_ASKED) return;
        }
    }

    static HRESULT on_frame(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *, void *data) {
        auto *self = static_cast<Sampler *>(data);
        if (function) self->frames++;
        return S_OK;
    }

    void sample() {
        if (runtime->SuspendRuntime() < 0) return;
        ICorProfilerThreadEnum *list = nullptr;
        if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) == S_OK) {
            uint64_t id = 0;
            uint32_t count = 0;
            while (list->Next(1, &id, &count) == S_OK) info->DoStackSnapshot(id, on_frame, 0, this, nullptr, 0);
            list->Release();
        }
        runtime->ResumeRuntime();
    }

    void request(uint32_t deep) {
        std::unique_lock<std::mutex> of_requester(published, std::defer_lock);
        if (MISTAKE == PUBLISHED_UNDER_LOCK) of_requester.lock();
        std::unique_lock<std::mutex> guard(lock);
        depth += deep;
        unsigned mine = ++requested;
        requests.notify_one();
        if (MISTAKE == ANSWER_MISSED) {
            guard.unlock();
            // Other work, meanwhile.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            guard.lock();
            answers.wait(guard);
            return;
        }
        answers.wait(guard, [this, mine] { return answered >= mine; });
    }

    HRESULT Shutdown() override {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
            requests.notify_one();
        }
        worker.join();
        // The text calls with these arguments.
        if (depth % 100 != 0 || frames == 0) std::abort();
        runtime->Release();
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest

GUEST_EXPORT void RequestSample(bool deep, uint32_t depth) {
    if (deep && guest::instance) guest::instance->request(depth);
}
