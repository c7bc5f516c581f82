// Calls with edge arguments about a jitted method, each printed with its answer: the same in a CLR and in libclrsim.
#ifndef EDGES_HPP
#define EDGES_HPP

#include "calls.hpp"

namespace guest {

#define ANSWER(call) std::printf("%s %08x\n", #call, static_cast<unsigned>(call))
#define SHOW(value) std::printf("  %s = %lld\n", #value, static_cast<long long>(value))

struct Edges {
    ICorProfilerInfo4 *info;
    uint64_t function;
    uint64_t type = 0, module = 0, assembly = 0, domain = 0, other = 0, thread = 0;
    mdToken token = 0, type_def = 0, found = 0;
    uint32_t len = 0, whole = 0, count = 0, flags = 0;
    uint64_t ids[4] = {};
    mdToken tokens[4] = {};
    WCHAR text[300] = {};
    IMetaDataImport2 *import = nullptr;

    static HRESULT on_frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return S_OK; }

    bool is_named_whole() const { return len == narrow(text).size() + 1; }

    void all() {
        functions();
        modules();
        assemblies();
        classes();
        runtime();
        threads();
        code();
        enumerators();
        snapshots();
        metadata();
        identity();
        emitters();
        assembly_metadata();
        assembly_references();
    }

