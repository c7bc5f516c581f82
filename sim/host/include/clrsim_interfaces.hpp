// The profiling interfaces in C++17, for tests without corprof.h: written by the test `header` from clr-com.
#ifndef CLRSIM_INTERFACES_HPP
#define CLRSIM_INTERFACES_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace clrsim {

#ifdef _WIN32
using WCHAR = wchar_t;
#else
using WCHAR = char16_t;
#endif

using HRESULT = int32_t;
using BOOL = int32_t;
using mdToken = uint32_t;
using HCORENUM = void *;
using HANDLE = void *;

struct GUID {
    uint32_t data1;
    uint16_t data2;
    uint16_t data3;
    uint8_t data4[8];
};

inline bool operator==(const GUID &a, const GUID &b) { return std::memcmp(&a, &b, sizeof(GUID)) == 0; }

using StackSnapshotCallback = HRESULT (*)(uint64_t function, uint64_t ip, uint64_t frame_info, uint32_t context_size,
                                          uint8_t *context, void *client_data);

struct CodeRange {
    uint64_t start;
    uint64_t size;
};

struct Method {
    uint64_t module;
    mdToken token;
};

struct Function {
    uint64_t function;
    uint64_t rejit;
};

struct IlMap {
    uint32_t old_offset;
    uint32_t new_offset;
    BOOL is_accurate;
};

struct IlToNative {
    uint32_t il_offset;
    uint32_t native_start;
    uint32_t native_end;
};

struct AssemblyMetadata {
    uint16_t major;
    uint16_t minor;
    uint16_t build;
    uint16_t revision;
    WCHAR *locale;
    uint32_t locale_len;
    uint32_t *processors;
    uint32_t processors_len;
    void *systems;
    uint32_t systems_len;
};

struct FieldOffset {
    mdToken field;
    uint32_t offset;
};

struct ArgumentRange {
    uint64_t start;
    uint32_t size;
};

struct FunctionArguments {
    uint32_t ranges_len;
    uint32_t size;
    ArgumentRange first;
};

struct GenerationRange {
    uint32_t generation;
    uint64_t start;
    uint64_t size;
    uint64_t reserved;
};

struct NonGcRange {
    uint64_t start;
    uint64_t size;
    uint64_t reserved;
};

struct ClauseInfo {
    uint32_t kind;
    uint64_t ip;
    uint64_t frame_pointer;
    uint64_t shadow_stack;
};

struct EventProviderConfig {
    const WCHAR *name;
    uint64_t keywords;
    uint32_t level;
    const WCHAR *filter;
};

struct EventParameter {
    uint32_t kind;
    uint32_t element;
    const WCHAR *name;
};

struct EventData {
    uint64_t data;
    uint32_t size;
    uint32_t reserved;
};

struct IUnknown {
    static constexpr GUID IID = {0, 0, 0, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};
    virtual HRESULT QueryInterface(const GUID &iid, void **object) = 0; // 0
    virtual uint32_t AddRef() = 0; // 1
    virtual uint32_t Release() = 0; // 2
};

struct ICorProfilerObjectEnum : IUnknown {
    static constexpr GUID IID = {0x2c6269bd, 0x2d13, 0x4321, {0xae, 0x12, 0x66, 0x86, 0x36, 0x5f, 0xd6, 0xaf}};
    virtual HRESULT Skip(uint32_t count) = 0; // 3
    virtual HRESULT Reset() = 0; // 4
    virtual HRESULT Clone(void **enumerator) = 0; // 5
    virtual HRESULT GetCount(uint32_t *count) = 0; // 6
    virtual HRESULT Next(uint32_t capacity, uint64_t *objects, uint32_t *fetched) = 0; // 7
};

struct ICorProfilerFunctionEnum : IUnknown {
    static constexpr GUID IID = {0xff71301a, 0xb994, 0x429d, {0xa1, 0x0b, 0xb3, 0x45, 0xa6, 0x52, 0x80, 0xef}};
    virtual HRESULT Skip(uint32_t count) = 0; // 3
    virtual HRESULT Reset() = 0; // 4
    virtual HRESULT Clone(void **enumerator) = 0; // 5
    virtual HRESULT GetCount(uint32_t *count) = 0; // 6
    virtual HRESULT Next(uint32_t capacity, Function *functions, uint32_t *fetched) = 0; // 7
};

struct ICorProfilerModuleEnum : IUnknown {
    static constexpr GUID IID = {0xb0266d75, 0x2081, 0x4493, {0xaf, 0x7f, 0x02, 0x8b, 0xa3, 0x4d, 0xb8, 0x91}};
    virtual HRESULT Skip(uint32_t count) = 0; // 3
    virtual HRESULT Reset() = 0; // 4
    virtual HRESULT Clone(void **enumerator) = 0; // 5
    virtual HRESULT GetCount(uint32_t *count) = 0; // 6
    virtual HRESULT Next(uint32_t capacity, uint64_t *modules, uint32_t *fetched) = 0; // 7
};

struct ICorProfilerMethodEnum : IUnknown {
    static constexpr GUID IID = {0xfccee788, 0x0088, 0x454b, {0xa8, 0x11, 0xc9, 0x9f, 0x29, 0x8d, 0x19, 0x42}};
    virtual HRESULT Skip(uint32_t count) = 0; // 3
    virtual HRESULT Reset() = 0; // 4
    virtual HRESULT Clone(void **enumerator) = 0; // 5
    virtual HRESULT GetCount(uint32_t *count) = 0; // 6
    virtual HRESULT Next(uint32_t capacity, Method *methods, uint32_t *fetched) = 0; // 7
};

struct ICorProfilerThreadEnum : IUnknown {
    static constexpr GUID IID = {0x571194f7, 0x25ed, 0x419f, {0xaa, 0x8b, 0x70, 0x16, 0xb3, 0x15, 0x97, 0x01}};
    virtual HRESULT Skip(uint32_t count) = 0; // 3
    virtual HRESULT Reset() = 0; // 4
    virtual HRESULT Clone(void **enumerator) = 0; // 5
    virtual HRESULT GetCount(uint32_t *count) = 0; // 6
    virtual HRESULT Next(uint32_t capacity, uint64_t *threads, uint32_t *fetched) = 0; // 7
};

struct IMethodMalloc : IUnknown {
    static constexpr GUID IID = {0xa0efb28b, 0x6ee2, 0x4d7b, {0xb9, 0x83, 0xa7, 0x5e, 0xf7, 0xbe, 0xed, 0xb8}};
    virtual void *Alloc(uint32_t size) = 0; // 3
};

struct ICorProfilerFunctionControl : IUnknown {
    static constexpr GUID IID = {0xf0963021, 0xe1ea, 0x4732, {0x85, 0x81, 0xe0, 0x1b, 0x0b, 0xd3, 0xc0, 0xc6}};
    virtual HRESULT SetCodegenFlags(uint32_t flags) = 0; // 3
    virtual HRESULT SetILFunctionBody(uint32_t header_len, const uint8_t *header) = 0; // 4
    virtual HRESULT SetILInstrumentedCodeMap(uint32_t entries_len, const IlMap *entries) = 0; // 5
};

struct ICorProfilerAssemblyReferenceProvider : IUnknown {
    static constexpr GUID IID = {0x66a78c24, 0x2eef, 0x4f65, {0xb4, 0x5f, 0xdd, 0x1d, 0x80, 0x38, 0xbf, 0x3c}};
    virtual HRESULT AddAssemblyReference(const void *reference) = 0; // 3
};

struct ICorProfilerInfo : IUnknown {
    static constexpr GUID IID = {0x28b5557d, 0x3f3f, 0x48b4, {0x90, 0xb2, 0x5f, 0x9e, 0xea, 0x2f, 0x6c, 0x48}};
    virtual HRESULT GetClassFromObject(uint64_t object, uint64_t *class_id) = 0; // 3
    virtual HRESULT GetClassFromToken(uint64_t module, mdToken type_def, uint64_t *class_id) = 0; // 4
    virtual HRESULT GetCodeInfo(uint64_t function, const uint8_t **start, uint32_t *size) = 0; // 5
    virtual HRESULT GetEventMask(uint32_t *events) = 0; // 6
    virtual HRESULT GetFunctionFromIP(const uint8_t *ip, uint64_t *function) = 0; // 7
    virtual HRESULT GetFunctionFromToken(uint64_t module, mdToken token, uint64_t *function) = 0; // 8
    virtual HRESULT GetHandleFromThread(uint64_t thread, HANDLE *handle) = 0; // 9
    virtual HRESULT GetObjectSize(uint64_t object, uint32_t *size) = 0; // 10
    virtual HRESULT IsArrayClass(uint64_t class_id, uint32_t *base_elem_type, uint64_t *base_class, uint32_t *rank) = 0; // 11
    virtual HRESULT GetThreadInfo(uint64_t thread, uint32_t *os_thread) = 0; // 12
    virtual HRESULT GetCurrentThreadID(uint64_t *thread) = 0; // 13
    virtual HRESULT GetClassIDInfo(uint64_t class_id, uint64_t *module, mdToken *type_def_token) = 0; // 14
    virtual HRESULT GetFunctionInfo(uint64_t function, uint64_t *class_id, uint64_t *module, mdToken *token) = 0; // 15
    virtual HRESULT SetEventMask(uint32_t events) = 0; // 16
    virtual HRESULT SetEnterLeaveFunctionHooks(const void *enter, const void *leave, const void *tailcall) = 0; // 17
    virtual HRESULT SetFunctionIDMapper(const void *mapper) = 0; // 18
    virtual HRESULT GetTokenAndMetaDataFromFunction(uint64_t function, const GUID &riid, void **import, mdToken *token) = 0; // 19
    virtual HRESULT GetModuleInfo(uint64_t module, const uint8_t **base_load_address, uint32_t name_capacity, uint32_t *name_len, WCHAR *name, uint64_t *assembly) = 0; // 20
    virtual HRESULT GetModuleMetaData(uint64_t module, uint32_t open_flags, const GUID &riid, void **out) = 0; // 21
    virtual HRESULT GetILFunctionBody(uint64_t module, mdToken method, const uint8_t **method_header, uint32_t *method_size) = 0; // 22
    virtual HRESULT GetILFunctionBodyAllocator(uint64_t module, void **malloc) = 0; // 23
    virtual HRESULT SetILFunctionBody(uint64_t module, mdToken method, const uint8_t *header) = 0; // 24
    virtual HRESULT GetAppDomainInfo(uint64_t app_domain, uint32_t name_capacity, uint32_t *name_len, WCHAR *name, uint64_t *process) = 0; // 25
    virtual HRESULT GetAssemblyInfo(uint64_t assembly, uint32_t name_capacity, uint32_t *name_len, WCHAR *name, uint64_t *app_domain, uint64_t *module) = 0; // 26
    virtual HRESULT SetFunctionReJIT(uint64_t function) = 0; // 27
    virtual HRESULT ForceGC() = 0; // 28
    virtual HRESULT SetILInstrumentedCodeMap(uint64_t function, BOOL start_jit, uint32_t entries_len, const IlMap *entries) = 0; // 29
    virtual HRESULT GetInprocInspectionInterface(void **inspection) = 0; // 30
    virtual HRESULT GetInprocInspectionIThisThread(void **inspection) = 0; // 31
    virtual HRESULT GetThreadContext(uint64_t thread, uint64_t *context) = 0; // 32
    virtual HRESULT BeginInprocDebugging(BOOL this_thread_only, uint32_t *profiler_context) = 0; // 33
    virtual HRESULT EndInprocDebugging(uint32_t profiler_context) = 0; // 34
    virtual HRESULT GetILToNativeMapping(uint64_t function, uint32_t map_capacity, uint32_t *map_len, IlToNative *map) = 0; // 35
};

