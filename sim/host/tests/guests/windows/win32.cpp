// Threads, locks, waits and clocks of Windows, each as an export that a text's program calls. One that finds something
// wrong ends the process with the number of the line.
#include "guest.hpp"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <cstring>
#include <process.h>

#include <mutex>

#define CHECK(condition) \
    if (!(condition)) _exit(__LINE__)

namespace {

// A thread that calls a function without arguments.
template <typename Function> struct Started {
    Function code;
    HANDLE handle;

    explicit Started(Function function, DWORD flags = 0) : code(function) {
        handle = CreateThread(nullptr, 0, call, this, flags, nullptr);
        CHECK(handle != nullptr);
    }
    ~Started() {
        CHECK(WaitForSingleObject(handle, INFINITE) == WAIT_OBJECT_0);
        CHECK(CloseHandle(handle));
    }
    static DWORD WINAPI call(void *self) {
        static_cast<Started *>(self)->code();
        return 7;
    }
};

int detached;

struct AtEnd {
    ~AtEnd() { detached++; }
};
thread_local AtEnd at_end;

}  // namespace

GUEST_EXPORT void section_and_condition() {
    CRITICAL_SECTION section;
    CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
    InitializeCriticalSection(&section);
    int value = 0;
    {
        Started worker([&] {
            EnterCriticalSection(&section);
            EnterCriticalSection(&section);
            value = 1;
            LeaveCriticalSection(&section);
            LeaveCriticalSection(&section);
            WakeConditionVariable(&changed);
        });
        EnterCriticalSection(&section);
        while (value == 0) CHECK(SleepConditionVariableCS(&changed, &section, INFINITE));
        LeaveCriticalSection(&section);
    }
    DeleteCriticalSection(&section);
}

GUEST_EXPORT void slim_locks() {
    SRWLOCK lock = SRWLOCK_INIT;
    CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
    int value = 0;
    {
        Started worker([&] {
            AcquireSRWLockExclusive(&lock);
            value++;
            ReleaseSRWLockExclusive(&lock);
            WakeAllConditionVariable(&changed);
        });
        AcquireSRWLockShared(&lock);
        CHECK(value == 0 || value == 1);
        ReleaseSRWLockShared(&lock);
        AcquireSRWLockExclusive(&lock);
        while (value == 0) CHECK(SleepConditionVariableSRW(&changed, &lock, INFINITE, 0));
        CHECK(!TryAcquireSRWLockExclusive(&lock));
        ReleaseSRWLockExclusive(&lock);
    }
    AcquireSRWLockExclusive(&lock);
    CHECK(!SleepConditionVariableSRW(&changed, &lock, 50, 0) && GetLastError() == ERROR_TIMEOUT);
    ReleaseSRWLockExclusive(&lock);
}

GUEST_EXPORT void crossed_sections() {
    CRITICAL_SECTION one, two;
    InitializeCriticalSection(&one);
    InitializeCriticalSection(&two);
    Started worker([&] {
        EnterCriticalSection(&two);
        EnterCriticalSection(&one);
        LeaveCriticalSection(&one);
        LeaveCriticalSection(&two);
    });
    EnterCriticalSection(&one);
    EnterCriticalSection(&two);
    LeaveCriticalSection(&two);
    LeaveCriticalSection(&one);
}

GUEST_EXPORT void events() {
    HANDLE automatic = CreateEventW(nullptr, FALSE, TRUE, nullptr);
    HANDLE manual = CreateEventA(nullptr, TRUE, FALSE, nullptr);
    CHECK(WaitForSingleObject(automatic, 0) == WAIT_OBJECT_0);
    CHECK(WaitForSingleObject(automatic, 0) == WAIT_TIMEOUT);
    CHECK(WaitForSingleObject(automatic, 20) == WAIT_TIMEOUT);
    {
        Started worker([&] { CHECK(SetEvent(manual)); });
        CHECK(WaitForSingleObject(manual, INFINITE) == WAIT_OBJECT_0);
    }
    CHECK(WaitForSingleObjectEx(manual, 0, TRUE) == WAIT_OBJECT_0);
    HANDLE list[] = {automatic, manual};
    CHECK(WaitForMultipleObjects(2, list, FALSE, INFINITE) == WAIT_OBJECT_0 + 1);
    CHECK(WaitForMultipleObjects(2, list, TRUE, 10) == WAIT_TIMEOUT);
    HANDLE other;
    CHECK(DuplicateHandle(GetCurrentProcess(), automatic, GetCurrentProcess(), &other, 0, FALSE, DUPLICATE_SAME_ACCESS));
    CHECK(SetEvent(other));
    CHECK(WaitForMultipleObjects(2, list, TRUE, INFINITE) == WAIT_OBJECT_0);
    CHECK(WaitForSingleObject(automatic, 0) == WAIT_TIMEOUT);
    CHECK(ResetEvent(manual));
    CHECK(WaitForSingleObject(manual, 0) == WAIT_TIMEOUT);
    CHECK(CloseHandle(automatic) && CloseHandle(manual) && CloseHandle(other));
}

