// The calls of three kinds of products, in their order and with their arguments, on any ICorProfilerInfo.
#ifndef CALLS_HPP
#define CALLS_HPP

#include "clrsim_interfaces.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace guest {

using namespace clrsim;

constexpr HRESULT S_OK = 0;
constexpr HRESULT S_FALSE = 1;
constexpr HRESULT E_NOTIMPL = static_cast<HRESULT>(0x80004001);
constexpr HRESULT E_NOINTERFACE = static_cast<HRESULT>(0x80004002);
constexpr HRESULT E_POINTER = static_cast<HRESULT>(0x80004003);
constexpr HRESULT E_FAIL = static_cast<HRESULT>(0x80004005);
constexpr HRESULT E_INVALIDARG = static_cast<HRESULT>(0x80070057);
constexpr HRESULT E_NOT_SUFFICIENT_BUFFER = static_cast<HRESULT>(0x8007007A);
constexpr HRESULT CLDB_S_TRUNCATION = 0x00131106;
constexpr HRESULT CLDB_E_INDEX_NOTFOUND = static_cast<HRESULT>(0x80131124);
constexpr HRESULT CLDB_E_RECORD_NOTFOUND = static_cast<HRESULT>(0x80131130);


/// Counts what is not as expected, and says so.
inline int failures = 0;

inline void expect(bool holds, const char *what, const std::string &found, int line) {
    if (holds) return;
    failures++;
    std::printf("line %d: %s: found %s\n", line, what, found.c_str());
}

inline std::string words(const std::string &text) { return text; }
inline std::string words(unsigned long long number) {
    char text[32];
    std::snprintf(text, sizeof text, "%#llx", number);
    return text;
}

