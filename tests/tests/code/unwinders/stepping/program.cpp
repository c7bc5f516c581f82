// The stepped program: calls of libraries that use every feature of unwinding. The program waits for a
// byte on stdin, and is stepped from its first breakpoint to the second.

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

// Number of sorted numbers. Without optimization, sorting takes most of the instructions.
#ifndef NUMBERS
#define NUMBERS 300
#endif

namespace {

volatile int sink;
volatile double real = 0.7;

int ascending(const void *a, const void *b) {
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

void sorting() {
    int few[9] = {5, 3, 8, 1, 9, 2, 7, 4, 6};
    qsort(few, 9, sizeof *few, ascending);
    std::vector<int> many;
    for (int i = 0; i < NUMBERS; i++) many.push_back(i * 7919 % 307);
    qsort(many.data(), many.size(), sizeof(int), ascending);
    std::sort(many.rbegin(), many.rend());
    int wanted = 7;
    void *found = bsearch(&wanted, few, 9, sizeof *few, ascending);
    sink = few[0] + many[0] + (found != nullptr);
}

void printing() {
    char text[256];
    sink = snprintf(text, sizeof text, "%d %5.3f %s %-8lx|%c %e %p", 42, 3.14159, "text", 0xBEEFul, 'x', 1e100, text);
    int a = 0;
    double b = 0;
    sink = sscanf("17 2.5e3", "%d %lf", &a, &b) + static_cast<int>(strtol("0x1234", nullptr, 0));
    std::ostringstream stream;
    stream << a << ' ' << b << ' ' << std::hex << 255 << " some text";
    sink = static_cast<int>(stream.str().size());
}

void copying() {
    static char from[5000], to[5000];
    for (size_t n : {0, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 1000, 4999}) {
        memcpy(to, from, n);
        memmove(to + 1, to, n ? n - 1 : 0);
        memset(to, static_cast<int>(n), n);
        sink = memcmp(from, to, n) + static_cast<int>(strlen(to)) + (memchr(from, 1, n) != nullptr);
        from[n] = 0;
        strncpy(to, from, n);
        sink = strcmp(from, to) + (strchr(to, 'x') != nullptr) + (strstr("haystack with needle", "needle") != nullptr);
    }
}

void allocating() {
    std::map<std::string, std::vector<char>> map;
    for (int i = 0; i < 12; i++) map["key " + std::to_string(i)].resize(static_cast<size_t>(i) * 300);
    void *large = malloc(1 << 20);
    large = realloc(large, 2 << 20);
    free(large);
    sink = static_cast<int>(map.size());
    map.erase("key 3");
}

void calculating() {
    sink = static_cast<int>(sin(real) + cos(real * 100) + pow(real, 1.3) + exp(real) + log(real) + atan2(real, 2) + fmod(100, real)
        + tgamma(real + 2) + cbrt(real) + lround(real) + sqrt(real) + sinh(real));
}

struct Guard {
    int *count;
    ~Guard() { ++*count; }
};

__attribute__((noinline)) void throws(int depth, int *count) {
    Guard guard{count};
    volatile char locals[64];
    locals[depth] = 1;
    if (depth == 0) throw std::runtime_error("thrown");
    throws(depth - 1, count);
    sink = locals[depth];
}

__attribute__((noinline)) void rethrows(int *count) {
    try {
        throws(3, count);
    } catch (const std::logic_error &) {
        sink = 1;
    } catch (...) {
        ++*count;
        throw;
    }
}

void throwing() {
    int count = 0;
    for (int i = 0; i < 2; i++) {
        try {
            rethrows(&count);
        } catch (const std::exception &error) {
            sink = static_cast<int>(strlen(error.what())) + count;
        }
    }
    try {
        std::vector<int>().at(5);
    } catch (const std::out_of_range &) {
        sink = 2;
    }
}

int through_callback(const void *a, const void *b) {
    if (*static_cast<const int *>(a) == 3) throw 7;
    return ascending(a, b);
}

void throwing_through_c() {
    int numbers[5] = {5, 3, 8, 1, 9};
    try {
        qsort(numbers, 5, sizeof *numbers, through_callback);
    } catch (int value) {
        sink = value;
    }
}

void on_signal(int, siginfo_t *, void *) {
    char text[32];
    sink = snprintf(text, sizeof text, "%d", 5);
}

// A handler that is interrupted by another signal.
void on_outer_signal(int, siginfo_t *, void *) {
    raise(SIGUSR1);
    sink = 3;
}

char *page;

// The faulting instruction is executed again, and does not fault then.
void on_fault(int, siginfo_t *, void *) {
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

__attribute__((noinline)) int faults(long n) {
    return page[n] + 1;
}

jmp_buf back;

__attribute__((noinline)) void jumps(int depth) {
    volatile char locals[32];
    locals[depth] = 1;
    if (depth == 0) longjmp(back, 1);
    jumps(depth - 1);
    sink = locals[depth];
}

void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(signal, &action, nullptr);
}

void signals() {
    static char other_stack[65536];
    stack_t stack = {};
    stack.ss_sp = other_stack;
    stack.ss_size = sizeof other_stack;
    sigaltstack(&stack, nullptr);
    set(SIGUSR1, on_signal, 0);
    set(SIGUSR2, on_outer_signal, SA_ONSTACK);
    set(SIGSEGV, on_fault, SA_ONSTACK);
    void *mapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page = static_cast<char *>(mapped);
    raise(SIGUSR1);
    raise(SIGUSR2);
    sink = faults(4);
    if (setjmp(back) == 0) jumps(4);
}

__attribute__((noinline)) void everything() {
    sorting();
    printing();
    copying();
    allocating();
    calculating();
    throwing();
    throwing_through_c();
    signals();
}

}  // namespace

int main() {
    char byte;
    if (read(0, &byte, 1) != 1) return 1;
    asm volatile("int3");
    everything();
    asm volatile("int3");
    return 0;
}
