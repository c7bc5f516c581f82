// The parts that all guests have: a profiler's object, its factory, and names through metadata.
#ifndef GUEST_HPP
#define GUEST_HPP

#include "clrsim_interfaces.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace guest {

using namespace clrsim;

constexpr HRESULT S_OK = 0;
constexpr HRESULT E_FAIL = static_cast<HRESULT>(0x80004005);


#ifdef _WIN32
#define GUEST_EXPORT extern "C" __declspec(dllexport)
#else
#define GUEST_EXPORT extern "C" __attribute__((visibility("default")))
#endif

/// Returns an interface of the runtime, or NULL.
template <typename Interface> Interface *query(void *unknown) {
    void *found = nullptr;
    auto *object = static_cast<IUnknown *>(unknown);
    return object->QueryInterface(Interface::IID, &found) == S_OK ? static_cast<Interface *>(found) : nullptr;
}

/// A profiler that asks for events, and for nothing else when it is loaded.
template <typename Interface, uint32_t Events> struct Asking : Profiler {
    Interface *info = nullptr;

    HRESULT Initialize(void *unknown) override {
        info = query<Interface>(unknown);
        return info ? info->SetEventMask(Events) : E_FAIL;
    }

    HRESULT Shutdown() override {
        info->Release();
        return S_OK;
    }
};

/// Returns a text of UTF-16 units as ASCII.
inline std::string narrow(const WCHAR *text) {
    std::string narrow;
    for (; *text; text++) narrow += *text < 0x80 ? static_cast<char>(*text) : '?';
    return narrow;
}

/// A profiler that does something once, with the first module that is not the core library.
struct OnModule : Asking<ICorProfilerInfo3, /* MODULE_LOADS */ 0x4> {
    bool is_over = false;

    virtual void on_module(uint64_t module, const WCHAR *path) = 0;

    static void say(const char *what, HRESULT result) { std::printf("%s %08x\n", what, static_cast<unsigned>(result)); }

    HRESULT ModuleLoadFinished(uint64_t module, HRESULT) override {
        WCHAR path[512];
        uint32_t len = 0;
        info->GetModuleInfo2(module, nullptr, 512, &len, path, nullptr, nullptr);
        if (is_over || narrow(path).find("System.Private.CoreLib") != std::string::npos) return S_OK;
        is_over = true;
        on_module(module, path);
        return S_OK;
    }
};

/// Returns the name of a method through the metadata of its module.
inline std::string name_of(ICorProfilerInfo2 *info, uint64_t function) {
    if (function == 0) return "native";
    IMetaDataImport *import = nullptr;
    mdToken token = 0, type = 0;
    if (info->GetTokenAndMetaDataFromFunction(function, IMetaDataImport::IID, reinterpret_cast<void **>(&import), &token) != S_OK) return "?";
    WCHAR method[256], of[256];
    import->GetMethodProps(token, &type, method, 256, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    import->GetTypeDefProps(type, of, 256, nullptr, nullptr, nullptr);
    import->Release();
    return narrow(of) + "." + narrow(method);
}

/// Collects the names of frames, and the context of the first one with flag 1.
struct Frames {
    ICorProfilerInfo2 *info;
    std::vector<std::string> names = {};
    std::vector<uint8_t> seed = {};

    static HRESULT on_frame(uint64_t function, uint64_t, uint64_t, uint32_t size, uint8_t *context, void *data) {
        auto *self = static_cast<Frames *>(data);
        if (self->names.empty() && context) self->seed.assign(context, context + size);
        self->names.push_back(name_of(self->info, function));
        return S_OK;
    }

    void print(const char *where, HRESULT result) const {
        std::printf("%s %08x:", where, static_cast<unsigned>(result));
        for (const auto &name : names) std::printf(" %s", name.c_str());
        std::printf("\n");
        std::fflush(stdout);
    }
};

/// The class that was asked for.
inline GUID asked = {};

/// Makes the guest's profiler.
Profiler *make();

struct Factory : IUnknown {
    HRESULT QueryInterface(const GUID &, void **object) override {
        *object = this;
        return S_OK;
    }
    uint32_t AddRef() override { return 2; }
    uint32_t Release() override { return 1; }
    virtual HRESULT CreateInstance(void *, const GUID &iid, void **object) {
        Profiler *profiler = make();
        HRESULT result = profiler->QueryInterface(iid, object);
        profiler->Release();
        return result;
    }
    virtual HRESULT LockServer(BOOL) { return S_OK; }
};

} // namespace guest

/// A guest is one file, which is compiled as the library.
GUEST_EXPORT clrsim::HRESULT DllGetClassObject(const clrsim::GUID &id, const clrsim::GUID &, void **object) {
    static guest::Factory factory;
#ifdef CLASS_IS_CHECKED
    // CLASS_E_CLASSNOTAVAILABLE.
    if (id.data1 != 0x6f0e1c52) return static_cast<clrsim::HRESULT>(0x80040111);
#endif
    guest::asked = id;
    *object = &factory;
    return guest::S_OK;
}

#endif
