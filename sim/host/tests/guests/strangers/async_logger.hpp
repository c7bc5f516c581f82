// A logger of the process with a queue and a thread, in a static variable that is made at its first use, and ends with the process. Who wants to be sure that all
// is written waits for it.
#include "sampler.hpp"

#include <condition_variable>
#include <ctime>
#include <deque>
#include <fstream>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <thread>

namespace guest {

class Log {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::string> queue;
    bool ends = false, writes = false, tells_one;
    std::ofstream file{"/dev/null", std::ios::app};
    std::thread thread;

    void run() {
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            changed.wait(guard, [this] { return ends || !queue.empty(); });
            if (queue.empty()) return;
            std::string line = std::move(queue.front());
            queue.pop_front();
            writes = true;
            guard.unlock();
            file << line << std::endl;
            guard.lock();
            writes = false;
            tell();
        }
    }

    void tell() { tells_one ? changed.notify_one() : changed.notify_all(); }

public:
    explicit Log(bool tells_one) : tells_one(tells_one), thread([this] { run(); }) {}

    ~Log() {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
        }
        changed.notify_all();
        if (thread.joinable()) thread.join();
    }

    void write(const char *what) {
        std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
        std::tm parts;
        std::ostringstream line;
        line << std::put_time(localtime_r(&now, &parts), "%F %T") << ' ' << std::this_thread::get_id() << ' ' << what;
        std::lock_guard<std::mutex> guard(lock);
        queue.push_back(line.str());
        tell();
    }

    void flush() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return queue.empty() && !writes; });
    }
};

struct AsyncLogger final : Sampler {
    enum { RIGHT, ONE_IS_TOLD };
    std::thread worker;
    std::atomic<bool> ends{false};

    using Sampler::Sampler;

    Log &log() {
        // Who flushes and who writes wait for the same: to tell one may tell the wrong one.
        static Log only(form == ONE_IS_TOLD);
        return only;
    }

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, JIT | SNAPSHOT);
        worker = std::thread([this] {
            while (!ends) {
                sample();
                log().write("sampled");
                log().flush();
                std::this_thread::sleep_for(TICK);
            }
        });
        return result;
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        log().write("compiled");
        log().flush();
        return S_OK;
    }

    HRESULT Shutdown() override {
        ends = true;
        worker.join();
        log().flush();
        close();
        return S_OK;
    }
};

} // namespace guest
