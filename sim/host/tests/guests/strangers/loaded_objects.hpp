// A list of the loaded libraries, which a function fills that the loader calls.
#include "sampler.hpp"

#include <dlfcn.h>
#include <link.h>
#include <mutex>

namespace guest {

struct LoadedObjects final : TickingSampler {
    enum { RIGHT, LISTED_UNDER_LOCK };
    std::mutex lock;
    std::vector<std::string> objects;

    using TickingSampler::TickingSampler;

    static int add(dl_phdr_info *object, size_t, void *data) {
        auto *self = static_cast<LoadedObjects *>(data);
        std::lock_guard<std::mutex> guard(self->lock);
        self->objects.emplace_back(object->dlpi_name);
        return 0;
    }

    static int count(dl_phdr_info *, size_t, void *data) {
        ++*static_cast<int *>(data);
        return 0;
    }

    HRESULT Initialize(void *unknown) override {
        HRESULT result = open(unknown, JIT | SNAPSHOT);
        worker = std::thread([this] {
            while (!ends) {
                dl_iterate_phdr(add, this);
                sample();
                std::this_thread::sleep_for(TICK);
            }
        });
        return result;
    }

    HRESULT JITCompilationStarted(uint64_t, BOOL) override {
        // The loader's lock comes first: it calls `add` with it.
        int found = 0;
        std::unique_lock<std::mutex> guard(lock, std::defer_lock);
        if (form == LISTED_UNDER_LOCK) guard.lock();
        dl_iterate_phdr(count, &found);
        return found > 0 ? S_OK : E_FAIL;
    }
};

} // namespace guest
