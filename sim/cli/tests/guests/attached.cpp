// A profiler that is attached to the running process, with a word for what it does: it prints what it is told and refused.
#include "guest.hpp"
#include <cstring>

namespace guest {

ICorProfilerInfo4 *info = nullptr;

struct Attached : Profiler {
    uint32_t compiled = 0;

    HRESULT Initialize(void *) override {
        std::printf("Initialize\n");
        return S_OK;
    }

    HRESULT InitializeForAttach(void *unknown, void *data, uint32_t size) override {
        std::printf("attach %.*s %u\n", static_cast<int>(size), data ? static_cast<const char *>(data) : "", size);
        info = query<ICorProfilerInfo4>(unknown);
        if (size == 6 && !std::memcmp(data, "refuse", 6)) {
            info->Release();
            return static_cast<HRESULT>(0x80131375); // CORPROF_E_PROFILER_CANCEL_ACTIVATION
        }
        uint64_t thread = 0;
        std::printf("%08x", static_cast<unsigned>(info->GetCurrentThreadID(&thread)));
        for (uint32_t events : {0x1u, 0x100u, 0x1000u, 0x20000u, 0x800u, 0x4000000u}) {
            std::printf(" %08x", static_cast<unsigned>(info->SetEventMask(events)));
        }
        const void *hook = reinterpret_cast<const void *>(&std::printf);
        std::printf(" %08x %08x %08x\n", static_cast<unsigned>(info->SetEnterLeaveFunctionHooks3(hook, hook, hook)),
                    static_cast<unsigned>(info->SetFunctionIDMapper(hook)),
                    static_cast<unsigned>(info->RequestProfilerDetach(1)));
        return info->SetEventMask(0x10000220);
    }

    HRESULT ProfilerAttachComplete() override {
        ICorProfilerThreadEnum *threads = nullptr;
        uint32_t count = 0;
        info->EnumThreads(reinterpret_cast<void **>(&threads));
        threads->GetCount(&count);
        threads->Release();
        std::printf("complete %u\n", count);
        return S_OK;
    }

    HRESULT JITCompilationStarted(uint64_t, BOOL) override {
        compiled++;
        uint32_t frames = 0;
        auto on_frame = [](uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *, void *data) {
            *static_cast<uint32_t *>(data) += function != 0;
            return S_OK;
        };
        HRESULT walked = info->DoStackSnapshot(0, on_frame, 0, &frames, nullptr, 0);
        std::printf("compiles %08x %u\n", static_cast<unsigned>(walked), frames);
        if (std::getenv("GUEST_DETACHES")) {
            std::printf("%08x", static_cast<unsigned>(info->RequestProfilerDetach(1)));
            std::printf(" %08x\n", static_cast<unsigned>(info->SetEventMask(0)));
        }
        return S_OK;
    }

    HRESULT ProfilerDetachSucceeded() override {
        std::printf("detached\n");
        info->Release();
        return S_OK;
    }

    HRESULT Shutdown() override {
        std::printf("Shutdown %u\n", compiled);
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Attached; }

} // namespace guest
