// Walks the stack where an exception is thrown and where it is caught, as profilers of exceptions do.
#include "../guest.hpp"

namespace guest {

struct Exceptions : Profiler {
    ICorProfilerInfo2 *info = nullptr;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        // EXCEPTIONS, JIT_COMPILATION, DISABLE_INLINING, ENABLE_STACK_SNAPSHOT.
        return info ? info->SetEventMask(0x10200060) : E_FAIL;
    }

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
    HRESULT Shutdown() override {
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Exceptions; }

} // namespace guest
