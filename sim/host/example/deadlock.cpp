// Compiled methods are counted under a lock, which the sampler takes while the runtime is suspended.
#include "clrsim_interfaces.hpp" // Yours includes corprof.h.

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

using namespace clrsim;

struct Names : Profiler {
    ICorProfilerInfo10 *info = nullptr;
    std::mutex lock;
    std::map<uint64_t, uint64_t> names;
    uint64_t last_ip = 0;
    bool ends = false;
    std::thread sampler;

    HRESULT Initialize(void *unknown) override {
        void *found = nullptr;
        HRESULT result = static_cast<IUnknown *>(unknown)->QueryInterface(ICorProfilerInfo10::IID, &found);
        if (result != 0) return result;
        info = static_cast<ICorProfilerInfo10 *>(found);
        sampler = std::thread([this] { sample(); });
        return info->SetEventMask(0x10000020); // JIT_COMPILATION, ENABLE_STACK_SNAPSHOT
    }

    void sample() {
        info->InitializeCurrentThread();
        for (bool last = false; !last;) {
            if (info->SuspendRuntime() != 0) return;
            {
                std::lock_guard<std::mutex> guard(lock); // The mistake.
                ICorProfilerThreadEnum *threads = nullptr;
                info->EnumThreads(reinterpret_cast<void **>(&threads));
                uint64_t thread = 0;
                uint32_t count = 0;
                while (threads->Next(1, &thread, &count) == 0) info->DoStackSnapshot(thread, on_frame, 0, this, nullptr, 0);
                threads->Release();
                last = ends;
            }
            info->ResumeRuntime();
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    static HRESULT on_frame(uint64_t function, uint64_t ip, uint64_t, uint32_t, uint8_t *, void *self) {
        if (function) static_cast<Names *>(self)->last_ip = ip;
        return 0;
    }

    HRESULT JITCompilationFinished(uint64_t function, HRESULT, BOOL) override {
        std::lock_guard<std::mutex> guard(lock);
        return info->GetFunctionFromIP(reinterpret_cast<const uint8_t *>(last_ip), &names[function]);
    }

    HRESULT Shutdown() override {
        { std::lock_guard<std::mutex> guard(lock); ends = true; }
        sampler.join();
        info->Release();
        return 0;
    }
};

struct Factory : IUnknown {
    HRESULT QueryInterface(const GUID &, void **object) override { *object = this; return 0; }
    uint32_t AddRef() override { return 2; }
    uint32_t Release() override { return 1; }
    virtual HRESULT CreateInstance(void *, const GUID &iid, void **object) {
        Profiler *profiler = new Names;
        HRESULT result = profiler->QueryInterface(iid, object);
        profiler->Release();
        return result;
    }
    virtual HRESULT LockServer(BOOL) { return 0; }
};

extern "C" __attribute__((visibility("default"))) HRESULT DllGetClassObject(const GUID &, const GUID &, void **object) {
    static Factory factory;
    *object = &factory;
    return 0;
}
