// Calls of the system by instructions of its own, as Go's runtime makes them.
#include "sampler.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace guest {

inline long call(long number, long one = 0, long two = 0, long three = 0, long four = 0, long five = 0) {
    register long r10 asm("r10") = four;
    register long r8 asm("r8") = five;
    asm volatile("syscall" : "+a"(number) : "D"(one), "S"(two), "d"(three), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return number;
}

struct OwnCalls final : Sampler {
    enum { RIGHT, NOT_WOKEN, CLONES, SPINS };
    std::atomic<uint32_t> word{0};
    std::atomic<bool> ends{false};
    std::thread worker;

    using Sampler::Sampler;

    void wait(const timespec *limit) {
        call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, 0, reinterpret_cast<long>(limit));
    }

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, SNAPSHOT);
        timespec time = {};
        if (call(SYS_clock_gettime, CLOCK_REALTIME, reinterpret_cast<long>(&time)) != 0) return E_FAIL;
        if (call(SYS_read, -1, 0, 0) != -EBADF || call(SYS_getpid) != getpid()) return E_FAIL;
        worker = std::thread([this] {
            while (word == 0) {
                timespec tick = {0, 5000000};
                wait(form == NOT_WOKEN ? nullptr : &tick);
                sample();
                call(SYS_sched_yield);
            }
        });
        return result;
    }

    HRESULT Shutdown() override {
        // Another process's thread, as far as the simulation goes.
        if (form == CLONES && call(SYS_clone, 0, 0, 0, 0, 0) == 0) call(SYS_exit, 0);
        while (form == SPINS && !ends) {}
        word = 1;
        if (form != NOT_WOKEN) call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 1);
        worker.join();
        close();
        return S_OK;
    }
};

} // namespace guest
