// Programs whose threads send signals, one for each export: right ones, and each mistake that a search has to find.
#include <atomic>
#include <chrono>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

std::atomic<int> handled{0};
std::atomic<bool> over{false};
std::mutex lock;
sem_t stopped, goes_on;

// Allocates and frees memory, which a compiler would leave out.
void use_heap() {
    void *volatile block = std::malloc(16);
    std::free(block);
}

void require(bool holds) {
    if (!holds) std::abort();
}

void on(int number, void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    require(sigaction(number, &action, nullptr) == 0);
}

// Sends a signal to a thread that does this again and again.
template <typename Does> void interrupt(void (*handler)(int), Does does, void (*meanwhile)() = use_heap) {
    on(SIGUSR2, handler);
    require(sem_init(&stopped, 0, 0) == 0 && sem_init(&goes_on, 0, 0) == 0);
    std::thread worker([does] {
        while (!over) does();
    });
    require(pthread_kill(worker.native_handle(), SIGUSR2) == 0);
    sem_wait(&stopped);
    // A thread that is stopped in the handler waits for this.
    meanwhile();
    sem_post(&goes_on);
    over = true;
    worker.join();
}

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
void allocate() {
    use_heap();
    nap();
}
void look_up_objects() {
    dl_iterate_phdr([](dl_phdr_info *, size_t, void *) { return 1; }, nullptr);
    nap();
}
void load() { dlclose(dlopen(nullptr, RTLD_LAZY)); }
void own_lock() {
    std::lock_guard<std::mutex> guard(lock);
    nap();
}

}

extern "C" {

// A sleeping thread executes the handler.
void signal_handled() {
    interrupt([](int number) {
        require(number == SIGUSR2);
        sem_post(&stopped);
    }, nap);
}

// A thread that sends a signal to itself executes the handler before the call returns, by each way to send it.
void signal_to_itself() {
    on(SIGUSR1, [](int) { handled++; });
    raise(SIGUSR1);
    require(handled == 1);
    pthread_kill(pthread_self(), SIGUSR1);
    require(handled == 2);
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    require(handled == 3);
    require(signal(SIGUSR1, SIG_IGN) != SIG_DFL);
    raise(SIGUSR1);
    require(handled == 3 && pthread_kill(pthread_self(), 0) == 0);
}

// The handler gets what the documentation says.
void handler_with_information() {
    struct sigaction action = {}, before = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int number, siginfo_t *info, void *context) {
        require(info->si_signo == number && info->si_code == SI_TKILL && context);
        handled++;
    };
    require(sigaction(SIGPROF, &action, nullptr) == 0 && sigaction(SIGPROF, nullptr, &before) == 0);
    require(before.sa_sigaction == action.sa_sigaction);
    raise(SIGPROF);
    require(handled == 1);
}

// Nothing handles the signal.
void signal_without_handler() { raise(SIGUSR1); }

// There is no such thread any more.
void signal_to_nobody() {
    on(SIGUSR1, [](int) {});
    pid_t number = 0;
    std::thread worker([&number] { number = gettid(); });
    worker.join();
    require(syscall(SYS_tgkill, getpid(), number, SIGUSR1) == -1 && errno == ESRCH);
}

// The handler takes a lock that the interrupted thread may own.
void lock_in_handler() {
    interrupt([](int) {
        std::lock_guard<std::mutex> guard(lock);
        sem_post(&stopped);
    }, own_lock);
}

// The handler allocates, and interrupts an allocation.
void allocation_in_handler() {
    interrupt([](int) {
        use_heap();
        sem_post(&stopped);
    }, allocate);
}

// The thread that has stopped another one in its handler loads a library meanwhile.
void loading_while_stopped() {
    interrupt([](int) {
        sem_post(&stopped);
        sem_wait(&goes_on);
    }, look_up_objects, load);
}

// The thread that has stopped another one in its handler allocates meanwhile.
void allocation_while_stopped() {
    interrupt([](int) {
        sem_post(&stopped);
        sem_wait(&goes_on);
    }, allocate);
}

}
