// Walks in callbacks, without and with a seed, and resolves names through metadata. It does everything right.
#include "guest.hpp"

namespace guest {

// JIT_COMPILATION, THREADS, ENABLE_STACK_SNAPSHOT.
struct Sampler : Asking<ICorProfilerInfo2, 0x10000220> {
    void walk(const char *where) {
        Frames frames{info};
        HRESULT result = info->DoStackSnapshot(0, Frames::on_frame, 1, &frames, nullptr, 0);
        frames.print(where, result);
        if (frames.seed.empty()) return;
        Frames seeded{info};
        result = info->DoStackSnapshot(0, Frames::on_frame, 0, &seeded, frames.seed.data(), static_cast<uint32_t>(frames.seed.size()));
        seeded.print("seeded", result);
    }

    HRESULT JITCompilationStarted(uint64_t function, BOOL) override {
        walk(name_of(info, function).c_str());
        return S_OK;
    }
    HRESULT ThreadDestroyed(uint64_t) override {
        walk("ThreadDestroyed");
        return S_OK;
    }
};

Profiler *make() { return new Sampler; }

} // namespace guest
