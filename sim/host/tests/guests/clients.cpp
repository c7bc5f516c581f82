// Three products' calls in their order, over a text on a runtime; then calls that no product should make.
#include "calls.hpp"
#include "clrsim.hpp"

#include <cstring>
#include <thread>

using namespace guest;

// A text of WCHAR, which is wchar_t on Windows.
#ifdef _WIN32
#define WIDE(text) L##text
#else
#define WIDE(text) u##text
#endif

static const char *TEXT = R"(
module "/app/App.dll" {
    type "Prog" {
        method "Main" { attribute "Acme.Traced" }
        type "Inner"
    }
    type "Pool" { parameter "T"; method "Get" { parameter "U" } }
}
function "Prog.Main" kind="jit" { body { first-call "Pool.Get" } }
function "Pool.Get" kind="jit" { body { call "Prog.Inner.Wait" } }
function "Prog.Inner.Wait" kind="jit" { body { p-invoke "Lib.Sleep" } }
function "Lib.Sleep" { body { work 3 } }
stop at="Lib.Sleep"
)";

static bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

static void sample(const std::string &runtime) {
    clrsim::Session session(TEXT, runtime);
    session.run_to_stop(0);
    auto *info = query<ICorProfilerInfo10>(session.info<clrsim::IUnknown>());
    if (!info) return;
    EXPECT_EQ(info->SetEventMask2(0x1187ffff, 0), S_OK);
    Sample sample{info, {}};
    sample.walk();
    EXPECT_EQ(sample.frames.size(), 4u);
    for (const auto &frame : sample.frames) std::printf("sample: %s\n", frame.c_str());
    // The sample's leak, and nothing else.
    EXPECT_EQ(session.findings(), 1u);
    EXPECT(contains(session.report(), "1 references to object"));
    EXPECT(contains(session.explanation(), "Prog.Inner.Wait"));
    if (sample.left) sample.left->Release();
    EXPECT_EQ(session.findings(), 0u);
}

struct Product : clrsim::Profiler {
    Handler handler{};
    bool is_handler = true;
    Continuous continuous{};
    std::vector<uint64_t> loaded;

    HRESULT Initialize(void *info) override {
        auto *unknown = static_cast<clrsim::IUnknown *>(info);
        bool loaded = is_handler ? handler.initialize(unknown) : continuous.initialize(unknown);
        return loaded ? S_OK : E_FAIL;
    }
    HRESULT ModuleLoadFinished(uint64_t module, HRESULT) override {
        if (is_handler) handler.module_loaded(module);
        else continuous.module_loaded(module);
        return S_OK;
    }
    HRESULT JITCompilationStarted(uint64_t function, BOOL) override {
        if (is_handler) handler.compiling(function);
        return S_OK;
    }
    HRESULT Shutdown() override { return S_OK; }
};

static void handler(const std::string &runtime) {
    Product product;
    {
        clrsim::Session session(TEXT, runtime);
        HRESULT loaded = session.initialize(&product);
        if (loaded != S_OK) {
            // Without ICorProfilerInfo4 it refuses.
            EXPECT_EQ(runtime, "framework-2");
            return;
        }
        session.run();
        EXPECT_EQ(product.handler.modules.size(), 2u);
        EXPECT_EQ(product.handler.modules.at(1), "App");
        EXPECT_EQ(product.handler.compiled.size(), 1u);
        EXPECT_EQ(product.handler.compiled.at(0), "Pool`1.Get");
        EXPECT(contains(product.handler.assembly_of, "App "));
        EXPECT_EQ(product.handler.changed, S_OK);
        EXPECT(contains(session.report(), "not simulated: Save (1)"));
        EXPECT_EQ(session.findings(), 0u);
        std::printf("%s", session.report().c_str());
    }
    // Walks of the same product at a stop.
    clrsim::Session session(TEXT, runtime);
    session.run_to_stop(0);
    Handler handler{};
    handler.info = query<ICorProfilerInfo4>(session.info<clrsim::IUnknown>());
    handler.newer = query<ICorProfilerInfo10>(session.info<clrsim::IUnknown>());
    if (!handler.info || !handler.newer) return;
    handler.walk();
    EXPECT_EQ(handler.frames.size(), 3u);
    if (handler.frames.size() == 3) {
        EXPECT_EQ(handler.frames[0], "Inner.Wait");
        EXPECT_EQ(handler.frames[1], "Pool`1.Get");
        EXPECT_EQ(handler.frames[2], "Prog.Main");
    }
    EXPECT_EQ(session.calls_of("DoStackSnapshot"), 1u);
}

