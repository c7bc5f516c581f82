#include "guest.hpp"

#include <cstdlib>

extern "C" long aggregate(long count);

namespace guest {

struct GoSampler final : Profiler {
    ICorProfilerInfo2 *info = nullptr;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        // JIT_COMPILATION, ENABLE_STACK_SNAPSHOT.
        return info->SetEventMask(0x10000020);
    }

    static HRESULT on_frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return S_OK; }

    HRESULT JITCompilationStarted(uint64_t, BOOL) override {
        info->DoStackSnapshot(0, on_frame, 0, nullptr, nullptr, 0);
        if (aggregate(3) != 6) std::abort();
        return S_OK;
    }

    HRESULT Shutdown() override {
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new GoSampler; }

} // namespace guest
