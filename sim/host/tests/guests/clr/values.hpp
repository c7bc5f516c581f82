// The tests of what hooks are told of arguments and returned values, and of static fields.
#ifndef VALUES_HPP
#define VALUES_HPP

#include "life.hpp"

#include <array>
#include <map>

namespace guest {

/// `elt-enter` and `elt-leave`: hooks that get information read arguments, and returned values.
struct SlowHooks : Test {
    static inline SlowHooks *current = nullptr;
    bool is_enter = false;
    std::map<std::string, int> seen = {};

    struct Mixed {
        int32_t x;
        double d;
    };
    struct Large {
        Mixed parts[4];
    };

    HRESULT begin() override {
        current = this;
        WCHAR word[64] = {};
        uint32_t length = 0;
        if (!is_good(info->GetEnvironmentVariable(u"GUEST_TEST", 64, &length, word), "the name of the test")) return E_FAIL;
        is_enter = narrow(word) == "elt-enter";
        HRESULT result = info->SetEventMask2(ENTERLEAVE | FUNCTION_VALUES, 0);
        if (result < 0) return result;
        auto code = [](void (*hook)(uint64_t, uint64_t)) { return reinterpret_cast<const void *>(hook); };
        return info->SetEnterLeaveFunctionHooks3WithInfo(code(on_enter), code(on_leave), code(on_tail_call));
    }
    static void on_enter(uint64_t function, uint64_t elt) {
        if (current->is_enter) current->entered(function, elt);
    }
    static void on_leave(uint64_t function, uint64_t elt) {
        if (!current->is_enter) current->left(function, elt);
    }
    static void on_tail_call(uint64_t function, uint64_t elt) {
        uint64_t frame = 0;
        current->is_good(current->info->GetFunctionTailcall3Info(function, elt, &frame), "GetFunctionTailcall3Info");
    }
    template <typename Value> bool is_value(const ArgumentRange &range, const Value &expected) {
        return range.start != 0 && range.size == sizeof expected
            && std::memcmp(reinterpret_cast<const void *>(range.start), &expected, sizeof expected) == 0;
    }
    /// As `is_value`, with the padding between parts left out.
    bool is_mixed(const Mixed &found, const Mixed &expected) { return found.x == expected.x && found.d == expected.d; }
    bool is_mixed(const ArgumentRange &range, const Mixed &expected) {
        return range.start != 0 && range.size == sizeof expected && is_mixed(*reinterpret_cast<const Mixed *>(range.start), expected);
    }
    bool is_text(const ArgumentRange &range, const char *expected) {
        uint32_t length = 0, buffer = 0;
        if (range.start == 0 || range.size != sizeof(void *)) return false;
        uint64_t object = *reinterpret_cast<const uint64_t *>(range.start);
        if (object == 0 || !is_good(info->GetStringLayout2(&length, &buffer), "GetStringLayout2")) return false;
        return narrow(reinterpret_cast<const WCHAR *>(object + buffer)) == expected;
    }
    void entered(uint64_t function, uint64_t elt) {
        uint64_t frame = 0;
        uint32_t size = 0;
        std::vector<uint64_t> room;
        HRESULT result = info->GetFunctionEnter3Info(function, elt, &frame, &size, nullptr);
        // HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER).
        if (result == static_cast<HRESULT>(0x8007007a)) {
            room.resize(size / 8 + 1);
            auto *arguments = reinterpret_cast<FunctionArguments *>(room.data());
            result = info->GetFunctionEnter3Info(function, elt, &frame, &size, arguments);
        }
        if (!is_good(result, "GetFunctionEnter3Info") || room.empty()) return;
        auto *arguments = reinterpret_cast<FunctionArguments *>(room.data());
        const ArgumentRange *range = &arguments->first;
        std::string name = name_of(info, function);
        if (is_named(name, "SimpleArgs")) {
            seen["SimpleArgs"]++;
            if (arguments->ranges_len != 3) return fails("three arguments");
            wants(is_value(range[0], int32_t(-123)), "an integer");
            wants(is_value(range[1], -4.5f), "a float");
            wants(is_text(range[2], "Hello, test!"), "a string");
        } else if (is_named(name, "MixedStruct")) {
            seen["MixedStruct"]++;
            if (arguments->ranges_len != 1) return fails("one argument");
            wants(is_mixed(range[0], {1, 1.0}), "a structure in two registers of different kinds");
        } else if (is_named(name, "LargeStruct")) {
            seen["LargeStruct"]++;
            if (arguments->ranges_len != 1) return fails("one argument");
            if (range->start == 0 || range->size != sizeof(Large)) return fails("a structure in memory");
            for (int index = 0; index < 4; index++)
                wants(is_mixed(reinterpret_cast<const Large *>(range->start)->parts[index], {index, double(index)}), "a large structure");
        }
    }
    template <typename Value> void wants_returned(const ArgumentRange &range, const Value &expected, const std::string &name) {
        seen[name]++;
        if (!is_value(range, expected)) fails(("the value of " + name).c_str());
    }
    void left(uint64_t function, uint64_t elt) {
        uint64_t frame = 0;
        ArgumentRange range = {};
        if (!is_good(info->GetFunctionLeave3Info(function, elt, &frame, &range), "GetFunctionLeave3Info")) return;
        std::string whole = name_of(info, function), name = whole.substr(whole.rfind('.') + 1);
        if (name == "SimpleArgs") seen[name]++, wants(is_text(range, "Hello from SimpleArgs!"), "the value of SimpleArgs");
        if (name == "MixedStruct") seen[name]++, wants(is_mixed(range, {4, 1.0}), "the value of MixedStruct");
        if (name == "LargeStruct") wants_returned(range, int32_t(3), name);
        if (name == "IntegerStruct") wants_returned(range, std::array<int32_t, 2>{21, 256}, name);
        if (name == "Floats2") wants_returned(range, std::array<float, 2>{13.0f, 256.75f}, name);
        if (name == "Floats3") wants_returned(range, std::array<float, 3>{13.0f, 145.5f, 256.75f}, name);
        if (name == "Floats4") wants_returned(range, std::array<float, 4>{13.0f, 145.5f, 321.25f, 256.75f}, name);
        if (name == "Doubles2") wants_returned(range, std::array<double, 2>{13.0, 256.75}, name);
        if (name == "Doubles3") wants_returned(range, std::array<double, 3>{13.0, 145.5, 256.75}, name);
        if (name == "Doubles4") wants_returned(range, std::array<double, 4>{13.0, 145.5, 321.25, 256.75}, name);
        if (name == "DoubleResult") wants_returned(range, 13.0, name);
    }
    void end() override { wants(seen.size() == (is_enter ? 3 : 11), "each method"); }
};

/// `getappdomainstaticaddress`: after each collection the static fields of all classes have addresses, those of a
/// collectible assembly too. A thread of the profiler triggers collections when modules come and go.
struct StaticAddresses : Test {
    static constexpr uint32_t STATIC = 0x10, LITERAL = 0x40, APP_DOMAIN_STATIC = 1;
    std::map<uint64_t, uint64_t> domains = {};
    std::mutex lock = {};
    Signal collect = {};
    std::atomic<int> compiled{0}, collections{0}, collectible{0}, others{0};
    std::atomic<bool> ends{false};

