// A profiler whose own thread fails in the way that GUEST_FAILURE names, once a method was compiled.
#include "guest.hpp"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace guest {

struct Failing : Profiler {
    ICorProfilerInfo10 *runtime = nullptr;
    std::mutex lock;
    std::condition_variable changed;
    bool compiled = false;
    int *made = nullptr;
    std::string failure;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        runtime = query<ICorProfilerInfo10>(unknown);
        if (!runtime) return E_FAIL;
        const char *name = std::getenv("GUEST_FAILURE");
        failure = name ? name : "none";
        // JIT_COMPILATION, ENABLE_STACK_SNAPSHOT.
        HRESULT result = runtime->SetEventMask(0x20);
        worker = std::thread([this] { work(); });
        return result;
    }

    void work() {
        {
            std::unique_lock<std::mutex> guard(lock);
            while (!compiled) changed.wait(guard);
        }
        if (failure == "unpublished") use();
        if (failure == "throw") throw std::runtime_error("not caught");
        if (failure == "abort") std::abort();
        if (failure == "exit") std::exit(7);
        if (failure == "leak") list();
        if (failure == "overflow") overflow(1);
        if (failure == "spin") spin();
        if (failure == "released") release();
        if (failure == "waits") made ? waits_late() : waits_early();
        if (failure == "left") waits_early();
    }

    // Two mistakes with one verdict: nobody notifies any more.
    void waits_early() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard);
    }

    void waits_late() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard);
    }

    // JITCompilationFinished notifies before it sets the pointer.
    void use() {
        std::lock_guard<std::mutex> guard(lock);
        *made += 1;
    }

    // The enumerator is not released.
    void list() {
        ICorProfilerThreadEnum *list = nullptr;
        runtime->EnumThreads(reinterpret_cast<void **>(&list));
    }

    int overflow(volatile int depth) {
        volatile char room[4096] = {};
        return depth > 0 ? overflow(depth + 1) + room[0] : room[1];
    }

    void spin() {
        for (;;) { __asm__ volatile(""); }
    }

    void release() {
        ICorProfilerThreadEnum *list = nullptr;
        if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) < 0) return;
        uint32_t count = 0;
        list->Release();
        list->GetCount(&count);
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        static int object = 0;
        {
            std::lock_guard<std::mutex> guard(lock);
            compiled = true;
            changed.notify_one();
        }
        std::lock_guard<std::mutex> guard(lock);
        made = &object;
        return S_OK;
    }

    // A thread that waits for ever is left where it is.
    HRESULT Shutdown() override {
        failure == "left" ? worker.detach() : worker.join();
        runtime->Release();
        return S_OK;
    }
};

Profiler *make() { return new Failing; }

} // namespace guest
