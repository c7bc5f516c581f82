// The habits of a library of NativeAOT: threads that attach and detach by the destructor of a key, a helper thread that polls its
// own pipe, stacks for handlers, a reserved heap, barriers of the process.
#include "sampler.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace guest {

struct NativeAot final : Sampler {
    enum { RIGHT, JOINS_WITH_LOCK };
    static constexpr size_t HEAP = 256 << 20;
    static inline pthread_key_t key;
    static inline pthread_once_t once = PTHREAD_ONCE_INIT;
    static inline std::mutex store;
    static inline int attached = 0;
    int ends[2] = {-1, -1};
    pthread_t helper;
    void *heap = nullptr;

    using Sampler::Sampler;

    static void detach(void *stack) {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        free(stack);
        std::lock_guard<std::mutex> guard(store);
        attached--;
    }

    static void prepare() {
        pthread_key_create(&key, detach);
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
    }

    static void attach() {
        pthread_once(&once, prepare);
        if (pthread_getspecific(key)) return;
        pthread_attr_t attributes;
        void *low = nullptr;
        size_t size = 0;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
        auto here = reinterpret_cast<char *>(&size), start = static_cast<char *>(low);
        if (here < start || here >= start + size) std::abort();
        stack_t stack = {malloc(16384), 0, 16384};
        sigaltstack(&stack, nullptr);
        pthread_setspecific(key, stack.ss_sp);
        std::lock_guard<std::mutex> guard(store);
        attached++;
    }

    static void *help(void *data) {
        auto *self = static_cast<NativeAot *>(data);
        attach();
        for (;;) {
            pollfd one = {self->ends[0], POLLIN, 0};
            char byte = 0;
            if (poll(&one, 1, 20) == 1 && (read(self->ends[0], &byte, 1) != 1 || byte == 0)) return nullptr;
            self->sample();
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
        }
    }

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, JIT | THREADS | SNAPSHOT);
        attach();
        heap = mmap(nullptr, HEAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mprotect(heap, 65536, PROT_READ | PROT_WRITE) != 0 || pipe2(ends, O_CLOEXEC) != 0) return E_FAIL;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 1536 * 1024);
        int error = pthread_create(&helper, &attributes, help, this);
        pthread_attr_destroy(&attributes);
        return error == 0 ? result : E_FAIL;
    }

    HRESULT tell(char what) { return write(ends[1], &what, 1) == 1 ? S_OK : E_FAIL; }

    HRESULT ThreadCreated(uint64_t) override {
        attach();
        return S_OK;
    }
    HRESULT JITCompilationStarted(uint64_t, BOOL) override { return tell(1); }
    HRESULT Shutdown() override {
        HRESULT result = tell(0);
        std::unique_lock<std::mutex> guard(store, std::defer_lock);
        // The thread detaches as it ends.
        if (form == JOINS_WITH_LOCK) guard.lock();
        pthread_join(helper, nullptr);
        munmap(heap, HEAP);
        close();
        return result;
    }
};

} // namespace guest
