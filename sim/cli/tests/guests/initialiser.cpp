// An initialiser that does harm: GUEST_INITIALISER chooses how. With GUEST_DOES the first callback does it.
#include "guest.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace guest {

static volatile int sink = 0;

static void harm(const char *variable) {
    const char *chosen = std::getenv(variable);
    auto is = [chosen](const char *other) { return chosen && std::strcmp(chosen, other) == 0; };
    if (is("crash")) __builtin_trap();
    if (is("exit")) std::exit(7);
    if (is("abort")) std::abort();
    if (is("throw")) throw 42;
    if (is("spin")) {
        for (;;) sink = sink + 1;
    }
    if (is("print")) {
        for (;;) std::puts("a line that is printed again and again, and that nobody will ever read to its end");
    }
    if (is("allocate")) {
        for (;;) {
            if (void *block = std::malloc(8 << 20)) std::memset(block, 1, 8 << 20);
        }
    }
    if (is("threads")) {
        for (int count = 0; count < 10000; count++) {
            std::thread([] { std::this_thread::sleep_for(std::chrono::seconds(100)); }).detach();
        }
    }
    // In a session of its own it is no member of the group.
    if (is("fork") && fork() == 0) {
        setsid();
        sleep(100);
        _exit(0);
    }
    if (is("spin-after-fork")) {
        if (fork() == 0) {
            setsid();
            sleep(100);
        }
        for (;;) sink = sink + 1;
    }
}

__attribute__((constructor)) static void initialise() { harm("GUEST_INITIALISER"); }

struct Harmful : Profiler {
    HRESULT Initialize(void *unknown) override { return query<ICorProfilerInfo>(unknown)->SetEventMask(0x20); }
    HRESULT JITCompilationStarted(uint64_t, BOOL) override {
        harm("GUEST_DOES");
        return S_OK;
    }
};

Profiler *make() { return new Harmful; }

} // namespace guest
