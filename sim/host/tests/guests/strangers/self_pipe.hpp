// Signals to the program's threads, whose handler writes to a pipe of the profiler.
#include "sampler.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

namespace guest {

struct SelfPipe final : TickingSampler {
    enum { RIGHT, HANDLER_LOCKS };
    static inline int own[2];
    static inline SelfPipe *only;
    std::mutex lock;
    std::set<uint32_t> threads;

    using TickingSampler::TickingSampler;

    static void handle(int, siginfo_t *, void *) {
        int before = errno;
        char byte = 1;
        // The list says who answers, and its owner may be the interrupted thread.
        if (only->form == HANDLER_LOCKS) {
            std::lock_guard<std::mutex> guard(only->lock);
            byte = static_cast<char>(only->threads.size());
        }
        if (write(own[1], &byte, 1) != 1) std::abort();
        errno = before;
    }

    HRESULT Initialize(void *unknown) override {
        only = this;
        if (pipe2(own, O_CLOEXEC | O_NONBLOCK) != 0) return E_FAIL;
        struct sigaction action = {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        sigaction(SIGUSR1, &action, nullptr);
        worker = std::thread([this] { work(); });
        return open(unknown, JIT | THREADS | SNAPSHOT);
    }

    void work() {
        while (!ends) {
            std::vector<uint32_t> all;
            {
                std::lock_guard<std::mutex> guard(lock);
                all.assign(threads.begin(), threads.end());
            }
            for (uint32_t id : all) {
                if (syscall(SYS_tgkill, getpid(), id, SIGUSR1) != 0) continue;
                pollfd one = {own[0], POLLIN, 0};
                char byte;
                if (poll(&one, 1, 100) == 1 && read(own[0], &byte, 1) == 1) sample();
            }
            std::this_thread::sleep_for(TICK);
        }
    }

    HRESULT ThreadAssignedToOSThread(uint64_t, uint32_t id) override {
        std::lock_guard<std::mutex> guard(lock);
        threads.insert(id);
        return S_OK;
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        std::lock_guard<std::mutex> guard(lock);
        return threads.empty() ? E_FAIL : S_OK;
    }
};

} // namespace guest
