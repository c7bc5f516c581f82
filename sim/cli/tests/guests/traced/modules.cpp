// Looks at modules as a rewriter of IL does before it decides, and at the methods that are compiled; it changes nothing.
#include "../guest.hpp"

namespace guest {

// MODULE_LOADS, JIT_COMPILATION, DISABLE_INLINING.
struct Modules : Asking<ICorProfilerInfo3, 0x200024> {
    HRESULT ModuleLoadFinished(uint64_t module, HRESULT) override {
        WCHAR name[512];
        uint32_t len = 0, flags = 0;
        const uint8_t *base = nullptr;
        uint64_t assembly = 0;
        info->GetModuleInfo2(module, &base, 512, &len, name, &assembly, &flags);
        info->GetModuleInfo(module, nullptr, 0, &len, nullptr, nullptr);
        return S_OK;
    }

    HRESULT ModuleAttachedToAssembly(uint64_t, uint64_t assembly) override {
        WCHAR name[512];
        uint32_t len = 0;
        uint64_t domain = 0, module = 0;
        info->GetAssemblyInfo(assembly, 512, &len, name, &domain, &module);
        return S_OK;
    }

    HRESULT JITCompilationStarted(uint64_t function, BOOL) override {
        uint64_t type = 0, module = 0;
        mdToken token = 0;
        info->GetFunctionInfo(function, &type, &module, &token);
        const uint8_t *start = nullptr;
        uint32_t size = 0;
        info->GetCodeInfo(function, &start, &size);
        name_of(info, function);
        return S_OK;
    }

    HRESULT JITCompilationFinished(uint64_t function, HRESULT, BOOL) override {
        const uint8_t *start = nullptr;
        uint32_t size = 0;
        info->GetCodeInfo(function, &start, &size);
        uint64_t found = 0;
        info->GetFunctionFromIP(start, &found);
        return S_OK;
    }
};

Profiler *make() { return new Modules; }

} // namespace guest
