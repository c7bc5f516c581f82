// Draws threads and GCs over time: it asks for each thread when it comes, and for itself in each GC.
#include "../guest.hpp"

namespace guest {

// GC, JIT_COMPILATION, THREADS.
struct Threads : Asking<ICorProfilerInfo3, 0x2A0> {
    HRESULT ask(uint64_t thread) {
        uint32_t number = 0;
        void *handle = nullptr;
        uint64_t domain = 0;
        info->GetThreadInfo(thread, &number);
        info->GetHandleFromThread(thread, &handle);
        info->GetThreadAppDomain(thread, &domain);
        return S_OK;
    }

    HRESULT own() {
        uint64_t thread = 0;
        info->GetCurrentThreadID(&thread);
        return S_OK;
    }

    HRESULT ThreadCreated(uint64_t thread) override { return ask(thread); }
    HRESULT ThreadDestroyed(uint64_t) override { return own(); }
    HRESULT GarbageCollectionStarted(int32_t, const BOOL *, uint32_t) override { return own(); }
    HRESULT GarbageCollectionFinished() override { return own(); }
};

Profiler *make() { return new Threads; }

} // namespace guest