struct ICorProfilerInfo2 : ICorProfilerInfo {
    static constexpr GUID IID = {0xcc0935cd, 0xa518, 0x487d, {0xb0, 0xbb, 0xa9, 0x32, 0x14, 0xe6, 0x54, 0x78}};
    virtual HRESULT DoStackSnapshot(uint64_t thread, StackSnapshotCallback callback, uint32_t info_flags, void *client_data, const uint8_t *context, uint32_t context_size) = 0; // 36
    virtual HRESULT SetEnterLeaveFunctionHooks2(const void *enter, const void *leave, const void *tailcall) = 0; // 37
    virtual HRESULT GetFunctionInfo2(uint64_t function, uint64_t frame_info, uint64_t *class_id, uint64_t *module, mdToken *token, uint32_t type_args_capacity, uint32_t *type_args_len, uint64_t *type_args) = 0; // 38
    virtual HRESULT GetStringLayout(uint32_t *buffer_length_offset, uint32_t *string_length_offset, uint32_t *buffer_offset) = 0; // 39
    virtual HRESULT GetClassLayout(uint64_t class_id, FieldOffset *field_offsets, uint32_t field_offsets_capacity, uint32_t *field_offsets_len, uint32_t *class_size) = 0; // 40
    virtual HRESULT GetClassIDInfo2(uint64_t class_id, uint64_t *module, mdToken *type_def_token, uint64_t *parent_class, uint32_t type_args_capacity, uint32_t *type_args_len, uint64_t *type_args) = 0; // 41
    virtual HRESULT GetCodeInfo2(uint64_t function, uint32_t ranges_capacity, uint32_t *ranges_len, CodeRange *ranges) = 0; // 42
    virtual HRESULT GetClassFromTokenAndTypeArgs(uint64_t module, mdToken type_def, uint32_t type_args_len, const uint64_t *type_args, uint64_t *class_id) = 0; // 43
    virtual HRESULT GetFunctionFromTokenAndTypeArgs(uint64_t module, mdToken method, uint64_t class_id, uint32_t type_args_len, const uint64_t *type_args, uint64_t *function) = 0; // 44
    virtual HRESULT EnumModuleFrozenObjects(uint64_t module, void **enumerator) = 0; // 45
    virtual HRESULT GetArrayObjectInfo(uint64_t object, uint32_t dimensions_len, uint32_t *dimension_sizes, int32_t *dimension_lower_bounds, uint8_t **data) = 0; // 46
    virtual HRESULT GetBoxClassLayout(uint64_t class_id, uint32_t *buffer_offset) = 0; // 47
    virtual HRESULT GetThreadAppDomain(uint64_t thread, uint64_t *app_domain) = 0; // 48
    virtual HRESULT GetRVAStaticAddress(uint64_t class_id, mdToken field_token, void **address) = 0; // 49
    virtual HRESULT GetAppDomainStaticAddress(uint64_t class_id, mdToken field_token, uint64_t app_domain, void **address) = 0; // 50
    virtual HRESULT GetThreadStaticAddress(uint64_t class_id, mdToken field_token, uint64_t thread, void **address) = 0; // 51
    virtual HRESULT GetContextStaticAddress(uint64_t class_id, mdToken field_token, uint64_t context, void **address) = 0; // 52
    virtual HRESULT GetStaticFieldInfo(uint64_t class_id, mdToken field_token, uint32_t *field_info) = 0; // 53
    virtual HRESULT GetGenerationBounds(uint32_t ranges_capacity, uint32_t *ranges_len, GenerationRange *ranges) = 0; // 54
    virtual HRESULT GetObjectGeneration(uint64_t object, GenerationRange *range) = 0; // 55
    virtual HRESULT GetNotifiedExceptionClauseInfo(ClauseInfo *info) = 0; // 56
};

struct ICorProfilerInfo3 : ICorProfilerInfo2 {
    static constexpr GUID IID = {0xb555ed4f, 0x452a, 0x4e54, {0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0}};
    virtual HRESULT EnumJITedFunctions(void **enumerator) = 0; // 57
    virtual HRESULT RequestProfilerDetach(uint32_t milliseconds) = 0; // 58
    virtual HRESULT SetFunctionIDMapper2(const void *mapper, void *client_data) = 0; // 59
    virtual HRESULT GetStringLayout2(uint32_t *string_length_offset, uint32_t *buffer_offset) = 0; // 60
    virtual HRESULT SetEnterLeaveFunctionHooks3(const void *enter, const void *leave, const void *tailcall) = 0; // 61
    virtual HRESULT SetEnterLeaveFunctionHooks3WithInfo(const void *enter, const void *leave, const void *tailcall) = 0; // 62
    virtual HRESULT GetFunctionEnter3Info(uint64_t function, uint64_t elt_info, uint64_t *frame_info, uint32_t *argument_info_size, FunctionArguments *argument_info) = 0; // 63
    virtual HRESULT GetFunctionLeave3Info(uint64_t function, uint64_t elt_info, uint64_t *frame_info, ArgumentRange *retval_range) = 0; // 64
    virtual HRESULT GetFunctionTailcall3Info(uint64_t function, uint64_t elt_info, uint64_t *frame_info) = 0; // 65
    virtual HRESULT EnumModules(void **enumerator) = 0; // 66
    virtual HRESULT GetRuntimeInformation(uint16_t *clr_instance_id, uint32_t *runtime_type, uint16_t *major_version, uint16_t *minor_version, uint16_t *build_number, uint16_t *qfe_version, uint32_t version_string_capacity, uint32_t *version_string_len, WCHAR *version_string) = 0; // 67
    virtual HRESULT GetThreadStaticAddress2(uint64_t class_id, mdToken field_token, uint64_t app_domain, uint64_t thread, void **address) = 0; // 68
    virtual HRESULT GetAppDomainsContainingModule(uint64_t module, uint32_t app_domains_capacity, uint32_t *app_domains_len, uint64_t *app_domains) = 0; // 69
    virtual HRESULT GetModuleInfo2(uint64_t module, const uint8_t **base_load_address, uint32_t name_capacity, uint32_t *name_len, WCHAR *name, uint64_t *assembly, uint32_t *module_flags) = 0; // 70
};

struct ICorProfilerInfo4 : ICorProfilerInfo3 {
    static constexpr GUID IID = {0x0d8fdcaa, 0x6257, 0x47bf, {0xb1, 0xbf, 0x94, 0xda, 0xc8, 0x84, 0x66, 0xee}};
    virtual HRESULT EnumThreads(void **enumerator) = 0; // 71
    virtual HRESULT InitializeCurrentThread() = 0; // 72
    virtual HRESULT RequestReJIT(uint32_t functions_len, const uint64_t *modules, const mdToken *methods) = 0; // 73
    virtual HRESULT RequestRevert(uint32_t functions_len, const uint64_t *modules, const mdToken *methods, HRESULT *status) = 0; // 74
    virtual HRESULT GetCodeInfo3(uint64_t function, uint64_t rejit, uint32_t ranges_capacity, uint32_t *ranges_len, CodeRange *ranges) = 0; // 75
    virtual HRESULT GetFunctionFromIP2(const uint8_t *ip, uint64_t *function, uint64_t *rejit) = 0; // 76
    virtual HRESULT GetReJITIDs(uint64_t function, uint32_t rejit_ids_capacity, uint32_t *rejit_ids_len, uint64_t *rejit_ids) = 0; // 77
    virtual HRESULT GetILToNativeMapping2(uint64_t function, uint64_t rejit, uint32_t map_capacity, uint32_t *map_len, IlToNative *map) = 0; // 78
    virtual HRESULT EnumJITedFunctions2(void **enumerator) = 0; // 79
    virtual HRESULT GetObjectSize2(uint64_t object, uint64_t *size) = 0; // 80
};

struct ICorProfilerInfo5 : ICorProfilerInfo4 {
    static constexpr GUID IID = {0x07602928, 0xce38, 0x4b83, {0x81, 0xe7, 0x74, 0xad, 0xaf, 0x78, 0x12, 0x14}};
    virtual HRESULT GetEventMask2(uint32_t *events_low, uint32_t *events_high) = 0; // 81
    virtual HRESULT SetEventMask2(uint32_t events_low, uint32_t events_high) = 0; // 82
};

struct ICorProfilerInfo6 : ICorProfilerInfo5 {
    static constexpr GUID IID = {0xf30a070d, 0xbffb, 0x46a7, {0xb1, 0xd8, 0x87, 0x81, 0xef, 0x7b, 0x69, 0x8a}};
    virtual HRESULT EnumNgenModuleMethodsInliningThisMethod(uint64_t inliners_module, uint64_t inlinee_module, mdToken inlinee_method, BOOL *incomplete_data, void **enumerator) = 0; // 83
};

