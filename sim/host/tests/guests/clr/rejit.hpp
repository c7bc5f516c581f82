// The test of ReJIT: a method and its inliners get another string.
#ifndef REJIT_HPP
#define REJIT_HPP

#include "suite.hpp"

#include <map>
#include <set>

namespace guest {

/// Instructions of IL, as ECMA-335 lists them.
struct Il {
    static constexpr uint8_t SWITCH = 0x45, LDSTR = 0x72, TWO_BYTES = 0xfe;

    static bool is_in(uint8_t value, uint8_t first, uint8_t last) { return first <= value && value <= last; }
    /// Returns the size in bytes of what follows an opcode of one byte.
    static size_t operand(uint8_t code) {
        if (is_in(code, 0x0e, 0x13) || code == 0x1f || is_in(code, 0x2b, 0x37) || code == 0xde) return 1;
        if (code == 0x21 || code == 0x23) return 8;
        if (code == 0x20 || code == 0x22 || is_in(code, 0x27, 0x29) || is_in(code, 0x38, 0x44)) return 4;
        if (is_in(code, 0x6f, 0x75) || code == 0x79 || is_in(code, 0x7b, 0x81) || code == 0x8c || code == 0x8d) return 4;
        if (code == 0x8f || is_in(code, 0xa3, 0xa5) || code == 0xc2 || code == 0xc6 || code == 0xd0 || code == 0xdd) return 4;
        return 0;
    }
    /// Returns the size in bytes of what follows an opcode behind the prefix.
    static size_t operand_of_two(uint8_t code) {
        if (code == 0x06 || code == 0x07 || code == 0x15 || code == 0x16 || code == 0x1c) return 4;
        if (is_in(code, 0x09, 0x0e)) return 2;
        return code == 0x12 ? 1 : 0;
    }
    static uint32_t number(const uint8_t *at) {
        uint32_t value = 0;
        std::memcpy(&value, at, 4);
        return value;
    }
    /// Gives each `ldstr` of a body another token, and returns their number.
    static int replace_strings(std::vector<uint8_t> &body, mdToken token) {
        bool is_tiny = (body.at(0) & 3) == 2;
        size_t at = is_tiny ? 1 : (body.at(1) >> 4) * 4u, size = is_tiny ? body[0] >> 2 : number(&body.at(4));
        int count = 0;
        for (size_t end = at + size; at < end;) {
            uint8_t code = body.at(at++);
            if (code == TWO_BYTES) {
                at += 1 + operand_of_two(body.at(at));
            } else if (code == SWITCH) {
                at += 4 + 4 * size_t(number(&body.at(at)));
            } else {
                if (code == LDSTR) std::memcpy(&body.at(at), &token, 4), count++;
                at += operand(code);
            }
        }
        return count;
    }
};

/// `rejit`: a method and all that inline it are compiled again with another string, and without on request.
struct ReJit : Test {
    static constexpr uint32_t BLOCK_INLINING = 1, INLINING_CALLBACKS = 2, FOR_WRITING = 1, FOUND = 0;
    std::map<uint64_t, std::set<uint64_t>> inliners = {};
    uint64_t target = 0, module = 0;
    mdToken token = 0;
    int compiled = 0, replaced = 0;