    HRESULT begin() override {
        HRESULT result = ask(GC | CLASS_LOADS | MODULE_LOADS | JIT | NO_IMAGES);
        std::thread([this] {
            info->InitializeCurrentThread();
            while (true) {
                collect.wait();
                if (ends) return;
                if (compiled) is_good(info->ForceGC(), "ForceGC");
            }
        }).detach();
        return result;
    }
    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override { return compiled++, S_OK; }
    HRESULT ModuleLoadFinished(uint64_t module, HRESULT) override {
        wants(path_of(info, module) != "?", "GetModuleInfo2");
        collect.set();
        return S_OK;
    }
    /// Returns true if a class, or a type argument, is of a module.
    bool is_of(uint64_t id, uint64_t module) {
        uint64_t of = 0, arguments[10] = {};
        uint32_t count = 0;
        mdToken token = 0;
        if (!is_good(info->GetClassIDInfo(id, &of, nullptr), "GetClassIDInfo")) return false;
        if (of == module) return true;
        is_good(info->GetClassIDInfo2(id, &of, &token, nullptr, 10, &count, arguments), "GetClassIDInfo2");
        for (uint32_t index = 0; index < count && index < 10; index++)
            if (is_of(arguments[index], module)) return true;
        return false;
    }
    HRESULT ModuleUnloadStarted(uint64_t module) override {
        collect.set();
        std::lock_guard<std::mutex> guard(lock);
        for (auto it = domains.begin(); it != domains.end();) it = is_of(it->first, module) ? domains.erase(it) : std::next(it);
        return S_OK;
    }
    HRESULT ClassLoadFinished(uint64_t id, HRESULT) override {
        uint32_t kind = 0, rank = 0;
        uint64_t base = 0, thread = 0, domain = 0, module = 0;
        if (info->IsArrayClass(id, &kind, &base, &rank) == S_OK) return S_OK;
        if (!is_good(info->GetCurrentThreadID(&thread), "GetCurrentThreadID")) return S_OK;
        if (!is_good(info->GetThreadAppDomain(thread, &domain), "GetThreadAppDomain")) return S_OK;
        is_good(info->GetClassIDInfo2(id, &module, nullptr, nullptr, 0, nullptr, nullptr), "GetClassIDInfo2");
        std::lock_guard<std::mutex> guard(lock);
        domains.emplace(id, domain);
        return S_OK;
    }
    HRESULT ClassUnloadStarted(uint64_t id) override {
        std::lock_guard<std::mutex> guard(lock);
        domains.erase(id);
        return S_OK;
    }
    void look_at(uint64_t id, uint64_t domain, uint64_t module, mdToken token, IMetaDataImport *import) {
        HCORENUM list = nullptr;
        mdToken fields[64] = {};
        uint32_t count = 0;
        if (!is_good(import->EnumFields(&list, token, fields, 64, &count), "EnumFields")) return;
        for (uint32_t index = 0; index < count; index++) {
            WCHAR name[256] = {};
            uint32_t attributes = 0, kind = 0;
            if (!is_good(import->GetFieldProps(fields[index], nullptr, name, 256, nullptr, &attributes, nullptr, nullptr, nullptr, nullptr, nullptr), "GetFieldProps")) continue;
            if (!(attributes & STATIC) || attributes & LITERAL) continue;
            if (!is_good(info->GetStaticFieldInfo(id, fields[index], &kind), "GetStaticFieldInfo") || !(kind & APP_DOMAIN_STATIC)) continue;
            void *address = nullptr;
            HRESULT result = info->GetAppDomainStaticAddress(id, fields[index], domain, &address);
            if (result == DATA_INCOMPLETE || !is_good(result, "GetAppDomainStaticAddress")) continue;
            bool is_collectible = path_of(info, module).find("UnloadLibrary") != std::string::npos;
            (is_collectible ? collectible : others)++;
        }
        if (list) import->CloseEnum(list);
    }
    HRESULT GarbageCollectionFinished() override {
        std::lock_guard<std::mutex> guard(lock);
        for (auto &[id, domain] : domains) {
            uint64_t module = 0;
            mdToken token = 0;
            HRESULT result = info->GetClassIDInfo2(id, &module, &token, nullptr, 0, nullptr, nullptr);
            if (result == DATA_INCOMPLETE || !is_good(result, "GetClassIDInfo2")) continue;
            void *found = nullptr;
            result = info->GetModuleMetaData(module, 0, IMetaDataImport::IID, &found);
            if (result == DATA_INCOMPLETE || !is_good(result, "GetModuleMetaData")) continue;
            look_at(id, domain, module, token, static_cast<IMetaDataImport *>(found));
            static_cast<IMetaDataImport *>(found)->Release();
        }
        collections++;
        return S_OK;
    }
    void end() override {
        ends = true;
        collect.set();
        wants(collections != 0, "a collection");
        wants(collectible != 0, "an address of a static field of a collectible assembly");
        wants(others != 0, "an address of a static field of another assembly");
    }
};

} // namespace guest

#endif