struct ICorProfilerInfo7 : ICorProfilerInfo6 {
    static constexpr GUID IID = {0x9aeecc0d, 0x63e0, 0x4187, {0x8c, 0x00, 0xe3, 0x12, 0xf5, 0x03, 0xf6, 0x63}};
    virtual HRESULT ApplyMetaData(uint64_t module) = 0; // 84
    virtual HRESULT GetInMemorySymbolsLength(uint64_t module, uint32_t *count_symbol_bytes) = 0; // 85
    virtual HRESULT ReadInMemorySymbols(uint64_t module, uint32_t symbols_read_offset, uint8_t *symbol_bytes, uint32_t count_symbol_bytes, uint32_t *count_symbol_bytes_read) = 0; // 86
};

struct ICorProfilerInfo8 : ICorProfilerInfo7 {
    static constexpr GUID IID = {0xc5ac80a6, 0x782e, 0x4716, {0x80, 0x44, 0x39, 0x59, 0x8c, 0x60, 0xcf, 0xbf}};
    virtual HRESULT IsFunctionDynamic(uint64_t function, BOOL *is_dynamic) = 0; // 87
    virtual HRESULT GetFunctionFromIP3(const uint8_t *ip, uint64_t *function, uint64_t *rejit) = 0; // 88
    virtual HRESULT GetDynamicFunctionInfo(uint64_t function, uint64_t *module, const uint8_t **signature, uint32_t *signature_size, uint32_t name_capacity, uint32_t *name_len, WCHAR *name) = 0; // 89
};

struct ICorProfilerInfo9 : ICorProfilerInfo8 {
    static constexpr GUID IID = {0x008170db, 0xf8cc, 0x4796, {0x9a, 0x51, 0xdc, 0x8a, 0xa0, 0xb4, 0x70, 0x12}};
    virtual HRESULT GetNativeCodeStartAddresses(uint64_t function, uint64_t rejit, uint32_t addresses_capacity, uint32_t *addresses_len, uint64_t *addresses) = 0; // 90
    virtual HRESULT GetILToNativeMapping3(uint64_t start, uint32_t map_capacity, uint32_t *map_len, IlToNative *map) = 0; // 91
    virtual HRESULT GetCodeInfo4(uint64_t start, uint32_t ranges_capacity, uint32_t *ranges_len, CodeRange *ranges) = 0; // 92
};

struct ICorProfilerInfo10 : ICorProfilerInfo9 {
    static constexpr GUID IID = {0x2f1b5152, 0xc869, 0x40c9, {0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20}};
    virtual HRESULT EnumerateObjectReferences(uint64_t object, const void *callback, void *client_data) = 0; // 93
    virtual HRESULT IsFrozenObject(uint64_t object, BOOL *frozen) = 0; // 94
    virtual HRESULT GetLOHObjectSizeThreshold(uint32_t *threshold) = 0; // 95
    virtual HRESULT RequestReJITWithInliners(uint32_t rejit_flags, uint32_t functions_len, const uint64_t *modules, const mdToken *methods) = 0; // 96
    virtual HRESULT SuspendRuntime() = 0; // 97
    virtual HRESULT ResumeRuntime() = 0; // 98
};

struct ICorProfilerInfo11 : ICorProfilerInfo10 {
    static constexpr GUID IID = {0x06398876, 0x8987, 0x4154, {0xb6, 0x21, 0x40, 0xa0, 0x0d, 0x6e, 0x4d, 0x04}};
    virtual HRESULT GetEnvironmentVariable(const WCHAR *name, uint32_t value_capacity, uint32_t *value_len, WCHAR *value) = 0; // 99
    virtual HRESULT SetEnvironmentVariable(const WCHAR *name, const WCHAR *value) = 0; // 100
};

struct ICorProfilerInfo12 : ICorProfilerInfo11 {
    static constexpr GUID IID = {0x27b24ccd, 0x1cb1, 0x47c5, {0x96, 0xee, 0x98, 0x19, 0x0d, 0xc3, 0x09, 0x59}};
    virtual HRESULT EventPipeStartSession(uint32_t provider_configs_len, const EventProviderConfig *provider_configs, BOOL request_rundown, uint64_t *session) = 0; // 101
    virtual HRESULT EventPipeAddProviderToSession(uint64_t session, EventProviderConfig provider_config) = 0; // 102
    virtual HRESULT EventPipeStopSession(uint64_t session) = 0; // 103
    virtual HRESULT EventPipeCreateProvider(const WCHAR *provider_name, uint64_t *provider) = 0; // 104
    virtual HRESULT EventPipeGetProviderInfo(uint64_t provider, uint32_t name_capacity, uint32_t *name_len, WCHAR *name) = 0; // 105
    virtual HRESULT EventPipeDefineEvent(uint64_t provider, const WCHAR *event_name, uint32_t event_id, uint64_t keywords, uint32_t event_version, uint32_t level, uint8_t opcode, BOOL need_stack, uint32_t parameters_len, const EventParameter *parameters, uint64_t *event) = 0; // 106
    virtual HRESULT EventPipeWriteEvent(uint64_t event, uint32_t data_len, const EventData *data, const GUID *activity_id, const GUID *related_activity_id) = 0; // 107
};

struct ICorProfilerInfo13 : ICorProfilerInfo12 {
    static constexpr GUID IID = {0x6e6c7ee2, 0x0701, 0x4ec2, {0x9d, 0x29, 0x2e, 0x87, 0x33, 0xb6, 0x69, 0x34}};
    virtual HRESULT CreateHandle(uint64_t object, uint32_t handle_type, uint64_t *handle) = 0; // 108
    virtual HRESULT DestroyHandle(uint64_t handle) = 0; // 109
    virtual HRESULT GetObjectIDFromHandle(uint64_t handle, uint64_t *object) = 0; // 110
};

struct ICorProfilerInfo14 : ICorProfilerInfo13 {
    static constexpr GUID IID = {0xf460e352, 0xd76d, 0x4fe9, {0x83, 0x5f, 0xf6, 0xaf, 0x9d, 0x6e, 0x86, 0x2d}};
    virtual HRESULT EnumerateNonGCObjects(void **enumerator) = 0; // 111
    virtual HRESULT GetNonGCHeapBounds(uint32_t ranges_capacity, uint32_t *ranges_len, NonGcRange *ranges) = 0; // 112
    virtual HRESULT EventPipeCreateProvider2(const WCHAR *provider_name, const void *callback, uint64_t *provider) = 0; // 113
};

struct ICorProfilerInfo15 : ICorProfilerInfo14 {
    static constexpr GUID IID = {0xb446462d, 0xbd22, 0x41dd, {0x87, 0x2d, 0xdc, 0x71, 0x4c, 0x49, 0xeb, 0x56}};
    virtual HRESULT EnumerateGCHeapObjects(const void *callback, void *callback_state) = 0; // 114
};

