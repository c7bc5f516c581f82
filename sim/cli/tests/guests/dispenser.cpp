// Asks the dispenser of metadata that the runtime's library exports for the file of the program's module. What it prints was
// the same in CLRs 8.0.34, 10.0.15 and 11.0.0.
#include "guest.hpp"

#include <dlfcn.h>

namespace guest {

constexpr GUID DISPENSER = {0xe5cb7a31, 0x7512, 0x11d2, {0x89, 0xce, 0x00, 0x80, 0xc7, 0x92, 0xe5, 0xd8}};
constexpr GUID NOTHING = {0x11111111, 0x7512, 0x11d2, {0x89, 0xce, 0x00, 0x80, 0xc7, 0x92, 0xe5, 0xd8}};
constexpr uint32_t WRITE = 1, READ_ONLY = 0x10;
using Get = HRESULT (*)(const GUID &, const GUID &, void **);

struct Dispensed : OnModule {
    /// Returns the number of types of an opened scope.
    static uint32_t types(void *scope) {
        auto *import = static_cast<IMetaDataImport *>(scope);
        HCORENUM list = nullptr;
        mdToken found[512];
        uint32_t all = 0, count = 0;
        while (import->EnumTypeDefs(&list, found, 512, &count) == S_OK) all += count;
        import->CloseEnum(list);
        return all;
    }

    void opened(IMetaDataDispenserEx *dispenser, const WCHAR *path, uint64_t module) {
        void *own = nullptr, *scope[4] = {};
        info->GetModuleMetaData(module, WRITE, IMetaDataEmit::IID, &own);
        say("a scope", dispenser->OpenScope(path, 0, IMetaDataImport::IID, &scope[0]));
        say("another", dispenser->OpenScope(path, 0, IMetaDataImport::IID, &scope[1]));
        say("for reading", dispenser->OpenScope(path, READ_ONLY, IMetaDataImport::IID, &scope[2]));
        say("the same", dispenser->OpenScope(path, READ_ONLY, IMetaDataImport::IID, &scope[3]));
        std::printf("%d %d %d\n", scope[0] == scope[1], scope[1] == scope[2], scope[2] == scope[3]);
        uint32_t before = types(scope[0]);
        mdToken type = 0, none = 0;
        static_cast<IMetaDataEmit *>(own)->DefineTypeDef(u"Made", 1, 0x1000001, &none, &type);
        std::printf("a new type: %d here, %d there\n", types(scope[0]) == before, types(scope[2]) == before);
        void *table = nullptr;
        say("tables", static_cast<IUnknown *>(scope[0])->QueryInterface(IMetaDataTables::IID, &table));
        static_cast<IUnknown *>(table)->Release();
        for (void *one : scope) std::printf("%u ", static_cast<IUnknown *>(one)->Release());
        std::printf("left\n");
        static_cast<IUnknown *>(own)->Release();
    }

    void on_module(uint64_t module, const WCHAR *path) override {
        void *library = dlopen("libcoreclr.so", RTLD_LAZY | RTLD_NOLOAD), *found = nullptr;
        auto get = library ? reinterpret_cast<Get>(dlsym(library, "MetaDataGetDispenser")) : nullptr;
        if (!get) return void(std::printf("no dispenser\n"));
        say("another class", get(NOTHING, IMetaDataDispenserEx::IID, &found));
        say("another interface", get(DISPENSER, NOTHING, &found));
        say("a dispenser", get(DISPENSER, IMetaDataDispenserEx::IID, &found));
        auto *dispenser = static_cast<IMetaDataDispenserEx *>(found);
        say("the older interface", dispenser->QueryInterface(IMetaDataDispenser::IID, &found));
        std::printf("%u left\n", dispenser->Release());
        say("no path", dispenser->OpenScope(nullptr, 0, IMetaDataImport::IID, &found));
        say("an empty path", dispenser->OpenScope(u"", 0, IMetaDataImport::IID, &found));
        say("no place", dispenser->OpenScope(path, 0, IMetaDataImport::IID, nullptr));
        say("no file", dispenser->OpenScope(u"nowhere.dll", 0, IMetaDataImport::IID, &found));
        say("writing and not", dispenser->OpenScope(path, WRITE | READ_ONLY, IMetaDataImport::IID, &found));
        say("no such interface", dispenser->OpenScope(path, 0, NOTHING, &found));
        opened(dispenser, path, module);
        std::printf("%u left\n", dispenser->Release());
    }
};

Profiler *make() { return new Dispensed; }

} // namespace guest
