// The tests of loads and unloads, and the one that only reads the environment.
#ifndef LOADS_HPP
#define LOADS_HPP

#include "suite.hpp"

namespace guest {

/// `null`: the environment's variables are read, one that is not there has an HRESULT of its own.
struct Null : Test {
    HRESULT read(const WCHAR *name, std::string &value) {
        WCHAR text[1024] = {};
        uint32_t length = 0;
        HRESULT result = info->GetEnvironmentVariable(name, 1024, &length, text);
        value = narrow(text);
        return result;
    }
    HRESULT begin() override {
        std::string value;
        is_good(read(u"GUEST_TEST", value), "the name of the test");
        wants(value == "null", "the value of GUEST_TEST");
        is_good(read(u"GUEST_VALUE", value), "a variable with a text");
        wants(value == "Hello, friend!", "the value of GUEST_VALUE");
        // HRESULT_FROM_WIN32(ERROR_ENVVAR_NOT_FOUND).
        wants(read(u"GUEST_NOWHERE", value) == static_cast<HRESULT>(0x800700cb), "a variable that is not there");
        return S_OK;
    }
};

/// `assembly`: each unload that begins ends. The original asks for no events, so that it cannot fail; this one does, and
/// wants an unload.
struct Assembly : Test {
    std::atomic<int> begun{0}, ended{0};

    HRESULT begin() override { return ask(ASSEMBLY_LOADS); }
    HRESULT AssemblyUnloadStarted(uint64_t) override { return begun++, S_OK; }
    HRESULT AssemblyUnloadFinished(uint64_t, HRESULT) override { return ended++, S_OK; }
    void end() override {
        wants(begun != 0, "an assembly is unloaded");
        wants(begun == ended, "each unload ends");
    }
};

/// `moduleload`: each load of an assembly and of a module that begins ends.
struct ModuleLoad : Test {
    std::atomic<int> modules{0}, modules_ended{0}, assemblies{0}, assemblies_ended{0};

    HRESULT begin() override { return ask(MODULE_LOADS | ASSEMBLY_LOADS); }
    HRESULT LoadAsNotificationOnly(BOOL *is_wanted) override { return *is_wanted = 1, S_OK; }
    HRESULT AssemblyLoadStarted(uint64_t) override { return assemblies++, S_OK; }
    HRESULT AssemblyLoadFinished(uint64_t, HRESULT) override { return assemblies_ended++, S_OK; }
    HRESULT ModuleLoadStarted(uint64_t) override { return modules++, S_OK; }
    HRESULT ModuleLoadFinished(uint64_t, HRESULT) override { return modules_ended++, S_OK; }
    void end() override {
        wants(modules != 0, "a module is loaded");
        wants(assemblies != 0, "an assembly is loaded");
        wants(modules == modules_ended, "each load of a module ends");
        wants(assemblies == assemblies_ended, "each load of an assembly ends");
    }
};

/// `classload`: a class of a collectible assembly, and the six instantiations over it that a list needs, are loaded and
/// unloaded.
struct ClassLoad : Test {
    std::atomic<int> begun{0}, ended{0}, unloads{0}, unloads_ended{0};

    HRESULT begin() override { return ask(CLASS_LOADS); }
    bool is_of_test(uint64_t id) { return class_of(info, id).find("UnloadLibrary.TestClass") != std::string::npos; }
    HRESULT ClassLoadStarted(uint64_t id) override { return begun += is_of_test(id), S_OK; }
    HRESULT ClassLoadFinished(uint64_t id, HRESULT) override { return ended += is_of_test(id), S_OK; }
    HRESULT ClassUnloadStarted(uint64_t id) override { return unloads += is_of_test(id), S_OK; }
    HRESULT ClassUnloadFinished(uint64_t id, HRESULT) override { return unloads_ended += is_of_test(id), S_OK; }
    void end() override {
        wants(begun == 7, "seven classes are loaded");
        wants(ended == begun, "each load of a class ends");
        wants(unloads == 7, "seven classes are unloaded");
        wants(unloads_ended == unloads, "each unload of a class ends");
        std::printf("loads %d %d, unloads %d %d\n", begun.load(), ended.load(), unloads.load(), unloads_ended.load());
    }
};

} // namespace guest

#endif
