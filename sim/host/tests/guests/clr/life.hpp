// The tests of attached and detached profilers, and of the dispenser of metadata.
#ifndef LIFE_HPP
#define LIFE_HPP

#include "suite.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#ifndef _WIN32
#include <dlfcn.h>

#include <fstream>
#endif

namespace guest {

/// A flag that threads wait for.
struct Signal {
    std::mutex mutex = {};
    std::condition_variable changed = {};
    bool is_set = false;

    void set() {
        std::lock_guard<std::mutex> lock(mutex);
        is_set = true;
        changed.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return is_set; });
        is_set = false;
    }
};

/// A profiler that is attached, and asks to be detached at once: it passes if it is released so often that it is destroyed.
struct Released : Test {
    static inline Released *current = nullptr;
    bool is_detached = false;

    Released() { current = this; }
    ~Released() override {
        wants(is_detached, "the profiler is detached before it is released");
        say();
    }
    uint32_t Release() override {
        uint32_t left = --references;
        if (left == 0) delete this;
        return left;
    }
    HRESULT begin() override { return ask(MODULE_LOADS); }
    HRESULT Initialize(void *unknown) override { return fails("the profiler is attached"), start(unknown); }
    HRESULT InitializeForAttach(void *unknown, void *, uint32_t) override { return start(unknown); }
    HRESULT ProfilerAttachComplete() override {
        if (is_broken("reference")) AddRef();
        is_good(info->RequestProfilerDetach(0), "RequestProfilerDetach");
        return S_OK;
    }
    HRESULT ProfilerDetachSucceeded() override { return is_detached = true, S_OK; }
    HRESULT Shutdown() override { return S_OK; }
};

/// `releaseonshutdown`: the program waits for a flag that the destructor sets.
struct ReleaseOnShutdown : Released {
    std::atomic<bool *> flag{nullptr};

    ~ReleaseOnShutdown() override {
        if (bool *set = flag) *set = true;
    }
};

/// `releaseondetach`: the destructor calls the program, on a thread of its own. A program may say early whom to call.
struct ReleaseOnDetach : Released {
    static inline void (*callback)() = nullptr;
    static inline Signal has_callback = {};

    ~ReleaseOnDetach() override {
        has_callback.wait();
        std::thread([this] {
            info->InitializeCurrentThread();
            callback();
        }).join();
    }
};

/// `multiple`: eight profilers at a time see an exception and are detached.
struct Multiple : Test {
    static constexpr int ALL = 8;
    static inline std::atomic<int> thrown{0}, detached{0}, wrong{0};
    static inline void (*callback)() = nullptr;
    static inline Signal has_callback = {};

    HRESULT begin() override {
        HRESULT result = ask(EXCEPTIONS);
        wrong += result < 0;
        return result;
    }
    HRESULT InitializeForAttach(void *unknown, void *, uint32_t) override { return start(unknown); }
    HRESULT LoadAsNotificationOnly(BOOL *is_wanted) override { return *is_wanted = 1, S_OK; }
    HRESULT ExceptionThrown(uint64_t) override {
        thrown++;
        std::thread([this] { info->RequestProfilerDetach(0); }).detach();
        return S_OK;
    }
    HRESULT ProfilerDetachSucceeded() override {
        if (++detached != ALL - 1) return S_OK;
        wants(thrown >= ALL - 1, "each profiler sees the exception");
        wants(wrong == 0, "each profiler begins");
        say();
        std::thread([] {
            has_callback.wait();
            callback();
        }).detach();
        return S_OK;
    }
    HRESULT Shutdown() override {
        std::printf("thrown %d, detached %d\n", thrown.load(), detached.load());
        return S_OK;
    }
};

/// CLSID_CorMetaDataDispenser.
constexpr GUID DISPENSER = {0xe5cb7a31, 0x7512, 0x11d2, {0x89, 0xce, 0x00, 0x80, 0xc7, 0x92, 0xe5, 0xd8}};

/// `metadatagetdispenser`: the runtime's library exports a function that gives a dispenser, which opens each module's file.
struct GetDispenser : Test {
    std::atomic<int> opened{0};

    HRESULT begin() override { return ask(MODULE_LOADS); }
    /// Returns the runtime's export, or NULL.
    static void *exported() {
#ifdef _WIN32
        return nullptr;
#else
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            size_t slash = line.find('/');
            if (slash == std::string::npos || line.find("libcoreclr.so") == std::string::npos) continue;
            void *library = dlopen(line.substr(slash).c_str(), RTLD_LAZY | RTLD_NOLOAD);
            if (!library) return nullptr;
            void *found = dlsym(library, "MetaDataGetDispenser");
            dlclose(library);
            return found;
        }
        return nullptr;
#endif
    }
    HRESULT ModuleLoadStarted(uint64_t module) override {
        using Function = HRESULT (*)(const GUID &, const GUID &, void **);
        auto get = reinterpret_cast<Function>(exported());
        if (!get) return fails("MetaDataGetDispenser is exported"), E_FAIL;
        void *found = nullptr, *import = nullptr;
        if (!is_good(get(DISPENSER, IMetaDataDispenserEx::IID, &found), "MetaDataGetDispenser")) return E_FAIL;
        auto *dispenser = static_cast<IMetaDataDispenserEx *>(found);
        WCHAR path[1024] = {};
        uint32_t length = 0;
        if (is_good(info->GetModuleInfo2(module, nullptr, 1024, &length, path, nullptr, nullptr), "GetModuleInfo2")
            && is_good(dispenser->OpenScope(path, 0, IMetaDataImport::IID, &import), "OpenScope")) {
            static_cast<IMetaDataImport *>(import)->Release();
            opened++;
        }
        dispenser->Release();
        return S_OK;
    }
    void end() override { wants(opened != 0, "a module's file is opened"); }
};

} // namespace guest

#endif
