// The behaviour of the CLR's own profiler tests (dotnet/runtime, src/tests/profiler), one for each word of CLR_TEST: what
// is asked for, and what must hold at the end. Each says whether it passes. The texts beside this file do what their programs do.
#include "code.hpp"
#include "heap.hpp"
#include "loads.hpp"

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
    {"transitions", made<Transitions>},
    {"elttransitions", made<EltTransitions>},
    {"inlining", made<Inlining>},
    {"exception", made<Exceptions>},
    {"gc", made<Gc>},
    {"gcbasic", made<GcBasic>},
    {"gcskip", made<GcSkip>},
    {"gcallocate", made<GcAllocate>},
    {"nongcheap", made<NonGcHeap>},
    {"handles", made<Handles>},
    {"enumthreads", made<EnumThreadsTest>},
    {"gcheapenumeration", made<HeapEnumeration>},
};

Profiler *make() {
    const char *word = std::getenv("CLR_TEST");
    for (const Named &test : TESTS)
        if (word && std::string(test.name) == word) return running = test.make();
    std::printf("no such test\n");
    return running = new Null;
}

} // namespace guest

GUEST_EXPORT void DoPInvoke(int) {}

/// Asks for a list of all objects.
GUEST_EXPORT void EnumerateObjects() {
    if (auto *test = dynamic_cast<guest::HeapEnumeration *>(guest::running)) test->enumerate();
}