struct IMetaDataImport : IUnknown {
    static constexpr GUID IID = {0x7dac8207, 0xd3ae, 0x4c75, {0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44}};
    virtual void CloseEnum(HCORENUM enumerator) = 0; // 3
    virtual HRESULT CountEnum(HCORENUM enumerator, uint32_t *count) = 0; // 4
    virtual HRESULT ResetEnum(HCORENUM enumerator, uint32_t pos) = 0; // 5
    virtual HRESULT EnumTypeDefs(HCORENUM *enumerator, mdToken *type_defs, uint32_t capacity, uint32_t *type_defs_len) = 0; // 6
    virtual HRESULT EnumInterfaceImpls(HCORENUM *enumerator, mdToken type_def, mdToken *impls, uint32_t capacity, uint32_t *impls_len) = 0; // 7
    virtual HRESULT EnumTypeRefs(HCORENUM *enumerator, mdToken *type_refs, uint32_t capacity, uint32_t *type_refs_len) = 0; // 8
    virtual HRESULT FindTypeDefByName(const WCHAR *name, mdToken enclosing_class, mdToken *type_def) = 0; // 9
    virtual HRESULT GetScopeProps(WCHAR *name, uint32_t name_capacity, uint32_t *name_len, GUID *mvid) = 0; // 10
    virtual HRESULT GetModuleFromScope(mdToken *module) = 0; // 11
    virtual HRESULT GetTypeDefProps(mdToken token, WCHAR *type_def, uint32_t type_def_capacity, uint32_t *type_def_len, uint32_t *type_def_flags, mdToken *extends) = 0; // 12
    virtual HRESULT GetInterfaceImplProps(mdToken interface_impl, mdToken *class_id, mdToken *interface) = 0; // 13
    virtual HRESULT GetTypeRefProps(mdToken type_ref, mdToken *resolution_scope, WCHAR *name, uint32_t name_capacity, uint32_t *name_len) = 0; // 14
    virtual HRESULT ResolveTypeRef(mdToken type_ref, const GUID &riid, void **scope, mdToken *type_def) = 0; // 15
    virtual HRESULT EnumMembers(HCORENUM *enumerator, mdToken type_def, mdToken *members, uint32_t capacity, uint32_t *tokens_len) = 0; // 16
    virtual HRESULT EnumMembersWithName(HCORENUM *enumerator, mdToken type_def, const WCHAR *name, mdToken *members, uint32_t capacity, uint32_t *tokens_len) = 0; // 17
    virtual HRESULT EnumMethods(HCORENUM *enumerator, mdToken type_def, mdToken *methods, uint32_t capacity, uint32_t *tokens_len) = 0; // 18
    virtual HRESULT EnumMethodsWithName(HCORENUM *enumerator, mdToken type_def, const WCHAR *name, mdToken *methods, uint32_t capacity, uint32_t *tokens_len) = 0; // 19
    virtual HRESULT EnumFields(HCORENUM *enumerator, mdToken type_def, mdToken *fields, uint32_t capacity, uint32_t *tokens_len) = 0; // 20
    virtual HRESULT EnumFieldsWithName(HCORENUM *enumerator, mdToken type_def, const WCHAR *name, mdToken *fields, uint32_t capacity, uint32_t *tokens_len) = 0; // 21
    virtual HRESULT EnumParams(HCORENUM *enumerator, mdToken method, mdToken *params, uint32_t capacity, uint32_t *tokens_len) = 0; // 22
    virtual HRESULT EnumMemberRefs(HCORENUM *enumerator, mdToken parent, mdToken *member_refs, uint32_t capacity, uint32_t *tokens_len) = 0; // 23
    virtual HRESULT EnumMethodImpls(HCORENUM *enumerator, mdToken type_def, mdToken *method_body, mdToken *method_decl, uint32_t capacity, uint32_t *tokens_len) = 0; // 24
    virtual HRESULT EnumPermissionSets(HCORENUM *enumerator, mdToken token, uint32_t actions, mdToken *permission, uint32_t capacity, uint32_t *tokens_len) = 0; // 25
    virtual HRESULT FindMember(mdToken type_def, const WCHAR *name, const uint8_t *signature, uint32_t signature_size, mdToken *member) = 0; // 26
    virtual HRESULT FindMethod(mdToken type_def, const WCHAR *name, const uint8_t *signature, uint32_t signature_size, mdToken *member) = 0; // 27
    virtual HRESULT FindField(mdToken type_def, const WCHAR *name, const uint8_t *signature, uint32_t signature_size, mdToken *member) = 0; // 28
    virtual HRESULT FindMemberRef(mdToken type_def, const WCHAR *name, const uint8_t *signature, uint32_t signature_size, mdToken *member_ref) = 0; // 29
    virtual HRESULT GetMethodProps(mdToken token, mdToken *class_id, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, uint32_t *attr, const uint8_t **signature, uint32_t *signature_size, uint32_t *code_rva, uint32_t *impl_flags) = 0; // 30
    virtual HRESULT GetMemberRefProps(mdToken token, mdToken *parent, WCHAR *member, uint32_t member_capacity, uint32_t *member_len, const uint8_t **signature, uint32_t *signature_size) = 0; // 31
    virtual HRESULT EnumProperties(HCORENUM *enumerator, mdToken type_def, mdToken *properties, uint32_t capacity, uint32_t *properties_len) = 0; // 32
    virtual HRESULT EnumEvents(HCORENUM *enumerator, mdToken type_def, mdToken *events, uint32_t capacity, uint32_t *events_len) = 0; // 33
    virtual HRESULT GetEventProps(mdToken token, mdToken *class_id, const WCHAR *event, uint32_t event_capacity, uint32_t *event_len, uint32_t *event_flags, mdToken *event_type, mdToken *add_on, mdToken *remove_on, mdToken *fire, mdToken *other_methods, uint32_t capacity, uint32_t *other_methods_len) = 0; // 34
    virtual HRESULT EnumMethodSemantics(HCORENUM *enumerator, mdToken method, mdToken *event_or_property, uint32_t capacity, uint32_t *event_or_property_len) = 0; // 35
    virtual HRESULT GetMethodSemantics(mdToken member, mdToken event_or_property, uint32_t *semantics_flags) = 0; // 36
    virtual HRESULT GetClassLayout(mdToken type_def, uint32_t *pack_size, FieldOffset *field_offsets, uint32_t capacity, uint32_t *field_offsets_len, uint32_t *class_size) = 0; // 37
    virtual HRESULT GetFieldMarshal(mdToken token, const uint8_t **native_type, uint32_t *native_type_len) = 0; // 38
    virtual HRESULT GetRVA(mdToken token, uint32_t *code_rva, uint32_t *impl_flags) = 0; // 39
    virtual HRESULT GetPermissionSetProps(mdToken permission_set, uint32_t *action, const void **permission, uint32_t *permission_size) = 0; // 40
    virtual HRESULT GetSigFromToken(mdToken signature_token, const uint8_t **signature, uint32_t *signature_size) = 0; // 41
    virtual HRESULT GetModuleRefProps(mdToken module_ref, WCHAR *name, uint32_t name_capacity, uint32_t *name_len) = 0; // 42
    virtual HRESULT EnumModuleRefs(HCORENUM *enumerator, mdToken *module_refs, uint32_t capacity, uint32_t *module_refs_len) = 0; // 43
    virtual HRESULT GetTypeSpecFromToken(mdToken type_spec, const uint8_t **signature, uint32_t *signature_size) = 0; // 44
    virtual HRESULT GetNameFromToken(mdToken token, const uint8_t **utf8_name) = 0; // 45
    virtual HRESULT EnumUnresolvedMethods(HCORENUM *enumerator, mdToken *methods, uint32_t capacity, uint32_t *tokens_len) = 0; // 46
    virtual HRESULT GetUserString(mdToken string_token, WCHAR *string, uint32_t string_capacity, uint32_t *string_len) = 0; // 47
    virtual HRESULT GetPinvokeMap(mdToken token, uint32_t *mapping_flags, WCHAR *import_name, uint32_t import_name_capacity, uint32_t *import_name_len, mdToken *import_dll) = 0; // 48
    virtual HRESULT EnumSignatures(HCORENUM *enumerator, mdToken *signatures, uint32_t capacity, uint32_t *signatures_len) = 0; // 49
    virtual HRESULT EnumTypeSpecs(HCORENUM *enumerator, mdToken *type_specs, uint32_t capacity, uint32_t *type_specs_len) = 0; // 50
    virtual HRESULT EnumUserStrings(HCORENUM *enumerator, mdToken *strings, uint32_t capacity, uint32_t *strings_len) = 0; // 51
    virtual HRESULT GetParamForMethodIndex(mdToken method, uint32_t sequence, mdToken *parameter) = 0; // 52
    virtual HRESULT EnumCustomAttributes(HCORENUM *enumerator, mdToken token, mdToken kind, mdToken *custom_attributes, uint32_t capacity, uint32_t *custom_attributes_len) = 0; // 53
    virtual HRESULT GetCustomAttributeProps(mdToken attribute, mdToken *object, mdToken *kind, const void **blob, uint32_t *size) = 0; // 54
    virtual HRESULT FindTypeRef(mdToken resolution_scope, const WCHAR *name, mdToken *type_ref) = 0; // 55
    virtual HRESULT GetMemberProps(mdToken token, mdToken *class_id, WCHAR *member, uint32_t member_capacity, uint32_t *member_len, uint32_t *attr, const uint8_t **signature, uint32_t *signature_size, uint32_t *code_rva, uint32_t *impl_flags, uint32_t *element_type, const void **value, uint32_t *value_len) = 0; // 56
    virtual HRESULT GetFieldProps(mdToken token, mdToken *class_id, WCHAR *field, uint32_t field_capacity, uint32_t *field_len, uint32_t *attr, const uint8_t **signature, uint32_t *signature_size, uint32_t *element_type, const void **value, uint32_t *value_len) = 0; // 57
    virtual HRESULT GetPropertyProps(mdToken property_token, mdToken *class_id, const WCHAR *property, uint32_t property_capacity, uint32_t *property_len, uint32_t *flags, const uint8_t **signature, uint32_t *signature_size, uint32_t *element_type, const void **default_value, uint32_t *default_value_len, mdToken *setter, mdToken *getter, mdToken *other_methods, uint32_t capacity, uint32_t *other_methods_len) = 0; // 58
    virtual HRESULT GetParamProps(mdToken token, mdToken *method, uint32_t *sequence, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, uint32_t *attr, uint32_t *element_type, const void **value, uint32_t *value_len) = 0; // 59
    virtual HRESULT GetCustomAttributeByName(mdToken object, const WCHAR *name, const void **data, uint32_t *data_len) = 0; // 60
    virtual BOOL IsValidToken(mdToken token) = 0; // 61
    virtual HRESULT GetNestedClassProps(mdToken nested, mdToken *enclosing) = 0; // 62
    virtual HRESULT GetNativeCallConvFromSig(const void *signature, uint32_t signature_size, uint32_t *call_conv) = 0; // 63
    virtual HRESULT IsGlobal(mdToken token, int32_t *global) = 0; // 64
};

struct IMetaDataImport2 : IMetaDataImport {
    static constexpr GUID IID = {0xfce5efa0, 0x8bba, 0x4f8e, {0xa0, 0x36, 0x8f, 0x20, 0x22, 0xb0, 0x84, 0x66}};
    virtual HRESULT EnumGenericParams(HCORENUM *enumerator, mdToken token, mdToken *generic_params, uint32_t capacity, uint32_t *generic_params_len) = 0; // 65
    virtual HRESULT GetGenericParamProps(mdToken token, uint32_t *sequence, uint32_t *param_flags, mdToken *owner, uint32_t *reserved, WCHAR *name, uint32_t name_capacity, uint32_t *name_len) = 0; // 66
    virtual HRESULT GetMethodSpecProps(mdToken method_spec, mdToken *parent, const uint8_t **signature, uint32_t *signature_size) = 0; // 67
    virtual HRESULT EnumGenericParamConstraints(HCORENUM *enumerator, mdToken token, mdToken *generic_param_constraints, uint32_t capacity, uint32_t *generic_param_constraints_len) = 0; // 68
    virtual HRESULT GetGenericParamConstraintProps(mdToken constraint, mdToken *parameter, mdToken *constraint_type) = 0; // 69
    virtual HRESULT GetPEKind(uint32_t *pe_kind, uint32_t *machine) = 0; // 70
    virtual HRESULT GetVersionString(uint16_t *version, uint32_t version_capacity, uint32_t *version_len) = 0; // 71
    virtual HRESULT EnumMethodSpecs(HCORENUM *enumerator, mdToken token, mdToken *method_specs, uint32_t capacity, uint32_t *method_specs_len) = 0; // 72
};

