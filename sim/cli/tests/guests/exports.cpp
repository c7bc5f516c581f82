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

namespace {

struct Profile {
    uint64_t number;
};

} // namespace

// Gives out an object and a number, as requests of a profile do. The caller gives it back.
GUEST_EXPORT int32_t RequestProfile(const char *name, void **profile, int32_t *count) {
    std::printf("%s %d\n", name, *count);
    *profile = new Profile{40};
    *count += 1;
    return -2;
}

// Takes more arguments than registers have, and returns a number of 64 bits.
GUEST_EXPORT uint64_t ReleaseProfile(void *profile, int32_t count, uint8_t third, uint64_t fourth, uint32_t fifth,
                                     bool sixth, uint16_t seventh, uint64_t eighth, int32_t ninth, uint8_t tenth,
                                     uint64_t eleventh, uint64_t *twelfth) {
    uint64_t number = static_cast<Profile *>(profile)->number + static_cast<uint64_t>(count);
    std::printf("%llu %d %llu %u %d %d %llu %d %d %llu %llu\n", static_cast<unsigned long long>(number), third,
                static_cast<unsigned long long>(fourth), fifth, sixth, seventh,
                static_cast<unsigned long long>(eighth), ninth, tenth, static_cast<unsigned long long>(eleventh),
                static_cast<unsigned long long>(*twelfth));
    delete static_cast<Profile *>(profile);
    *twelfth = 0x100000000;
    return number << 32;
}

// Takes what it gets for a buffer of 64 bits.
GUEST_EXPORT void WriteLong(uint64_t *number) { *number = 0x500000001; }
