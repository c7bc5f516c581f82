// A thread that takes its orders by signals, which it waits for instead of handling them.
#include "sampler.hpp"

#include <csignal>
#include <pthread.h>
#include <thread>

namespace guest {

struct SignalWaiter final : Sampler {
    enum { RIGHT, NOT_BLOCKED };
    std::thread worker;

    using Sampler::Sampler;

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, SNAPSHOT);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        // A new thread has the mask of the one that starts it.
        if (form != NOT_BLOCKED) pthread_sigmask(SIG_BLOCK, &set, nullptr);
        worker = std::thread([this, set] {
            timespec tick = {0, 5000000};
            while (sigtimedwait(&set, nullptr, &tick) != SIGUSR2) sample();
        });
        return result;
    }

    HRESULT Shutdown() override {
        pthread_kill(worker.native_handle(), SIGUSR2);
        worker.join();
        close();
        return S_OK;
    }
};

} // namespace guest
