// Pools of threads, with their timers and waits, each as an export that a text's program calls. One that finds something wrong
// ends the process with the number of the line.
#include "guest.hpp"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <process.h>

#define CHECK(condition) \
    if (!(condition)) _exit(__LINE__)

namespace {

// What calls of a pool have in common.
struct Pooled {
    CRITICAL_SECTION lock;
    HANDLE called = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    volatile LONG calls = 0;
    volatile bool inside = false, freed = false;
    PTP_WORK work = nullptr;

    Pooled() { InitializeCriticalSection(&lock); }
    void call() {
        InterlockedIncrement(&calls);
        CHECK(SetEvent(called));
    }
    static Pooled *of(void *argument) { return static_cast<Pooled *>(argument); }
};

void CALLBACK on_work(PTP_CALLBACK_INSTANCE, void *argument, PTP_WORK work) {
    CHECK(work != nullptr);
    Pooled::of(argument)->call();
}
void CALLBACK on_timer(PTP_CALLBACK_INSTANCE, void *argument, PTP_TIMER) {
    CHECK(!Pooled::of(argument)->freed);
    Pooled::of(argument)->call();
}
void CALLBACK on_queue_timer(void *argument, BOOLEAN is_over) {
    CHECK(is_over);
    Pooled::of(argument)->call();
}

}  // namespace

GUEST_EXPORT void pool_work() {
    Pooled own;
    PTP_WORK work = CreateThreadpoolWork(on_work, &own, nullptr);
    CHECK(work != nullptr);
    SubmitThreadpoolWork(work);
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CHECK(own.calls == 2);
    SubmitThreadpoolWork(work);
    // It is made, or was not begun.
    WaitForThreadpoolWorkCallbacks(work, TRUE);
    LONG calls = own.calls;
    CHECK(calls == 2 || calls == 3);
    Sleep(10);
    CHECK(own.calls == calls);
    CloseThreadpoolWork(work);
    HANDLE after = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    static HANDLE event;
    event = after;
    CHECK(TrySubmitThreadpoolCallback([](PTP_CALLBACK_INSTANCE call, void *) { SetEventWhenCallbackReturns(call, event); }, &own, nullptr));
    CHECK(WaitForSingleObject(after, INFINITE) == WAIT_OBJECT_0);
    auto item = [](void *argument) -> DWORD {
        Pooled::of(argument)->call();
        return 0;
    };
    CHECK(ResetEvent(own.called) && QueueUserWorkItem(item, &own, WT_EXECUTEDEFAULT));
    CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
}

// Work waits for itself.
GUEST_EXPORT void pool_waits_for_itself() {
    Pooled own;
    own.work = CreateThreadpoolWork([](PTP_CALLBACK_INSTANCE, void *argument, PTP_WORK work) {
        Pooled::of(argument)->call();
        WaitForThreadpoolWorkCallbacks(work, FALSE);
    }, &own, nullptr);
    SubmitThreadpoolWork(own.work);
    WaitForThreadpoolWorkCallbacks(own.work, FALSE);
}

// A lock is kept while work is waited for that takes it.
GUEST_EXPORT void pool_under_lock() {
    Pooled own;
    own.work = CreateThreadpoolWork([](PTP_CALLBACK_INSTANCE, void *argument, PTP_WORK) {
        EnterCriticalSection(&Pooled::of(argument)->lock);
        LeaveCriticalSection(&Pooled::of(argument)->lock);
    }, &own, nullptr);
    SubmitThreadpoolWork(own.work);
    Sleep(1);
    EnterCriticalSection(&own.lock);
    WaitForThreadpoolWorkCallbacks(own.work, FALSE);
    LeaveCriticalSection(&own.lock);
}

GUEST_EXPORT void pool_timers() {
    Pooled own;
    PTP_TIMER timer = CreateThreadpoolTimer(on_timer, &own, nullptr);
    LARGE_INTEGER due;
    due.QuadPart = -100'000;
    FILETIME time = {static_cast<DWORD>(due.LowPart), static_cast<DWORD>(due.HighPart)};
    ULONGLONG ticks = GetTickCount64();
    SetThreadpoolTimer(timer, &time, 0, 0);
    CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    CHECK(own.calls == 1 && GetTickCount64() >= ticks + 10);
    SetThreadpoolTimer(timer, &time, 10, 0);
    for (int i = 0; i < 3; i++) CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    CHECK(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, nullptr, 0, 0);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    own.freed = true;
    CHECK(!IsThreadpoolTimerSet(timer));
    Sleep(50);
    CloseThreadpoolTimer(timer);
}

