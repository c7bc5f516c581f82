// What all transcriptions of the CLR's own profiler tests have: see `suite.cpp`.
#ifndef SUITE_HPP
#define SUITE_HPP

#include "guest.hpp"

#include <cstdlib>

namespace guest {

constexpr uint32_t GC = 0x80, CLASS_LOADS = 0x2, MODULE_LOADS = 0x4, ASSEMBLY_LOADS = 0x8, JIT = 0x20, EXCEPTIONS = 0x40,
                   OBJECTS = 0x100, ENTERLEAVE = 0x1000, TRANSITIONS = 0x800, SUSPENDS = 0x10000, CACHE_SEARCHES = 0x20000,
                   REJIT = 0x40000, NO_INLINING = 0x200000, NO_OPTIMIZATIONS = 0x400000, ENABLE_OBJECTS = 0x800000,
                   NO_IMAGES = 0x1000000, ARGUMENTS = 0x2000000, RETURNED = 0x4000000, FRAME_INFO = 0x8000000,
                   FUNCTION_VALUES = ARGUMENTS | RETURNED | FRAME_INFO;
constexpr uint32_t HIGH_BASIC_GC = 0x10, HIGH_LARGE = 0x40, HIGH_EVENTS = 0x80, HIGH_PINNED = 0x100, HIGH_NO_STATISTIC = 0x200;
constexpr uint32_t INDUCED = 1;
constexpr uint32_t LARGE_OBJECTS = 3, PINNED_OBJECTS = 4;
constexpr HRESULT DATA_INCOMPLETE = static_cast<HRESULT>(0x80131351), NOT_GC_OBJECT = static_cast<HRESULT>(0x80131389);

/// Returns what GUEST_BROKEN says is broken on purpose: a test fails then.
inline bool is_broken(const char *what) {
    const char *word = std::getenv("GUEST_BROKEN");
    return word && std::string(word) == what;
}

/// Returns an interface of a module's metadata, or NULL.
template <typename Interface> Interface *metadata_of(ICorProfilerInfo *info, uint64_t module, uint32_t flags = 0) {
    void *found = nullptr;
    return info->GetModuleMetaData(module, flags, Interface::IID, &found) == S_OK ? static_cast<Interface *>(found) : nullptr;
}

/// Returns the path of a module, or "?".
inline std::string path_of(ICorProfilerInfo3 *info, uint64_t module) {
    WCHAR path[1024] = {};
    uint32_t length = 0;
    if (info->GetModuleInfo2(module, nullptr, 1024, &length, path, nullptr, nullptr) < 0) return "?";
    return narrow(path);
}

/// Returns the name of a class through the metadata of its module, with its type arguments, or "?" (an array has no token).
inline std::string class_of(ICorProfilerInfo2 *info, uint64_t id) {
    uint64_t module = 0, arguments[10] = {};
    mdToken token = 0;
    uint32_t count = 0;
    if (info->GetClassIDInfo2(id, &module, &token, nullptr, 10, &count, arguments) != S_OK) return "?";
    auto *import = metadata_of<IMetaDataImport>(info, module);
    if (!import) return "?";
    WCHAR name[256] = {};
    import->GetTypeDefProps(token, name, 256, nullptr, nullptr, nullptr);
    import->Release();
    std::string whole = narrow(name);
    for (uint32_t index = 0; index < count && index < 10; index++)
        whole += (index ? "," : "<") + class_of(info, arguments[index]);
    return count ? whole + ">" : whole;
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
    ICorProfilerInfo14 *fourteen = nullptr;
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

    /// Sets the event mask: with GUEST_BROKEN=events none.
    HRESULT ask(uint32_t low, uint32_t high = 0) {
        bool is_deaf = is_broken("events");
        return info->SetEventMask2(is_deaf ? 0 : low, is_deaf ? 0 : high);
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
        fourteen = query<ICorProfilerInfo14>(unknown);
        heap = query<ICorProfilerInfo15>(unknown);
        HRESULT result = begin();
        is_good(result, "the start");
        return result;
    }
    HRESULT Initialize(void *unknown) override { return start(unknown); }
    void say() {
        std::printf(failures == 0 ? "the test passes\n" : "the test fails\n");
        std::fflush(stdout);
    }
    /// Releases all that was asked for, which the runtime may count.
    void let_go() {
        if (heap) heap->Release();
        if (fourteen) fourteen->Release();
        if (handles) handles->Release();
        if (events) events->Release();
        if (info) info->Release();
        heap = nullptr, fourteen = nullptr, handles = nullptr, events = nullptr, info = nullptr;
    }
    HRESULT Shutdown() override {
        end();
        say();
        let_go();
        return S_OK;
    }
};

} // namespace guest

#endif
