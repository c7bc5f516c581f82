// Programs whose threads send signals, one for each export: right ones, and each mistake that a search has to find.
#include <atomic>
#include <chrono>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

void on(int number, void (*handler)(int), int flags = 0) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
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

// Interrupts a thread that makes a call once.
template <typename Does> void cut_short(Does does, int flags = 0) {
    on(SIGUSR2, [](int) { handled++; }, flags);
    std::thread worker(does);
    require(pthread_kill(worker.native_handle(), SIGUSR2) == 0);
    worker.join();
}

void post_later(sem_t *semaphore) {
    std::thread([semaphore] {
        std::this_thread::sleep_for(std::chrono::milliseconds(9));
        sem_post(semaphore);
    }).detach();
}

void write_later(int end) {
    std::thread([end] {
        std::this_thread::sleep_for(std::chrono::milliseconds(9));
        require(write(end, "x", 1) == 1);
    }).detach();
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

// A timer of the time of processors interrupts the thread that runs.
void timer_of_processors() {
    require(sem_init(&stopped, 0, 0) == 0);
    on(SIGPROF, [](int) {
        handled++;
        sem_post(&stopped);
    }, SA_RESTART);
    std::thread worker([] {
        while (!over) nap();
    });
    itimerval every = {{0, 1000}, {0, 1000}}, now = {}, none = {};
    require(setitimer(ITIMER_PROF, &every, nullptr) == 0);
    for (int tick = 0; tick < 3; tick++) require(sem_wait(&stopped) == 0);
    require(getitimer(ITIMER_PROF, &now) == 0 && now.it_interval.tv_usec == 1000 && now.it_value.tv_usec > 0);
    require(setitimer(ITIMER_PROF, &none, &now) == 0 && now.it_interval.tv_usec == 1000);
    over = true;
    worker.join();
    int ticks = handled;
    nap();
    require(handled == ticks);
}

// A timer sends its signal to one thread.
void timer_of_thread() {
    static std::atomic<pid_t> number{0};
    require(sem_init(&stopped, 0, 0) == 0);
    on(SIGUSR2, [](int) {
        require(gettid() == number);
        sem_post(&stopped);
    });
    std::thread worker([] {
        number = gettid();
        while (!over) nap();
    });
    while (number == 0) nap();
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR2;
    event._sigev_un._tid = number;
    timer_t timer;
    require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    itimerspec every = {{0, 500'000}, {0, 500'000}};
    require(timer_settime(timer, 0, &every, nullptr) == 0);
    for (int tick = 0; tick < 2; tick++) require(sem_wait(&stopped) == 0);
    require(timer_delete(timer) == 0 && timer_delete(timer) == -1 && errno == EINVAL);
    over = true;
    worker.join();
}

// A thread waits for the signal of a timer, which nobody takes.
void timer_is_waited_for() {
    static int own;
    sigset_t set;
    require(sigemptyset(&set) == 0 && sigaddset(&set, SIGRTMIN + 1) == 0);
    require(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
    std::thread worker([set] {
        for (int tick = 0; tick < 3; tick++) {
            siginfo_t info = {};
            require(sigwaitinfo(&set, &info) == SIGRTMIN + 1);
            require(info.si_code == SI_TIMER && info.si_value.sival_ptr == &own);
        }
    });
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMIN + 1;
    event.sigev_value.sival_ptr = &own;
    timer_t timer;
    require(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
    itimerspec every = {{0, 1'000'000}, {0, 1'000'000}}, left = {};
    require(timer_settime(timer, 0, &every, &left) == 0 && left.it_value.tv_nsec == 0);
    require(timer_gettime(timer, &left) == 0 && left.it_interval.tv_nsec == 1'000'000);
    worker.join();
    require(timer_getoverrun(timer) >= 0 && timer_delete(timer) == 0);
}

static timer_t started(void (*function)(sigval)) {
    require(sem_init(&stopped, 0, 0) == 0);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = function;
    event.sigev_value.sival_int = 7;
    timer_t timer;
    require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    itimerspec every = {{0, 1'000'000}, {0, 1'000'000}};
    require(timer_settime(timer, 0, &every, nullptr) == 0);
    return timer;
}

// Each time is a thread of its own.
void timer_starts_threads() {
    timer_t timer = started([](sigval value) {
        require(value.sival_int == 7);
        std::lock_guard<std::mutex> guard(lock);
        sem_post(&stopped);
    });
    for (int tick = 0; tick < 2; tick++) require(sem_wait(&stopped) == 0);
    require(timer_delete(timer) == 0);
}

static std::atomic<bool> ended{false};

static void ticks_if_alive(sigval) {
    sem_post(&stopped);
    nap();
    if (ended) std::abort();
}

// A thread of a timer may begin after the timer has gone.
void timer_used_after_end() {
    timer_t timer = started(ticks_if_alive);
    require(sem_wait(&stopped) == 0);
    require(timer_delete(timer) == 0);
    ended = true;
    nap();
}

void timer_expires_once() {
    require(sem_init(&stopped, 0, 0) == 0);
    on(SIGALRM, [](int) {
        handled++;
        sem_post(&stopped);
    }, SA_RESTART);
    require(alarm(1) == 0);
    require(sem_wait(&stopped) == 0);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    require(handled == 1 && alarm(0) == 0);
}

// The handler of a timer allocates, and interrupts an allocation.
void timer_allocates() {
    on(SIGPROF, [](int) { use_heap(); });
    itimerval every = {{0, 1000}, {0, 1000}}, none = {};
    require(setitimer(ITIMER_PROF, &every, nullptr) == 0);
    for (int i = 0; i < 5; i++) allocate();
    require(setitimer(ITIMER_PROF, &none, nullptr) == 0);
}

// A thread that takes a sleep for a whole one.
void sleep_cut_short() {
    cut_short([] {
        timespec whole = {0, 5'000'000};
        require(nanosleep(&whole, nullptr) == 0);
    }, SA_RESTART);
}

// The rest is slept, too, by each call that sleeps.
void sleep_to_the_end() {
    cut_short([] {
        timespec begin, end, rest = {0, 5'000'000};
        clock_gettime(CLOCK_MONOTONIC, &begin);
        while (nanosleep(&rest, &rest) == -1) require(errno == EINTR && rest.tv_nsec <= 5'000'000);
        clock_gettime(CLOCK_MONOTONIC, &end);
        require((end.tv_sec - begin.tv_sec) * 1'000'000'000 + end.tv_nsec - begin.tv_nsec >= 5'000'000);
        unsigned left = sleep(2);
        require(left <= 2);
        if (usleep(3'000) == -1) require(errno == EINTR);
        timespec until = {end.tv_sec + 5, end.tv_nsec};
        while (int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr)) require(error == EINTR);
        clock_gettime(CLOCK_MONOTONIC, &end);
        require(end.tv_sec >= until.tv_sec);
    });
}

// A thread that takes any end of poll for data: calls with a limit are not restarted.
void poll_cut_short() {
    static int ends[2];
    require(pipe(ends) == 0);
    cut_short([] {
        pollfd one = {ends[0], POLLIN, 0};
        require(poll(&one, 1, 5) == 0);
    }, SA_RESTART);
}

// The same for a read, which is restarted if the handler says so.
static void read_one(int flags) {
    static int ends[2];
    require(pipe(ends) == 0);
    write_later(ends[1]);
    cut_short([] {
        char byte;
        require(read(ends[0], &byte, 1) == 1);
    }, flags);
}

void read_cut_short() { read_one(0); }
void read_restarted() { read_one(SA_RESTART); }

// The same for a semaphore.
void semaphore_cut_short() {
    require(sem_init(&stopped, 0, 0) == 0);
    post_later(&stopped);
    cut_short([] { require(sem_wait(&stopped) == 0); });
}

void semaphore_restarted() {
    require(sem_init(&stopped, 0, 0) == 0);
    post_later(&stopped);
    cut_short([] { require(sem_wait(&stopped) == 0); }, SA_RESTART);
}

// The signal may come between the look and the wait.
void pause_too_late() {
    cut_short([] {
        while (handled == 0) require(pause() == -1 && errno == EINTR);
    });
}

// Where it is blocked until the wait, it may not.
void suspended_for_signal() {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    require(pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
    cut_short([before] {
        while (handled == 0) require(sigsuspend(&before) == -1 && errno == EINTR);
    });
}

void timer_without_handler() {
    itimerval once = {{0, 0}, {0, 1000}};
    require(setitimer(ITIMER_REAL, &once, nullptr) == 0);
    nap();
}

}
