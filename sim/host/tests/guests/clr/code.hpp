// The tests of methods: hooks, transitions, inlining, exceptions.
#ifndef CODE_HPP
#define CODE_HPP

#include "suite.hpp"

namespace guest {

/// `transitions`: a P/Invoke is left and entered again.
struct Transitions : Test {
    bool is_left = false, is_entered = false;

    HRESULT begin() override { return ask(TRANSITIONS | NO_INLINING); }
    HRESULT UnmanagedToManagedTransition(uint64_t function, uint32_t) override {
        is_entered |= is_named(name_of(info, function), "DoPInvoke");
        return S_OK;
    }
    HRESULT ManagedToUnmanagedTransition(uint64_t function, uint32_t) override {
        is_left |= is_named(name_of(info, function), "DoPInvoke");
        return S_OK;
    }
    void end() override {
        wants(is_entered, "managed code is entered");
        wants(is_left, "managed code is left");
    }
};

/// A test with hooks that get information.
struct Hooked : Test {
    static inline Hooked *current = nullptr;

    virtual void entered(const std::string &) {}
    virtual void left(const std::string &) {}
    static void on_enter(uint64_t function, uint64_t) { current->entered(name_of(current->info, function)); }
    static void on_leave(uint64_t function, uint64_t) { current->left(name_of(current->info, function)); }
    HRESULT hook(uint32_t mask) {
        current = this;
        HRESULT result = ask(ENTERLEAVE | FUNCTION_VALUES | mask);
        if (result < 0) return result;
        auto code = [](void (*hook)(uint64_t, uint64_t)) { return reinterpret_cast<const void *>(hook); };
        return info->SetEnterLeaveFunctionHooks3WithInfo(code(on_enter), code(on_leave), code(on_leave));
    }
};

/// `elttransitions`: a P/Invoke has transitions and no hooks, what unmanaged code calls has hooks.
struct EltTransitions : Hooked {
    int hooks = 0, reverse = 0;
    uint32_t leaves = 9, returns = 9;

    HRESULT begin() override { return hook(TRANSITIONS | NO_INLINING); }
    void entered(const std::string &name) override {
        hooks += is_named(name, "DoPInvoke");
        reverse += is_named(name, "DoReversePInvoke");
    }
    void left(const std::string &name) override { hooks += is_named(name, "DoPInvoke"); }
    HRESULT ManagedToUnmanagedTransition(uint64_t function, uint32_t reason) override {
        if (is_named(name_of(info, function), "DoPInvoke")) leaves = reason;
        return S_OK;
    }
    HRESULT UnmanagedToManagedTransition(uint64_t function, uint32_t reason) override {
        if (is_named(name_of(info, function), "DoPInvoke")) returns = reason;
        return S_OK;
    }
    void end() override {
        wants(leaves == 0, "managed code calls");
        wants(returns == 1, "unmanaged code returns");
        wants(hooks == 0, "a P/Invoke has no hooks");
        wants(reverse > 0, "what unmanaged code calls has hooks");
    }
};

/// `inlining`: a method is inlined, unless the profiler refuses it.
struct Inlining : Hooked {
    bool is_in_inlining = false, is_in_refused = false, is_in_silent = false, is_called = false;

