// A profiler that checks the arguments of callbacks in histories. It ends the process with a line's number if one is wrong.
#include "guest.hpp"

#include <cstdlib>
#include <map>
#include <string>

namespace guest {

#define CHECK(condition) \
    if (!(condition)) std::_Exit(__LINE__)

struct Checks : Profiler {
    ICorProfilerInfo2 *info = nullptr;
    // The objects that threads have thrown.
    std::map<uint64_t, uint64_t> thrown;
    int caught = 0, collected = 0, handles = 0, called = 0, returned = 0, suspended = 0;

    uint64_t thread() {
        uint64_t id = 0;
        CHECK(info->GetCurrentThreadID(&id) == S_OK);
        return id;
    }

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo2>(unknown);
        // Exceptions, the GC, transitions, suspensions.
        return info->SetEventMask(0x40 | 0x80 | 0x800 | 0x10000);
    }
    HRESULT ExceptionThrown(uint64_t object) override {
        for (const auto &one : thrown) CHECK(one.second != object);
        thrown[thread()] = object;
        return S_OK;
    }
    HRESULT ExceptionCatcherEnter(uint64_t function, uint64_t object) override {
        CHECK(object != 0 && object == thrown[thread()]);
        std::string name = name_of(info, function);
        CHECK(name == "App.Main" || name == "App.Other");
        caught++;
        return S_OK;
    }
    HRESULT HandleCreated(uint64_t handle, uint64_t object) override {
        // Those of a new thread hold nothing yet, and come before the thread is one of the runtime.
        if (object == 0) return S_OK;
        CHECK(handle != 0 && object == thrown[thread()]);
        handles++;
        return S_OK;
    }
    HRESULT ManagedToUnmanagedTransition(uint64_t function, uint32_t reason) override {
        CHECK(name_of(info, function) == "Lib.Sleep" && reason == 0);
        called++;
        return S_OK;
    }
    HRESULT UnmanagedToManagedTransition(uint64_t function, uint32_t reason) override {
        CHECK(name_of(info, function) == "Lib.Sleep" && reason == 1);
        returned++;
        return S_OK;
    }
    HRESULT RuntimeSuspendStarted(uint32_t reason) override {
        CHECK(reason == 1);
        suspended++;
        return S_OK;
    }
    HRESULT GarbageCollectionStarted(int32_t generations, const BOOL *collected_ones, uint32_t reason) override {
        CHECK(generations == 5 && reason == 1);
        for (int32_t one = 0; one < generations; one++) CHECK(collected_ones[one]);
        collected++;
        return S_OK;
    }
    HRESULT Shutdown() override {
        CHECK(caught == 2 && handles == 1 && called == 1 && returned == 1);
        CHECK(collected == 1 && suspended == 1);
        info->Release();
        return S_OK;
    }
};

Profiler *make() { return new Checks; }

} // namespace guest
