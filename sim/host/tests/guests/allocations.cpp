// usage: allocations RUNTIME [N]: each allocation of libclrsim, or each Nth, fails once: in a copy of this process, made at the allocation.
#include "calls.hpp"
#include "clrsim.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace guest;

extern "C" void *__libc_malloc(size_t);
extern "C" void *__libc_calloc(size_t, size_t);
extern "C" void *__libc_realloc(void *, size_t);
extern "C" void *__libc_memalign(size_t, size_t);

// The library's addresses.
static uintptr_t low, high;
// True in a copy.
static bool is_copy;
// True while allocations fail: each of this number, of all that there were so far.
static bool armed;
static unsigned each = 1, all;
// Copies that ended with Rust's message, that went on and were right, and others.
static unsigned ended, answered, others;

// Notes how a copy has ended, and what it has said.
static void judge(int status, const std::string &said) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && said.find("memory allocation of ") != std::string::npos) {
        ended++;
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        answered++;
    } else {
        others++;
        std::printf("allocation %u: status %#x: %s\n", ended + answered + others, status, said.c_str());
    }
}

// Returns true in a copy of this process, whose allocation it is; in this one, when the copy has ended, false.
static bool fails(void *caller) {
    auto address = reinterpret_cast<uintptr_t>(caller);
    if (!armed || address < low || address >= high || all++ % each != 0) return false;
    armed = false;
    int said[2];
    if (pipe(said) != 0) std::abort();
    pid_t copy = fork();
    if (copy == 0) {
        dup2(said[1], 2);
        close(said[0]);
        close(said[1]);
        alarm(60);
        is_copy = true;
        return true;
    }
    close(said[1]);
    std::string text;
    char part[256];
    for (ssize_t len; (len = read(said[0], part, sizeof part)) > 0;) text.append(part, len);
    close(said[0]);
    int status = 0;
    if (waitpid(copy, &status, 0) != copy) std::abort();
    judge(status, text);
    armed = true;
    return false;
}

extern "C" void *malloc(size_t size) { return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size); }
extern "C" void *calloc(size_t count, size_t size) { return fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size); }
extern "C" void *realloc(void *old, size_t size) { return fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, size); }
extern "C" int posix_memalign(void **block, size_t alignment, size_t size) {
    if (fails(__builtin_return_address(0))) return 12;
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : 12;
}

static int library(dl_phdr_info *info, size_t, void *) {
    if (!std::strstr(info->dlpi_name, "libclrsim")) return 0;
    low = info->dlpi_addr;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const auto &part = info->dlpi_phdr[at];
        if (part.p_type == PT_LOAD) high = std::max<uintptr_t>(high, low + part.p_vaddr + part.p_memsz);
    }
    return 1;
}

static const char *TEXT = R"(
function "App.Main" kind="jit" { body { p-invoke "Lib.Sleep" } }
function "Lib.Sleep" { body { work 3 } }
stop at="Lib.Sleep"
)";

static void sample(const std::string &runtime) {
    clrsim::Session session(TEXT, runtime);
    session.run_to_stop(0);
    auto *info = query<ICorProfilerInfo10>(session.info<clrsim::IUnknown>());
    if (!info) return;
    EXPECT_EQ(info->SetEventMask2(0x1187ffff, 0), S_OK);
    Sample sample{info, {}};
    sample.walk();
    EXPECT(!sample.frames.empty());
    if (sample.left) sample.left->Release();
    info->Release();
    EXPECT(session.report()[0] != 0);
    clrsim_session *bad = nullptr;
    EXPECT_EQ(clrsim_open("functio", runtime.c_str(), &bad), CLRSIM_BAD_TEXT);
}

int main(int count, char **words) {
    std::string runtime = count > 1 ? words[1] : "net8-unix";
    if (count > 2) each = std::stoul(words[2]);
    // Reading the library's debug information would take most of the time.
    setenv("RUST_BACKTRACE", "0", 1);
    dl_iterate_phdr(library, nullptr);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    armed = true;
    sample(runtime);
    armed = false;
    if (is_copy) return failures != 0;
    std::printf("%u of %u allocations failed: %u ended the process, %u were answered, %u others\n", ended + answered + others, all, ended, answered, others);
    return failures != 0 || others != 0 || ended == 0;
}
