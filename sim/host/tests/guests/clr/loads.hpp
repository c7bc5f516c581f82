// The tests of loads.
#ifndef LOADS_HPP
#define LOADS_HPP

#include "suite.hpp"

namespace guest {

/// `null`: a profiler that asks for nothing.
struct Null : Test {};

/// `assembly`: each unload that begins ends. The original asks for no events.
struct Assembly : Test {
    int begun = 0, ended = 0;

    HRESULT AssemblyUnloadStarted(uint64_t) override { return begun++, S_OK; }
    HRESULT AssemblyUnloadFinished(uint64_t, HRESULT) override { return ended++, S_OK; }
    void end() override { wants(begun == ended, "each unload ends"); }
};

/// `moduleload`: each load of an assembly and of a module that begins ends.
struct ModuleLoad : Test {
    std::atomic<int> modules{0}, modules_ended{0}, assemblies{0}, assemblies_ended{0};

    HRESULT begin() override { return info->SetEventMask2(MODULE_LOADS | ASSEMBLY_LOADS, 0); }
    HRESULT LoadAsNotificationOnly(BOOL *is_wanted) override { return *is_wanted = 1, S_OK; }
    HRESULT AssemblyLoadStarted(uint64_t) override { return assemblies++, S_OK; }
    HRESULT AssemblyLoadFinished(uint64_t, HRESULT) override { return assemblies_ended++, S_OK; }
    HRESULT ModuleLoadStarted(uint64_t) override { return modules++, S_OK; }
    HRESULT ModuleLoadFinished(uint64_t, HRESULT) override { return modules_ended++, S_OK; }
    void end() override {
        wants(modules != 0 && assemblies != 0, "something is loaded");
        wants(modules == modules_ended, "each load of a module ends");
        wants(assemblies == assemblies_ended, "each load of an assembly ends");
    }
};

} // namespace guest

#endif