    HRESULT begin() override { return hook(JIT); }
    void set(const std::string &name, bool is_in) {
        if (is_named(name, "Inlining")) is_in_inlining = is_in;
        if (is_named(name, "BlockInlining")) is_in_refused = is_in;
        if (is_named(name, "NoResponse")) is_in_silent = is_in;
    }
    void entered(const std::string &name) override {
        set(name, true);
        if (!is_named(name, "Inlinee")) return;
        wants(!is_in_inlining && !is_in_silent, "the method is inlined");
        is_called |= is_in_refused;
    }
    void left(const std::string &name) override { set(name, false); }
    HRESULT JITInlining(uint64_t caller, uint64_t callee, BOOL *is_wanted) override {
        if (!is_named(name_of(info, callee), "Inlinee")) return S_OK;
        std::string name = name_of(info, caller);
        if (is_named(name, "Inlining")) *is_wanted = 1;
        if (is_named(name, "BlockInlining")) *is_wanted = is_broken("refusal");
        return S_OK;
    }
    void end() override { wants(is_called, "the method is called where that is refused"); }
};

/// `dynamicjitoptimization`: what the mask says when a module is loaded decides whether its methods are inlined. The original's
/// program reads the tier of a method from events; here the calls of JITInlining tell the same.
struct DynamicOptimization : Test {
    bool has_no_optimizations = false, has_no_inlining = false;
    int inlines = 0, checks = 0;

    HRESULT set_mask() {
        return ask(JIT | (has_no_optimizations ? NO_OPTIMIZATIONS : 0) | (has_no_inlining ? NO_INLINING : 0));
    }
    HRESULT begin() override { return set_mask(); }
    HRESULT JITInlining(uint64_t caller, uint64_t, BOOL *is_wanted) override {
        uint64_t type = 0, module = 0;
        mdToken token = 0;
        if (!*is_wanted || !is_good(info->GetFunctionInfo2(caller, 0, &type, &module, &token, 0, nullptr, nullptr), "GetFunctionInfo2"))
            return S_OK;
        inlines += path_of(info, module).find("UnloadLibrary") != std::string::npos;
        return S_OK;
    }
    void switch_optimizations(bool is_off) {
        has_no_optimizations = is_off;
        is_good(set_mask(), "the mask without optimizations");
    }
    void switch_inlining(bool is_off) {
        has_no_inlining = is_off;
        is_good(set_mask(), "the mask without inlining");
    }
    void want(int count) {
        checks++;
        wants(inlines == count, "the number of inlined calls");
    }
    void end() override { wants(checks == 5, "five methods are compiled"); }
};

/// `exception`: funclets have no callbacks of functions of their own.
struct Exceptions : Test {
    std::string seen;

    HRESULT begin() override { return ask(EXCEPTIONS | NO_INLINING); }
    HRESULT note(const char *what, uint64_t function = 0) {
        seen += what;
        if (function) {
            std::string name = name_of(info, function);
            seen += ":" + name.substr(name.rfind('.') + 1);
        }
        seen += " ";
        return S_OK;
    }
    HRESULT ExceptionThrown(uint64_t) override { return note("thrown"); }
    HRESULT ExceptionSearchFunctionEnter(uint64_t function) override { return note("search", function); }
    HRESULT ExceptionSearchFunctionLeave() override { return note("searched"); }
    HRESULT ExceptionSearchFilterEnter(uint64_t function) override { return note("filter", function); }
    HRESULT ExceptionSearchFilterLeave() override { return note("filtered"); }
    HRESULT ExceptionSearchCatcherFound(uint64_t function) override { return note("found", function); }
    HRESULT ExceptionUnwindFunctionEnter(uint64_t function) override { return note("unwind", function); }
    HRESULT ExceptionUnwindFunctionLeave() override { return note("unwound"); }
    HRESULT ExceptionUnwindFinallyEnter(uint64_t function) override { return note("finally", function); }
    HRESULT ExceptionUnwindFinallyLeave() override { return note("finished"); }
    HRESULT ExceptionCatcherEnter(uint64_t function, uint64_t) override { return note("catch", function); }
    HRESULT ExceptionCatcherLeave() override { return note("caught"); }
    void end() override {
        const char *wanted = "thrown search:Foo searched search:Bar filter:Bar filtered found:Bar searched "
                             "unwind:Foo unwound unwind:Bar catch:Bar caught ";
        if (seen != wanted) std::printf("seen %s\n", seen.c_str());
        wants(seen == wanted, "the sequence of callbacks");
    }
};

} // namespace guest

#endif
