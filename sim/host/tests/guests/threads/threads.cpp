// Programs with threads, one for each export: right ones, and each mistake that a search has to find.
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <sys/random.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

// A time of the real-time clock, this long from now.
timespec in_seconds(long seconds) {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += seconds;
    return time;
}

long futex(int *word, int operation, int value, const timespec *limit = nullptr) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, limit, nullptr, 0);
}

void require(bool holds) {
    if (!holds) std::abort();
}

}

extern "C" {

// A history begins with the variables as the loader has left them.
void fresh_globals() {
    static int histories = 0;
    require(++histories == 1);
}

// A worker takes what the main thread has put, in this order.
void hand_over() {
    std::mutex lock;
    std::condition_variable changed;
    std::vector<int> queue;
    bool last = false;
    int sum = 0;
    std::thread worker([&] {
        for (;;) {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [&] { return last || !queue.empty(); });
            if (queue.empty()) return;
            sum = sum * 10 + queue.front();
            queue.erase(queue.begin());
        }
    });
    for (int item = 1; item <= 3; item++) {
        std::lock_guard<std::mutex> guard(lock);
        queue.push_back(item);
        changed.notify_one();
    }
    {
        std::lock_guard<std::mutex> guard(lock);
        last = true;
        changed.notify_one();
    }
    worker.join();
    if (sum != 123) std::abort();
}

// The flag is set without the lock: the notification may come between the test and the wait.
void lost_wake_up() {
    std::mutex lock;
    std::condition_variable changed;
    volatile bool ready = false;
    std::thread worker([&] {
        std::unique_lock<std::mutex> guard(lock);
        while (!ready) changed.wait(guard);
    });
    ready = true;
    changed.notify_one();
    worker.join();
}

// Two threads take two locks in different order.
void crossed_locks() {
    std::mutex one, two;
    std::thread worker([&] {
        std::lock_guard<std::mutex> first(two);
        std::lock_guard<std::mutex> second(one);
    });
    {
        std::lock_guard<std::mutex> first(one);
        std::lock_guard<std::mutex> second(two);
    }
    worker.join();
}

// The object is used before the thread that makes it has made it.
void used_too_early() {
    std::mutex lock;
    int *object = nullptr;
    static int made = 1;
    std::thread worker([&] {
        std::lock_guard<std::mutex> guard(lock);
        object = &made;
    });
    {
        std::lock_guard<std::mutex> guard(lock);
        made += *const_cast<int *volatile &>(object);
    }
    worker.join();
}