// The event is set for one of two threads that wait.
GUEST_EXPORT void event_for_one() {
    HANDLE event = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    Started one([&] { WaitForSingleObject(event, INFINITE); });
    Started two([&] { WaitForSingleObject(event, INFINITE); });
    SetEvent(event);
}

GUEST_EXPORT void semaphores() {
    HANDLE semaphore = CreateSemaphoreW(nullptr, 1, 2, nullptr);
    CHECK(WaitForSingleObject(semaphore, 0) == WAIT_OBJECT_0);
    {
        Started worker([&] { CHECK(WaitForSingleObject(semaphore, INFINITE) == WAIT_OBJECT_0); });
        LONG before = 9;
        CHECK(ReleaseSemaphore(semaphore, 1, &before) && before == 0);
    }
    CHECK(ReleaseSemaphore(semaphore, 2, nullptr));
    CHECK(!ReleaseSemaphore(semaphore, 1, nullptr) && GetLastError() == ERROR_TOO_MANY_POSTS);
    CHECK(CloseHandle(semaphore));
}

GUEST_EXPORT void mutexes() {
    HANDLE mutex = CreateMutexW(nullptr, TRUE, nullptr);
    CHECK(WaitForSingleObject(mutex, 0) == WAIT_OBJECT_0);
    CHECK(ReleaseMutex(mutex));
    {
        Started worker([&] {
            CHECK(!ReleaseMutex(mutex) && GetLastError() == ERROR_NOT_OWNER);
            CHECK(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
            CHECK(ReleaseMutex(mutex));
        });
        CHECK(ReleaseMutex(mutex));
    }
    CHECK(WaitForSingleObject(mutex, 5) == WAIT_OBJECT_0);
    CHECK(ReleaseMutex(mutex) && CloseHandle(mutex));
}

GUEST_EXPORT void mutex_kept() {
    HANDLE mutex = CreateMutexW(nullptr, TRUE, nullptr);
    Started worker([&] { WaitForSingleObject(mutex, INFINITE); });
    WaitForSingleObject(worker.handle, INFINITE);
    ReleaseMutex(mutex);
}

GUEST_EXPORT void addresses() {
    volatile LONG64 value = 0;
    LONG64 unwanted = 0;
    {
        Started worker([&] {
            value = 1;
            WakeByAddressAll(const_cast<LONG64 *>(&value));
        });
        while (value == 0) CHECK(WaitOnAddress(&value, &unwanted, sizeof value, INFINITE));
    }
    unwanted = 1;
    CHECK(!WaitOnAddress(&value, &unwanted, sizeof value, 10) && GetLastError() == ERROR_TIMEOUT);
}

// The value changes, and nothing says so.
GUEST_EXPORT void address_not_woken() {
    volatile LONG value = 0;
    Started worker([&] {
        LONG unwanted = 0;
        WaitOnAddress(&value, &unwanted, sizeof value, INFINITE);
    });
    SwitchToThread();
    value = 1;
}

GUEST_EXPORT void initialised_once() {
    static INIT_ONCE once;
    static int calls;
    auto initialise = [] {
        InitOnceExecuteOnce(
            &once,
            [](INIT_ONCE *, void *, void **) -> BOOL {
                calls++;
                SwitchToThread();
                return TRUE;
            },
            nullptr, nullptr);
        CHECK(calls == 1);
    };
    Started one(initialise), two(initialise);
    initialise();
}

GUEST_EXPORT void thread_begun_suspended() {
    bool has_run = false;
    Started worker([&] { has_run = true; }, CREATE_SUSPENDED);
    Sleep(10);
    CHECK(!has_run);
    CHECK(WaitForSingleObject(worker.handle, 10) == WAIT_TIMEOUT);
    CHECK(ResumeThread(worker.handle) == 1);
    CHECK(WaitForSingleObject(worker.handle, INFINITE) == WAIT_OBJECT_0);
    DWORD code = 0;
    CHECK(has_run && GetExitCodeThread(worker.handle, &code) && code == 7);
}

GUEST_EXPORT void ends_of_threads() {
    DWORD mine = GetCurrentThreadId();
    unsigned number = 0;
    auto code = [](void *other) -> unsigned {
        (void)&at_end;
        CHECK(GetCurrentThreadId() != *static_cast<DWORD *>(other));
        _endthreadex(3);
        return 0;
    };
    auto thread = reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, code, &mine, 0, &number));
    CHECK(thread != nullptr && number != mine);
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    DWORD result = 0;
    CHECK(GetExitCodeThread(thread, &result) && result == 3);
    // What the loader calls at the end of a thread belongs to it.
    CHECK(detached == 1);
    CHECK(CloseHandle(thread));
}

// A lock of winpthreads with the initialiser of a recursive one.
GUEST_EXPORT void recursive_mutex() {
    static std::recursive_mutex mutex;
    auto twice = [] {
        std::lock_guard<std::recursive_mutex> one(mutex);
        std::lock_guard<std::recursive_mutex> two(mutex);
    };
    Started worker(twice);
    twice();
}

