// Changes the rows of an assembly's manifest, and reads them again. What it prints was the same in CLRs 8.0.34, 9.0.23, 10.0.15 and
// 11.0.0.
#include "guest.hpp"

namespace guest {

constexpr uint32_t KEEP = 0xFFFFFFFF;
constexpr uint16_t SAME = 0xFFFF;

struct AssemblyEmit : OnModule {
    IMetaDataAssemblyEmit *emit = nullptr;
    IMetaDataAssemblyImport *import = nullptr;

    void show_assembly() {
        const void *key = nullptr;
        uint32_t size = 0, hash = 0, flags = 0, len = 0;
        WCHAR name[64] = {}, locale[64] = {};
        AssemblyMetadata data = {};
        data.locale = locale, data.locale_len = 64;
        import->GetAssemblyProps(0x20000001, &key, &size, &hash, name, 64, &len, &data, &flags);
        std::printf("assembly %u key, %x, %s, %u.%u.%u.%u %s, %x\n", size, hash, narrow(name).c_str(), data.major, data.minor,
                    data.build, data.revision, narrow(locale).c_str(), flags);
    }
    void show_file(mdToken file) {
        const void *hash = nullptr;
        uint32_t size = 0, flags = 0, len = 0;
        WCHAR name[64] = {};
        import->GetFileProps(file, name, 64, &len, &hash, &size, &flags);
        std::printf("file %s, %u bytes, %x\n", narrow(name).c_str(), size, flags);
    }
    void show_type(mdToken type) {
        mdToken in = 0, definition = 0;
        uint32_t flags = 0, len = 0;
        WCHAR name[64] = {};
        import->GetExportedTypeProps(type, name, 64, &len, &in, &definition, &flags);
        std::printf("type %s in %08x, %08x, %x\n", narrow(name).c_str(), in, definition, flags);
    }
    void show_resource(mdToken resource) {
        mdToken in = 0;
        uint32_t offset = 0, flags = 0, len = 0;
        WCHAR name[64] = {};
        import->GetManifestResourceProps(resource, name, 64, &len, &in, &offset, &flags);
        std::printf("resource %s in %08x, %x, %x\n", narrow(name).c_str(), in, offset, flags);
    }

    void change() {
        const uint8_t bytes[] = {1, 2, 3, 4};
        WCHAR culture[] = u"de";
        AssemblyMetadata data = {};
        data.major = 7, data.minor = 6, data.build = 5, data.revision = 4, data.locale = culture;
        say("assembly", emit->SetAssemblyProps(0x20000001, bytes, 4, 0x8003, u"Other", &data, 0x100));
        show_assembly();
        data.major = SAME, data.minor = 8, data.build = SAME, data.revision = SAME, data.locale = nullptr;
        say("less", emit->SetAssemblyProps(0x20000001, nullptr, 0, KEEP, u"Third", &data, 1));
        show_assembly();
        say("no assembly", emit->SetAssemblyProps(0x20000002, nullptr, 0, KEEP, u"None", &data, 0));
        mdToken file = 0, type = 0, resource = 0;
        emit->DefineFile(u"one.netmodule", bytes, 2, 1, &file);
        say("file", emit->SetFileProps(file, bytes, 3, 0));
        show_file(file);
        say("less", emit->SetFileProps(file, nullptr, 0, KEEP));
        show_file(file);
        say("no file", emit->SetFileProps(0x26000009, nullptr, 0, KEEP));
        emit->DefineExportedType(u"A.B", file, 0x02000002, 1, &type);
        say("type", emit->SetExportedTypeProps(type, 0x23000001, 0x02000003, 2));
        show_type(type);
        say("less", emit->SetExportedTypeProps(type, 0x26000000, 0x02000000, KEEP));
        show_type(type);
        say("no type", emit->SetExportedTypeProps(0x27000009, 0, 0, KEEP));
        emit->DefineManifestResource(u"r", 0, 8, 1, &resource);
        say("resource", emit->SetManifestResourceProps(resource, file, 0x10, 2));
        show_resource(resource);
        say("less", emit->SetManifestResourceProps(resource, 0, KEEP, KEEP));
        show_resource(resource);
        say("no resource", emit->SetManifestResourceProps(0x28000009, 0, KEEP, KEEP));
    }

    void on_module(uint64_t module, const WCHAR *) override {
        void *found = nullptr;
        info->GetModuleMetaData(module, 1, IMetaDataAssemblyEmit::IID, &found);
        emit = static_cast<IMetaDataAssemblyEmit *>(found);
        emit->QueryInterface(IMetaDataAssemblyImport::IID, &found);
        import = static_cast<IMetaDataAssemblyImport *>(found);
        change();
        import->Release();
        emit->Release();
    }
};

Profiler *make() { return new AssemblyEmit; }

} // namespace guest
