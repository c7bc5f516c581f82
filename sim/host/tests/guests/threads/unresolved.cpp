// A library that lacks a function, which it calls nowhere: the system loads it if it binds names when they are called.
#include <unistd.h>

extern "C" void that_no_library_has();

namespace {

int begun = 0;

struct Begins {
    Begins() { begun++; }
};

Begins begins;

} // namespace

extern "C" void initialised_once() {
    if (begun > 1) that_no_library_has();
    if (begun != 1) _exit(3);
}
