// What connects the threads of a process besides its locks: ends of threads, pipes, counters, sockets and timers.
#include <stdexcept>
#include <new>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

// The ends of threads: what their destructors have done, in order.
std::mutex lock;
std::condition_variable changed;
std::vector<int> ends;
pthread_key_t early, late;

void note(int what) {
    std::lock_guard<std::mutex> guard(lock);
    ends.push_back(what);
    changed.notify_all();
}

thread_local struct Local {
    bool used = false;
    ~Local() {
        if (used) note(0);
    }
} local;

// Sets its own value again, and one of a key that comes before it: there are four rounds, and no fifth one.
void end_early(void *) { note(1); }
void end_late(void *round) {
    note(2);
    pthread_setspecific(late, static_cast<char *>(round) + 1);
    if (round == reinterpret_cast<void *>(1)) pthread_setspecific(early, round);
}

void make_keys() {
    static std::once_flag made;
    std::call_once(made, [] { require(pthread_key_create(&early, end_early) == 0 && pthread_key_create(&late, end_late) == 0); });
}

void use_keys() {
    make_keys();
    pthread_setspecific(early, &early);
    pthread_setspecific(late, reinterpret_cast<void *>(1));
}

void use() {
    local.used = true;
    use_keys();
}

struct Pipe {
    int from, to;
    Pipe() {
        int ends[2];
        require(pipe2(ends, O_CLOEXEC) == 0);
        from = ends[0];
        to = ends[1];
    }
};

const std::vector<int> all = {0, 1, 2, 1, 2, 2, 2};

}

extern "C" {

// Who joins sees what all destructors have done.
void destructors_before_join() {
    std::thread worker([] { std::this_thread::yield(); use(); });
    worker.join();
    require(ends == all);
}

// The key is made when the thread is there already, which ends itself, deep in its code.
void destructors_after_exit() {
    pthread_t worker;
    auto work = [](void *) -> void * { use(); pthread_exit(nullptr); };
    require(pthread_create(&worker, nullptr, work, nullptr) == 0 && pthread_join(worker, nullptr) == 0);
    require(ends == all);
}

// Nobody joins: a destructor is what says that the thread is over.
void destructors_of_detached() {
    make_keys();
    std::thread(use_keys).detach();
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [] { return ends.size() == all.size() - 1; });
}

// The last destructor takes a lock that the one who joins holds.
void destructor_under_lock() {
    std::thread worker(use_keys);
    std::lock_guard<std::mutex> guard(lock);
    worker.join();
}

// A worker that waits in poll, as a helper thread of NativeAOT does.
void pipe_is_polled() {
    Pipe pipe;
    std::thread worker([&] {
        pollfd one = {pipe.from, POLLIN, 0};
        require(poll(&one, 1, -1) == 1 && one.revents == POLLIN);
    });
    require(write(pipe.to, "x", 1) == 1);
    worker.join();
}

// Each reader gets a part, and both the end.
void pipe_is_read_to_its_end() {
    Pipe pipe;
    std::string got;
    auto work = [&] {
        char byte;
        while (read(pipe.from, &byte, 1) == 1) {
            std::lock_guard<std::mutex> guard(lock);
            got += byte;
        }
    };
    std::thread one(work), other(work);
    require(write(pipe.to, "ab", 2) == 2 && syscall(SYS_write, pipe.to, "c", 1) == 1);
    require(close(pipe.to) == 0);
    one.join();
    other.join();
    require(got.size() == 3);
}