static void continuous(const std::string &runtime) {
    Product product;
    product.is_handler = false;
    clrsim::Session session(TEXT, runtime);
    HRESULT loaded = session.initialize(&product);
    if (loaded != S_OK) {
        // Without ICorProfilerInfo12 it refuses.
        EXPECT(contains(session.report(), "Initialize returned"));
        return;
    }
    product.continuous.configure();
    session.run();
    clrsim::Session stopped(TEXT, runtime);
    stopped.run_to_stop(0);
    Continuous continuous{};
    continuous.info = query<ICorProfilerInfo12>(stopped.info<clrsim::IUnknown>());
    if (!continuous.info) return;
    continuous.walk();
    EXPECT_EQ(continuous.names.size(), 3u);
    if (continuous.names.size() == 3) {
        EXPECT_EQ(continuous.names[0], "Prog+Inner.Wait");
        EXPECT_EQ(continuous.names[1], "Pool`1!T.Get!U");
        EXPECT_EQ(continuous.names[2], "Prog.Main");
    }
    EXPECT_EQ(stopped.findings(), 0u);
}

static const char *ALLOCATES = R"(
function "Prog.Main" kind="jit" { body { call "Prog.Load"; new } }
function "Prog.Load" kind="jit" { body { new } }
)";

static HRESULT count_frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *count) {
    ++*static_cast<unsigned *>(count);
    return S_OK;
}

// Walks the stack of each allocation that AllocationTick tells of.
struct Allocations : clrsim::Profiler {
    ICorProfilerInfo12 *info = nullptr;
    uint64_t session = 0;
    std::vector<unsigned> depths;

    HRESULT Initialize(void *unknown) override {
        info = query<ICorProfilerInfo12>(static_cast<clrsim::IUnknown *>(unknown));
        if (!info) return E_FAIL;
        EXPECT_EQ(info->SetEventMask2(0x10000000, 0x80), S_OK);
        EventProviderConfig config = {WIDE("Microsoft-Windows-DotNETRuntime"), 1, 5, nullptr};
        EXPECT_EQ(info->EventPipeStartSession(0, &config, 0, &session), E_INVALIDARG);
        EXPECT_EQ(info->EventPipeStartSession(1, &config, 0, &session), S_OK);
        EventProviderConfig own = {WIDE("Own"), 1, 5, nullptr};
        EXPECT_EQ(info->EventPipeAddProviderToSession(session, own), S_OK);
        EXPECT_EQ(info->EventPipeAddProviderToSession(session + 1, own), E_INVALIDARG);
        return S_OK;
    }
    HRESULT EventPipeEventDelivered(uint64_t, uint32_t event, uint32_t, uint32_t, const uint8_t *, uint32_t, const uint8_t *, const GUID *, const GUID *, uint64_t, uint32_t, const uint64_t *) override {
        unsigned depth = 0;
        EXPECT_EQ(event, 10u);
        EXPECT_EQ(info->DoStackSnapshot(0, count_frame, 0, &depth, nullptr, 0), S_OK);
        depths.push_back(depth);
        return S_OK;
    }
};

static void allocations(const std::string &runtime) {
    Allocations profiler;
    clrsim::Session session(ALLOCATES, runtime);
    if (session.initialize(&profiler) != S_OK) {
        // Without ICorProfilerInfo12 there are no sessions.
        EXPECT(contains(session.report(), "Initialize returned"));
        return;
    }
    session.run();
    EXPECT_EQ(profiler.depths.size(), 2u);
    if (profiler.depths.size() == 2) EXPECT_EQ(profiler.depths[0], profiler.depths[1] + 1);
    EXPECT_EQ(session.findings(), 0u);
}

static HRESULT ignore_frame(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *) { return S_OK; }

