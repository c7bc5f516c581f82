// A profiler whose object is destroyed by the last Release: on CoreCLR 3.1 after Shutdown, on later runtimes never. It does
// everything right, or makes the mistake that MISTAKE names.
#include "guest.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

// The destructor ends the worker, and waits for it. References to metadata are released there, too.
#define RIGHT 0
// The worker does not end, and std::thread ends the process for that.
#define NOT_JOINED 1
// The destructor waits for a worker that does not end.
#define JOINED_FOR_EVER 2
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace guest {

struct Ending final : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    std::mutex lock;
    std::condition_variable changed;
    bool ends = false;
    std::vector<IUnknown *> metadata;
    std::thread worker;

    ~Ending() {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = MISTAKE == RIGHT;
        }
        changed.notify_one();
        if (MISTAKE != NOT_JOINED) worker.join();
        for (auto *one : metadata) one->Release();
        info->Release();
    }

    uint32_t Release() override {
        uint32_t left = Profiler::Release();
        if (left == 0) delete this;
        return left;
    }

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        worker = std::thread([this] {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [this] { return ends; });
        });
        // MODULE_LOADS.
        return info->SetEventMask(0x4);
    }

    HRESULT ModuleLoadFinished(uint64_t module, HRESULT) override {
        void *found = nullptr;
        if (info->GetModuleMetaData(module, 0, IMetaDataImport::IID, &found) == S_OK) {
            metadata.push_back(static_cast<IUnknown *>(found));
        }
        return S_OK;
    }
};

Profiler *make() { return new Ending; }

} // namespace guest
