// A sampler that ticks in the way that MISTAKE names, and is stopped by Shutdown. All have the same mistake: the lock that a
// sample takes while the runtime is suspended is held by JITCompilationFinished, which calls the runtime.
#include "guest.hpp"

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <ctime>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <unistd.h>
#endif

#define SLEEP_FOR 0
#define WAIT_FOR 1
#define WAIT_FOR_PREDICATE 2
#define WAIT_UNTIL_STEADY 3
#define WAIT_UNTIL_SYSTEM 4
#define TIMED_MUTEX 5
#define FUTURE 6
#define NANOSLEEP 7
#define SEMAPHORE 8
#define POLL 9
#define TIMER 10
#define SINGLE_OBJECT 11
#define SLEEP_CONDITION 12
#define WAITABLE_TIMER 13
#define CONDITION_ANY 14
#define CLOCK_NANOSLEEP 15
#define USLEEP 16
#define SELECT 17
#define EPOLL 18
#define PLAIN_SLEEP 19
#define SLEEP_EX 20
#define MULTIPLE_OBJECTS 21
#define SLEEP_CONDITION_SRW 22
#ifndef MISTAKE
#define MISTAKE WAIT_FOR
#endif

namespace guest {

using HRESULT = clrsim::HRESULT;
constexpr std::chrono::milliseconds TICK(10);

struct Sampler : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    ICorProfilerInfo10 *runtime = nullptr;
    std::mutex lock, stopping;
    std::timed_mutex held;
    bool holds = false;
    std::condition_variable stop;
    std::condition_variable_any any;
    std::promise<void> over;
    std::future<void> future = over.get_future();
    bool ends = false;
    uint64_t last_ip = 0;
    std::thread worker;
#ifdef _WIN32
    HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    HANDLE worker_may_end = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    HANDLE timer = CreateWaitableTimerW(nullptr, FALSE, nullptr);
    CRITICAL_SECTION section;
    SRWLOCK slim = SRWLOCK_INIT;
    CONDITION_VARIABLE changed = {};
#else
    sem_t posted;
    int ends_of_pipe[2] = {-1, -1};
#endif

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        runtime = query<ICorProfilerInfo10>(unknown);
        if (!info || !runtime) return E_FAIL;
#ifdef _WIN32
        InitializeCriticalSection(&section);
#else
        sem_init(&posted, 0, 0);
        if (pipe(ends_of_pipe) != 0) return E_FAIL;
#endif
        worker = std::thread([this] { work(); });
        // JIT_COMPILATION, ENABLE_STACK_SNAPSHOT.
        return info->SetEventMask(0x10000020);
    }

    bool is_over() {
        std::lock_guard<std::mutex> guard(stopping);
        return ends;
    }

    // Waits for the next tick. Returns false if the sampler is to end.
    bool tick() {
        std::unique_lock<std::mutex> guard(stopping, std::defer_lock);
        auto is_stopped = [this] { return ends; };
        if ((MISTAKE >= WAIT_FOR && MISTAKE <= WAIT_UNTIL_SYSTEM) || MISTAKE == CONDITION_ANY) guard.lock();
        switch (MISTAKE) {
        case WAIT_FOR:
            if (!ends) stop.wait_for(guard, TICK);
            return !ends;
        case WAIT_FOR_PREDICATE: return !stop.wait_for(guard, TICK, is_stopped);
        case WAIT_UNTIL_STEADY: return !stop.wait_until(guard, std::chrono::steady_clock::now() + TICK, is_stopped);
        case WAIT_UNTIL_SYSTEM: return !stop.wait_until(guard, std::chrono::system_clock::now() + TICK, is_stopped);
        case CONDITION_ANY: return !any.wait_for(guard, TICK, is_stopped);
        case TIMED_MUTEX:
            if (held.try_lock_for(TICK)) held.unlock();
            return !is_over();
        case FUTURE: return future.wait_for(TICK) == std::future_status::timeout;
#ifdef _WIN32
        case SINGLE_OBJECT: return WaitForSingleObject(event, 10) == WAIT_TIMEOUT;
        case SLEEP_CONDITION: {
            EnterCriticalSection(&section);
            if (!ends) SleepConditionVariableCS(&changed, &section, 10);
            bool stopped = ends;
            LeaveCriticalSection(&section);
            return !stopped;
        }
        case SLEEP_CONDITION_SRW: {
            AcquireSRWLockExclusive(&slim);
            if (!ends) SleepConditionVariableSRW(&changed, &slim, 10, 0);
            bool stopped = ends;
            ReleaseSRWLockExclusive(&slim);
            return !stopped;
        }
        case MULTIPLE_OBJECTS: {
            HANDLE both[] = {event, worker_may_end};
            return WaitForMultipleObjects(2, both, FALSE, 10) == WAIT_TIMEOUT;
        }
        case PLAIN_SLEEP: Sleep(10); return !is_over();
        case SLEEP_EX: SleepEx(10, FALSE); return !is_over();
        case WAITABLE_TIMER: {
            LARGE_INTEGER due;
            due.QuadPart = -100000;
            SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE);
            WaitForSingleObject(timer, INFINITE);
            return !is_over();
        }
#else
        case NANOSLEEP: {
            timespec time = {0, 10000000};
            nanosleep(&time, nullptr);
            return !is_over();
        }
        case CLOCK_NANOSLEEP: {
            timespec time = {0, 10000000};
            clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
            return !is_over();
        }
        case USLEEP: usleep(10000); return !is_over();
        case SEMAPHORE: {
            timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 10000000;
            return sem_timedwait(&posted, &until) != 0;
        }
        case POLL: {
            pollfd one = {ends_of_pipe[0], POLLIN, 0};
            return poll(&one, 1, 10) == 0;
        }
        case SELECT: {
            fd_set set;
            FD_ZERO(&set);
            FD_SET(ends_of_pipe[0], &set);
            timeval time = {0, 10000};
            return select(ends_of_pipe[0] + 1, &set, nullptr, nullptr, &time) == 0;
        }
        case EPOLL: {
            static int epoll = -1;
            epoll_event event = {};
            event.events = EPOLLIN;
            if (epoll < 0) {
                epoll = epoll_create1(0);
                epoll_ctl(epoll, EPOLL_CTL_ADD, ends_of_pipe[0], &event);
            }
            return epoll_wait(epoll, &event, 1, 10) == 0;
        }
        case TIMER: {
            int timer = timerfd_create(CLOCK_MONOTONIC, 0);
            itimerspec due = {{0, 0}, {0, 10000000}};
            timerfd_settime(timer, 0, &due, nullptr);
            uint64_t times = 0;
            if (read(timer, &times, sizeof times) != sizeof times) return false;
            close(timer);
            return !is_over();
        }
#endif
        default: std::this_thread::sleep_for(TICK); return !is_over();
        }
    }

    void work() {
        runtime->InitializeCurrentThread();
        while (tick()) {
            if (runtime->SuspendRuntime() < 0) return;
            {
                std::lock_guard<std::mutex> guard(lock);
                walk();
            }
            runtime->ResumeRuntime();
        }
    }

    static HRESULT on_frame(uint64_t function, uint64_t ip, uint64_t, uint32_t, uint8_t *, void *data) {
        if (function) static_cast<Sampler *>(data)->last_ip = ip;
        return S_OK;
    }

    void walk() {
        ICorProfilerThreadEnum *list = nullptr;
        if (runtime->EnumThreads(reinterpret_cast<void **>(&list)) != S_OK) return;
        uint64_t id = 0;
        uint32_t count = 0;
        while (list->Next(1, &id, &count) == S_OK) info->DoStackSnapshot(id, on_frame, 0, this, nullptr, 0);
        list->Release();
    }

    HRESULT JITCompilationStarted(uint64_t, clrsim::BOOL) override {
        if (MISTAKE == TIMED_MUTEX && !holds) held.lock();
        holds = true;
        return S_OK;
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, clrsim::BOOL) override {
        std::lock_guard<std::mutex> guard(lock);
        uint64_t function = 0;
        info->GetFunctionFromIP(reinterpret_cast<const uint8_t *>(last_ip), &function);
        return S_OK;
    }

    HRESULT Shutdown() override {
        {
            std::lock_guard<std::mutex> guard(stopping);
            ends = true;
        }
        stop.notify_one();
        any.notify_one();
        over.set_value();
        if (MISTAKE == TIMED_MUTEX && holds) held.unlock();
#ifdef _WIN32
        SetEvent(event);
        EnterCriticalSection(&section);
        LeaveCriticalSection(&section);
        WakeConditionVariable(&changed);
#else
        sem_post(&posted);
        if (write(ends_of_pipe[1], "", 1) != 1) return E_FAIL;
#endif
        worker.join();
        runtime->Release();
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest
