// Stops a thread of the program by a signal, whose handler notes where the thread was, and lets it go on. It does
// everything right, or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <semaphore.h>
#include <sys/syscall.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

#define RIGHT 0
// The handler takes a lock that callbacks take.
#define LOCK_IN_HANDLER 1
// The handler allocates.
#define ALLOCATES_IN_HANDLER 2
// The sampler allocates while the thread is stopped in the handler.
#define ALLOCATES_WHILE_STOPPED 3
// The handler asks the runtime.
#define ASKS_IN_HANDLER 4
// The sampler waits for the handler without an end, though the thread may be gone.
#define WAITS_FOR_EVER 5
// The handler looks for images, as an unwinder does.
#define LOOKS_UP_IN_HANDLER 6
// The handler looks a symbol up.
#define FINDS_SYMBOL_IN_HANDLER 7
// The handler prints.
#define PRINTS_IN_HANDLER 8
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

// Allocates and frees memory, which a compiler would leave out.
inline void allocate() {
    void *volatile block = std::malloc(64);
    std::free(block);
}

struct Sampler;
Sampler *instance = nullptr;

struct Sampler : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    std::mutex lock, callbacks;
    std::condition_variable changed;
    uint32_t target = 0;
    int assigned = 0;
    bool ends = false;
    // Where the thread was, and the last such place in managed code.
    volatile uint64_t noted = 0, managed = 0;
    sem_t stopped, goes_on;
    std::thread worker;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        if (!info) return E_FAIL;
        instance = this;
        if (sem_init(&stopped, 0, 0) != 0 || sem_init(&goes_on, 0, 0) != 0) return E_FAIL;
        struct sigaction action = {};
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        action.sa_sigaction = [](int, siginfo_t *, void *context) { instance->handle(context); };
        if (sigaction(SIGUSR2, &action, nullptr) != 0) return E_FAIL;
        // JIT_COMPILATION, THREADS.
        HRESULT result = info->SetEventMask(0x220);
        worker = std::thread([this] { work(); });
        return result;
    }

    void handle(void *context) {
        noted = static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
        if (MISTAKE == LOCK_IN_HANDLER) std::lock_guard<std::mutex> guard(callbacks);
        if (MISTAKE == ALLOCATES_IN_HANDLER) allocate();
        if (MISTAKE == LOOKS_UP_IN_HANDLER) dl_iterate_phdr([](dl_phdr_info *, size_t, void *) { return 1; }, nullptr);
        if (MISTAKE == FINDS_SYMBOL_IN_HANDLER && !dlsym(RTLD_DEFAULT, "malloc")) std::abort();
        if (MISTAKE == PRINTS_IN_HANDLER) {
            double numbers[] = {1, 2, 3, 4, 5};
            std::fprintf(stderr, "%d %s %.0f %.0f %.0f %.0f %.0f\n", MISTAKE, "in the handler", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
        }
        if (MISTAKE == ASKS_IN_HANDLER && managed) is_managed(managed);
        sem_post(&stopped);
        if (MISTAKE == ALLOCATES_WHILE_STOPPED) sem_wait(&goes_on);
    }

    bool is_managed(uint64_t ip) {
        uint64_t function = 0;
        return info->GetFunctionFromIP(reinterpret_cast<const uint8_t *>(ip), &function) == S_OK;
    }

    // Waits for the handler, which is not executed if the thread has ended meanwhile.
    bool await_handler() {
        if (MISTAKE == WAITS_FOR_EVER) return sem_wait(&stopped) == 0;
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        return sem_timedwait(&stopped, &until) == 0;
    }

    // A suspension is short: one of many signals meets it.
    static constexpr int samples = MISTAKE == ASKS_IN_HANDLER ? 40 : 5;

    void work() {
        uint32_t thread = 0;
        {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [this] { return ends || target != 0; });
            thread = target;
        }
        for (int sample = 0; sample < samples && thread != 0; sample++) {
            if (MISTAKE != ASKS_IN_HANDLER) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            // A handler that came late has posted.
            while (sem_trywait(&stopped) == 0) {}
            if (syscall(SYS_tgkill, getpid(), thread, SIGUSR2) != 0) return;
            if (MISTAKE == ALLOCATES_WHILE_STOPPED) {
                bool here = await_handler();
                allocate();
                sem_post(&goes_on);
                if (!here) return;
            } else if (!await_handler()) {
                return;
            }
            if (is_managed(noted)) managed = noted;
        }
    }

    HRESULT ThreadAssignedToOSThread(uint64_t, uint32_t number) override {
        std::lock_guard<std::mutex> guard(lock);
        // The program's first thread ends with the process.
        if (MISTAKE == WAITS_FOR_EVER && assigned++ == 0) return S_OK;
        if (target == 0) target = number;
        changed.notify_one();
        return S_OK;
    }
    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        std::lock_guard<std::mutex> guard(callbacks);
        allocate();
        return S_OK;
    }
    HRESULT Shutdown() override {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
            changed.notify_one();
        }
        worker.join();
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest
