// Threads with an epoll set of a timer and a counter that tells them to end.
#include "sampler.hpp"

#include <mutex>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>

namespace guest {

struct EventLoop final : Sampler {
    enum { RIGHT, TOLD_ONCE };
    int events = epoll_create1(EPOLL_CLOEXEC);
    int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    std::mutex sampling;
    std::thread workers[2];

    using Sampler::Sampler;

    void add(int descriptor) {
        epoll_event event = {};
        event.events = EPOLLIN;
        event.data.fd = descriptor;
        epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event);
    }

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, SNAPSHOT);
        add(stop);
        add(timer);
        itimerspec every = {{0, 5000000}, {0, 5000000}};
        timerfd_settime(timer, 0, &every, nullptr);
        for (auto &worker : workers) worker = std::thread([this] { work(); });
        return result;
    }

    void work() {
        for (;;) {
            epoll_event event = {};
            uint64_t times = 0;
            if (epoll_wait(events, &event, 1, -1) != 1) continue;
            if (read(event.data.fd, &times, sizeof times) != sizeof times) continue;
            if (event.data.fd == stop) return;
            std::lock_guard<std::mutex> guard(sampling);
            sample();
        }
    }

    HRESULT Shutdown() override {
        // Each thread takes one.
        uint64_t count = form == TOLD_ONCE ? 1 : 2;
        if (write(stop, &count, sizeof count) != sizeof count) return E_FAIL;
        for (auto &worker : workers) worker.join();
        close();
        return S_OK;
    }
};

} // namespace guest
