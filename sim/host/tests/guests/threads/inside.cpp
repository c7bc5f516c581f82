// What connects the threads of a process besides its locks: ends of threads, pipes, counters, sockets and timers.
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <thread>
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

}