struct IMetaDataAssemblyImport : IUnknown {
    static constexpr GUID IID = {0xee62470b, 0xe94b, 0x424e, {0x9b, 0x7c, 0x2f, 0x00, 0xc9, 0x24, 0x9f, 0x93}};
    virtual HRESULT GetAssemblyProps(mdToken token, const void **public_key, uint32_t *public_key_size, uint32_t *hash_algorithm, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, AssemblyMetadata *metadata, uint32_t *assembly_flags) = 0; // 3
    virtual HRESULT GetAssemblyRefProps(mdToken token, const void **public_key, uint32_t *public_key_size, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, AssemblyMetadata *metadata, const void **hash, uint32_t *hash_size, uint32_t *reference_flags) = 0; // 4
    virtual HRESULT GetFileProps(mdToken token, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, const void **hash, uint32_t *hash_size, uint32_t *file_flags) = 0; // 5
    virtual HRESULT GetExportedTypeProps(mdToken token, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, mdToken *implementation, mdToken *type_def, uint32_t *type_flags) = 0; // 6
    virtual HRESULT GetManifestResourceProps(mdToken token, WCHAR *name, uint32_t name_capacity, uint32_t *name_len, mdToken *implementation, uint32_t *offset, uint32_t *resource_flags) = 0; // 7
    virtual HRESULT EnumAssemblyRefs(HCORENUM *enumerator, mdToken *assembly_refs, uint32_t capacity, uint32_t *tokens_len) = 0; // 8
    virtual HRESULT EnumFiles(HCORENUM *enumerator, mdToken *files, uint32_t capacity, uint32_t *tokens_len) = 0; // 9
    virtual HRESULT EnumExportedTypes(HCORENUM *enumerator, mdToken *types, uint32_t capacity, uint32_t *tokens_len) = 0; // 10
    virtual HRESULT EnumManifestResources(HCORENUM *enumerator, mdToken *resources, uint32_t capacity, uint32_t *tokens_len) = 0; // 11
    virtual HRESULT GetAssemblyFromScope(mdToken *assembly) = 0; // 12
    virtual HRESULT FindExportedTypeByName(const WCHAR *name, mdToken enclosing_type, mdToken *exported_type) = 0; // 13
    virtual HRESULT FindManifestResourceByName(const WCHAR *name, mdToken *resource) = 0; // 14
    virtual void CloseEnum(HCORENUM enumerator) = 0; // 15
    virtual HRESULT FindAssembliesByName(const WCHAR *base_folder, const WCHAR *private_folder, const WCHAR *name, void **imports, uint32_t capacity, uint32_t *imports_len) = 0; // 16
};

struct IMetaDataEmit : IUnknown {
    static constexpr GUID IID = {0xba3fee4c, 0xecb9, 0x4e41, {0x83, 0xb7, 0x18, 0x3f, 0xa4, 0x1c, 0xd8, 0x59}};
    virtual HRESULT SetModuleProps(const WCHAR *name) = 0; // 3
    virtual HRESULT Save(const WCHAR *file, uint32_t save_flags) = 0; // 4
    virtual HRESULT SaveToStream(void *stream, uint32_t save_flags) = 0; // 5
    virtual HRESULT GetSaveSize(uint32_t kind, uint32_t *save_size) = 0; // 6
    virtual HRESULT DefineTypeDef(const WCHAR *name, uint32_t type_flags, mdToken extends, const mdToken *implements, mdToken *type_def) = 0; // 7
    virtual HRESULT DefineNestedType(const WCHAR *name, uint32_t type_flags, mdToken extends, const mdToken *implements, mdToken enclosing, mdToken *type_def) = 0; // 8
    virtual HRESULT SetHandler(void *handler) = 0; // 9
    virtual HRESULT DefineMethod(mdToken type_def, const WCHAR *name, uint32_t method_flags, const uint8_t *signature, uint32_t signature_size, uint32_t code_rva, uint32_t impl_flags, mdToken *method) = 0; // 10
    virtual HRESULT DefineMethodImpl(mdToken type_def, mdToken body, mdToken declaration) = 0; // 11
    virtual HRESULT DefineTypeRefByName(mdToken resolution_scope, const WCHAR *name, mdToken *type_ref) = 0; // 12
    virtual HRESULT DefineImportType(void *assembly_import, const void *hash, uint32_t hash_size, void *import, mdToken type_def, void *assembly_emit, mdToken *type_ref) = 0; // 13
    virtual HRESULT DefineMemberRef(mdToken import, const WCHAR *name, const uint8_t *signature, uint32_t signature_size, mdToken *member_ref) = 0; // 14
    virtual HRESULT DefineImportMember(void *assembly_import, const void *hash, uint32_t hash_size, void *import, mdToken member, void *assembly_emit, mdToken parent, mdToken *member_ref) = 0; // 15
    virtual HRESULT DefineEvent(mdToken type_def, const WCHAR *name, uint32_t event_flags, mdToken event_type, mdToken add_on, mdToken remove_on, mdToken fire, const mdToken *other_methods, mdToken *event) = 0; // 16
    virtual HRESULT SetClassLayout(mdToken type_def, uint32_t pack_size, const FieldOffset *field_offsets, uint32_t class_size) = 0; // 17
    virtual HRESULT DeleteClassLayout(mdToken type_def) = 0; // 18
    virtual HRESULT SetFieldMarshal(mdToken token, const uint8_t *native_type, uint32_t native_type_size) = 0; // 19
    virtual HRESULT DeleteFieldMarshal(mdToken token) = 0; // 20
    virtual HRESULT DefinePermissionSet(mdToken token, uint32_t action, const void *permission, uint32_t permission_size, mdToken *permission_set) = 0; // 21
    virtual HRESULT SetRVA(mdToken method, uint32_t rva) = 0; // 22
    virtual HRESULT GetTokenFromSig(const uint8_t *signature, uint32_t signature_size, mdToken *token) = 0; // 23
    virtual HRESULT DefineModuleRef(const WCHAR *name, mdToken *module_ref) = 0; // 24
    virtual HRESULT SetParent(mdToken member_ref, mdToken parent) = 0; // 25
    virtual HRESULT GetTokenFromTypeSpec(const uint8_t *signature, uint32_t signature_size, mdToken *type_spec) = 0; // 26
    virtual HRESULT SaveToMemory(void *memory, uint32_t memory_size) = 0; // 27
    virtual HRESULT DefineUserString(const WCHAR *string, uint32_t string_size, mdToken *token) = 0; // 28
    virtual HRESULT DeleteToken(mdToken token) = 0; // 29
    virtual HRESULT SetMethodProps(mdToken method, uint32_t method_flags, uint32_t code_rva, uint32_t impl_flags) = 0; // 30
    virtual HRESULT SetTypeDefProps(mdToken type_def, uint32_t type_flags, mdToken extends, const mdToken *implements) = 0; // 31
    virtual HRESULT SetEventProps(mdToken event, uint32_t event_flags, mdToken event_type, mdToken add_on, mdToken remove_on, mdToken fire, const mdToken *other_methods) = 0; // 32
    virtual HRESULT SetPermissionSetProps(mdToken token, uint32_t action, const void *permission, uint32_t permission_size, mdToken *permission_set) = 0; // 33
    virtual HRESULT DefinePinvokeMap(mdToken token, uint32_t mapping_flags, const WCHAR *import_name, mdToken import_dll) = 0; // 34
    virtual HRESULT SetPinvokeMap(mdToken token, uint32_t mapping_flags, const WCHAR *import_name, mdToken import_dll) = 0; // 35
    virtual HRESULT DeletePinvokeMap(mdToken token) = 0; // 36
    virtual HRESULT DefineCustomAttribute(mdToken owner, mdToken constructor, const void *attribute, uint32_t attribute_size, mdToken *token) = 0; // 37
    virtual HRESULT SetCustomAttributeValue(mdToken token, const void *attribute, uint32_t attribute_size) = 0; // 38
    virtual HRESULT DefineField(mdToken type_def, const WCHAR *name, uint32_t field_flags, const uint8_t *signature, uint32_t signature_size, uint32_t element_type, const void *value, uint32_t value_size, mdToken *field) = 0; // 39
    virtual HRESULT DefineProperty(mdToken type_def, const WCHAR *name, uint32_t property_flags, const uint8_t *signature, uint32_t signature_size, uint32_t element_type, const void *value, uint32_t value_size, mdToken setter, mdToken getter, const mdToken *other_methods, mdToken *property) = 0; // 40
    virtual HRESULT DefineParam(mdToken method, uint32_t sequence, const WCHAR *name, uint32_t param_flags, uint32_t element_type, const void *value, uint32_t value_size, mdToken *param) = 0; // 41
    virtual HRESULT SetFieldProps(mdToken field, uint32_t field_flags, uint32_t element_type, const void *value, uint32_t value_size) = 0; // 42
    virtual HRESULT SetPropertyProps(mdToken property, uint32_t property_flags, uint32_t element_type, const void *value, uint32_t value_size, mdToken setter, mdToken getter, const mdToken *other_methods) = 0; // 43
    virtual HRESULT SetParamProps(mdToken param, const WCHAR *name, uint32_t param_flags, uint32_t element_type, const void *value, uint32_t value_size) = 0; // 44
    virtual HRESULT DefineSecurityAttributeSet(mdToken token, const void *attributes, uint32_t attributes_size, uint32_t *wrong_attribute) = 0; // 45
    virtual HRESULT ApplyEditAndContinue(void *import) = 0; // 46
    virtual HRESULT TranslateSigWithScope(void *assembly_import, const void *hash, uint32_t hash_size, void *import, const uint8_t *signature, uint32_t signature_size, void *assembly_emit, void *emit, uint8_t *translated, uint32_t translated_capacity, uint32_t *translated_len) = 0; // 47
    virtual HRESULT SetMethodImplFlags(mdToken method, uint32_t impl_flags) = 0; // 48
    virtual HRESULT SetFieldRVA(mdToken field, uint32_t rva) = 0; // 49
    virtual HRESULT Merge(void *import, void *host_map, void *handler) = 0; // 50
    virtual HRESULT MergeEnd() = 0; // 51
};

struct IMetaDataEmit2 : IMetaDataEmit {
    static constexpr GUID IID = {0xf5dd9950, 0xf693, 0x42e6, {0x83, 0x0e, 0x7b, 0x83, 0x3e, 0x81, 0x46, 0xa9}};
    virtual HRESULT DefineMethodSpec(mdToken parent, const uint8_t *signature, uint32_t signature_size, mdToken *method_spec) = 0; // 52
    virtual HRESULT GetDeltaSaveSize(uint32_t kind, uint32_t *save_size) = 0; // 53
    virtual HRESULT SaveDelta(const WCHAR *file, uint32_t save_flags) = 0; // 54
    virtual HRESULT SaveDeltaToStream(void *stream, uint32_t save_flags) = 0; // 55
    virtual HRESULT SaveDeltaToMemory(void *memory, uint32_t memory_size) = 0; // 56
    virtual HRESULT DefineGenericParam(mdToken token, uint32_t sequence, uint32_t param_flags, const WCHAR *name, uint32_t reserved, const mdToken *constraints, mdToken *generic_param) = 0; // 57
    virtual HRESULT SetGenericParamProps(mdToken generic_param, uint32_t param_flags, const WCHAR *name, uint32_t reserved, const mdToken *constraints) = 0; // 58
    virtual HRESULT ResetENCLog() = 0; // 59
};

