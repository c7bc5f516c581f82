// A pool of threads with tasks and their futures.
#include "sampler.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

namespace guest {

class Pool {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::packaged_task<void()>> tasks;
    bool ends = false;
    std::vector<std::thread> threads;

    void work() {
        for (;;) {
            std::packaged_task<void()> task;
            {
                std::unique_lock<std::mutex> guard(lock);
                changed.wait(guard, [this] { return ends || !tasks.empty(); });
                if (tasks.empty()) return;
                task = std::move(tasks.front());
                tasks.pop_front();
            }
            task();
        }
    }

public:
    explicit Pool(int count) {
        for (int i = 0; i < count; i++) threads.emplace_back([this] { work(); });
    }

    std::future<void> post(std::function<void()> what) {
        std::packaged_task<void()> task(std::move(what));
        std::future<void> done = task.get_future();
        {
            std::lock_guard<std::mutex> guard(lock);
            tasks.push_back(std::move(task));
        }
        changed.notify_one();
        return done;
    }

    void end() {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
        }
        changed.notify_all();
        for (auto &thread : threads) thread.join();
    }
};

struct ThreadPool final : Sampler {
    enum { RIGHT, TASK_WAITS_FOR_TASK };
    std::unique_ptr<Pool> pool;
    std::mutex sampling;

    using Sampler::Sampler;

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, JIT | THREADS | SNAPSHOT);
        pool = std::make_unique<Pool>(2);
        return result;
    }

    void request() {
        pool->post([this] {
            {
                std::lock_guard<std::mutex> guard(sampling);
                sample();
            }
            std::future<void> aggregated = pool->post([] {});
            // Both threads of the pool may wait for a third one.
            if (form == TASK_WAITS_FOR_TASK) aggregated.wait();
        });
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        request();
        return S_OK;
    }
    HRESULT ThreadDestroyed(uint64_t) override {
        request();
        return S_OK;
    }
    HRESULT Shutdown() override {
        // Tasks use the pointer until their end.
        pool->end();
        pool.reset();
        close();
        return S_OK;
    }
};

} // namespace guest
