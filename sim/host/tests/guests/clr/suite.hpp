// What all transcriptions of the CLR's own profiler tests have: see `suite.cpp`.
#ifndef SUITE_HPP
#define SUITE_HPP

#include "guest.hpp"

#include <cstdlib>

namespace guest {

constexpr uint32_t GC = 0x80, CLASS_LOADS = 0x2, MODULE_LOADS = 0x4, ASSEMBLY_LOADS = 0x8, JIT = 0x20, EXCEPTIONS = 0x40,
                   OBJECTS = 0x100, ENTERLEAVE = 0x1000, TRANSITIONS = 0x800, SUSPENDS = 0x10000, NO_INLINING = 0x200000,
                   ENABLE_OBJECTS = 0x800000, FUNCTION_VALUES = 0x0e000000;
constexpr uint32_t HIGH_BASIC_GC = 0x10, HIGH_LARGE = 0x40, HIGH_PINNED = 0x100;
constexpr uint32_t INDUCED = 1;
constexpr uint32_t LARGE_OBJECTS = 3, PINNED_OBJECTS = 4;

/// Returns the name of a class through the metadata of its module, or "?" (an array has no token).
inline std::string class_of(ICorProfilerInfo2 *info, uint64_t id) {
    uint64_t module = 0;
    mdToken token = 0;
    if (info->GetClassIDInfo2(id, &module, &token, nullptr, 0, nullptr, nullptr) != S_OK) return "?";
    IMetaDataImport *import = nullptr;
    if (info->GetModuleMetaData(module, 0, IMetaDataImport::IID, reinterpret_cast<void **>(&import)) != S_OK) return "?";
    WCHAR name[256] = {};
    import->GetTypeDefProps(token, name, 256, nullptr, nullptr, nullptr);
    import->Release();
    return narrow(name);
}

/// Returns true if a name ends so, behind a dot.
inline bool is_named(const std::string &whole, const std::string &last) {
    if (whole == last) return true;
    std::string end = "." + last;
    return whole.size() > end.size() && whole.compare(whole.size() - end.size(), end.size(), end) == 0;
}

/// A test: it counts what is wrong, and says at the end whether it passes.
struct Test : Profiler {
    ICorProfilerInfo11 *info = nullptr;
    ICorProfilerInfo12 *events = nullptr;
    ICorProfilerInfo13 *handles = nullptr;
    ICorProfilerInfo15 *heap = nullptr;
    std::atomic<int> failures{0};

    /// Counts a failure, and says what it is.
    void fails(const char *what, HRESULT result = S_OK) {
        failures++;
        std::printf("wrong: %s %08x\n", what, static_cast<unsigned>(result));
        std::fflush(stdout);
    }
    void wants(bool holds, const char *what) {
        if (!holds) fails(what);
    }
    /// Counts a call that fails.
    bool is_good(HRESULT result, const char *what) {
        if (result < 0) fails(what, result);
        return result >= 0;
    }

    /// Asks for the events.
    virtual HRESULT begin() { return S_OK; }
    /// Checks what must hold at the end.
    virtual void end() {}

    HRESULT start(void *unknown) {
        info = query<ICorProfilerInfo11>(unknown);
        if (!info) return E_FAIL;
        events = query<ICorProfilerInfo12>(unknown);
        handles = query<ICorProfilerInfo13>(unknown);
        heap = query<ICorProfilerInfo15>(unknown);
        HRESULT result = begin();
        is_good(result, "the start");
        return result;
    }
    HRESULT Initialize(void *unknown) override { return start(unknown); }
    void finish() {
        end();
        std::printf(failures == 0 ? "the test passes\n" : "the test fails\n");
        std::fflush(stdout);
    }
    HRESULT Shutdown() override {
        finish();
        // All that was asked for is released, which the runtime may count.
        if (heap) heap->Release();
        if (handles) handles->Release();
        if (events) events->Release();
        if (info) info->Release();
        return S_OK;
    }
};

} // namespace guest

#endif