struct IMetaDataAssemblyEmit : IUnknown {
    static constexpr GUID IID = {0x211ef15b, 0x5317, 0x4438, {0xb1, 0x96, 0xde, 0xc8, 0x7b, 0x88, 0x76, 0x93}};
    virtual HRESULT DefineAssembly(const void *public_key, uint32_t public_key_size, uint32_t hash_algorithm, const WCHAR *name, const AssemblyMetadata *metadata, uint32_t assembly_flags, mdToken *assembly) = 0; // 3
    virtual HRESULT DefineAssemblyRef(const void *public_key, uint32_t public_key_size, const WCHAR *name, const AssemblyMetadata *metadata, const void *hash, uint32_t hash_size, uint32_t reference_flags, mdToken *assembly_ref) = 0; // 4
    virtual HRESULT DefineFile(const WCHAR *name, const void *hash, uint32_t hash_size, uint32_t file_flags, mdToken *file) = 0; // 5
    virtual HRESULT DefineExportedType(const WCHAR *name, mdToken implementation, mdToken type_def, uint32_t type_flags, mdToken *exported_type) = 0; // 6
    virtual HRESULT DefineManifestResource(const WCHAR *name, mdToken implementation, uint32_t offset, uint32_t resource_flags, mdToken *resource) = 0; // 7
    virtual HRESULT SetAssemblyProps(mdToken assembly, const void *public_key, uint32_t public_key_size, uint32_t hash_algorithm, const WCHAR *name, const AssemblyMetadata *metadata, uint32_t assembly_flags) = 0; // 8
    virtual HRESULT SetAssemblyRefProps(mdToken assembly_ref, const void *public_key, uint32_t public_key_size, const WCHAR *name, const AssemblyMetadata *metadata, const void *hash, uint32_t hash_size, uint32_t reference_flags) = 0; // 9
    virtual HRESULT SetFileProps(mdToken file, const void *hash, uint32_t hash_size, uint32_t file_flags) = 0; // 10
    virtual HRESULT SetExportedTypeProps(mdToken exported_type, mdToken implementation, mdToken type_def, uint32_t type_flags) = 0; // 11
    virtual HRESULT SetManifestResourceProps(mdToken resource, mdToken implementation, uint32_t offset, uint32_t resource_flags) = 0; // 12
};

struct IMetaDataDispenser : IUnknown {
    static constexpr GUID IID = {0x809c652e, 0x7396, 0x11d2, {0x97, 0x71, 0x00, 0xa0, 0xc9, 0xb4, 0xd5, 0x0c}};
    virtual HRESULT DefineScope(const GUID *class_id, uint32_t create_flags, const GUID &riid, void **scope) = 0; // 3
    virtual HRESULT OpenScope(const WCHAR *path, uint32_t open_flags, const GUID &riid, void **scope) = 0; // 4
    virtual HRESULT OpenScopeOnMemory(const void *data, uint32_t size, uint32_t open_flags, const GUID &riid, void **scope) = 0; // 5
};

struct IMetaDataDispenserEx : IMetaDataDispenser {
    static constexpr GUID IID = {0x31bcfce2, 0xdafb, 0x11d2, {0x9f, 0x81, 0x00, 0xc0, 0x4f, 0x79, 0xa0, 0xa3}};
    virtual HRESULT SetOption(const GUID *option, const void *value) = 0; // 6
    virtual HRESULT GetOption(const GUID *option, void *value) = 0; // 7
    virtual HRESULT OpenScopeOnITypeInfo(void *type_info, uint32_t open_flags, const GUID &riid, void **scope) = 0; // 8
    virtual HRESULT GetCORSystemDirectory(WCHAR *buffer, uint32_t capacity, uint32_t *len) = 0; // 9
    virtual HRESULT FindAssembly(const WCHAR *app_base, const WCHAR *private_bin, const WCHAR *global_bin, const WCHAR *assembly, WCHAR *name, uint32_t name_capacity, uint32_t *name_len) = 0; // 10
    virtual HRESULT FindAssemblyModule(const WCHAR *app_base, const WCHAR *private_bin, const WCHAR *global_bin, const WCHAR *assembly, const WCHAR *module, WCHAR *name, uint32_t name_capacity, uint32_t *name_len) = 0; // 11
};

struct IMetaDataTables : IUnknown {
    static constexpr GUID IID = {0xd8f579ab, 0x402d, 0x4b8e, {0x82, 0xd9, 0x5d, 0x63, 0xb1, 0x06, 0x5c, 0x68}};
    virtual HRESULT GetStringHeapSize(uint32_t *size) = 0; // 3
    virtual HRESULT GetBlobHeapSize(uint32_t *size) = 0; // 4
    virtual HRESULT GetGuidHeapSize(uint32_t *size) = 0; // 5
    virtual HRESULT GetUserStringHeapSize(uint32_t *size) = 0; // 6
    virtual HRESULT GetNumTables(uint32_t *tables_len) = 0; // 7
    virtual HRESULT GetTableIndex(uint32_t token, uint32_t *table) = 0; // 8
    virtual HRESULT GetTableInfo(uint32_t table, uint32_t *row_size, uint32_t *rows_len, uint32_t *columns_len, uint32_t *key, const uint8_t **name) = 0; // 9
    virtual HRESULT GetColumnInfo(uint32_t table, uint32_t column, uint32_t *offset, uint32_t *size, uint32_t *kind, const uint8_t **name) = 0; // 10
    virtual HRESULT GetCodedTokenInfo(uint32_t coded, uint32_t *tokens_len, const uint32_t **tokens, const uint8_t **name) = 0; // 11
    virtual HRESULT GetRow(uint32_t table, uint32_t row, const void **bytes) = 0; // 12
    virtual HRESULT GetColumn(uint32_t table, uint32_t column, uint32_t row, uint32_t *value) = 0; // 13
    virtual HRESULT GetString(uint32_t offset, const uint8_t **string) = 0; // 14
    virtual HRESULT GetBlob(uint32_t offset, uint32_t *size, const void **blob) = 0; // 15
    virtual HRESULT GetGuid(uint32_t number, const GUID **guid) = 0; // 16
    virtual HRESULT GetUserString(uint32_t offset, uint32_t *size, const void **blob) = 0; // 17
    virtual HRESULT GetNextString(uint32_t offset, uint32_t *next) = 0; // 18
    virtual HRESULT GetNextBlob(uint32_t offset, uint32_t *next) = 0; // 19
    virtual HRESULT GetNextGuid(uint32_t number, uint32_t *next) = 0; // 20
    virtual HRESULT GetNextUserString(uint32_t offset, uint32_t *next) = 0; // 21
};

struct IMetaDataTables2 : IMetaDataTables {
    static constexpr GUID IID = {0xbadb5f70, 0x58da, 0x43a9, {0xa1, 0xc6, 0xd7, 0x48, 0x19, 0xf1, 0x9b, 0x15}};
    virtual HRESULT GetMetaDataStorage(const void **root, uint32_t *size) = 0; // 22
    virtual HRESULT GetMetaDataStreamInfo(uint32_t number, const uint8_t **name, const void **stream, uint32_t *size) = 0; // 23
};

struct IMetaDataInfo : IUnknown {
    static constexpr GUID IID = {0x7998ea64, 0x7f95, 0x48b8, {0x86, 0xfc, 0x17, 0xca, 0xf4, 0x8b, 0xf5, 0xcb}};
    virtual HRESULT GetFileMapping(const void **data, uint64_t *size, uint32_t *mapping_type) = 0; // 3
};