// Sleeps and time limits: time passes only where somebody waits for it.
void patience() {
    std::timed_mutex lock;
    std::mutex other;
    std::condition_variable never;
    auto before = std::chrono::steady_clock::now();
    lock.lock();
    std::thread worker([&] {
        if (lock.try_lock_for(std::chrono::seconds(5))) lock.unlock();
        std::unique_lock<std::mutex> guard(other);
        never.wait_for(guard, std::chrono::hours(1));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lock.unlock();
    worker.join();
    if (std::chrono::steady_clock::now() - before < std::chrono::hours(1)) std::abort();
}

struct Slow {
    Slow() { std::this_thread::yield(); value = 7; }
    int value;
};

static thread_local struct Ends {
    std::mutex *lock = nullptr;
    int *count = nullptr;
    ~Ends() {
        if (!lock) return;
        std::lock_guard<std::mutex> guard(*lock);
        ++*count;
    }
} ends;

// Static and thread-local variables, shared and recursive locks, a thread that starts a thread.
void the_rest() {
    std::shared_mutex tables;
    std::recursive_mutex again;
    std::mutex lock;
    int ended = 0, read = 0;
    auto reader = [&] {
        static Slow slow;
        ends.lock = &lock;
        ends.count = &ended;
        std::shared_lock<std::shared_mutex> guard(tables);
        std::lock_guard<std::recursive_mutex> outer(again);
        std::lock_guard<std::recursive_mutex> inner(again);
        read += slow.value;
    };
    std::thread one([&] { std::thread inner(reader); reader(); inner.join(); });
    {
        std::unique_lock<std::shared_mutex> guard(tables);
        read++;
    }
    one.join();
    if (read != 15 || ended != 2) std::abort();
}

// A semaphore counts what two workers have made; time limits end when nothing more comes.
void semaphores() {
    sem_t made, never;
    require(sem_init(&made, 0, 0) == 0 && sem_init(&never, 0, 0) == 0);
    auto work = [&] { for (int item = 0; item < 2; item++) sem_post(&made); };
    std::thread one(work), two(work);
    for (int item = 0; item < 4; item++) require(sem_wait(&made) == 0);
    one.join();
    two.join();
    require(sem_trywait(&made) == -1 && errno == EAGAIN);
    timespec until = in_seconds(5);
    require(sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT);
    timespec now = in_seconds(0);
    require(now.tv_sec >= until.tv_sec);
    sem_post(&never);
    require(sem_timedwait(&never, &until) == 0);
    sem_destroy(&made);
    sem_destroy(&never);
}

// What is drained before the wait may be the post that the wait is for.
void drained_semaphore() {
    sem_t ready;
    sem_init(&ready, 0, 0);
    std::thread worker([&] {
        sem_trywait(&ready);
        sem_wait(&ready);
    });
    sem_post(&ready);
    worker.join();
}

// Three threads meet twice: each time one of them is the serial one.
void barriers() {
    pthread_barrier_t meeting;
    pthread_barrier_init(&meeting, nullptr, 3);
    int arrived[2] = {0, 0}, serial = 0;
    auto meet = [&] {
        for (int &count : arrived) {
            count++;
            if (pthread_barrier_wait(&meeting) == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
            require(count == 3);
        }
    };
    std::thread one(meet), two(meet);
    meet();
    one.join();
    two.join();
    require(serial == 2);
    pthread_barrier_destroy(&meeting);
}

// The barrier waits for one thread more than there are.
void lonely_barrier() {
    pthread_barrier_t meeting;
    pthread_barrier_init(&meeting, nullptr, 3);
    std::thread one([&] { pthread_barrier_wait(&meeting); });
    std::thread two([&] { pthread_barrier_wait(&meeting); });
    one.join();
    two.join();
}

// A word that a futex guards: waiting ends by a value that is another one already, a wake, or a time limit.
void futexes() {
    int word = 0, other = 0;
    std::thread worker([&] {
        __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
        require(futex(&word, FUTEX_WAKE, INT_MAX) <= 1);
    });
    while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 0) {
        long waited = futex(&word, FUTEX_WAIT, 0);
        require(waited == 0 || errno == EAGAIN);
    }
    worker.join();
    require(futex(&word, FUTEX_WAKE, 1) == 0);
    timespec limit = {3, 0};
    require(futex(&other, FUTEX_WAIT, 0, &limit) == -1 && errno == ETIMEDOUT);
    require(syscall(SYS_getpid) == getpid());
}

// The value is read again for the wait: a change between the test and the wait is not seen.
void futex_read_again() {
    int word = 0;
    std::thread worker([&] {
        if (__atomic_load_n(&word, __ATOMIC_SEQ_CST) != 0) return;
        std::this_thread::yield();
        futex(&word, FUTEX_WAIT, __atomic_load_n(&word, __ATOMIC_SEQ_CST));
    });
    std::this_thread::yield();
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    futex(&word, FUTEX_WAKE, 1);
    worker.join();
}

// Spin locks, and read-write locks with time limits.
void locks_with_limits() {
    pthread_spinlock_t spin;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_rwlock_t tables = PTHREAD_RWLOCK_INITIALIZER;
    int sum = 0;
    auto add = [&] {
        pthread_spin_lock(&spin);
        int before = sum;
        std::this_thread::yield();
        sum = before + 1;
        pthread_spin_unlock(&spin);
    };
    pthread_rwlock_wrlock(&tables);
    std::thread worker([&] {
        timespec until = in_seconds(2);
        require(pthread_rwlock_timedrdlock(&tables, &until) == ETIMEDOUT);
        until = in_seconds(2);
        require(pthread_rwlock_timedwrlock(&tables, &until) == ETIMEDOUT);
        add();
    });
    add();
    worker.join();
    pthread_rwlock_unlock(&tables);
    timespec until = in_seconds(2);
    require(pthread_rwlock_timedrdlock(&tables, &until) == 0);
    pthread_rwlock_unlock(&tables);
    require(sum == 2 && pthread_spin_trylock(&spin) == 0);
    require(pthread_spin_trylock(&spin) == EBUSY);
    pthread_spin_unlock(&spin);
    pthread_spin_destroy(&spin);
}

// Two threads draw numbers, which depend on the order of the threads alone.
void random_numbers() {
    unsigned char one[5], two[11];
    std::thread worker([&] { require(getrandom(one, sizeof one, 0) == sizeof one); });
    require(getentropy(two, sizeof two) == 0);
    worker.join();
    // As many turns as the number says: other numbers are another history.
    for (int turn = two[10] % 8; turn > 0; turn--) std::this_thread::yield();
}

// The scheduler cannot see it.
void spins() {
    for (;;) { __asm__ volatile(""); }
}

// Ends its process.
void leaves() { std::_Exit(3); }

// Of two threads that wait the one that is notified first need not be the one that has waited longer.
void woken_out_of_order() {
    std::mutex lock;
    std::condition_variable changed;
    int waiting = 0, woken = 0;
    auto wait = [&] {
        std::unique_lock<std::mutex> guard(lock);
        int mine = waiting++;
        changed.wait(guard);
        if (woken++ == 0 && mine != 0) _exit(4);
    };
    std::thread one(wait), other(wait);
    for (bool both = false; !both;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::lock_guard<std::mutex> guard(lock);
        both = waiting == 2;
    }
    changed.notify_one();
    changed.notify_one();
    one.join();
    other.join();
}

}
