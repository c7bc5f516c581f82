// A profiler that is loaded for notifications only: it prints what it is refused.
#include "guest.hpp"

namespace guest {

struct Notified : Profiler {
    ICorProfilerInfo4 *info = nullptr;

    HRESULT LoadAsNotificationOnly(BOOL *only) override {
        *only = std::getenv("GUEST_NOTIFIED") != nullptr;
        return std::getenv("GUEST_FAILS") ? E_FAIL : S_OK;
    }

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo4>(unknown);
        const void *hook = reinterpret_cast<const void *>(&std::printf);
        uint64_t module = 0;
        mdToken method = 0x06000001;
        const HRESULT results[] = {
            info->SetEventMask(0x80), // MONITOR_GC
            info->SetEventMask(0x1000), // MONITOR_ENTERLEAVE
            info->SetEventMask(0x800000), // ENABLE_OBJECT_ALLOCATED
            info->SetEnterLeaveFunctionHooks3(hook, hook, hook),
            info->SetFunctionIDMapper(hook),
            info->RequestReJIT(1, &module, &method),
            info->SetEventMask(0x20),
            info->RequestProfilerDetach(1),
        };
        for (HRESULT result : results) std::printf("%08x ", static_cast<unsigned>(result));
        std::printf("\n");
        return S_OK;
    }

    HRESULT JITCompilationStarted(uint64_t, BOOL) override {
        std::printf("compiles\n");
        return S_OK;
    }

    HRESULT Shutdown() override {
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Notified; }

} // namespace guest