struct ICorProfilerCallback : IUnknown {
    static constexpr GUID IID = {0x176fbed1, 0xa55c, 0x4796, {0x98, 0xca, 0xa9, 0xda, 0x0e, 0xf8, 0x83, 0xe7}};
    virtual HRESULT Initialize(void *info) = 0; // 3
    virtual HRESULT Shutdown() = 0; // 4
    virtual HRESULT AppDomainCreationStarted(uint64_t app_domain) = 0; // 5
    virtual HRESULT AppDomainCreationFinished(uint64_t app_domain, HRESULT status) = 0; // 6
    virtual HRESULT AppDomainShutdownStarted(uint64_t app_domain) = 0; // 7
    virtual HRESULT AppDomainShutdownFinished(uint64_t app_domain, HRESULT status) = 0; // 8
    virtual HRESULT AssemblyLoadStarted(uint64_t assembly) = 0; // 9
    virtual HRESULT AssemblyLoadFinished(uint64_t assembly, HRESULT status) = 0; // 10
    virtual HRESULT AssemblyUnloadStarted(uint64_t assembly) = 0; // 11
    virtual HRESULT AssemblyUnloadFinished(uint64_t assembly, HRESULT status) = 0; // 12
    virtual HRESULT ModuleLoadStarted(uint64_t module) = 0; // 13
    virtual HRESULT ModuleLoadFinished(uint64_t module, HRESULT status) = 0; // 14
    virtual HRESULT ModuleUnloadStarted(uint64_t module) = 0; // 15
    virtual HRESULT ModuleUnloadFinished(uint64_t module, HRESULT status) = 0; // 16
    virtual HRESULT ModuleAttachedToAssembly(uint64_t module, uint64_t assembly) = 0; // 17
    virtual HRESULT ClassLoadStarted(uint64_t class_id) = 0; // 18
    virtual HRESULT ClassLoadFinished(uint64_t class_id, HRESULT status) = 0; // 19
    virtual HRESULT ClassUnloadStarted(uint64_t class_id) = 0; // 20
    virtual HRESULT ClassUnloadFinished(uint64_t class_id, HRESULT status) = 0; // 21
    virtual HRESULT FunctionUnloadStarted(uint64_t function) = 0; // 22
    virtual HRESULT JITCompilationStarted(uint64_t function, BOOL is_safe_to_block) = 0; // 23
    virtual HRESULT JITCompilationFinished(uint64_t function, HRESULT status, BOOL is_safe_to_block) = 0; // 24
    virtual HRESULT JITCachedFunctionSearchStarted(uint64_t function, BOOL *use_cached_function) = 0; // 25
    virtual HRESULT JITCachedFunctionSearchFinished(uint64_t function, uint32_t result) = 0; // 26
    virtual HRESULT JITFunctionPitched(uint64_t function) = 0; // 27
    virtual HRESULT JITInlining(uint64_t caller, uint64_t callee, BOOL *should_inline) = 0; // 28
    virtual HRESULT ThreadCreated(uint64_t thread) = 0; // 29
    virtual HRESULT ThreadDestroyed(uint64_t thread) = 0; // 30
    virtual HRESULT ThreadAssignedToOSThread(uint64_t managed_thread, uint32_t os_thread) = 0; // 31
    virtual HRESULT RemotingClientInvocationStarted() = 0; // 32
    virtual HRESULT RemotingClientSendingMessage(GUID *cookie, BOOL is_async) = 0; // 33
    virtual HRESULT RemotingClientReceivingReply(GUID *cookie, BOOL is_async) = 0; // 34
    virtual HRESULT RemotingClientInvocationFinished() = 0; // 35
    virtual HRESULT RemotingServerReceivingMessage(GUID *cookie, BOOL is_async) = 0; // 36
    virtual HRESULT RemotingServerInvocationStarted() = 0; // 37
    virtual HRESULT RemotingServerInvocationReturned() = 0; // 38
    virtual HRESULT RemotingServerSendingReply(GUID *cookie, BOOL is_async) = 0; // 39
    virtual HRESULT UnmanagedToManagedTransition(uint64_t function, uint32_t reason) = 0; // 40
    virtual HRESULT ManagedToUnmanagedTransition(uint64_t function, uint32_t reason) = 0; // 41
    virtual HRESULT RuntimeSuspendStarted(uint32_t suspend_reason) = 0; // 42
    virtual HRESULT RuntimeSuspendFinished() = 0; // 43
    virtual HRESULT RuntimeSuspendAborted() = 0; // 44
    virtual HRESULT RuntimeResumeStarted() = 0; // 45
    virtual HRESULT RuntimeResumeFinished() = 0; // 46
    virtual HRESULT RuntimeThreadSuspended(uint64_t thread) = 0; // 47
    virtual HRESULT RuntimeThreadResumed(uint64_t thread) = 0; // 48
    virtual HRESULT MovedReferences(uint32_t ranges_len, const uint64_t *old_starts, const uint64_t *new_starts, const uint32_t *lengths) = 0; // 49
    virtual HRESULT ObjectAllocated(uint64_t object, uint64_t class_id) = 0; // 50
    virtual HRESULT ObjectsAllocatedByClass(uint32_t classes_len, const uint64_t *classes, const uint32_t *objects) = 0; // 51
    virtual HRESULT ObjectReferences(uint64_t object, uint64_t class_id, uint32_t object_refs_len, const uint64_t *object_refs) = 0; // 52
    virtual HRESULT RootReferences(uint32_t root_refs_len, const uint64_t *root_refs) = 0; // 53
    virtual HRESULT ExceptionThrown(uint64_t thrown_object) = 0; // 54
    virtual HRESULT ExceptionSearchFunctionEnter(uint64_t function) = 0; // 55
    virtual HRESULT ExceptionSearchFunctionLeave() = 0; // 56
    virtual HRESULT ExceptionSearchFilterEnter(uint64_t function) = 0; // 57
    virtual HRESULT ExceptionSearchFilterLeave() = 0; // 58
    virtual HRESULT ExceptionSearchCatcherFound(uint64_t function) = 0; // 59
    virtual HRESULT ExceptionOSHandlerEnter(uint64_t unused) = 0; // 60
    virtual HRESULT ExceptionOSHandlerLeave(uint64_t unused) = 0; // 61
    virtual HRESULT ExceptionUnwindFunctionEnter(uint64_t function) = 0; // 62
    virtual HRESULT ExceptionUnwindFunctionLeave() = 0; // 63
    virtual HRESULT ExceptionUnwindFinallyEnter(uint64_t function) = 0; // 64
    virtual HRESULT ExceptionUnwindFinallyLeave() = 0; // 65
    virtual HRESULT ExceptionCatcherEnter(uint64_t function, uint64_t object) = 0; // 66
    virtual HRESULT ExceptionCatcherLeave() = 0; // 67
    virtual HRESULT COMClassicVTableCreated(uint64_t wrapped_class, const GUID *implemented, void *vtable, uint32_t slots_len) = 0; // 68
    virtual HRESULT COMClassicVTableDestroyed(uint64_t wrapped_class, const GUID *implemented, void *vtable) = 0; // 69
    virtual HRESULT ExceptionCLRCatcherFound() = 0; // 70
    virtual HRESULT ExceptionCLRCatcherExecute() = 0; // 71
};

struct ICorProfilerCallback2 : ICorProfilerCallback {
    static constexpr GUID IID = {0x8a8cc829, 0xccf2, 0x49fe, {0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a}};
    virtual HRESULT ThreadNameChanged(uint64_t thread, uint32_t name_len, const WCHAR *name) = 0; // 72
    virtual HRESULT GarbageCollectionStarted(int32_t generations_len, const BOOL *generation_collected, uint32_t reason) = 0; // 73
    virtual HRESULT SurvivingReferences(uint32_t ranges_len, const uint64_t *starts, const uint32_t *lengths) = 0; // 74
    virtual HRESULT GarbageCollectionFinished() = 0; // 75
    virtual HRESULT FinalizeableObjectQueued(uint32_t finalizer_flags, uint64_t object) = 0; // 76
    virtual HRESULT RootReferences2(uint32_t root_refs_len, const uint64_t *root_refs, const uint32_t *root_kinds, const uint32_t *root_flags, const uint64_t *root_ids) = 0; // 77
    virtual HRESULT HandleCreated(uint64_t handle, uint64_t object) = 0; // 78
    virtual HRESULT HandleDestroyed(uint64_t handle) = 0; // 79
};

struct ICorProfilerCallback3 : ICorProfilerCallback2 {
    static constexpr GUID IID = {0x4fd2ed52, 0x7731, 0x4b8d, {0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5}};
    virtual HRESULT InitializeForAttach(void *info, void *client_data, uint32_t client_data_size) = 0; // 80
    virtual HRESULT ProfilerAttachComplete() = 0; // 81
    virtual HRESULT ProfilerDetachSucceeded() = 0; // 82
};

struct ICorProfilerCallback4 : ICorProfilerCallback3 {
    static constexpr GUID IID = {0x7b63b2e3, 0x107d, 0x4d48, {0xb2, 0xf6, 0xf6, 0x1e, 0x22, 0x94, 0x70, 0xd2}};
    virtual HRESULT ReJITCompilationStarted(uint64_t function, uint64_t rejit, BOOL is_safe_to_block) = 0; // 83
    virtual HRESULT GetReJITParameters(uint64_t module, mdToken method, void *function_control) = 0; // 84
    virtual HRESULT ReJITCompilationFinished(uint64_t function, uint64_t rejit, HRESULT status, BOOL is_safe_to_block) = 0; // 85
    virtual HRESULT ReJITError(uint64_t module, mdToken method, uint64_t function, HRESULT status) = 0; // 86
    virtual HRESULT MovedReferences2(uint32_t ranges_len, const uint64_t *old_starts, const uint64_t *new_starts, const uint64_t *lengths) = 0; // 87
    virtual HRESULT SurvivingReferences2(uint32_t ranges_len, const uint64_t *starts, const uint64_t *lengths) = 0; // 88
};

struct ICorProfilerCallback5 : ICorProfilerCallback4 {
    static constexpr GUID IID = {0x8dfba405, 0x8c9f, 0x45f8, {0xbf, 0xfa, 0x83, 0xb1, 0x4c, 0xef, 0x78, 0xb5}};
    virtual HRESULT ConditionalWeakTableElementReferences(uint32_t root_refs_len, const uint64_t *key_refs, const uint64_t *value_refs, const uint64_t *root_ids) = 0; // 89
};

struct ICorProfilerCallback6 : ICorProfilerCallback5 {
    static constexpr GUID IID = {0xfc13df4b, 0x4448, 0x4f4f, {0x95, 0x0c, 0xba, 0x8d, 0x19, 0xd0, 0x0c, 0x36}};
    virtual HRESULT GetAssemblyReferences(const WCHAR *assembly_path, void *provider) = 0; // 90
};

struct ICorProfilerCallback7 : ICorProfilerCallback6 {
    static constexpr GUID IID = {0xf76a2dba, 0x1d52, 0x4539, {0x86, 0x6c, 0x2a, 0xa5, 0x18, 0xf9, 0xef, 0xc3}};
    virtual HRESULT ModuleInMemorySymbolsUpdated(uint64_t module) = 0; // 91
};

struct ICorProfilerCallback8 : ICorProfilerCallback7 {
    static constexpr GUID IID = {0x5bed9b15, 0xc079, 0x4d47, {0xbf, 0xe2, 0x21, 0x5a, 0x14, 0x0c, 0x07, 0xe0}};
    virtual HRESULT DynamicMethodJITCompilationStarted(uint64_t function, BOOL is_safe_to_block, const uint8_t *il_header, uint32_t il_header_len) = 0; // 92
    virtual HRESULT DynamicMethodJITCompilationFinished(uint64_t function, HRESULT status, BOOL is_safe_to_block) = 0; // 93
};

struct ICorProfilerCallback9 : ICorProfilerCallback8 {
    static constexpr GUID IID = {0x27583ec3, 0xc8f5, 0x482f, {0x80, 0x52, 0x19, 0x4b, 0x8c, 0xe4, 0x70, 0x5a}};
    virtual HRESULT DynamicMethodUnloaded(uint64_t function) = 0; // 94
};

