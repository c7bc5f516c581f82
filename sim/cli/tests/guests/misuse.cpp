// Ways to misuse the interface: GUEST_MISUSE chooses one.
#include "guest.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace guest {

static std::thread *running = nullptr;

struct Misuse : Profiler {
    ICorProfilerInfo10 *info = nullptr;
    const char *way = "";
    bool done = false;

    HRESULT Initialize(void *unknown) override {
        const char *chosen = std::getenv("GUEST_MISUSE");
        way = chosen ? chosen : "";
        info = query<ICorProfilerInfo10>(unknown);
        if (!info) return E_FAIL;
        if (is("cancel")) return static_cast<HRESULT>(0x80131375);
        if (is("abort")) std::abort();
        if (is("exit")) std::_Exit(7);
        if (is("leaves")) std::_Exit(0);
        if (is("joins")) {
            std::thread([this] { info->SetEventMask(0); }).join();
        }
        if (is("runs") || is("waits")) {
            running = new std::thread([] {
                for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
            });
        }
        if (is("early")) {
            info->DoStackSnapshot(0, stop, 0, nullptr, nullptr, 0);
            info->RequestProfilerDetach(100);
        }
        // ENABLE_OBJECT_ALLOCATED stays for ever.
        if (is("flags-detach")) return info->SetEventMask(0x10800020);
        if (is("hooks-detach")) {
            info->SetEnterLeaveFunctionHooks(&way, &way, &way);
            return info->SetEventMask(0x10000020);
        }
        if (is("late-hooks")) return info->SetEventMask(0x10000020);
        return info->SetEventMask(0x10000220);
    }

    bool is(const char *other) const { return std::strcmp(way, other) == 0; }

    static HRESULT behind(uint64_t, uint64_t, uint64_t, uint32_t size, uint8_t *context, void *) {
        if (context) context[size] = 1;
        return S_OK;
    }
    static HRESULT crash(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) {
        *static_cast<volatile int *>(nullptr) = 1;
        return S_OK;
    }
    static HRESULT stop(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return 1; }

    IMetaDataImport *import_of(uint64_t function, mdToken *token) {
        IMetaDataImport *import = nullptr;
        info->GetTokenAndMetaDataFromFunction(function, IMetaDataImport::IID, reinterpret_cast<void **>(&import), token);
        return import;
    }

    HRESULT Shutdown() override {
        if (is("waits")) running->join();
        return S_OK;
    }

    HRESULT JITCompilationStarted(uint64_t function, BOOL) override {
        if (done) return S_OK;
        done = true;
        mdToken token = 0;
        if (is("keeps")) import_of(function, &token);
        if (is("leak")) {
            ICorProfilerThreadEnum *lost = nullptr;
            info->EnumThreads(reinterpret_cast<void **>(&lost));
        }
        if (is("after-release")) {
            auto *import = import_of(function, &token);
            import->Release();
            import->GetMethodProps(token, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
        }
        if (is("over-release")) {
            auto *import = import_of(function, &token);
            import->Release();
            import->Release();
        }
        if (is("null")) import_of(function, &token)->GetCustomAttributeByName(token, nullptr, nullptr, nullptr);
        if (is("behind")) info->DoStackSnapshot(0, behind, 1, nullptr, nullptr, 0);
        if (is("stop")) info->DoStackSnapshot(0, stop, 0, nullptr, nullptr, 0);
        if (is("wrong-id")) info->GetFunctionInfo(0x1234, nullptr, nullptr, nullptr);
        if (is("wrong-thread")) info->DoStackSnapshot(0x1234, behind, 0, nullptr, nullptr, 0);
        if (is("not-simulated")) {
            IMetaDataEmit *emit = nullptr;
            info->GetTokenAndMetaDataFromFunction(function, IMetaDataEmit::IID, reinterpret_cast<void **>(&emit), &token);
            emit->Save(nullptr, 0);
            emit->Release();
        }
        if (is("late-hooks")) info->SetEnterLeaveFunctionHooks(&way, &way, &way);
        if (is("suspends")) info->SuspendRuntime();
        if (is("detach") || is("flags-detach") || is("hooks-detach")) info->RequestProfilerDetach(100);
        if (is("crash")) *static_cast<volatile int *>(nullptr) = 1;
        if (is("crash-in-walk")) info->DoStackSnapshot(0, crash, 0, nullptr, nullptr, 0);
        if (is("hang")) {
            for (volatile bool forever = true; forever;) std::this_thread::yield();
        }
        return S_OK;
    }
};

Profiler *make() { return new Misuse; }

} // namespace guest