// What the calls of a timer use is freed after the timer, but calls may still be made.
GUEST_EXPORT void pool_timer_not_waited_for() {
    static Pooled own;
    PTP_TIMER timer = CreateThreadpoolTimer(on_timer, &own, nullptr);
    FILETIME now = {0, 0};
    SetThreadpoolTimer(timer, &now, 5, 0);
    Sleep(5);
    SetThreadpoolTimer(timer, nullptr, 0, 0);
    CloseThreadpoolTimer(timer);
    own.freed = true;
    Sleep(20);
}

GUEST_EXPORT void queue_timers() {
    Pooled own;
    HANDLE queue = CreateTimerQueue(), timer = nullptr, other = nullptr;
    CHECK(CreateTimerQueueTimer(&timer, queue, on_queue_timer, &own, 10, 10, WT_EXECUTEDEFAULT));
    for (int i = 0; i < 2; i++) CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    CHECK(DeleteTimerQueueTimer(queue, timer, INVALID_HANDLE_VALUE));
    LONG calls = own.calls;
    Sleep(50);
    CHECK(own.calls == calls && calls >= 2);
    CHECK(ResetEvent(own.called));
    CHECK(CreateTimerQueueTimer(&other, queue, on_queue_timer, &own, 1, 0, WT_EXECUTEINTIMERTHREAD | WT_EXECUTEONLYONCE));
    CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    CHECK(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
    CHECK(own.calls == calls + 1);
}

// A timer calls again while the call before is still being made.
GUEST_EXPORT void queue_timer_overlaps() {
    static Pooled own;
    HANDLE timer = nullptr;
    auto call = [](void *, BOOLEAN) {
        CHECK(!own.inside);
        own.inside = true;
        Sleep(5);
        own.inside = false;
        own.call();
    };
    CHECK(CreateTimerQueueTimer(&timer, nullptr, call, nullptr, 1, 5, WT_EXECUTEDEFAULT));
    for (int i = 0; i < 3; i++) CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    CHECK(DeleteTimerQueueTimer(nullptr, timer, INVALID_HANDLE_VALUE));
}

GUEST_EXPORT void pool_waits() {
    static Pooled own;
    static volatile LONG over;
    HANDLE event = CreateEventW(nullptr, FALSE, FALSE, nullptr), wait = nullptr;
    auto call = [](void *, BOOLEAN is_over) {
        if (is_over) InterlockedIncrement(&over);
        own.call();
    };
    CHECK(RegisterWaitForSingleObject(&wait, event, call, nullptr, INFINITE, WT_EXECUTEDEFAULT));
    for (int i = 0; i < 2; i++) {
        CHECK(SetEvent(event));
        CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    }
    CHECK(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE) && over == 0 && own.calls == 2);
    CHECK(RegisterWaitForSingleObject(&wait, event, call, nullptr, 10, WT_EXECUTEONLYONCE));
    CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0 && over == 1);
    CHECK(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    auto on_wait = [](PTP_CALLBACK_INSTANCE, void *, PTP_WAIT, TP_WAIT_RESULT result) {
        CHECK(result == WAIT_OBJECT_0);
        own.call();
    };
    PTP_WAIT newer = CreateThreadpoolWait(on_wait, nullptr, nullptr);
    SetThreadpoolWait(newer, event, nullptr);
    CHECK(SetEvent(event));
    CHECK(WaitForSingleObject(own.called, INFINITE) == WAIT_OBJECT_0);
    // It waits once.
    CHECK(SetEvent(event));
    Sleep(10);
    CHECK(own.calls == 4);
    SetThreadpoolWait(newer, nullptr, nullptr);
    WaitForThreadpoolWaitCallbacks(newer, TRUE);
    CloseThreadpoolWait(newer);
}

namespace guest {

struct Nothing : Profiler {};

Profiler *make() { return new Nothing; }

}  // namespace guest