static void misuse(const std::string &runtime) {
    clrsim::Session session(TEXT, runtime);
    session.run_to_stop(0);
    auto *info = query<ICorProfilerInfo4>(session.info<clrsim::IUnknown>());
    if (!info) return;
    EXPECT_EQ(info->QueryInterface(clrsim::IUnknown::IID, nullptr), E_POINTER);
    void *none = info;
    EXPECT_EQ(info->QueryInterface(IMetaDataImport::IID, &none), E_NOINTERFACE);
    EXPECT(none == nullptr);
    EXPECT_EQ(info->GetEventMask(nullptr), E_INVALIDARG);
    EXPECT_EQ(info->GetModuleInfo(0, nullptr, 0, nullptr, nullptr, nullptr), E_INVALIDARG);
    EXPECT_EQ(session.findings(), 0u);
    EXPECT_EQ(info->GetModuleInfo(0x1234, nullptr, 0, nullptr, nullptr, nullptr), E_INVALIDARG);
    EXPECT(contains(session.report(), "found: GetModuleInfo was called with 0x1234"));
    uint64_t thread = session.stopped_thread();
    EXPECT(thread != 0);
    EXPECT_EQ(info->SetILInstrumentedCodeMap(0, 0, 0, nullptr), E_INVALIDARG);
    // One that a CLR answers so itself.
    EXPECT_EQ(info->SetFunctionReJIT(0), E_NOTIMPL);
    EXPECT(contains(session.report(), "called: SetFunctionReJIT (1)"));
    // Buffers.
    ICorProfilerModuleEnum *modules = nullptr;
    EXPECT_EQ(info->EnumModules(reinterpret_cast<void **>(&modules)), S_OK);
    uint64_t module = 0;
    EXPECT_EQ(modules->Next(2, &module, nullptr), E_INVALIDARG);
    EXPECT_EQ(modules->Next(1, nullptr, nullptr), E_INVALIDARG);
    EXPECT_EQ(modules->Next(1, &module, nullptr), S_OK);
    WCHAR path[4] = {'x', 'x', 'x', 'x'};
    uint32_t len = 0;
    EXPECT_EQ(info->GetModuleInfo(module, nullptr, 3, &len, path, nullptr), E_NOT_SUFFICIENT_BUFFER);
    EXPECT_EQ(len, 13u);
    EXPECT_EQ(path[0], WCHAR(0));
    EXPECT_EQ(path[3], WCHAR('x'));
    // References.
    EXPECT_EQ(info->AddRef(), 1u);
    EXPECT_EQ(info->Release(), 1u);
    EXPECT_EQ(modules->AddRef(), 2u);
    EXPECT_EQ(modules->Release(), 1u);
    EXPECT_EQ(modules->Release(), 0u);
    EXPECT_EQ(modules->Reset(), CLRSIM_E_RELEASED);
    EXPECT_EQ(modules->Release(), 0u);
    EXPECT(contains(session.report(), "Reset was called on object 1, which had been released"));
    EXPECT(contains(session.report(), "object 1 was released more often"));
    // Another thread.
    HRESULT elsewhere = S_OK;
    std::thread([&] { elsewhere = info->GetThreadInfo(thread, nullptr); }).join();
    EXPECT_EQ(elsewhere, CLRSIM_E_WRONG_THREAD);
    EXPECT(contains(session.report(), "GetThreadInfo was called on another thread"));
    // Metadata: truncated names, wrong tokens.
    IMetaDataImport2 *import = nullptr;
    EXPECT_EQ(info->GetModuleMetaData(module, 0x2000, IMetaDataImport2::IID, reinterpret_cast<void **>(&import)), E_INVALIDARG);
    EXPECT_EQ(info->GetModuleMetaData(module, 0, IMetaDataImport2::IID, reinterpret_cast<void **>(&import)), S_OK);
    EXPECT_EQ(import->GetTypeDefProps(0x02000002, path, 4, &len, nullptr, nullptr), CLDB_S_TRUNCATION);
    EXPECT_EQ(len, 5u);
    EXPECT_EQ(path[3], WCHAR(0));
    EXPECT_EQ(import->GetTypeDefProps(0x06000001, path, 4, &len, nullptr, nullptr), S_FALSE);
    EXPECT_EQ(import->GetMethodProps(0x06000099, nullptr, nullptr, 0, &len, nullptr, nullptr, nullptr, nullptr, nullptr), CLDB_E_INDEX_NOTFOUND);
    EXPECT_EQ(import->GetNestedClassProps(0x02000002, nullptr), CLDB_E_RECORD_NOTFOUND);
    import->CloseEnum(reinterpret_cast<HCORENUM>(0x77));
    EXPECT(contains(session.report(), "CloseEnum was called with 0x77"));
    // The object outlives its session.
    uint32_t before = session.findings();
    EXPECT(before > 0);
    {
        clrsim::Session other(TEXT, runtime);
        void *unknown = nullptr;
        EXPECT_EQ(other.info<ICorProfilerInfo4>()->QueryInterface(clrsim::IUnknown::IID, &unknown), S_OK);
        none = unknown;
    }
    EXPECT_EQ(static_cast<ICorProfilerInfo4 *>(none)->GetEventMask(&len), CLRSIM_E_RELEASED);
    EXPECT_EQ(static_cast<clrsim::IUnknown *>(none)->Release(), 1u);
    import->Release();
    // A seed that is too small, which is read as far as it goes.
    uint8_t seed[16] = {};
    EXPECT_EQ(info->DoStackSnapshot(thread, nullptr, 2, nullptr, nullptr, 0), E_INVALIDARG);
    session.act_as(CLRSIM_STOPPED);
    EXPECT_EQ(info->DoStackSnapshot(0, ignore_frame, 0, nullptr, nullptr, 0), S_OK);
    (void)info->DoStackSnapshot(0, ignore_frame, 1, nullptr, seed, sizeof seed);
    EXPECT_EQ(clrsim_run_to_stop(session.get(), 9), CLRSIM_NOT_REACHED);
    EXPECT_EQ(clrsim_run_to_stop(reinterpret_cast<clrsim_session *>(0x1234567), 0), CLRSIM_NO_SESSION);
    EXPECT_EQ(clrsim_run_to_stop(nullptr, 0), CLRSIM_NO_SESSION);
    clrsim_session *missing = nullptr;
    EXPECT_EQ(clrsim_open("functio", runtime.c_str(), &missing), CLRSIM_BAD_TEXT);
    EXPECT_EQ(clrsim_open(TEXT, "net4", &missing), CLRSIM_NO_RUNTIME);
    EXPECT_EQ(clrsim_open(nullptr, "net4", &missing), CLRSIM_BAD_ARGUMENT);
    EXPECT_EQ(clrsim_open_file("/no/such/file", runtime.c_str(), &missing), CLRSIM_NO_FILE);
    EXPECT(missing == nullptr && clrsim_last_error()[0] != 0);
#ifndef _WIN32
    // A file that never ends.
    EXPECT_EQ(clrsim_open_file("/dev/zero", runtime.c_str(), &missing), CLRSIM_NO_FILE);
#endif
    // Findings as data, and walks one by one.
    bool found = false;
    for (uint32_t number = 0; number < session.findings(); number++) {
        auto [kind, sentence] = session.finding(number);
        EXPECT(contains(session.report(), sentence.c_str()));
        found = found || kind == "unknown-id";
    }
    EXPECT(found);
    EXPECT_EQ(clrsim_finding(session.get(), session.findings(), nullptr, nullptr), CLRSIM_NOTHING);
    EXPECT_EQ(clrsim_finding(nullptr, 0, nullptr, nullptr), CLRSIM_NO_SESSION);
    EXPECT(contains(session.explanation(), session.explain_call(0).c_str()) && !session.explain_call(0).empty());
    EXPECT(clrsim_explain_call(session.get(), 9999) == nullptr);
    EXPECT(std::strchr(clrsim_version(), '.') != nullptr);
}

