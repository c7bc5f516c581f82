// The tests of runtime-async methods, which .NET 11 has.
#ifndef ASYNC_HPP
#define ASYNC_HPP

#include "suite.hpp"

#include <map>
#include <mutex>
#include <set>

namespace guest {

/// `runtimeasyncapis`: the code of an async method is found by its address, and exceptions pass it.
struct AsyncApis : Test {
    std::atomic<uint64_t> target{0};
    std::atomic<int> begun{0}, ended{0}, found{0}, maps{0}, thrown{0}, searched{0}, unwound{0}, caught{0};

    HRESULT begin() override { return ask(JIT | CACHE_SEARCHES | EXCEPTIONS); }
    bool is_target(uint64_t function) { return is_named(name_of(info, function), "Throws"); }
    HRESULT JITCompilationStarted(uint64_t function, BOOL) override { return begun += is_target(function), S_OK; }
    HRESULT JITCompilationFinished(uint64_t function, HRESULT result, BOOL) override {
        if (!is_target(function)) return S_OK;
        is_good(result, "the compilation");
        target = function;
        ended++;
        CodeRange ranges[16] = {};
        uint32_t count = 0;
        if (!is_good(info->GetCodeInfo2(function, 16, &count, ranges), "GetCodeInfo2") || count == 0) return fails("code"), S_OK;
        uint64_t there = 0;
        HRESULT looked_up = info->GetFunctionFromIP(reinterpret_cast<const uint8_t *>(ranges[0].start), &there);
        wants(looked_up == S_OK && there == function, "the method of its first address");
        found++;
        std::vector<IlToNative> map(512);
        uint32_t entries = 0;
        is_good(info->GetILToNativeMapping(function, 512, &entries, map.data()), "GetILToNativeMapping");
        wants(entries != 0, "a map of the code");
        maps++;
        return S_OK;
    }
    HRESULT JITCachedFunctionSearchStarted(uint64_t function, BOOL *is_used) override { return *is_used = !is_target(function), S_OK; }
    HRESULT JITCachedFunctionSearchFinished(uint64_t function, uint32_t result) override {
        wants(result != 0 || !is_target(function), "the code of the image is not used");
        return S_OK;
    }
    HRESULT ExceptionThrown(uint64_t) override { return thrown++, S_OK; }
    HRESULT ExceptionSearchFunctionEnter(uint64_t function) override { return searched += function == target, S_OK; }
    HRESULT ExceptionUnwindFunctionEnter(uint64_t function) override { return unwound += function == target, S_OK; }
    HRESULT ExceptionCatcherEnter(uint64_t, uint64_t) override { return caught++, S_OK; }
    void end() override {
        wants(begun != 0 && ended != 0, "the method is compiled");
        wants(found != 0 && maps != 0, "its code is looked at");
        wants(thrown != 0 && caught != 0, "an exception is thrown and caught");
        wants(searched + unwound != 0, "it passes the method");
    }
};

/// `runtimeasyncelt`: each part of an async method between two waits is entered and left.
struct AsyncHooks : Test {
    static inline AsyncHooks *current = nullptr;
    struct Target {
        const char *name;
        int wanted;
        std::atomic<uint64_t> function{0};
        std::atomic<int> entered{0}, left{0}, depth{0};
    };
    // A call, and one more entry for each time that it goes on.
    Target targets[3] = {{"Work", 25}, {"WorkVoid", 3}, {"WorkDouble", 3}};
    std::atomic<int> disorder{0};

