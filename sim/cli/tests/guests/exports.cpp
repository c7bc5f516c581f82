// Exports a function that the program calls, and walks the calling thread there. It has no threads of its own.
#include "guest.hpp"

namespace guest {

ICorProfilerInfo2 *info = nullptr;

struct Exporter : Profiler {
    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        // ENABLE_STACK_SNAPSHOT.
        return info ? info->SetEventMask(0x10000000) : E_FAIL;
    }
    HRESULT Shutdown() override {
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Exporter; }

} // namespace guest

GUEST_EXPORT int Note(bool first, uint32_t second, uint64_t third, uint8_t fourth, bool fifth, uint64_t sixth) {
    std::printf("%d %u %llx %d %d %llu\n", first, second, static_cast<unsigned long long>(third), fourth, fifth,
                static_cast<unsigned long long>(sixth));
    // Names would be refused here, on a thread that runs managed code and is in no callback.
    auto on_frame = [](uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return guest::S_OK; };
    return guest::info->DoStackSnapshot(0, on_frame, 0, nullptr, nullptr, 0);
}
