// Names of methods behind a read-write lock, in a variable that is made once.
#include "sampler.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace guest {

struct Names {
    std::shared_mutex lock;
    std::map<uint64_t, std::string> names;
};

struct SharedNames final : TickingSampler {
    enum { RIGHT, BECOMES_WRITER };
    std::once_flag once;
    std::unique_ptr<Names> names;

    using TickingSampler::TickingSampler;

    Names &all() {
        std::call_once(once, [this] { names = std::make_unique<Names>(); });
        return *names;
    }

    void remember(uint64_t function) {
        Names &known = all();
        std::shared_lock<std::shared_mutex> reading(known.lock);
        if (known.names.count(function)) return;
        // The other reader may wait for the same.
        if (form == RIGHT) reading.unlock();
        std::string name = form == RIGHT ? name_of(info, function) : "?";
        std::unique_lock<std::shared_mutex> writing(known.lock, std::defer_lock);
        writing.lock();
        known.names[function] = name;
        writing.unlock();
        if (form != RIGHT) reading.release();
    }

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, JIT | SNAPSHOT);
        worker = std::thread([this] {
            while (!ends) {
                sample();
                std::shared_lock<std::shared_mutex> reading(all().lock);
                all().names.size();
                reading.unlock();
                std::this_thread::sleep_for(TICK);
            }
        });
        return result;
    }

    HRESULT JITCompilationFinished(uint64_t function, HRESULT, BOOL) override {
        remember(function);
        return S_OK;
    }
};

} // namespace guest