    HRESULT begin() override { return ask(REJIT | JIT | CACHE_SEARCHES); }
    bool is_of_program(uint64_t of) {
        std::string path = path_of(info, of);
        return path.find("App.dll") != std::string::npos;
    }
    void check_code(uint64_t function) {
        uint32_t count = 0;
        if (!is_good(info->GetReJITIDs(function, 0, &count, nullptr), "GetReJITIDs") || count == 0) return;
        std::vector<uint64_t> ids(count);
        if (!is_good(info->GetReJITIDs(function, count, &count, ids.data()), "GetReJITIDs for all")) return;
        for (uint64_t id : ids) {
            uint32_t starts = 0;
            if (!is_good(info->GetNativeCodeStartAddresses(function, id, 0, &starts, nullptr), "GetNativeCodeStartAddresses") || starts == 0) continue;
            std::vector<uint64_t> addresses(starts);
            is_good(info->GetNativeCodeStartAddresses(function, id, starts, &starts, addresses.data()), "all addresses");
            for (uint64_t address : addresses) wants(address != 0, "an address of code");
        }
    }
    /// Looks at a method with code, and returns true if it is the one that is compiled again.
    bool see(uint64_t function) {
        check_code(function);
        uint64_t type = 0, of = 0;
        mdToken method = 0;
        if (!is_good(info->GetFunctionInfo2(function, 0, &type, &of, &method, 0, nullptr, nullptr), "GetFunctionInfo2")) return false;
        std::string name = name_of(info, function);
        if (!is_of_program(of)) return false;
        if (is_named(name, "InlineeTarget")) return target = function, module = of, token = method, true;
        if (is_named(name, "TriggerReJIT"))
            is_good(info->RequestReJITWithInliners(BLOCK_INLINING | INLINING_CALLBACKS, 1, &module, &token), "RequestReJITWithInliners");
        if (is_named(name, "TriggerRevert")) is_good(info->RequestRevert(1, &module, &token, nullptr), "RequestRevert");
        return false;
    }
    HRESULT JITCompilationFinished(uint64_t function, HRESULT, BOOL) override { return see(function), S_OK; }
    HRESULT JITInlining(uint64_t caller, uint64_t callee, BOOL *is_wanted) override {
        inliners[callee].insert(caller);
        return *is_wanted = 1, S_OK;
    }
    HRESULT JITCachedFunctionSearchFinished(uint64_t function, uint32_t result) override {
        if (result != FOUND || !see(function)) return S_OK;
        void *list = nullptr;
        if (!is_good(info->EnumNgenModuleMethodsInliningThisMethod(module, module, token, nullptr, &list), "the inliners of the image")) return S_OK;
        auto *all = static_cast<ICorProfilerMethodEnum *>(list);
        Method method = {};
        while (all->Next(1, &method, nullptr) == S_OK) {
            uint64_t inliner = 0;
            if (info->GetFunctionFromToken(method.module, method.token, &inliner) == S_OK) inliners[function].insert(inliner);
        }
        all->Release();
        return S_OK;
    }
    HRESULT ReJITCompilationStarted(uint64_t, uint64_t, BOOL) override { return compiled++, S_OK; }
    HRESULT GetReJITParameters(uint64_t of, mdToken method, void *unknown) override {
        auto *emit = metadata_of<IMetaDataEmit2>(info, of, FOR_WRITING);
        if (!emit) return fails("IMetaDataEmit2"), E_FAIL;
        const WCHAR text[] = u"Hello from the profiler!";
        mdToken string = 0;
        is_good(emit->DefineUserString(text, sizeof text / sizeof *text - 1, &string), "DefineUserString");
        emit->Release();
        const uint8_t *body = nullptr;
        uint32_t size = 0;
        if (!is_good(info->GetILFunctionBody(of, method, &body, &size), "GetILFunctionBody")) return E_FAIL;
        std::vector<uint8_t> changed(body, body + size);
        replaced += Il::replace_strings(changed, string);
        auto *control = static_cast<ICorProfilerFunctionControl *>(unknown);
        HRESULT result = control->SetILFunctionBody(size, changed.data());
        is_good(result, "SetILFunctionBody");
        return result;
    }
    HRESULT ReJITCompilationFinished(uint64_t function, uint64_t, HRESULT, BOOL) override {
        uint32_t count = 0;
        is_good(info->GetReJITIDs(function, 0, &count, nullptr), "GetReJITIDs of a method that was compiled again");
        wants(count != 0, "an id of what was compiled again");
        return S_OK;
    }
    HRESULT ReJITError(uint64_t, mdToken, uint64_t, HRESULT result) override { return fails("ReJITError", result), S_OK; }
    void end() override {
        wants(target != 0 && !inliners[target].empty(), "the method and its inliners");
        wants(compiled == static_cast<int>(inliners[target].size()) + 1, "the method and each inliner are compiled again");
        std::printf("compiled %d, inliners %d, strings %d\n", compiled, static_cast<int>(inliners[target].size()), replaced);
    }
};

} // namespace guest

#endif