struct ICorProfilerCallback10 : ICorProfilerCallback9 {
    static constexpr GUID IID = {0xcec5b60e, 0xc69c, 0x495f, {0x87, 0xf6, 0x84, 0xd2, 0x8e, 0xe1, 0x6f, 0xfb}};
    virtual HRESULT EventPipeEventDelivered(uint64_t provider, uint32_t event_id, uint32_t event_version, uint32_t metadata_blob_len, const uint8_t *metadata_blob, uint32_t event_data_len, const uint8_t *event_data, const GUID *activity_id, const GUID *related_activity_id, uint64_t event_thread, uint32_t stack_frames_len, const uint64_t *stack_frames) = 0; // 95
    virtual HRESULT EventPipeProviderCreated(uint64_t provider) = 0; // 96
};

struct ICorProfilerCallback11 : ICorProfilerCallback10 {
    static constexpr GUID IID = {0x42350846, 0xaaed, 0x47f7, {0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde}};
    virtual HRESULT LoadAsNotificationOnly(BOOL *notification_only) = 0; // 97
};

// A profiler's object, whose callbacks do nothing: with the interfaces that derived classes do not take away.
struct Profiler : ICorProfilerCallback11 {
    std::atomic<uint32_t> references{1};

    virtual ~Profiler() = default;
    HRESULT QueryInterface(const GUID &iid, void **object) override {
        bool known = iid == IUnknown::IID || iid == ICorProfilerCallback::IID || iid == ICorProfilerCallback2::IID
            || iid == ICorProfilerCallback3::IID || iid == ICorProfilerCallback4::IID || iid == ICorProfilerCallback5::IID
            || iid == ICorProfilerCallback6::IID || iid == ICorProfilerCallback7::IID || iid == ICorProfilerCallback8::IID
            || iid == ICorProfilerCallback9::IID || iid == ICorProfilerCallback10::IID || iid == ICorProfilerCallback11::IID;
        *object = known ? static_cast<ICorProfilerCallback11 *>(this) : nullptr;
        if (known) AddRef();
        return known ? 0 : static_cast<HRESULT>(0x80004002);
    }
    uint32_t AddRef() override { return ++references; }
    uint32_t Release() override { return --references; }
    HRESULT Initialize(void *) override { return 0; }
    HRESULT Shutdown() override { return 0; }
    HRESULT AppDomainCreationStarted(uint64_t) override { return 0; }
    HRESULT AppDomainCreationFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT AppDomainShutdownStarted(uint64_t) override { return 0; }
    HRESULT AppDomainShutdownFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT AssemblyLoadStarted(uint64_t) override { return 0; }
    HRESULT AssemblyLoadFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT AssemblyUnloadStarted(uint64_t) override { return 0; }
    HRESULT AssemblyUnloadFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT ModuleLoadStarted(uint64_t) override { return 0; }
    HRESULT ModuleLoadFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT ModuleUnloadStarted(uint64_t) override { return 0; }
    HRESULT ModuleUnloadFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT ModuleAttachedToAssembly(uint64_t, uint64_t) override { return 0; }
    HRESULT ClassLoadStarted(uint64_t) override { return 0; }
    HRESULT ClassLoadFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT ClassUnloadStarted(uint64_t) override { return 0; }
    HRESULT ClassUnloadFinished(uint64_t, HRESULT) override { return 0; }
    HRESULT FunctionUnloadStarted(uint64_t) override { return 0; }
    HRESULT JITCompilationStarted(uint64_t, BOOL) override { return 0; }
    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override { return 0; }
    HRESULT JITCachedFunctionSearchStarted(uint64_t, BOOL *) override { return 0; }
    HRESULT JITCachedFunctionSearchFinished(uint64_t, uint32_t) override { return 0; }
    HRESULT JITFunctionPitched(uint64_t) override { return 0; }
    HRESULT JITInlining(uint64_t, uint64_t, BOOL *) override { return 0; }
    HRESULT ThreadCreated(uint64_t) override { return 0; }
    HRESULT ThreadDestroyed(uint64_t) override { return 0; }
    HRESULT ThreadAssignedToOSThread(uint64_t, uint32_t) override { return 0; }
    HRESULT RemotingClientInvocationStarted() override { return 0; }
    HRESULT RemotingClientSendingMessage(GUID *, BOOL) override { return 0; }
    HRESULT RemotingClientReceivingReply(GUID *, BOOL) override { return 0; }
    HRESULT RemotingClientInvocationFinished() override { return 0; }
    HRESULT RemotingServerReceivingMessage(GUID *, BOOL) override { return 0; }
    HRESULT RemotingServerInvocationStarted() override { return 0; }
    HRESULT RemotingServerInvocationReturned() override { return 0; }
    HRESULT RemotingServerSendingReply(GUID *, BOOL) override { return 0; }
    HRESULT UnmanagedToManagedTransition(uint64_t, uint32_t) override { return 0; }
    HRESULT ManagedToUnmanagedTransition(uint64_t, uint32_t) override { return 0; }
    HRESULT RuntimeSuspendStarted(uint32_t) override { return 0; }
    HRESULT RuntimeSuspendFinished() override { return 0; }
    HRESULT RuntimeSuspendAborted() override { return 0; }
    HRESULT RuntimeResumeStarted() override { return 0; }
    HRESULT RuntimeResumeFinished() override { return 0; }
    HRESULT RuntimeThreadSuspended(uint64_t) override { return 0; }
    HRESULT RuntimeThreadResumed(uint64_t) override { return 0; }
    HRESULT MovedReferences(uint32_t, const uint64_t *, const uint64_t *, const uint32_t *) override { return 0; }
    HRESULT ObjectAllocated(uint64_t, uint64_t) override { return 0; }
    HRESULT ObjectsAllocatedByClass(uint32_t, const uint64_t *, const uint32_t *) override { return 0; }
    HRESULT ObjectReferences(uint64_t, uint64_t, uint32_t, const uint64_t *) override { return 0; }
    HRESULT RootReferences(uint32_t, const uint64_t *) override { return 0; }
    HRESULT ExceptionThrown(uint64_t) override { return 0; }
    HRESULT ExceptionSearchFunctionEnter(uint64_t) override { return 0; }
    HRESULT ExceptionSearchFunctionLeave() override { return 0; }
    HRESULT ExceptionSearchFilterEnter(uint64_t) override { return 0; }
    HRESULT ExceptionSearchFilterLeave() override { return 0; }
    HRESULT ExceptionSearchCatcherFound(uint64_t) override { return 0; }
    HRESULT ExceptionOSHandlerEnter(uint64_t) override { return 0; }
    HRESULT ExceptionOSHandlerLeave(uint64_t) override { return 0; }
    HRESULT ExceptionUnwindFunctionEnter(uint64_t) override { return 0; }
    HRESULT ExceptionUnwindFunctionLeave() override { return 0; }
    HRESULT ExceptionUnwindFinallyEnter(uint64_t) override { return 0; }
    HRESULT ExceptionUnwindFinallyLeave() override { return 0; }
    HRESULT ExceptionCatcherEnter(uint64_t, uint64_t) override { return 0; }
    HRESULT ExceptionCatcherLeave() override { return 0; }
    HRESULT COMClassicVTableCreated(uint64_t, const GUID *, void *, uint32_t) override { return 0; }
    HRESULT COMClassicVTableDestroyed(uint64_t, const GUID *, void *) override { return 0; }
    HRESULT ExceptionCLRCatcherFound() override { return 0; }
    HRESULT ExceptionCLRCatcherExecute() override { return 0; }
    HRESULT ThreadNameChanged(uint64_t, uint32_t, const WCHAR *) override { return 0; }
    HRESULT GarbageCollectionStarted(int32_t, const BOOL *, uint32_t) override { return 0; }
    HRESULT SurvivingReferences(uint32_t, const uint64_t *, const uint32_t *) override { return 0; }
    HRESULT GarbageCollectionFinished() override { return 0; }
    HRESULT FinalizeableObjectQueued(uint32_t, uint64_t) override { return 0; }
    HRESULT RootReferences2(uint32_t, const uint64_t *, const uint32_t *, const uint32_t *, const uint64_t *) override { return 0; }
    HRESULT HandleCreated(uint64_t, uint64_t) override { return 0; }
    HRESULT HandleDestroyed(uint64_t) override { return 0; }
    HRESULT InitializeForAttach(void *, void *, uint32_t) override { return 0; }
    HRESULT ProfilerAttachComplete() override { return 0; }
    HRESULT ProfilerDetachSucceeded() override { return 0; }
    HRESULT ReJITCompilationStarted(uint64_t, uint64_t, BOOL) override { return 0; }
    HRESULT GetReJITParameters(uint64_t, mdToken, void *) override { return 0; }
    HRESULT ReJITCompilationFinished(uint64_t, uint64_t, HRESULT, BOOL) override { return 0; }
    HRESULT ReJITError(uint64_t, mdToken, uint64_t, HRESULT) override { return 0; }
    HRESULT MovedReferences2(uint32_t, const uint64_t *, const uint64_t *, const uint64_t *) override { return 0; }
    HRESULT SurvivingReferences2(uint32_t, const uint64_t *, const uint64_t *) override { return 0; }
    HRESULT ConditionalWeakTableElementReferences(uint32_t, const uint64_t *, const uint64_t *, const uint64_t *) override { return 0; }
    HRESULT GetAssemblyReferences(const WCHAR *, void *) override { return 0; }
    HRESULT ModuleInMemorySymbolsUpdated(uint64_t) override { return 0; }
    HRESULT DynamicMethodJITCompilationStarted(uint64_t, BOOL, const uint8_t *, uint32_t) override { return 0; }
    HRESULT DynamicMethodJITCompilationFinished(uint64_t, HRESULT, BOOL) override { return 0; }
    HRESULT DynamicMethodUnloaded(uint64_t) override { return 0; }
    HRESULT EventPipeEventDelivered(uint64_t, uint32_t, uint32_t, uint32_t, const uint8_t *, uint32_t, const uint8_t *, const GUID *, const GUID *, uint64_t, uint32_t, const uint64_t *) override { return 0; }
    HRESULT EventPipeProviderCreated(uint64_t) override { return 0; }
    HRESULT LoadAsNotificationOnly(BOOL *) override { return 0; }
};

} // namespace clrsim

#endif