    HRESULT begin() override {
        current = this;
        HRESULT result = info->SetEventMask2(ENTERLEAVE | JIT | FRAME_INFO, 0);
        if (result < 0) return result;
        auto code = [](void (*hook)(uint64_t, uint64_t)) { return reinterpret_cast<const void *>(hook); };
        return info->SetEnterLeaveFunctionHooks3WithInfo(code(on_enter), code(on_leave), code(on_tail_call));
    }
    HRESULT JITCompilationFinished(uint64_t function, HRESULT result, BOOL) override {
        std::string name = name_of(info, function);
        for (Target &target : targets) {
            uint64_t none = 0;
            if (result >= 0 && is_named(name, target.name)) target.function.compare_exchange_strong(none, function);
        }
        return S_OK;
    }
    Target *of(uint64_t function) {
        for (Target &target : targets) if (target.function == function) return &target;
        return nullptr;
    }
    static void on_enter(uint64_t function, uint64_t) {
        Target *target = current->of(function);
        if (!target) return;
        target->entered++;
        current->disorder += target->depth++ != 0;
    }
    static void on_leave(uint64_t function, uint64_t) {
        Target *target = current->of(function);
        if (!target) return;
        target->left++;
        current->disorder += target->depth-- != 1;
    }
    static void on_tail_call(uint64_t, uint64_t) {}
    void end() override {
        for (Target &target : targets) {
            std::printf("%s is entered %d times, left %d times\n", target.name, target.entered.load(), target.left.load());
            wants(target.entered == target.wanted && target.left == target.wanted, "the number of entries and exits");
            wants(target.depth == 0, "each entry has an exit");
        }
        wants(disorder == 0, "entries and exits take turns");
    }
};

/// `runtimeasynctypes`: what an async method keeps while it waits is an object of a class without metadata.
struct AsyncTypes : Test {
    std::mutex lock = {};
    std::set<uint64_t> loading = {};
    std::map<uint64_t, uint64_t> classes = {};
    std::vector<uint64_t> kept = {};
    std::atomic<int> begun{0}, ended{0}, arrays{0}, without{0}, collections{0}, objects{0}, edges{0};

    HRESULT begin() override { return ask(CLASS_LOADS | GC); }
    HRESULT ClassLoadStarted(uint64_t id) override {
        std::lock_guard<std::mutex> guard(lock);
        return begun++, loading.insert(id), S_OK;
    }
    HRESULT ClassLoadFinished(uint64_t id, HRESULT result) override {
        is_good(result, "a load");
        ended++;
        {
            std::lock_guard<std::mutex> guard(lock);
            wants(loading.erase(id) == 1, "a load that ends has begun");
        }
        uint32_t kind = 0, rank = 0, count = 0;
        uint64_t base = 0, module = 0, parent = 0;
        mdToken token = 0;
        HRESULT is_array = info->IsArrayClass(id, &kind, &base, &rank);
        arrays += is_array == S_OK;
        // S_FALSE: another class.
        if (is_array == 1) without += info->GetClassIDInfo2(id, &module, &token, &parent, 0, &count, nullptr) == DATA_INCOMPLETE;
        else is_good(is_array, "IsArrayClass");
        return S_OK;
    }
    /// Returns true for a class without metadata, of which three methods say the same.
    bool has_no_metadata(uint64_t id) {
        uint64_t module = 0, parent = 0;
        mdToken first = 0, second = 0;
        uint32_t count = 0, size = 0;
        FieldOffset fields[64] = {};
        HRESULT info_2 = info->GetClassIDInfo2(id, &module, &second, &parent, 0, &count, nullptr);
        HRESULT info_1 = info->GetClassIDInfo(id, &module, &first);
        HRESULT layout = info->GetClassLayout(id, fields, 64, &count, &size);
        bool has_none = info_1 == DATA_INCOMPLETE || info_2 == DATA_INCOMPLETE || layout == DATA_INCOMPLETE;
        if (has_none) wants(info_1 == info_2 && info_2 == layout, "three methods say the same of a class without metadata");
        return has_none;
    }
    HRESULT GarbageCollectionStarted(int32_t, const BOOL *, uint32_t) override {
        std::lock_guard<std::mutex> guard(lock);
        return collections++, classes.clear(), kept.clear(), S_OK;
    }
    HRESULT ObjectReferences(uint64_t object, uint64_t type, uint32_t count, const uint64_t *references) override {
        bool has_none = has_no_metadata(type);
        std::lock_guard<std::mutex> guard(lock);
        classes[object] = type;
        objects += has_none;
        for (uint32_t index = 0; has_none && index < count; index++)
            if (references[index]) kept.push_back(references[index]);
        return S_OK;
    }
    HRESULT GarbageCollectionFinished() override {
        std::lock_guard<std::mutex> guard(lock);
        for (uint64_t object : kept) {
            auto found = classes.find(object);
            uint32_t kind = 0, rank = 0;
            uint64_t base = 0;
            if (found != classes.end()) edges += info->IsArrayClass(found->second, &kind, &base, &rank) == S_OK && rank == 1;
        }
        return S_OK;
    }
    void end() override {
        wants(begun == ended, "each load ends");
        wants(arrays != 0, "a class of arrays");
        wants(without != 0, "a class without metadata");
        wants(collections != 0, "a collection");
        wants(objects != 0, "an object of a class without metadata");
        wants(edges != 0, "it refers to an array");
    }
};

} // namespace guest

#endif
