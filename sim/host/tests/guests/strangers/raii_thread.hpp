// A thread as a member, which the destructor ends and joins. It has a name, and takes no signals.
#include "sampler.hpp"

#include <csignal>
#include <functional>
#include <memory>
#include <pthread.h>
#include <thread>

namespace guest {

class Worker {
    std::atomic<bool> stop{false};
    std::thread thread;

public:
    explicit Worker(std::function<void()> work) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread = std::thread([this, work] {
            pthread_setname_np(pthread_self(), "sampler");
            while (!stop) {
                work();
                std::this_thread::sleep_for(TICK);
            }
        });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    ~Worker() {
        stop = true;
        if (thread.joinable()) thread.join();
    }

    void detach() { thread.detach(); }
};

struct RaiiThread final : Sampler {
    enum { RIGHT, DETACHED };
    std::unique_ptr<Worker> worker;

    using Sampler::Sampler;

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, SNAPSHOT);
        worker = std::make_unique<Worker>([this] { sample(); });
        return result;
    }

    HRESULT Shutdown() override {
        if (form == DETACHED) {
            // The thread goes on with a pointer that is gone.
            worker->detach();
            worker.release();
        }
        worker.reset();
        close();
        runtime = nullptr;
        return S_OK;
    }
};

} // namespace guest