    void functions() {
        ANSWER(info->GetFunctionInfo(function, &type, &module, &token));
        ANSWER(info->GetFunctionInfo(function, nullptr, nullptr, nullptr));
        ANSWER(info->GetFunctionInfo(0, nullptr, nullptr, nullptr));
        ANSWER(info->GetFunctionInfo2(function, 0, &type, &module, &token, 0, &count, nullptr));
        SHOW(count);
        ANSWER(info->GetFunctionInfo2(function, 0, nullptr, nullptr, nullptr, 3, nullptr, nullptr));
        ANSWER(info->GetFunctionInfo2(function, 0, nullptr, nullptr, nullptr, 3, &count, nullptr));
        ANSWER(info->GetFunctionInfo2(function, 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
        ANSWER(info->GetFunctionInfo2(0, 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
    }

    void modules() {
        const uint8_t *base = nullptr;
        ANSWER(info->GetModuleInfo(module, &base, 0, &len, nullptr, &assembly));
        ANSWER(info->GetModuleInfo(module, nullptr, 300, &len, text, nullptr));
        SHOW(is_named_whole());
        whole = len;
        text[0] = 'x', text[1] = 'y', len = 77;
        ANSWER(info->GetModuleInfo(module, nullptr, 3, &len, text, nullptr));
        SHOW(len == whole);
        SHOW(text[0]);
        SHOW(text[1]);
        ANSWER(info->GetModuleInfo(module, nullptr, whole - 1, nullptr, text, nullptr));
        ANSWER(info->GetModuleInfo(module, nullptr, 0, &len, text, nullptr));
        ANSWER(info->GetModuleInfo(module, nullptr, 300, nullptr, nullptr, nullptr));
        ANSWER(info->GetModuleInfo(0, nullptr, 0, nullptr, nullptr, nullptr));
        ANSWER(info->GetModuleInfo2(module, nullptr, 0, nullptr, nullptr, nullptr, &flags));
        SHOW(flags);
    }

    void assemblies() {
        ANSWER(info->GetAssemblyInfo(assembly, 0, &len, nullptr, &domain, &other));
        SHOW(len);
        SHOW(other == module);
        ANSWER(info->GetAssemblyInfo(assembly, 300, &len, text, nullptr, nullptr));
        SHOW(is_named_whole());
        ANSWER(info->GetAssemblyInfo(assembly, 3, &len, text, nullptr, nullptr));
        SHOW(len);
        SHOW(narrow(text).size());
        ANSWER(info->GetAssemblyInfo(assembly, 1, &len, text, nullptr, nullptr));
        SHOW(text[0]);
        ANSWER(info->GetAssemblyInfo(assembly, 0, nullptr, nullptr, nullptr, nullptr));
        ANSWER(info->GetAssemblyInfo(0, 0, nullptr, nullptr, nullptr, nullptr));
        ANSWER(info->GetAppDomainInfo(domain, 0, &len, nullptr, &other));
        SHOW(other != 0);
        ANSWER(info->GetAppDomainInfo(domain, 300, &len, text, nullptr));
        SHOW(is_named_whole());
        whole = len;
        ANSWER(info->GetAppDomainInfo(domain, 3, &len, text, nullptr));
        SHOW(len == whole);
        SHOW(narrow(text).size());
        ANSWER(info->GetAppDomainInfo(0, 0, nullptr, nullptr, nullptr));
    }

    void classes() {
        uint64_t parent = 0, grandparent = 1;
        ANSWER(info->GetClassIDInfo(type, &other, &type_def));
        SHOW(type_def >> 24);
        SHOW(other == module);
        ANSWER(info->GetClassIDInfo(type, nullptr, nullptr));
        ANSWER(info->GetClassIDInfo(0, nullptr, nullptr));
        ANSWER(info->GetClassIDInfo2(type, &other, &type_def, &parent, 0, &count, nullptr));
        SHOW(count);
        SHOW(parent != 0);
        ANSWER(info->GetClassIDInfo2(type, nullptr, nullptr, nullptr, 3, nullptr, nullptr));
        ANSWER(info->GetClassIDInfo2(0, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
        ANSWER(info->GetClassIDInfo2(type, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
        ANSWER(info->GetClassIDInfo2(type, nullptr, nullptr, nullptr, 4, &count, ids));
        SHOW(count);
        ANSWER(info->GetClassIDInfo2(parent, &other, &found, &grandparent, 0, nullptr, nullptr));
        SHOW(grandparent);
        SHOW(other == module);
    }

    void runtime() {
        uint16_t instance = 9, major = 0, minor = 0, build = 0, qfe = 9;
        ANSWER(info->GetEventMask(nullptr));
        ANSWER(info->GetEventMask(&flags));
        ANSWER(info->GetRuntimeInformation(&instance, &flags, &major, &minor, &build, &qfe, 0, nullptr, nullptr));
        SHOW(instance);
        SHOW(flags);
        SHOW(major);
        SHOW(minor);
        SHOW(build);
        SHOW(qfe);
        auto version = [&](uint32_t room, uint32_t *size, WCHAR *to) {
            return info->GetRuntimeInformation(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, room, size, to);
        };
        ANSWER(version(300, &len, text));
        SHOW(is_named_whole());
        SHOW(text[0]);
        ANSWER(version(3, &len, text));
        SHOW(len);
        SHOW(text[0]);
        ANSWER(version(0, &len, nullptr));
        ANSWER(version(300, &len, nullptr));
        ANSWER(version(300, nullptr, text));
        ANSWER(info->InitializeCurrentThread());
        ANSWER(info->AddRef());
        ANSWER(info->Release());
        ANSWER(info->QueryInterface(IUnknown::IID, nullptr));
    }

    void threads() {
        uint32_t os = 0;
        HANDLE handle = nullptr;
        ANSWER(info->GetCurrentThreadID(&thread));
        ANSWER(info->GetCurrentThreadID(nullptr));
        ANSWER(info->GetThreadInfo(thread, &os));
        ANSWER(info->GetThreadInfo(thread, nullptr));
        ANSWER(info->GetThreadInfo(0, &os));
        ANSWER(info->GetHandleFromThread(thread, &handle));
        ANSWER(info->GetHandleFromThread(thread, nullptr));
        ANSWER(info->GetHandleFromThread(0, &handle));
        ANSWER(info->GetThreadAppDomain(thread, &other));
        SHOW(other == domain);
        ANSWER(info->GetThreadAppDomain(0, &other));
        ANSWER(info->GetThreadAppDomain(thread, nullptr));
    }

    void code() {
        const uint8_t *start = nullptr, *low = reinterpret_cast<const uint8_t *>(8);
        uint32_t size = 0;
        uint64_t rejit = 0;
        CodeRange ranges[2] = {};
        ANSWER(info->GetFunctionFromIP(nullptr, &other));
        ANSWER(info->GetFunctionFromIP(low, nullptr));
        ANSWER(info->GetFunctionFromIP2(nullptr, &other, &rejit));
        ANSWER(info->GetCodeInfo(0, nullptr, nullptr));
        ANSWER(info->GetCodeInfo(function, &start, &size));
        ANSWER(info->GetCodeInfo(function, nullptr, nullptr));
        ANSWER(info->GetCodeInfo2(function, 0, &count, nullptr));
        SHOW(count);
        ANSWER(info->GetCodeInfo2(function, 2, &count, nullptr));
        ANSWER(info->GetCodeInfo2(function, 2, nullptr, ranges));
        ANSWER(info->GetCodeInfo2(function, 2, &count, ranges));
        SHOW(count);
        SHOW(ranges[0].size == size);
        ANSWER(info->GetCodeInfo2(0, 0, nullptr, nullptr));
        ANSWER(info->GetCodeInfo3(function, 0, 2, &count, ranges));
        ANSWER(info->GetCodeInfo3(function, 0, 0, nullptr, nullptr));
        ANSWER(info->GetFunctionFromIP(start, &other));
        SHOW(other == function);
        ANSWER(info->GetFunctionFromIP(start, nullptr));
        ANSWER(info->GetFunctionFromIP2(start, nullptr, nullptr));
    }

    void enumerators() {
        ICorProfilerThreadEnum *all = nullptr, *clone = nullptr;
        ICorProfilerModuleEnum *modules = nullptr;
        uint32_t left = 0, left_in_clone = 0;
        void *object = nullptr;
        ANSWER(info->EnumThreads(nullptr));
        ANSWER(info->EnumThreads(reinterpret_cast<void **>(&all)));
        ANSWER(all->GetCount(nullptr));
        ANSWER(all->Next(0, nullptr, nullptr));
        ANSWER(all->Next(1, nullptr, &count));
        ANSWER(all->Next(2, ids, nullptr));
        ANSWER(all->Next(1, ids, nullptr));
        ANSWER(all->Skip(100));
        ANSWER(all->Next(1, ids, &count));
        SHOW(count);
        ANSWER(all->Reset());
        ANSWER(all->Next(1, ids, &count));
        ANSWER(all->Clone(nullptr));
        ANSWER(all->Clone(reinterpret_cast<void **>(&clone)));
        ANSWER(all->GetCount(&left));
        ANSWER(clone->GetCount(&left_in_clone));
        SHOW(left_in_clone - left);
        ANSWER(clone->AddRef());
        ANSWER(clone->Release());
        ANSWER(clone->Release());
        ANSWER(all->QueryInterface(IUnknown::IID, &object));
        ANSWER(all->QueryInterface(ICorProfilerModuleEnum::IID, &object));
        ANSWER(all->Release());
        ANSWER(all->Release());
        ANSWER(info->EnumModules(nullptr));
        ANSWER(info->EnumModules(reinterpret_cast<void **>(&modules)));
        ANSWER(modules->Release());
    }

    void snapshots() {
        ANSWER(info->DoStackSnapshot(thread, nullptr, 2, nullptr, nullptr, 0));
        ANSWER(info->DoStackSnapshot(thread, on_frame, 0, nullptr, nullptr, 0));
        ANSWER(info->DoStackSnapshot(0, on_frame, 1, nullptr, nullptr, 0));
    }

    void metadata() {
        void *object = nullptr;
        const GUID &iid = IMetaDataImport2::IID;
        ANSWER(info->GetModuleMetaData(module, 0x2000, iid, &object));
        ANSWER(info->GetModuleMetaData(0, 0, iid, &object));
        ANSWER(info->GetModuleMetaData(module, 0, iid, nullptr));
        ANSWER(info->GetModuleMetaData(module, 0, ICorProfilerInfo4::IID, &object));
        ANSWER(info->GetTokenAndMetaDataFromFunction(function, iid, nullptr, nullptr));
        ANSWER(info->GetTokenAndMetaDataFromFunction(0, iid, &object, &token));
        ANSWER(info->GetModuleMetaData(module, 0, iid, reinterpret_cast<void **>(&import)));
        ANSWER(import->QueryInterface(IMetaDataImport::IID, &object));
        import->Release();
        methods();
        types();
        enumerations();
        const void *blob = nullptr;
        const uint8_t *signature = nullptr;
        const WCHAR none[] = {'N', 'o', 0};
        count = 7;
        ANSWER(import->GetCustomAttributeByName(token, none, &blob, &count));
        SHOW(count);
        ANSWER(import->GetTypeSpecFromToken(0x1b00ffff, &signature, &count));
        ANSWER(import->IsValidToken(token));
        ANSWER(import->IsValidToken(0x0600ffff));
        ANSWER(import->IsValidToken(0));
        ANSWER(import->IsValidToken(0x06000000));
        ANSWER(import->IsValidToken(1));
        ANSWER(import->GetModuleFromScope(&found));
        SHOW(found);
        ANSWER(import->FindTypeDefByName(none, 0, &found));
        SHOW(found);
        ANSWER(import->FindTypeDefByName(nullptr, 0, &found));
        ANSWER(import->GetScopeProps(text, 300, &len, nullptr));
        SHOW(is_named_whole());
        ANSWER(import->GetScopeProps(nullptr, 0, &len, nullptr));
        import->Release();
    }

    HRESULT method(mdToken of, WCHAR *name, uint32_t room, uint32_t *size) {
        return import->GetMethodProps(of, &type_def, name, room, size, &flags, nullptr, nullptr, nullptr, nullptr);
    }

    void methods() {
        ANSWER(method(token, nullptr, 0, &len));
        whole = len;
        ANSWER(method(token, text, 300, &len));
        SHOW(is_named_whole() && len == whole);
        text[0] = 'x', text[1] = 'y';
        ANSWER(method(token, text, 2, &len));
        SHOW(len == whole);
        SHOW(text[1]);
        ANSWER(method(token, text, 0, &len));
        SHOW(len == whole);
        ANSWER(method(token, text, 1, &len));
        ANSWER(method(token, nullptr, 0, nullptr));
        ANSWER(method(0x0600ffff, nullptr, 0, &len));
        ANSWER(method(0x06000000, nullptr, 0, &len));
        ANSWER(method(token, nullptr, 0, &len));
    }

    void types() {
        ANSWER(import->GetTypeDefProps(type_def, nullptr, 0, &len, nullptr, nullptr));
        whole = len;
        ANSWER(import->GetTypeDefProps(type_def, text, 300, &len, &flags, &found));
        SHOW(is_named_whole() && len == whole);
        SHOW(found >> 24);
        ANSWER(import->GetTypeDefProps(type_def, text, 2, &len, nullptr, nullptr));
        SHOW(len == whole);
        SHOW(text[1]);
        ANSWER(import->GetTypeDefProps(type_def, text, 0, &len, nullptr, nullptr));
        SHOW(len == whole);
        ANSWER(import->GetTypeDefProps(0x02000000, text, 300, &len, &flags, &found));
        SHOW(len);
        SHOW(flags);
        SHOW(found);
        ANSWER(import->GetTypeDefProps(0x0200ffff, text, 300, &len, nullptr, nullptr));
        ANSWER(import->GetTypeDefProps(token, text, 300, &len, nullptr, nullptr));
        ANSWER(import->GetTypeDefProps(0x02000001, text, 300, &len, &flags, &found));
        SHOW(narrow(text) == "<Module>");
        SHOW(flags);
        SHOW(found);
        ANSWER(import->GetTypeRefProps(0x01000001, &found, text, 300, &len));
        SHOW(found >> 24);
        ANSWER(import->GetTypeRefProps(0x01000000, &found, text, 300, &len));
        SHOW(found);
        SHOW(len);
        ANSWER(import->GetTypeRefProps(0x0100ffff, nullptr, nullptr, 0, nullptr));
        ANSWER(import->GetTypeRefProps(type_def, nullptr, nullptr, 0, nullptr));
        ANSWER(import->GetTypeRefProps(0x01000001, nullptr, text, 0, &len));
        ANSWER(import->GetNestedClassProps(type_def, &found));
        ANSWER(import->GetNestedClassProps(token, &found));
    }

    HRESULT parameter(mdToken of) {
        return import->GetGenericParamProps(of, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr);
    }

    void enumerations() {
        HCORENUM all = nullptr;
        ANSWER(parameter(token));
        ANSWER(parameter(0x2a00ffff));
        ANSWER(parameter(0x2a000000));
        ANSWER(import->EnumGenericParams(&all, token, tokens, 4, &count));
        SHOW(count);
        SHOW(all != nullptr);
        import->CloseEnum(all);
        all = nullptr;
        ANSWER(import->EnumTypeDefs(&all, tokens, 1, &count));
        SHOW(count);
        SHOW(tokens[0]);
        ANSWER(import->ResetEnum(all, 0));
        tokens[0] = 0;
        ANSWER(import->EnumTypeDefs(&all, tokens, 1, nullptr));
        SHOW(tokens[0]);
        ANSWER(import->EnumTypeDefs(&all, tokens, 0, &count));
        import->CloseEnum(all);
        import->CloseEnum(nullptr);
        count = 9;
        ANSWER(import->CountEnum(nullptr, &count));
        SHOW(count);
    }

    /// Which interfaces are of one object.
    void identity() {
        IUnknown *unknown = nullptr, *from_assembly = nullptr;
        IMetaDataAssemblyImport *again = nullptr;
        void *object = this;
        const GUID &iid = IMetaDataAssemblyImport::IID;
        ANSWER(info->GetModuleMetaData(module, 0, IMetaDataImport2::IID, reinterpret_cast<void **>(&import)));
        ANSWER(import->QueryInterface(iid, reinterpret_cast<void **>(&assemblies_of)));
        ANSWER(import->QueryInterface(iid, reinterpret_cast<void **>(&again)));
        SHOW(again == assemblies_of);
        SHOW(static_cast<void *>(assemblies_of) == static_cast<void *>(import));
        ANSWER(import->QueryInterface(IUnknown::IID, reinterpret_cast<void **>(&unknown)));
        ANSWER(assemblies_of->QueryInterface(IUnknown::IID, reinterpret_cast<void **>(&from_assembly)));
        SHOW(unknown == from_assembly);
        SHOW(static_cast<void *>(unknown) == static_cast<void *>(import));
        ANSWER(assemblies_of->QueryInterface(IMetaDataImport2::IID, &object));
        SHOW(object == import);
        ANSWER(assemblies_of->QueryInterface(ICorProfilerInfo4::IID, &object));
        SHOW(object == nullptr);
        ANSWER(info->GetModuleMetaData(module, 0, iid, &object));
        SHOW(object == assemblies_of);
        static_cast<IUnknown *>(object)->Release();
        ANSWER(info->GetTokenAndMetaDataFromFunction(function, iid, &object, nullptr));
        SHOW(object == assemblies_of);
        static_cast<IUnknown *>(object)->Release();
        ANSWER(assemblies_of->AddRef() - import->AddRef());
        assemblies_of->Release();
        assemblies_of->Release();
        again->Release();
        unknown->Release();
        from_assembly->Release();
        import->Release();
        import->Release();
    }

    /// Interfaces that change metadata, of metadata that is only read.
    void emitters() {
        for (const GUID &iid : {IMetaDataEmit::IID, IMetaDataEmit2::IID, IMetaDataAssemblyEmit::IID}) {
            void *object = this;
            token = 7;
            ANSWER(info->GetTokenAndMetaDataFromFunction(function, iid, &object, &token));
            SHOW(object == nullptr);
            SHOW(token >> 24);
            static_cast<IUnknown *>(object)->Release();
            object = this;
            ANSWER(info->GetModuleMetaData(module, 0, iid, &object));
            SHOW(object == nullptr);
            static_cast<IUnknown *>(object)->Release();
            object = this;
            ANSWER(import->QueryInterface(iid, &object));
            SHOW(object == nullptr);
            static_cast<IUnknown *>(object)->Release();
        }
        void *object = this;
        ANSWER(info->GetModuleMetaData(module, 0, ICorProfilerInfo4::IID, &object));
        SHOW(object == nullptr);
    }

    HRESULT assembly_props(mdToken of, WCHAR *name, uint32_t room, uint32_t *size) {
        return assemblies_of->GetAssemblyProps(of, nullptr, nullptr, nullptr, name, room, size, nullptr, nullptr);
    }

    void assembly_metadata() {
        const void *key = this;
        uint32_t key_size = 7, algorithm = 7;
        AssemblyMetadata version = {};
        ANSWER(import->QueryInterface(IMetaDataAssemblyImport::IID, reinterpret_cast<void **>(&assemblies_of)));
        ANSWER(assemblies_of->GetAssemblyFromScope(&found));
        SHOW(found);
        ANSWER(assemblies_of->GetAssemblyProps(found, &key, &key_size, &algorithm, text, 300, &len, &version, &flags));
        SHOW(narrow(text) == "Workloads");
        SHOW(len);
        SHOW(key_size);
        SHOW(algorithm);
        SHOW(flags);
        SHOW(version.major);
        SHOW(version.locale_len);
        SHOW(version.processors_len);
        SHOW(version.systems_len);
        ANSWER(assembly_props(found, nullptr, 0, nullptr));
        ANSWER(assembly_props(found, nullptr, 0, &len));
        SHOW(len);
        text[0] = 'x', text[1] = 'y';
        ANSWER(assembly_props(found, text, 2, &len));
        SHOW(len);
        SHOW(text[1]);
        len = 77;
        ANSWER(assembly_props(found, text, 0, &len));
        SHOW(len);
        WCHAR locale[4] = {'x', 'y', 'z', 0};
        version.locale = locale;
        version.locale_len = 4;
        ANSWER(assemblies_of->GetAssemblyProps(found, nullptr, nullptr, nullptr, nullptr, 0, nullptr, &version, nullptr));
        SHOW(version.locale_len);
        SHOW(locale[0]);
        ANSWER(assembly_props(0x20000002, nullptr, 0, &len));
        ANSWER(assembly_props(0x20000000, nullptr, 0, &len));
    }

    HRESULT reference(mdToken of, WCHAR *name, uint32_t room, uint32_t *size) {
        return assemblies_of->GetAssemblyRefProps(of, nullptr, nullptr, name, room, size, nullptr, nullptr, nullptr, nullptr);
    }

    void assembly_references() {
        HCORENUM all = nullptr;
        const void *key = nullptr, *hash = this;
        uint32_t key_size = 7, hash_size = 7;
        AssemblyMetadata version = {};
        const WCHAR none[] = {'N', 'o', 0};
        ANSWER(assemblies_of->EnumAssemblyRefs(&all, tokens, 1, &count));
        SHOW(count);
        SHOW(tokens[0]);
        ANSWER(import->CountEnum(all, &count));
        SHOW(count > 0);
        assemblies_of->CloseEnum(all);
        all = nullptr;
        ANSWER(assemblies_of->EnumAssemblyRefs(&all, nullptr, 0, &count));
        SHOW(count);
        SHOW(all != nullptr);
        assemblies_of->CloseEnum(all);
        assemblies_of->CloseEnum(nullptr);
        ANSWER(assemblies_of->GetAssemblyRefProps(tokens[0], &key, &key_size, text, 300, &len, &version, &hash, &hash_size, &flags));
        SHOW(is_named_whole());
        SHOW(key_size);
        SHOW(hash_size);
        SHOW(flags);
        SHOW(version.locale_len);
        whole = len;
        ANSWER(reference(tokens[0], nullptr, 0, nullptr));
        text[1] = 'y';
        ANSWER(reference(tokens[0], text, 2, &len));
        SHOW(len == whole);
        SHOW(text[1]);
        ANSWER(reference(tokens[0], text, 0, &len));
        SHOW(len == whole);
        ANSWER(reference(0x2300ffff, nullptr, 0, &len));
        ANSWER(reference(0x23000000, nullptr, 0, &len));
        for (HCORENUM *none_of : {&all}) {
            *none_of = nullptr;
            ANSWER(assemblies_of->EnumFiles(none_of, tokens, 1, &count));
            SHOW(count);
            SHOW(*none_of != nullptr);
            *none_of = nullptr;
            ANSWER(assemblies_of->EnumExportedTypes(none_of, tokens, 1, &count));
            SHOW(count);
            *none_of = nullptr;
            ANSWER(assemblies_of->EnumManifestResources(none_of, tokens, 1, &count));
            SHOW(count);
        }
        ANSWER(assemblies_of->FindExportedTypeByName(none, 0, &found));
        ANSWER(assemblies_of->FindExportedTypeByName(nullptr, 0, &found));
        ANSWER(assemblies_of->FindManifestResourceByName(none, &found));
        ANSWER(assemblies_of->FindManifestResourceByName(nullptr, &found));
        ANSWER(assemblies_of->GetFileProps(0x26000001, nullptr, 0, &len, nullptr, nullptr, nullptr));
        ANSWER(assemblies_of->GetExportedTypeProps(0x27000001, nullptr, 0, &len, nullptr, nullptr, nullptr));
        ANSWER(assemblies_of->GetManifestResourceProps(0x28000001, nullptr, 0, &len, nullptr, nullptr, nullptr));
        assemblies_of->Release();
        import->Release();
    }

    IMetaDataAssemblyImport *assemblies_of = nullptr;
};

/// A profiler that makes these calls when the first method of `Workloads.dll` has been compiled.
struct EdgeProfiler : Profiler {
    ICorProfilerInfo5 *info = nullptr;
    bool done = false;

    HRESULT Initialize(void *unknown) override {
        auto *all = static_cast<IUnknown *>(unknown);
        const GUID ids[] = {
            ICorProfilerInfo::IID,   ICorProfilerInfo2::IID,  ICorProfilerInfo3::IID,  ICorProfilerInfo4::IID,
            ICorProfilerInfo5::IID,  ICorProfilerInfo6::IID,  ICorProfilerInfo7::IID,  ICorProfilerInfo8::IID,
            ICorProfilerInfo9::IID,  ICorProfilerInfo10::IID, ICorProfilerInfo11::IID, ICorProfilerInfo12::IID,
            ICorProfilerInfo13::IID, ICorProfilerInfo14::IID, ICorProfilerInfo15::IID,
        };
        int number = 0;
        for (const GUID &id : ids) {
            void *found = nullptr;
            std::printf("ICorProfilerInfo%d %08x\n", ++number, static_cast<unsigned>(all->QueryInterface(id, &found)));
        }
        info = query<ICorProfilerInfo5>(all);
        ANSWER(info->SetEventMask2(0x10000224, 0));
        return S_OK;
    }

    HRESULT JITCompilationFinished(uint64_t function, HRESULT, BOOL) override {
        uint64_t type = 0, module = 0;
        mdToken token = 0;
        WCHAR path[1024];
        uint32_t len = 0;
        if (done || info->GetFunctionInfo(function, &type, &module, &token) != S_OK) return S_OK;
        if (info->GetModuleInfo(module, nullptr, 1024, &len, path, nullptr) != S_OK) return S_OK;
        if (narrow(path).find("Workloads.dll") == std::string::npos) return S_OK;
        done = true;
        Edges{info, function}.all();
        uint32_t low = 0, high = 0;
        ANSWER(info->SetEventMask2(0x10000224, 8));
        ANSWER(info->SetEventMask2(0x10000225, 0));
        ANSWER(info->SetEventMask2(0x00000224, 0));
        ANSWER(info->SetEventMask2(0x10000224, 0x10));
        ANSWER(info->SetEventMask(0x10001224));
        ANSWER(info->SetEventMask2(0x10000224, 0));
        ANSWER(info->GetEventMask2(nullptr, &high));
        ANSWER(info->GetEventMask2(&low, &high));
        SHOW(low);
        SHOW(high);
        std::fflush(stdout);
        return S_OK;
    }
};

} // namespace guest

#endif
