// Functions after which their process cannot report what has happened, one for each export, and one after which it can.
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Hides from the compiler what a block is for.
void *volatile hidden;

char *hide(void *block) {
    hidden = block;
    return static_cast<char *>(hidden);
}

}  // namespace

extern "C" {

// The size behind the last block is the rest of the heap.
void top_of_heap() {
    char *block = hide(std::malloc(0x5000));
    std::memset(block, 0xff, 0x5010);
    hide(std::malloc(0x9000));
}

void freed_twice() {
    char *block = hide(std::malloc(40));
    std::free(block);
    std::free(hide(block));
}

void not_allocated() { std::free(hide(std::malloc(40)) + 8); }

// By a call that is not simulated, as the pipe leads to another process.
void writes_everywhere() {
    for (long descriptor = 3; descriptor < 64; descriptor++) syscall(SYS_pwrite64, descriptor, "nothing", 7, 0);
    for (long descriptor = 3; descriptor < 64; descriptor++) {
        struct { const void *start; size_t size; } part = {"nothing", 7};
        syscall(SYS_writev, descriptor, &part, 1);
    }
}

void closes_everything() { syscall(SYS_close_range, 3, ~0u, 0); }

// The heap is as it was: the function is found.
void fails_an_assertion() { assert(hidden == &hidden); }
}