// A pipe takes no more than a part at once.
void pipe_is_full() {
    Pipe pipe;
    std::vector<char> sent(100'000, 'x'), got(sent.size());
    std::thread worker([&] {
        require(write(pipe.to, sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
        close(pipe.to);
    });
    size_t all = 0;
    while (ssize_t more = read(pipe.from, got.data() + all, 30'000)) {
        require(more > 0);
        all += more;
    }
    worker.join();
    require(got == sent);
}

// A handler that wakes its own thread by a pipe, wherever that thread is.
void pipe_of_handler() {
    static Pipe pipe;
    signal(SIGUSR1, [](int) { require(write(pipe.to, "x", 1) == 1); });
    pthread_t sampler;
    auto work = [](void *) -> void * {
        pollfd one = {pipe.from, POLLIN, 0};
        char byte;
        require(poll(&one, 1, -1) == 1 && read(pipe.from, &byte, 1) == 1);
        return nullptr;
    };
    require(pthread_create(&sampler, nullptr, work, nullptr) == 0);
    require(pthread_kill(sampler, SIGUSR1) == 0);
    pthread_join(sampler, nullptr);
}

void pipe_without_writer() {
    Pipe pipe;
    std::thread worker([&] {
        char byte;
        (void)!read(pipe.from, &byte, 1);
    });
    worker.join();
}

void pipe_nobody_joins() {
    static Pipe pipe;
    std::thread([] {
        char byte;
        (void)!read(pipe.from, &byte, 1);
    }).detach();
}

// What is drained before the wait may be what the wait is for.
void pipe_drained_too_early() {
    Pipe pipe;
    fcntl(pipe.from, F_SETFL, O_NONBLOCK);
    std::thread worker([&] {
        char byte;
        if (read(pipe.from, &byte, 1) == -1) require(errno == EAGAIN);
        pollfd one = {pipe.from, POLLIN, 0};
        require(poll(&one, 1, -1) == 1);
    });
    require(write(pipe.to, "x", 1) == 1);
    worker.join();
}

// Counters hand over what was added, or one at a time, and wait where they are full.
void counters() {
    int sum = eventfd(0, 0), each = eventfd(0, EFD_SEMAPHORE), full = eventfd(0, 0);
    require(eventfd_write(full, UINT64_MAX - 1) == 0);
    std::thread worker([&] {
        require(eventfd_write(each, 2) == 0 && eventfd_write(full, 1) == 0);
        uint64_t three = 3;
        require(write(dup(sum), &three, sizeof three) == sizeof three);
    });
    eventfd_t got = 0;
    require(eventfd_read(each, &got) == 0 && got == 1 && eventfd_read(each, &got) == 0 && got == 1);
    require(eventfd_read(full, &got) == 0 && got == UINT64_MAX - 1);
    require(read(sum, &got, sizeof got) == sizeof got && got == 3);
    worker.join();
}

// A pair of sockets; one that waits within a time; the end of one of them.
void sockets() {
    int pair[2];
    char byte;
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    require(recv(pair[0], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    std::thread worker([&] {
        require(recv(pair[1], &byte, 1, 0) == 1 && send(pair[1], "y", 1, 0) == 1);
        require(shutdown(pair[1], SHUT_WR) == 0);
    });
    require(send(pair[0], "x", 1, 0) == 1 && read(pair[0], &byte, 1) == 1 && byte == 'y');
    require(read(pair[0], &byte, 1) == 0);
    worker.join();
    timeval limit = {2, 0};
    require(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    time_t before = time(nullptr);
    require(recv(pair[1], &byte, 1, 0) == -1 && errno == EAGAIN && time(nullptr) >= before + 2);
}

// A server, and a client of the same process.
void server() {
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    socklen_t size = sizeof(sa_family_t);
    // The system chooses the name.
    require(bind(server, reinterpret_cast<sockaddr *>(&name), size) == 0 && listen(server, 1) == 0);
    size = sizeof name;
    require(getsockname(server, reinterpret_cast<sockaddr *>(&name), &size) == 0);
    std::thread worker([&] {
        int one = accept(server, nullptr, nullptr);
        char byte;
        require(one >= 0 && read(one, &byte, 1) == 1 && byte == 'x');
        close(one);
    });
    require(connect(client, reinterpret_cast<sockaddr *>(&name), size) == 0 && write(client, "x", 1) == 1);
    char byte;
    require(read(client, &byte, 1) == 0);
    worker.join();
}

// Waits that end by their limits.
void limits() {
    Pipe pipe;
    time_t before = time(nullptr);
    pollfd one = {pipe.from, POLLIN, 0};
    require(poll(&one, 1, 2'000) == 0);
    timespec two = {2, 0};
    require(ppoll(&one, 1, &two, nullptr) == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe.from, &set);
    timeval limit = {2, 0};
    require(select(pipe.from + 1, &set, nullptr, nullptr, &limit) == 0 && !FD_ISSET(pipe.from, &set));
    epoll_event event = {EPOLLIN, {nullptr}};
    int events = epoll_create1(0);
    require(epoll_ctl(events, EPOLL_CTL_ADD, pipe.from, &event) == 0);
    require(epoll_wait(events, &event, 1, 2'000) == 0);
    require(time(nullptr) >= before + 8);
    require(write(pipe.to, "x", 1) == 1 && poll(&one, 1, 2'000) == 1 && epoll_wait(events, &event, 1, -1) == 1);
    FD_SET(pipe.from, &set);
    require(select(pipe.from + 1, &set, nullptr, nullptr, nullptr) == 1 && FD_ISSET(pipe.from, &set));
}

// A sampler that ticks by a timer until it is told to stop by a counter.
void ticks() {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), stop = eventfd(0, 0);
    int ticks = 0;
    std::thread sampler([&] {
        itimerspec every = {{0, 10'000'000}, {0, 10'000'000}}, left;
        require(timerfd_settime(timer, 0, &every, nullptr) == 0 && timerfd_gettime(timer, &left) == 0);
        require(left.it_interval.tv_nsec == 10'000'000 && left.it_value.tv_nsec > 0);
        for (;;) {
            pollfd both[] = {{timer, POLLIN, 0}, {stop, POLLIN, 0}};
            require(poll(both, 2, -1) >= 1);
            if (both[1].revents != 0) return;
            uint64_t count;
            require(read(timer, &count, sizeof count) == sizeof count && count >= 1);
            std::lock_guard<std::mutex> guard(lock);
            ticks += count;
            changed.notify_all();
        }
    });
    {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [&] { return ticks >= 3; });
    }
    require(eventfd_write(stop, 1) == 0);
    sampler.join();
    // One that expires once, and one that is read by a thread that waits for nothing else.
    itimerspec once = {{0, 0}, {5, 0}};
    time_t before = time(nullptr);
    uint64_t count;
    require(timerfd_settime(timer, 0, &once, nullptr) == 0 && read(timer, &count, sizeof count) == sizeof count);
    require(count == 1 && time(nullptr) >= before + 5);
}

// A set with a timer and a counter, to which the counter is added while a thread waits.
void sets() {
    int set = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0), counter = eventfd(0, 0);
    epoll_event event = {EPOLLIN, {nullptr}};
    event.data.fd = timer;
    require(epoll_ctl(set, EPOLL_CTL_ADD, timer, &event) == 0);
    std::thread worker([&] {
        bool ticked = false, told = false;
        while (!ticked || !told) {
            epoll_event got;
            require(epoll_wait(set, &got, 1, -1) == 1);
            uint64_t count;
            require(read(got.data.fd, &count, sizeof count) == sizeof count);
            (got.data.fd == timer ? ticked : told) = true;
        }
    });
    itimerspec once = {{0, 0}, {1, 0}};
    require(timerfd_settime(timer, 0, &once, nullptr) == 0 && eventfd_write(counter, 1) == 0);
    event = {EPOLLIN | EPOLLET, {nullptr}};
    event.data.fd = counter;
    require(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event) == 0);
    worker.join();
}

// An initialisation that throws is done again, and another object at the same address has its own.
void initialisations() {
    alignas(std::once_flag) static char place[sizeof(std::once_flag)];
    int times = 0;
    for (int round = 0; round < 2; round++) {
        auto *once = new (place) std::once_flag;
        try {
            std::call_once(*once, [] { throw std::runtime_error("not yet"); });
        } catch (const std::runtime_error &) {
            times++;
        }
        std::thread other([&] { std::call_once(*once, [&] { times++; }); });
        std::call_once(*once, [&] { times++; });
        other.join();
        once->~once_flag();
    }
    require(times == 4);
}

}
