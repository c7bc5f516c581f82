// Functions that call the system in ways that are not simulated, one for each export, and in ways that are.
#include <cstdlib>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ctime>
#include <unistd.h>

namespace {

// What another process, or a person, would have to answer.
int watched() { return inotify_init(); }

void require(bool holds) {
    if (!holds) std::abort();
}

}

extern "C" {

void polls() {
    pollfd polled = {watched(), POLLIN, 0};
    poll(&polled, 1, -1);
}

void polls_within_a_time() {
    pollfd polled = {watched(), POLLIN, 0};
    poll(&polled, 1, 1000);
}

void selects() {
    fd_set set;
    FD_ZERO(&set);
    int last = watched();
    FD_SET(last, &set);
    select(last + 1, &set, nullptr, nullptr, nullptr);
}

void waits_for_events() {
    epoll_event event = {EPOLLIN, {nullptr}};
    int set = epoll_create1(0);
    require(epoll_ctl(set, EPOLL_CTL_ADD, watched(), &event) == 0);
    epoll_wait(set, &event, 1, -1);
}

void receives() {
    char byte;
    recv(socket(AF_INET, SOCK_DGRAM, 0), &byte, 1, 0);
}

void accepts() {
    int server = socket(AF_INET, SOCK_STREAM, 0);
    require(listen(server, 1) == 0);
    accept(server, nullptr, nullptr);
}

void connects() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    connect(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<sockaddr *>(&address), sizeof address);
}

void reads() {
    char byte;
    require(read(watched(), &byte, 1) == 1);
}

void forks() {
    if (fork() == 0) _exit(0);
}

void executes() { execl("/bin/true", "true", static_cast<char *>(nullptr)); }

void asks_a_shell() { require(system("true") == 0); }

void spawns() {
    pid_t child;
    char name[] = "true", *arguments[] = {name, nullptr};
    posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, nullptr);
}

void waits_for_a_child() { waitpid(-1, nullptr, 0); }

void polls_by_number() {
    pollfd polled = {watched(), POLLIN, 0};
    syscall(SYS_poll, &polled, 1, -1);
}

// What does not wait, and what waits for a time alone.
void simulated() {
    pollfd polled = {watched(), POLLIN, 0};
    require(poll(&polled, 1, 0) == 0);
    timeval now = {0, 0}, second = {1, 0};
    require(select(0, nullptr, nullptr, nullptr, &now) == 0);
    timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    require(poll(nullptr, 0, 2000) == 0);
    require(select(0, nullptr, nullptr, nullptr, &second) == 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    require(after.tv_sec >= before.tv_sec + 3);
    char byte;
    require(write(socket(AF_UNIX, SOCK_DGRAM, 0), "", 0) == -1);
    int file = open("/proc/self/exe", O_RDONLY);
    require(read(file, &byte, 1) == 1 && byte == 0x7F);
    require(syscall(SYS_getpid) == getpid());
}

}