// The expectations of a text: right, wrong, and none for the runtime.
static void expectations(const std::string &runtime) {
    const std::string call = "stack { jit \"App.Main+0x30\" rsp=0x1fe000; native \"CallDescrWorkerInternal+0x7c\" rsp=0x1fe040 }\n"
                             "snapshot by=\"native-walker\" { expect on=\"";
    auto status = [&](const std::string &expect) { return clrsim_check(clrsim::Session(call + expect + " }", runtime).get()); };
    const char *right = "unix\" { result \"E_NOTIMPL\" }; expect on=\"windows\" { result \"E_FAIL\" }";
    EXPECT_EQ(status(right), CLRSIM_OK);
    EXPECT_EQ(status("all\" { result \"S_FALSE\" }"), CLRSIM_DIFFERS);
    EXPECT(contains(clrsim_last_error(), "S_FALSE"));
    EXPECT_EQ(status(contains(runtime, "unix") ? "windows\" { result \"E_FAIL\" }" : "unix\" { result \"E_NOTIMPL\" }"), CLRSIM_NOTHING);
    EXPECT_EQ(clrsim_check(nullptr), CLRSIM_NO_SESSION);
}

// The demands of a text on what a session calls: met, not yet met, and none.
static void demands(const std::string &runtime) {
    const std::string program = "function \"App.Main\" kind=\"jit\" { body { work 1 } }\nstop at=\"App.Main\"\n";
    clrsim::Session none(program, runtime);
    EXPECT_EQ(clrsim_covers(none.get()), CLRSIM_NOTHING);
    clrsim::Session session(program + "coverage { call \"QueryInterface\"; call \"GetEventMask\" }", runtime);
    EXPECT_EQ(clrsim_covers(session.get()), CLRSIM_DIFFERS);
    EXPECT(contains(clrsim_last_error(), "GetEventMask comes 0 to 0 times"));
    auto *info = query<ICorProfilerInfo2>(session.info<clrsim::IUnknown>());
    uint32_t events = 0;
    EXPECT_EQ(info->GetEventMask(&events), S_OK);
    EXPECT_EQ(clrsim_covers(session.get()), CLRSIM_OK);
    info->Release();
    EXPECT_EQ(clrsim_covers(nullptr), CLRSIM_NO_SESSION);
}

int main(int count, char **words) {
    std::string runtime = count > 1 ? words[1] : "net8-unix";
    sample(runtime);
    handler(runtime);
    continuous(runtime);
    allocations(runtime);
    misuse(runtime);
    expectations(runtime);
    demands(runtime);
    std::printf("%d failures\n", failures);
    return failures != 0;
}
