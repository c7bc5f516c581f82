// Hooks of each kind: GUEST_HOOKS chooses 1, 2, 3 or 4 (3 with info), 5 (3 in C) or 6 (4 with a small seed). It
// walks in each; in those with info also with the context of the first frame as the seed.
#include "guest.hpp"

#include <cstdlib>

namespace guest {

static ICorProfilerInfo3 *info3 = nullptr;
static ICorProfilerInfo2 *info = nullptr;
static int hooks = 0;

static const char *KINDS[] = {"enter", "leave", "tailcall"};

/// The client's id is the function's with a bit more; hooks get it back.
constexpr uint64_t CLIENT = uint64_t(1) << 62;

static void hooked(int kind, uint64_t client, uint64_t elt) {
    uint64_t function = client & ~CLIENT;
    if ((client & CLIENT) == 0) std::printf("no client's id\n");
    Frames frames{info}, seeded{info};
    HRESULT result = info->DoStackSnapshot(0, Frames::on_frame, elt != 0, &frames, nullptr, 0);
    // In a hook that code calls itself, no method of metadata may be called.
    std::printf("%s ", KINDS[kind]);
    if (hooks == 3) std::printf("%d", function != 0);
    else std::printf("%s", name_of(info, function).c_str());
    uint64_t frame = 1;
    if (elt && kind == 0) {
        uint32_t size = 0;
        std::printf(" %08x", static_cast<unsigned>(info3->GetFunctionEnter3Info(function, elt, &frame, &size, nullptr)));
        std::printf(" %u", size);
    }
    frames.print("", result);
    if (!elt) return;
    uint32_t size = hooks == 6 ? 16 : static_cast<uint32_t>(frames.seed.size());
    result = info->DoStackSnapshot(0, Frames::on_frame, 0, &seeded, frames.seed.data(), size);
    if (hooks == 4 && (result != S_OK || seeded.names != frames.names)) seeded.print("seeded", result);
}

#if defined(__x86_64__) && !defined(_WIN32)
// The runtime's registers for a hook on Unix: r14 for entering, rdi otherwise. Return registers are kept.
#define NAKED(name, take)                                                                                             \
    extern "C" void name();                                                                                          \
    asm(".text\n" #name ":\n"                                                                                        \
        "push %rax\n push %rdx\n push %rbp\n sub $16, %rsp\n movdqu %xmm0, (%rsp)\n" take                            \
        "mov %rsp, %rbp\n and $-16, %rsp\n call " #name "_in_c\n mov %rbp, %rsp\n"                                    \
        "movdqu (%rsp), %xmm0\n add $16, %rsp\n pop %rbp\n pop %rdx\n pop %rax\n ret\n")
extern "C" __attribute__((used, visibility("hidden"))) void hook_enter_in_c(uint64_t client) { hooked(0, client, 0); }
extern "C" __attribute__((used, visibility("hidden"))) void hook_leave_in_c(uint64_t client) { hooked(1, client, 0); }
extern "C" __attribute__((used, visibility("hidden"))) void hook_tailcall_in_c(uint64_t client) { hooked(2, client, 0); }
NAKED(hook_enter, "mov %r14, %rdi\n");
NAKED(hook_leave, "");
NAKED(hook_tailcall, "");
#endif

static void enter1(uint64_t client) { hooked(0, client, 0); }
static void leave1(uint64_t client) { hooked(1, client, 0); }
static void tailcall1(uint64_t client) { hooked(2, client, 0); }
static void enter2(uint64_t, uint64_t client, uint64_t, const FunctionArguments *) { hooked(0, client, 0); }
static void leave2(uint64_t, uint64_t client, uint64_t, const ArgumentRange *) { hooked(1, client, 0); }
static void tailcall2(uint64_t, uint64_t client, uint64_t) { hooked(2, client, 0); }
static void enter3(uint64_t client, uint64_t elt) { hooked(0, client, elt); }
static void leave3(uint64_t client, uint64_t elt) { hooked(1, client, elt); }
static void tailcall3(uint64_t client, uint64_t elt) { hooked(2, client, elt); }

static uint64_t map(uint64_t function, void *data, BOOL *is_hooked) {
    *is_hooked = name_of(info, function) != "App.Skipped";
    return function | *static_cast<const uint64_t *>(data);
}
static uint64_t map1(uint64_t function, BOOL *is_hooked) { return map(function, const_cast<uint64_t *>(&CLIENT), is_hooked); }

template <typename Function> const void *address(Function *function) { return reinterpret_cast<const void *>(function); }

struct Hooks : Profiler {
    HRESULT Initialize(void *unknown) override {
        const char *chosen = std::getenv("GUEST_HOOKS");
        hooks = chosen ? std::atoi(chosen) : 1;
        info = query<ICorProfilerInfo2>(unknown);
        info3 = query<ICorProfilerInfo3>(unknown);
        if (!info || (!info3 && hooks >= 3)) return E_FAIL;
        // ENTERLEAVE, ENABLE_STACK_SNAPSHOT; with info: arguments.
        HRESULT result = info->SetEventMask(0x10001000 | (hooks == 4 || hooks == 6 ? 0x2000000 : 0));
        if (result != S_OK) return result;
        uint64_t *client = const_cast<uint64_t *>(&CLIENT);
        if (info3) info3->SetFunctionIDMapper2(address(map), client);
        else info->SetFunctionIDMapper(address(map1));
        switch (hooks) {
        case 1: return info->SetEnterLeaveFunctionHooks(address(enter1), address(leave1), address(tailcall1));
        case 2: return info->SetEnterLeaveFunctionHooks2(address(enter2), address(leave2), address(tailcall2));
#if defined(__x86_64__) && !defined(_WIN32)
        case 3: return info3->SetEnterLeaveFunctionHooks3(address(hook_enter), address(hook_leave), address(hook_tailcall));
        // A function of C for entering finds its argument in another register, and changes rax.
        case 5: return info3->SetEnterLeaveFunctionHooks3(address(enter1), address(leave1), address(tailcall1));
#else
        case 3: return info3->SetEnterLeaveFunctionHooks3(address(enter1), address(leave1), address(tailcall1));
#endif
        default: return info3->SetEnterLeaveFunctionHooks3WithInfo(address(enter3), address(leave3), address(tailcall3));
        }
    }
};

Profiler *make() { return new Hooks; }

} // namespace guest
