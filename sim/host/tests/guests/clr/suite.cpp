// The behaviour of the CLR's own profiler tests (dotnet/runtime, src/tests/profiler), one for each word of GUEST_TEST: what
// is asked for, and what must hold at the end. Each says whether it passes. The texts beside this file do what their
// programs do, and `programs.cs` does so in a CLR. GUEST_BROKEN breaks what a test checks, on purpose.
#include "async.hpp"
#include "attach.hpp"
#include "code.hpp"
#include "events.hpp"
#include "heap.hpp"
#include "life.hpp"
#include "loads.hpp"
#include "rejit.hpp"
#include "values.hpp"

namespace guest {

static Test *running = nullptr;

template <typename Made> Test *made() { return new Made; }

struct Named {
    const char *name;
    Test *(*make)();
};

constexpr Named TESTS[] = {
    {"null", made<Null>},
    {"assembly", made<Assembly>},
    {"moduleload", made<ModuleLoad>},
    {"classload", made<ClassLoad>},
    {"transitions", made<Transitions>},
    {"elttransitions", made<EltTransitions>},
    {"inlining", made<Inlining>},
    {"dynamicjitoptimization", made<DynamicOptimization>},
    {"exception", made<Exceptions>},
    {"gc", made<Gc>},
    {"gcbasic", made<GcBasic>},
    {"gcskip", made<GcSkip>},
    {"gcallocate", made<GcAllocate>},
    {"nongcheap", made<NonGcHeap>},
    {"handles", made<Handles>},
    {"enumthreads", made<EnumThreadsTest>},
    {"gcheapenumeration", made<HeapEnumeration>},
    {"gcheapenumeration-suspended", made<HeapEnumeration>},
    {"gcheapenumeration-competing", made<HeapEnumeration>},
    {"releaseonshutdown", made<ReleaseOnShutdown>},
    {"releaseondetach", made<ReleaseOnDetach>},
    {"multiple", made<Multiple>},
    {"metadatagetdispenser", made<GetDispenser>},
    {"elt-enter", made<SlowHooks>},
    {"elt-leave", made<SlowHooks>},
    {"getappdomainstaticaddress", made<StaticAddresses>},
    {"eventpipe-reading", made<EventReading>},
    {"eventpipe-writing", made<EventWriting>},
    {"rejit", made<ReJit>},
    {"runtimeasyncapis", made<AsyncApis>},
    {"runtimeasyncelt", made<AsyncHooks>},
    {"runtimeasynctypes", made<AsyncTypes>},
};

Profiler *make() {
    const char *word = std::getenv("GUEST_TEST");
    for (const Named &test : TESTS)
        if (word && std::string(test.name) == word) return running = test.make();
    std::printf("no such test\n");
    return running = new Null;
}

/// Returns the running test, if it is of this type.
template <typename Wanted> Wanted *current() { return dynamic_cast<Wanted *>(running); }

} // namespace guest

/// Calls what it is given.
GUEST_EXPORT void DoPInvoke(int (*callback)(int), int value) {
    if (callback) callback(value);
}

GUEST_EXPORT void EnumerateObjects() {
    if (auto *test = guest::current<guest::HeapEnumeration>()) test->enumerate();
}
GUEST_EXPORT void SuspendRuntime() {
    if (guest::running) guest::running->is_good(guest::running->info->SuspendRuntime(), "SuspendRuntime");
}
GUEST_EXPORT void ResumeRuntime() {
    if (guest::running) guest::running->is_good(guest::running->info->ResumeRuntime(), "ResumeRuntime");
}

GUEST_EXPORT void SwitchOptimizations(int is_off) {
    if (auto *test = guest::current<guest::DynamicOptimization>()) test->switch_optimizations(is_off);
}
GUEST_EXPORT void SwitchInlining(int is_off) {
    if (auto *test = guest::current<guest::DynamicOptimization>()) test->switch_inlining(is_off);
}
GUEST_EXPORT void WantInlines(int count) {
    if (auto *test = guest::current<guest::DynamicOptimization>()) test->want(count);
}

GUEST_EXPORT void BeginSessions() {
    if (auto *test = guest::current<guest::EventWriting>()) test->open();
}
GUEST_EXPORT void EndSessions() {
    if (auto *test = guest::current<guest::EventWriting>()) test->close();
}
/// Says that the program has seen something wrong.
GUEST_EXPORT void ProgramFails() {
    if (guest::running) guest::running->fails("what the program sees");
}

GUEST_EXPORT int AttachToItself(const char *path) { return guest::attach_to_itself(path); }
GUEST_EXPORT void PassFlag(bool *flag) {
    if (auto *test = dynamic_cast<guest::ReleaseOnShutdown *>(guest::Released::current)) test->flag = flag;
}
GUEST_EXPORT void PassCallback(void (*callback)()) {
    guest::Multiple::callback = callback;
    guest::Multiple::has_callback.set();
    guest::ReleaseOnDetach::callback = callback;
    guest::ReleaseOnDetach::has_callback.set();
}
/// Returns what a text passes for its own function: it has none that has an address.
GUEST_EXPORT void *FunctionToCall() {
    void (*function)() = [] { std::printf("the program is called\n"); };
    return reinterpret_cast<void *>(function);
}