GUEST_EXPORT void clocks() {
    LARGE_INTEGER before, after, frequency;
    ULONGLONG ticks = GetTickCount64();
    CHECK(QueryPerformanceCounter(&before) && QueryPerformanceFrequency(&frequency));
    Sleep(250);
    CHECK(QueryPerformanceCounter(&after));
    CHECK((after.QuadPart - before.QuadPart) * 1000 == 250 * frequency.QuadPart);
    CHECK(GetTickCount64() == ticks + 250);
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    SYSTEMTIME date;
    CHECK(FileTimeToSystemTime(&now, &date) && date.wYear == 2026 && date.wMonth == 1 && date.wMilliseconds == 250);
}

GUEST_EXPORT void timers() {
    HANDLE timer = CreateWaitableTimerW(nullptr, FALSE, nullptr);
    HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    HANDLE list[] = {event, timer};
    LARGE_INTEGER due;
    due.QuadPart = -300'000;
    ULONGLONG ticks = GetTickCount64();
    CHECK(SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE));
    CHECK(WaitForSingleObject(timer, 10) == WAIT_TIMEOUT);
    CHECK(WaitForSingleObject(timer, INFINITE) == WAIT_OBJECT_0);
    CHECK(GetTickCount64() == ticks + 30);
    CHECK(SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE));
    CHECK(WaitForMultipleObjects(2, list, FALSE, INFINITE) == WAIT_OBJECT_0 + 1);
    CHECK(GetTickCount64() == ticks + 60);
    CHECK(WaitForSingleObject(timer, 0) == WAIT_TIMEOUT);
    CHECK(CloseHandle(timer) && CloseHandle(event));
}

// Each wait takes one time of a periodic timer: those that nobody waits for are lost.
GUEST_EXPORT void periodic_timer() {
    HANDLE timer = CreateWaitableTimerW(nullptr, FALSE, nullptr);
    LARGE_INTEGER due;
    due.QuadPart = -100'000;
    ULONGLONG ticks = GetTickCount64();
    CHECK(SetWaitableTimer(timer, &due, 20, nullptr, nullptr, FALSE));
    for (int i = 0; i < 3; i++) CHECK(WaitForSingleObject(timer, INFINITE) == WAIT_OBJECT_0);
    CHECK(GetTickCount64() == ticks + 50);
    Sleep(50);
    CHECK(WaitForSingleObject(timer, 0) == WAIT_OBJECT_0 && WaitForSingleObject(timer, 0) == WAIT_TIMEOUT);
    CHECK(CancelWaitableTimer(timer) && WaitForSingleObject(timer, 100) == WAIT_TIMEOUT);
    CHECK(CloseHandle(timer));
}

GUEST_EXPORT void uses_much_memory() {
    for (int i = 0; i < 512; i++) {
        void *block = VirtualAlloc(nullptr, 1 << 20, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        if (block) memset(block, 1, 1 << 20);
    }
    for (volatile int i = 0; i < 2'000'000'000; i = i + 1) {
    }
}
GUEST_EXPORT void has_many_threads() {
    HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    for (int i = 0; i < 30; i++) {
        static HANDLE shared;
        shared = event;
        CloseHandle(CreateThread(nullptr, 0, [](void *) -> DWORD { return WaitForSingleObject(shared, INFINITE); }, nullptr, 0, nullptr));
    }
}

GUEST_EXPORT void functions_by_name() {
    auto sleep = reinterpret_cast<decltype(&Sleep)>(reinterpret_cast<void *>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "Sleep")));
    ULONGLONG ticks = GetTickCount64();
    sleep(3'600'000);
    CHECK(GetTickCount64() == ticks + 3'600'000);
}

GUEST_EXPORT void leaves_by_exit() { ExitProcess(3); }
GUEST_EXPORT void leaves_by_abort() { abort(); }
GUEST_EXPORT void leaves_by_message() {
    HMODULE user = LoadLibraryW(L"user32.dll");
    auto get = reinterpret_cast<int(WINAPI *)(void *, void *, unsigned, unsigned)>(reinterpret_cast<void *>(GetProcAddress(user, "GetMessageW")));
    CHECK(get != nullptr);
    get(nullptr, nullptr, 0, 0);
}
GUEST_EXPORT void faults() { *static_cast<volatile int *>(nullptr) = 1; }
GUEST_EXPORT void divides() {
    volatile int zero = 0;
    zero = 7 / zero;
}
GUEST_EXPORT int overflows(int depth) {
    volatile char room[4096] = {};
    room[0] = static_cast<char>(depth);
    return depth == -1 ? 0 : overflows(depth + 1) + room[0];
}
GUEST_EXPORT void throws() { throw 1; }
GUEST_EXPORT void spins() {
    volatile int forever = 1;
    while (forever) {
    }
}

namespace guest {

struct Nothing : Profiler {};

Profiler *make() { return new Nothing; }

}  // namespace guest
