// Walks the stack where an exception is thrown and where it is caught, as profilers of exceptions do.
#include "../guest.hpp"

namespace guest {

// EXCEPTIONS, JIT_COMPILATION, DISABLE_INLINING, ENABLE_STACK_SNAPSHOT.
struct Exceptions : Asking<ICorProfilerInfo2, 0x10200060> {
    HRESULT walk(const char *where) {
        Frames frames{info};
        frames.print(where, info->DoStackSnapshot(0, Frames::on_frame, 0, &frames, nullptr, 0));
        return S_OK;
    }

    HRESULT ExceptionThrown(uint64_t) override { return walk("thrown"); }
    HRESULT ExceptionSearchCatcherFound(uint64_t) override { return walk("found"); }
    HRESULT ExceptionUnwindFunctionLeave() override { return walk("unwound"); }
    HRESULT ExceptionCatcherEnter(uint64_t, uint64_t) override { return walk("caught"); }
    HRESULT ExceptionCatcherLeave() override { return walk("over"); }
};

Profiler *make() { return new Exceptions; }

} // namespace guest
