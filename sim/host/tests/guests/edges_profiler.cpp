// The calls of edges.hpp in a CLR: the library that CORECLR_PROFILER_PATH names. It prints to stdout.
#include "edges.hpp"

namespace {

using namespace guest;

struct Factory : clrsim::IUnknown {
    HRESULT QueryInterface(const GUID &, void **object) override {
        *object = this;
        return S_OK;
    }
    uint32_t AddRef() override { return 2; }
    uint32_t Release() override { return 1; }
    virtual HRESULT CreateInstance(void *, const GUID &, void **object) {
        *object = new EdgeProfiler;
        return S_OK;
    }
    virtual HRESULT LockServer(BOOL) { return S_OK; }
};

} // namespace

extern "C" __attribute__((visibility("default"))) clrsim::HRESULT DllGetClassObject(const clrsim::GUID &,
                                                                                   const clrsim::GUID &, void **object) {
    *object = new Factory;
    return guest::S_OK;
}