#define EXPECT_EQ(found, wanted)                                                                             \
    do {                                                                                                     \
        auto found_value = (found);                                                                          \
        guest::expect(found_value == (wanted), #found " == " #wanted, guest::words(found_value), __LINE__);  \
    } while (0)
#define EXPECT(holds) guest::expect((holds), #holds, "false", __LINE__)

/// Returns a text of UTF-16 units as ASCII.
inline std::string narrow(const WCHAR *text) {
    std::string narrow;
    for (; *text; text++) narrow += *text < 0x80 ? static_cast<char>(*text) : '?';
    return narrow;
}

template <typename Interface> Interface *query(IUnknown *unknown) {
    void *found = nullptr;
    return unknown->QueryInterface(Interface::IID, &found) == S_OK ? static_cast<Interface *>(found) : nullptr;
}

/// Resolves the name of a class and of those around it, as the runtime's sample does.
inline std::string class_name(ICorProfilerInfo2 *info, uint64_t class_id) {
    uint64_t module = 0, parent = 0, arguments[32];
    mdToken type = 0;
    uint32_t count = 0;
    if (class_id == 0) return "?";
    EXPECT_EQ(info->GetClassIDInfo2(class_id, &module, &type, &parent, 32, &count, arguments), S_OK);
    IMetaDataImport *import = nullptr;
    EXPECT_EQ(info->GetModuleMetaData(module, 1, IMetaDataImport::IID, reinterpret_cast<void **>(&import)), S_OK);
    if (!import) return "?";
    WCHAR name[1024];
    uint32_t flags = 0;
    EXPECT_EQ(import->GetTypeDefProps(type, name, 1024, nullptr, &flags, nullptr), S_OK);
    import->Release();
    std::string whole = narrow(name);
    for (uint32_t argument = 0; argument < count; argument++) whole += "<" + class_name(info, arguments[argument]) + ">";
    return whole;
}

/// What the sample of dotnet/samples does in a StackSnapshotCallback.
struct Sample {
    ICorProfilerInfo10 *info;
    std::vector<std::string> frames;

    static HRESULT on_frame(uint64_t function, uint64_t, uint64_t frame, uint32_t, uint8_t *, void *data) {
        // With flags and no client data it has its state elsewhere.
        (void)data;
        Sample *self = current;
        if (function == 0) {
            self->frames.push_back("native");
            return S_OK;
        }
        uint64_t class_id = 0, module = 0, arguments[32];
        mdToken token = 0;
        uint32_t count = 0;
        EXPECT_EQ(self->info->GetFunctionInfo2(function, frame, &class_id, &module, &token, 32, &count, arguments), S_OK);
        IMetaDataImport *import = nullptr;
        EXPECT_EQ(self->info->GetModuleMetaData(module, 0, IMetaDataImport::IID, reinterpret_cast<void **>(&import)), S_OK);
        if (!import) return S_OK;
        WCHAR name[256];
        EXPECT_EQ(import->GetMethodProps(token, nullptr, name, 256, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), S_OK);
        import->Release();
        uint32_t len = 0;
        WCHAR path[256];
        uint64_t assembly = 0;
        EXPECT_EQ(self->info->GetModuleInfo(module, nullptr, 256, &len, path, &assembly), S_OK);
        self->frames.push_back(narrow(path) + " " + class_name(self->info, class_id) + "::" + narrow(name));
        return S_OK;
    }

    /// Walks all threads: dotnet/samples, core/profiling/stacksampling.
    void walk() {
        current = this;
        EXPECT_EQ(info->InitializeCurrentThread(), S_OK);
        EXPECT_EQ(info->SuspendRuntime(), S_OK);
        ICorProfilerThreadEnum *threads = nullptr;
        EXPECT_EQ(info->EnumThreads(reinterpret_cast<void **>(&threads)), S_OK);
        uint64_t id = 0;
        uint32_t fetched = 0;
        while (threads && threads->Next(1, &id, &fetched) == S_OK) {
            EXPECT_EQ(info->DoStackSnapshot(id, on_frame, 1, nullptr, nullptr, 0), S_OK);
        }
        EXPECT_EQ(info->ResumeRuntime(), S_OK);
        // It never releases the enumerator.
        left = threads;
    }

    ICorProfilerThreadEnum *left = nullptr;
    static inline Sample *current = nullptr;
};

/// What a product with a request handler does: New Relic.
struct Handler {
    ICorProfilerInfo4 *info;
    ICorProfilerInfo10 *newer;
    std::vector<std::string> frames;

    bool initialize(IUnknown *unknown) {
        info = query<ICorProfilerInfo4>(unknown);
        if (!info) return false;
        uint32_t kind = 0;
        uint16_t major = 0, minor = 0;
        EXPECT_EQ(info->GetRuntimeInformation(nullptr, &kind, &major, &minor, nullptr, nullptr, 0, nullptr, nullptr), S_OK);
        EXPECT(major >= 4 && (kind == 1 || kind == 2));
        newer = query<ICorProfilerInfo10>(unknown);
        ICorProfilerInfo5 *events = query<ICorProfilerInfo5>(unknown);
        EXPECT(events != nullptr);
        if (events) EXPECT_EQ(events->SetEventMask2(0xb0040224, 8), S_OK);
        return true;
    }

    void module_loaded(uint64_t module) {
        uint32_t len = 0;
        uint64_t assembly = 0;
        const uint8_t *base = nullptr;
        EXPECT_EQ(info->GetModuleInfo(module, &base, 0, &len, nullptr, &assembly), S_OK);
        EXPECT(len > 1 && assembly != 0);
        EXPECT_EQ(info->GetAssemblyInfo(assembly, 0, &len, nullptr, nullptr, nullptr), S_OK);
        std::vector<WCHAR> name(len);
        EXPECT_EQ(info->GetAssemblyInfo(assembly, len, &len, name.data(), nullptr, nullptr), S_OK);
        EXPECT_EQ(name.back(), WCHAR(0));
        modules.push_back(narrow(name.data()));
    }

    void compiling(uint64_t function) {
        uint64_t class_id = 0, module = 0, assembly = 0, domain = 0, manifest = 0;
        mdToken token = 0, type = 0;
        EXPECT_EQ(info->GetFunctionInfo(function, &class_id, &module, &token), S_OK);
        uint32_t len = 0;
        EXPECT_EQ(info->GetModuleInfo(module, nullptr, 0, &len, nullptr, &assembly), S_OK);
        EXPECT_EQ(info->GetAssemblyInfo(assembly, 0, nullptr, nullptr, &domain, &manifest), S_OK);
        EXPECT_EQ(manifest, module);
        IMetaDataImport2 *import = nullptr;
        auto get = [&](const GUID &iid, void **to) {
            return info->GetTokenAndMetaDataFromFunction(function, iid, to, nullptr);
        };
        EXPECT_EQ(get(IMetaDataImport2::IID, reinterpret_cast<void **>(&import)), S_OK);
        if (!import) return;
        IMetaDataAssemblyImport *assemblies = nullptr;
        IMetaDataEmit2 *emit = nullptr;
        IMetaDataAssemblyEmit *assembly_emit = nullptr;
        EXPECT_EQ(get(IMetaDataAssemblyImport::IID, reinterpret_cast<void **>(&assemblies)), S_OK);
        EXPECT_EQ(get(IMetaDataEmit2::IID, reinterpret_cast<void **>(&emit)), S_OK);
        EXPECT_EQ(get(IMetaDataAssemblyEmit::IID, reinterpret_cast<void **>(&assembly_emit)), S_OK);
        const WCHAR attribute[] = {'A', 'c', 'm', 'e', '.', 'T', 'r', 'a', 'c', 'e', 'd', 0};
        const void *blob = nullptr;
        uint32_t size = 0;
        traced = import->GetCustomAttributeByName(token, attribute, &blob, &size);
        const WCHAR no_attribute[] = {'N', 'o', 'n', 'e', 0};
        EXPECT_EQ(import->GetCustomAttributeByName(token, no_attribute, &blob, &size), S_FALSE);
        EXPECT_EQ(import->GetMethodProps(token, &type, nullptr, 0, &len, nullptr, nullptr, nullptr, nullptr, nullptr), S_OK);
        std::vector<WCHAR> name(len);
        EXPECT_EQ(import->GetMethodProps(token, nullptr, name.data(), len, &len, nullptr, nullptr, nullptr, nullptr, nullptr), S_OK);
        EXPECT_EQ(import->GetTypeDefProps(type, nullptr, 0, &len, nullptr, nullptr), S_OK);
        std::vector<WCHAR> type_name(len);
        EXPECT_EQ(import->GetTypeDefProps(type, type_name.data(), len, &len, nullptr, nullptr), S_OK);
        compiled.push_back(narrow(type_name.data()) + "." + narrow(name.data()));
        assembly_of = assembly_name(assemblies);
        // A profiler may change metadata, but not save them.
        mdToken reference = 0;
        AssemblyMetadata version = {};
        changed = assembly_emit->DefineAssemblyRef(nullptr, 0, no_attribute, &version, nullptr, 0, 0, &reference);
        EXPECT_EQ(emit->DefineTypeRefByName(reference, no_attribute, &type), changed);
        EXPECT_EQ(emit->Save(no_attribute, 0), E_NOTIMPL);
        assembly_emit->Release();
        emit->Release();
        assemblies->Release();
        import->Release();
        std::vector<WCHAR> domain_name(64);
        EXPECT_EQ(info->GetAppDomainInfo(domain, 64, &len, domain_name.data(), nullptr), S_OK);
        this->domain = narrow(domain_name.data());
    }

    /// Returns the names of an assembly and of those that it refers to.
    static std::string assembly_name(IMetaDataAssemblyImport *assemblies) {
        mdToken assembly = 0, references[8];
        EXPECT_EQ(assemblies->GetAssemblyFromScope(&assembly), S_OK);
        WCHAR name[64];
        uint32_t len = 0, count = 0;
        EXPECT_EQ(assemblies->GetAssemblyProps(assembly, nullptr, nullptr, nullptr, name, 64, &len, nullptr, nullptr), S_OK);
        std::string whole = narrow(name);
        HCORENUM all = nullptr;
        EXPECT_EQ(assemblies->EnumAssemblyRefs(&all, references, 8, &count), S_OK);
        assemblies->CloseEnum(all);
        for (uint32_t index = 0; index < count; index++) {
            EXPECT_EQ(assemblies->GetAssemblyRefProps(references[index], nullptr, nullptr, name, 64, &len, nullptr, nullptr, nullptr, nullptr), S_OK);
            whole += " " + narrow(name);
        }
        return whole;
    }

    static HRESULT on_frame(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *context, void *data) {
        Handler *self = static_cast<Handler *>(data);
        EXPECT(context == nullptr);
        if (function == 0) return S_OK;
        IMetaDataImport2 *import = nullptr;
        mdToken token = 0, type = 0;
        EXPECT_EQ(self->info->GetTokenAndMetaDataFromFunction(function, IMetaDataImport2::IID, reinterpret_cast<void **>(&import), &token), S_OK);
        if (!import) return S_OK;
        WCHAR name[1024], type_name[1024];
        uint32_t len = 0;
        EXPECT_EQ(import->GetMethodProps(token, &type, name, 1023, &len, nullptr, nullptr, nullptr, nullptr, nullptr), S_OK);
        EXPECT_EQ(import->GetTypeDefProps(type, type_name, 1023, &len, nullptr, nullptr), S_OK);
        EXPECT_EQ(len, narrow(type_name).size() + 1);
        import->Release();
        self->frames.push_back(narrow(type_name) + "." + narrow(name));
        return S_OK;
    }

    void walk() {
        EXPECT_EQ(info->InitializeCurrentThread(), S_OK);
        EXPECT_EQ(newer->SuspendRuntime(), S_OK);
        ICorProfilerThreadEnum *threads = nullptr;
        EXPECT_EQ(info->EnumThreads(reinterpret_cast<void **>(&threads)), S_OK);
        if (!threads) return;
        uint32_t count = 0, fetched = 0;
        EXPECT_EQ(threads->GetCount(&count), S_OK);
        uint64_t ids[40];
        EXPECT_EQ(threads->Next(40, ids, &fetched), S_FALSE);
        EXPECT_EQ(fetched, count);
        for (uint32_t index = 0; index < fetched; index++) {
            EXPECT_EQ(info->DoStackSnapshot(ids[index], on_frame, 0, this, nullptr, 0), S_OK);
        }
        EXPECT_EQ(threads->Release(), 0u);
        EXPECT_EQ(newer->ResumeRuntime(), S_OK);
    }

    std::vector<std::string> modules, compiled;
    std::string domain;
    std::string assembly_of;
    HRESULT changed = 0, traced = 0;
};

/// What a continuous profiler does: OpenTelemetry.
struct Continuous {
    ICorProfilerInfo12 *info;
    std::vector<uint64_t> functions;
    std::vector<std::string> names;

    bool initialize(IUnknown *unknown) {
        info = query<ICorProfilerInfo12>(unknown);
        if (!info) return false;
        uint16_t major = 0, minor = 0, build = 0;
        EXPECT_EQ(info->GetRuntimeInformation(nullptr, nullptr, &major, &minor, &build, nullptr, 0, nullptr, nullptr), S_OK);
        EXPECT_EQ(info->SetEventMask2(0xc004001c, 1), S_OK);
        return true;
    }

    /// ENABLE_STACK_SNAPSHOT is asked for after the start.
    void configure() {
        uint32_t low = 0, high = 0;
        EXPECT_EQ(info->GetEventMask2(&low, &high), S_OK);
        EXPECT_EQ(low, 0xc004001cu);
        EXPECT_EQ(high, 1u);
        EXPECT_EQ(info->SetEventMask2(0xd004021c, 1), S_OK);
    }

    static HRESULT on_frame(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *, void *data) {
        Continuous *self = static_cast<Continuous *>(data);
        if (function == 0) return S_OK;
        uint64_t module = 0;
        mdToken token = 0;
        EXPECT_EQ(self->info->GetFunctionInfo2(function, 0, nullptr, &module, &token, 0, nullptr, nullptr), S_OK);
        self->functions.push_back(function);
        self->wanted.push_back({module, token});
        return S_OK;
    }

    void walk() {
        EXPECT_EQ(info->InitializeCurrentThread(), S_OK);
        ICorProfilerThreadEnum *threads = nullptr;
        EXPECT_EQ(info->EnumThreads(reinterpret_cast<void **>(&threads)), S_OK);
        std::vector<uint64_t> ids;
        uint64_t id = 0;
        uint32_t fetched = 0;
        while (threads && threads->Next(1, &id, &fetched) == S_OK && fetched == 1) ids.push_back(id);
        if (threads) threads->Release();
        EXPECT_EQ(info->SuspendRuntime(), S_OK);
        for (uint64_t one : ids) EXPECT_EQ(info->DoStackSnapshot(one, on_frame, 0, this, nullptr, 0), S_OK);
        EXPECT_EQ(info->ResumeRuntime(), S_OK);
        for (auto [module, token] : wanted) name(module, token);
    }

    void name(uint64_t module, mdToken token) {
        IMetaDataImport2 *import = nullptr;
        EXPECT_EQ(info->GetModuleMetaData(module, 0, IMetaDataImport2::IID, reinterpret_cast<void **>(&import)), S_OK);
        if (!import) return;
        void *again = nullptr;
        EXPECT_EQ(import->QueryInterface(IMetaDataImport2::IID, &again), S_OK);
        import->Release();
        mdToken type = 0, enclosing = 0;
        WCHAR text[256];
        uint32_t len = 0;
        EXPECT_EQ(import->GetMemberProps(token, &type, text, 256, &len, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), S_OK);
        std::string whole = narrow(text) + parameters(import, token);
        EXPECT_EQ(import->GetTypeDefProps(type, text, 256, &len, nullptr, nullptr), S_OK);
        whole = narrow(text) + parameters(import, type) + "." + whole;
        while (import->GetNestedClassProps(type, &enclosing) == S_OK) {
            type = enclosing;
            EXPECT_EQ(import->GetTypeDefProps(type, text, 256, &len, nullptr, nullptr), S_OK);
            whole = narrow(text) + "+" + whole;
        }
        names.push_back(whole);
        import->Release();
    }

    std::string parameters(IMetaDataImport2 *import, mdToken owner) {
        HCORENUM all = nullptr;
        mdToken tokens[8];
        uint32_t count = 0;
        std::string list;
        if (import->EnumGenericParams(&all, owner, tokens, 8, &count) == S_OK) {
            for (uint32_t index = 0; index < count; index++) {
                WCHAR text[64];
                uint32_t len = 0, sequence = 9;
                EXPECT_EQ(import->GetGenericParamProps(tokens[index], &sequence, nullptr, nullptr, nullptr, text, 64, &len), S_OK);
                EXPECT_EQ(sequence, index);
                list += "!" + narrow(text);
            }
        }
        import->CloseEnum(all);
        return list;
    }

    void module_loaded(uint64_t module) {
        WCHAR path[1024], text[1024];
        uint32_t len = 0, flags = 0;
        uint64_t assembly = 0, domain = 0, manifest = 0, process = 0;
        const uint8_t *base = nullptr;
        EXPECT_EQ(info->GetModuleInfo2(module, &base, 1024, &len, path, &assembly, &flags), S_OK);
        EXPECT_EQ(info->GetAssemblyInfo(assembly, 1024, &len, text, &domain, &manifest), S_OK);
        EXPECT_EQ(info->GetAppDomainInfo(domain, 1024, &len, text, &process), S_OK);
    }

    struct Wanted {
        uint64_t module;
        mdToken token;
    };
    std::vector<Wanted> wanted;
};

} // namespace guest

#endif
