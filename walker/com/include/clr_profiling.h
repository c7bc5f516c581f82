// The CLR's profiling interfaces for C++, generated from clr-com's declarations by
// `CLR_BLESS=1 cargo test -p clr-com --test header`. Do not edit.
//
// If your project has Microsoft's corprof.h, include that: the layouts are the same. Names of
// arguments differ, and pointers to hooks are `const void *` here.
#ifndef CLR_PROFILING_H
#define CLR_PROFILING_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#include <unknwn.h>
#else
#define STDMETHODCALLTYPE
#define __stdcall
#define E_POINTER ((HRESULT)0x80004003)
typedef int32_t HRESULT;
typedef int32_t BOOL;
typedef uint32_t ULONG;
typedef uint32_t DWORD;
typedef uint8_t BYTE;
typedef uint64_t UINT64;
typedef char16_t WCHAR;
typedef void *HANDLE;
#define SUCCEEDED(hr) ((HRESULT)(hr) >= 0)
#define FAILED(hr) ((HRESULT)(hr) < 0)

struct GUID {
  uint32_t Data1;
  uint16_t Data2;
  uint16_t Data3;
  uint8_t Data4[8];
};
typedef GUID IID;
typedef GUID CLSID;
typedef const GUID &REFGUID;
typedef const GUID &REFIID;
typedef const GUID &REFCLSID;

inline bool operator==(const GUID &one, const GUID &other) {
  if (one.Data1 != other.Data1 || one.Data2 != other.Data2 || one.Data3 != other.Data3) return false;
  for (int at = 0; at < 8; at++)
    if (one.Data4[at] != other.Data4[at]) return false;
  return true;
}
inline bool operator!=(const GUID &one, const GUID &other) { return !(one == other); }

static const GUID IID_IUnknown = {0x00000000, 0x0000, 0x0000, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};

struct IUnknown {
  virtual HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void **object) = 0;
  virtual ULONG STDMETHODCALLTYPE AddRef() = 0;
  virtual ULONG STDMETHODCALLTYPE Release() = 0;
};
#endif

typedef uintptr_t AppDomainID;
typedef uintptr_t AssemblyID;
typedef uintptr_t ClassID;
typedef uintptr_t ContextID;
typedef uintptr_t FunctionID;
typedef uintptr_t GCHandleID;
typedef uintptr_t ModuleID;
typedef uintptr_t ObjectHandleID;
typedef uintptr_t ObjectID;
typedef uintptr_t ProcessID;
typedef uintptr_t ReJITID;
typedef uintptr_t ThreadID;
typedef uintptr_t COR_PRF_FRAME_INFO;
typedef uintptr_t COR_PRF_ELT_INFO;
typedef ULONG mdToken;
typedef void *HCORENUM;

typedef HRESULT STDMETHODCALLTYPE StackSnapshotCallback(
    FunctionID functionId, uintptr_t ip, COR_PRF_FRAME_INFO frameInfo, ULONG contextSize, BYTE context[],
    void *clientData);

struct COR_PRF_CODE_INFO {
  uintptr_t startAddress;
  size_t size;
};

struct COR_PRF_METHOD {
  ModuleID moduleId;
  mdToken methodId;
};

struct COR_PRF_FUNCTION {
  FunctionID functionId;
  ReJITID reJitId;
};

struct COR_IL_MAP {
  ULONG oldOffset;
  ULONG newOffset;
  BOOL fAccurate;
};

struct COR_DEBUG_IL_TO_NATIVE_MAP {
  ULONG ilOffset;
  ULONG nativeStartOffset;
  ULONG nativeEndOffset;
};

struct COR_FIELD_OFFSET {
  mdToken ridOfField;
  ULONG ulOffset;
};

struct COR_PRF_FUNCTION_ARGUMENT_RANGE {
  uintptr_t startAddress;
  ULONG length;
};

struct COR_PRF_FUNCTION_ARGUMENT_INFO {
  ULONG numRanges;
  ULONG totalArgumentSize;
  COR_PRF_FUNCTION_ARGUMENT_RANGE ranges[1];
};

struct COR_PRF_GC_GENERATION_RANGE {
  ULONG generation;
  uintptr_t rangeStart;
  uintptr_t rangeLength;
  uintptr_t rangeLengthReserved;
};

struct COR_PRF_NONGC_HEAP_RANGE {
  uintptr_t rangeStart;
  uintptr_t rangeLength;
  uintptr_t rangeLengthReserved;
};

struct COR_PRF_EX_CLAUSE_INFO {
  ULONG clauseType;
  uintptr_t programCounter;
  uintptr_t framePointer;
  uintptr_t shadowStackPointer;
};

struct COR_PRF_EVENTPIPE_PROVIDER_CONFIG {
  const WCHAR *providerName;
  UINT64 keywords;
  ULONG loggingLevel;
  const WCHAR *filterData;
};

struct COR_PRF_EVENTPIPE_PARAM_DESC {
  ULONG type;
  ULONG elementType;
  const WCHAR *name;
};

struct COR_PRF_EVENT_DATA {
  uintptr_t ptr;
  ULONG size;
  ULONG reserved;
};

// HRESULTs that stack walking profilers meet.
#ifndef S_OK
#define S_OK ((HRESULT)0x00000000)
#endif
#ifndef S_FALSE
#define S_FALSE ((HRESULT)0x00000001)
#endif
#ifndef E_NOTIMPL
#define E_NOTIMPL ((HRESULT)0x80004001)
#endif
#ifndef E_NOINTERFACE
#define E_NOINTERFACE ((HRESULT)0x80004002)
#endif
#ifndef E_FAIL
#define E_FAIL ((HRESULT)0x80004005)
#endif
#ifndef E_UNEXPECTED
#define E_UNEXPECTED ((HRESULT)0x8000FFFF)
#endif
#ifndef CLASS_E_NOAGGREGATION
#define CLASS_E_NOAGGREGATION ((HRESULT)0x80040110)
#endif
#ifndef CLASS_E_CLASSNOTAVAILABLE
#define CLASS_E_CLASSNOTAVAILABLE ((HRESULT)0x80040111)
#endif
#ifndef E_OUTOFMEMORY
#define E_OUTOFMEMORY ((HRESULT)0x8007000E)
#endif
#ifndef E_INVALIDARG
#define E_INVALIDARG ((HRESULT)0x80070057)
#endif
#ifndef CORPROF_E_FUNCTION_NOT_COMPILED
#define CORPROF_E_FUNCTION_NOT_COMPILED ((HRESULT)0x80131350)
#endif
#ifndef CORPROF_E_DATAINCOMPLETE
#define CORPROF_E_DATAINCOMPLETE ((HRESULT)0x80131351)
#endif
#ifndef CORPROF_E_FUNCTION_NOT_IL
#define CORPROF_E_FUNCTION_NOT_IL ((HRESULT)0x80131354)
#endif
#ifndef CORPROF_E_NOT_MANAGED_THREAD
#define CORPROF_E_NOT_MANAGED_THREAD ((HRESULT)0x80131355)
#endif
#ifndef CORPROF_E_CALL_ONLY_FROM_INIT
#define CORPROF_E_CALL_ONLY_FROM_INIT ((HRESULT)0x80131356)
#endif
#ifndef CORPROF_E_NOT_YET_AVAILABLE
#define CORPROF_E_NOT_YET_AVAILABLE ((HRESULT)0x8013135B)
#endif
#ifndef CORPROF_E_TYPE_IS_PARAMETERIZED
#define CORPROF_E_TYPE_IS_PARAMETERIZED ((HRESULT)0x8013135C)
#endif
#ifndef CORPROF_E_FUNCTION_IS_PARAMETERIZED
#define CORPROF_E_FUNCTION_IS_PARAMETERIZED ((HRESULT)0x8013135D)
#endif
#ifndef CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD
#define CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD ((HRESULT)0x8013135E)
#endif
#ifndef CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX
#define CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX ((HRESULT)0x8013135F)
#endif
#ifndef CORPROF_E_STACKSNAPSHOT_UNSAFE
#define CORPROF_E_STACKSNAPSHOT_UNSAFE ((HRESULT)0x80131360)
#endif
#ifndef CORPROF_E_STACKSNAPSHOT_ABORTED
#define CORPROF_E_STACKSNAPSHOT_ABORTED ((HRESULT)0x80131361)
#endif
#ifndef CORPROF_E_LITERALS_HAVE_NO_ADDRESS
#define CORPROF_E_LITERALS_HAVE_NO_ADDRESS ((HRESULT)0x80131362)
#endif
#ifndef CORPROF_E_UNSUPPORTED_CALL_SEQUENCE
#define CORPROF_E_UNSUPPORTED_CALL_SEQUENCE ((HRESULT)0x80131363)
#endif
#ifndef CORPROF_E_ASYNCHRONOUS_UNSAFE
#define CORPROF_E_ASYNCHRONOUS_UNSAFE ((HRESULT)0x80131364)
#endif
#ifndef CORPROF_E_CLASSID_IS_ARRAY
#define CORPROF_E_CLASSID_IS_ARRAY ((HRESULT)0x80131365)
#endif
#ifndef CORPROF_E_CLASSID_IS_COMPOSITE
#define CORPROF_E_CLASSID_IS_COMPOSITE ((HRESULT)0x80131366)
#endif
#ifndef CORPROF_E_PROFILER_DETACHING
#define CORPROF_E_PROFILER_DETACHING ((HRESULT)0x80131367)
#endif
#ifndef CORPROF_E_PROFILER_NOT_ATTACHABLE
#define CORPROF_E_PROFILER_NOT_ATTACHABLE ((HRESULT)0x80131368)
#endif
#ifndef CORPROF_E_UNRECOGNIZED_PIPE_MSG_FORMAT
#define CORPROF_E_UNRECOGNIZED_PIPE_MSG_FORMAT ((HRESULT)0x80131369)
#endif
#ifndef CORPROF_E_PROFILER_ALREADY_ACTIVE
#define CORPROF_E_PROFILER_ALREADY_ACTIVE ((HRESULT)0x8013136A)
#endif
#ifndef CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER
#define CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER ((HRESULT)0x8013136B)
#endif
#ifndef CORPROF_E_IPC_FAILED
#define CORPROF_E_IPC_FAILED ((HRESULT)0x8013136C)
#endif
#ifndef CORPROF_E_PROFILEE_PROCESS_NOT_FOUND
#define CORPROF_E_PROFILEE_PROCESS_NOT_FOUND ((HRESULT)0x8013136D)
#endif
#ifndef CORPROF_E_CALLBACK3_REQUIRED
#define CORPROF_E_CALLBACK3_REQUIRED ((HRESULT)0x8013136E)
#endif
#ifndef CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER
#define CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER ((HRESULT)0x8013136F)
#endif
#ifndef CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT
#define CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT ((HRESULT)0x80131370)
#endif
#ifndef CORPROF_E_RUNTIME_UNINITIALIZED
#define CORPROF_E_RUNTIME_UNINITIALIZED ((HRESULT)0x80131371)
#endif
#ifndef CORPROF_E_IMMUTABLE_FLAGS_SET
#define CORPROF_E_IMMUTABLE_FLAGS_SET ((HRESULT)0x80131372)
#endif
#ifndef CORPROF_E_PROFILER_NOT_YET_INITIALIZED
#define CORPROF_E_PROFILER_NOT_YET_INITIALIZED ((HRESULT)0x80131373)
#endif
#ifndef CORPROF_E_INCONSISTENT_WITH_FLAGS
#define CORPROF_E_INCONSISTENT_WITH_FLAGS ((HRESULT)0x80131374)
#endif
#ifndef CORPROF_E_PROFILER_CANCEL_ACTIVATION
#define CORPROF_E_PROFILER_CANCEL_ACTIVATION ((HRESULT)0x80131375)
#endif
#ifndef CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE
#define CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE ((HRESULT)0x80131376)
#endif
#ifndef CORPROF_E_DEBUGGING_DISABLED
#define CORPROF_E_DEBUGGING_DISABLED ((HRESULT)0x80131378)
#endif
#ifndef CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC
#define CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC ((HRESULT)0x80131379)
#endif
#ifndef CORPROF_E_MODULE_IS_DYNAMIC
#define CORPROF_E_MODULE_IS_DYNAMIC ((HRESULT)0x8013137A)
#endif
#ifndef CORPROF_E_CALLBACK4_REQUIRED
#define CORPROF_E_CALLBACK4_REQUIRED ((HRESULT)0x8013137B)
#endif
#ifndef CORPROF_E_REJIT_NOT_ENABLED
#define CORPROF_E_REJIT_NOT_ENABLED ((HRESULT)0x8013137C)
#endif
#ifndef CORPROF_E_FUNCTION_IS_COLLECTIBLE
#define CORPROF_E_FUNCTION_IS_COLLECTIBLE ((HRESULT)0x8013137E)
#endif
#ifndef CORPROF_E_CALLBACK6_REQUIRED
#define CORPROF_E_CALLBACK6_REQUIRED ((HRESULT)0x80131380)
#endif
#ifndef CORPROF_E_CALLBACK7_REQUIRED
#define CORPROF_E_CALLBACK7_REQUIRED ((HRESULT)0x80131382)
#endif
#ifndef CORPROF_E_REJIT_INLINING_DISABLED
#define CORPROF_E_REJIT_INLINING_DISABLED ((HRESULT)0x80131383)
#endif
#ifndef CORPROF_E_SUSPENSION_IN_PROGRESS
#define CORPROF_E_SUSPENSION_IN_PROGRESS ((HRESULT)0x80131388)
#endif

// IClassFactory: makes the profiler's object. DllGetClassObject returns one.
#ifndef _WIN32
static const GUID IID_IClassFactory = {0x00000001, 0x0000, 0x0000, {0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};
struct IClassFactory : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE CreateInstance(IUnknown *outer, REFIID riid, void **object) = 0;
  virtual HRESULT STDMETHODCALLTYPE LockServer(int lock) = 0;
};
#endif

// An enumerator of objects.
static const GUID IID_ICorProfilerObjectEnum = {0x2c6269bd, 0x2d13, 0x4321, {0xae, 0x12, 0x66, 0x86, 0x36, 0x5f, 0xd6, 0xaf}};
struct ICorProfilerObjectEnum : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE Skip(ULONG count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Reset() = 0;
  virtual HRESULT STDMETHODCALLTYPE Clone(IUnknown **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCount(ULONG *count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Next(ULONG room, ObjectID *objects, ULONG *fetched) = 0;
};

// An enumerator of jitted functions.
static const GUID IID_ICorProfilerFunctionEnum = {0xff71301a, 0xb994, 0x429d, {0xa1, 0x0b, 0xb3, 0x45, 0xa6, 0x52, 0x80, 0xef}};
struct ICorProfilerFunctionEnum : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE Skip(ULONG count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Reset() = 0;
  virtual HRESULT STDMETHODCALLTYPE Clone(IUnknown **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCount(ULONG *count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Next(ULONG room, COR_PRF_FUNCTION *functions, ULONG *fetched) = 0;
};

// An enumerator of modules.
static const GUID IID_ICorProfilerModuleEnum = {0xb0266d75, 0x2081, 0x4493, {0xaf, 0x7f, 0x02, 0x8b, 0xa3, 0x4d, 0xb8, 0x91}};
struct ICorProfilerModuleEnum : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE Skip(ULONG count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Reset() = 0;
  virtual HRESULT STDMETHODCALLTYPE Clone(IUnknown **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCount(ULONG *count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Next(ULONG room, ModuleID *modules, ULONG *fetched) = 0;
};

// An enumerator of methods.
static const GUID IID_ICorProfilerMethodEnum = {0xfccee788, 0x0088, 0x454b, {0xa8, 0x11, 0xc9, 0x9f, 0x29, 0x8d, 0x19, 0x42}};
struct ICorProfilerMethodEnum : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE Skip(ULONG count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Reset() = 0;
  virtual HRESULT STDMETHODCALLTYPE Clone(IUnknown **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCount(ULONG *count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Next(ULONG room, COR_PRF_METHOD *methods, ULONG *fetched) = 0;
};

// An enumerator of threads.
static const GUID IID_ICorProfilerThreadEnum = {0x571194f7, 0x25ed, 0x419f, {0xaa, 0x8b, 0x70, 0x16, 0xb3, 0x15, 0x97, 0x01}};
struct ICorProfilerThreadEnum : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE Skip(ULONG count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Reset() = 0;
  virtual HRESULT STDMETHODCALLTYPE Clone(IUnknown **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCount(ULONG *count) = 0;
  virtual HRESULT STDMETHODCALLTYPE Next(ULONG room, ThreadID *threads, ULONG *fetched) = 0;
};

// An allocator for IL of methods.
static const GUID IID_IMethodMalloc = {0xa0efb28b, 0x6ee2, 0x4d7b, {0xb9, 0x83, 0xa7, 0x5e, 0xf7, 0xbe, 0xed, 0xb8}};
struct IMethodMalloc : IUnknown {
  virtual void * STDMETHODCALLTYPE Alloc(ULONG size) = 0;
};

// The way to change a method that is compiled again.
static const GUID IID_ICorProfilerFunctionControl = {0xf0963021, 0xe1ea, 0x4732, {0x85, 0x81, 0xe0, 0x1b, 0x0b, 0xd3, 0xc0, 0xc6}};
struct ICorProfilerFunctionControl : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE SetCodegenFlags(ULONG flags) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetILFunctionBody(ULONG headerLen, const BYTE *header) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetILInstrumentedCodeMap(ULONG entriesLen, const COR_IL_MAP *entries) = 0;
};

// The receiver of assembly references.
static const GUID IID_ICorProfilerAssemblyReferenceProvider = {0x66a78c24, 0x2eef, 0x4f65, {0xb4, 0x5f, 0xdd, 0x1d, 0x80, 0x38, 0xbf, 0x3c}};
struct ICorProfilerAssemblyReferenceProvider : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE AddAssemblyReference(const void *reference) = 0;
};

// ICorProfilerInfo: since .NET Framework 1.
static const GUID IID_ICorProfilerInfo = {0x28b5557d, 0x3f3f, 0x48b4, {0x90, 0xb2, 0x5f, 0x9e, 0xea, 0x2f, 0x6c, 0x48}};
struct ICorProfilerInfo : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE GetClassFromObject(ObjectID object, ClassID *classId) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetClassFromToken(ModuleID module, mdToken typeDef, ClassID *classId) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCodeInfo(FunctionID function, const BYTE **start, ULONG *size) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetEventMask(ULONG *events) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionFromIP(const BYTE *ip, FunctionID *function) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionFromToken(ModuleID module, mdToken token,
      FunctionID *function) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetHandleFromThread(ThreadID thread, HANDLE *handle) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetObjectSize(ObjectID object, ULONG *size) = 0;
  virtual HRESULT STDMETHODCALLTYPE IsArrayClass(ClassID classId, ULONG *baseElemType, ClassID *baseClass,
      ULONG *rank) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetThreadInfo(ThreadID thread, ULONG *osThread) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCurrentThreadID(ThreadID *thread) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetClassIDInfo(ClassID classId, ModuleID *module,
      mdToken *typeDefToken) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionInfo(FunctionID function, ClassID *classId, ModuleID *module,
      mdToken *token) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEventMask(ULONG events) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEnterLeaveFunctionHooks(const void *enter, const void *leave,
      const void *tailcall) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetFunctionIDMapper(const void *mapper) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetTokenAndMetaDataFromFunction(FunctionID function, REFIID riid,
      IUnknown **import, mdToken *token) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetModuleInfo(ModuleID module, const BYTE **baseLoadAddress,
      ULONG nameRoom, ULONG *nameLen, WCHAR *name, AssemblyID *assembly) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetModuleMetaData(ModuleID module, ULONG openFlags, REFIID riid,
      IUnknown **out) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetILFunctionBody(ModuleID module, mdToken method,
      const BYTE **methodHeader, ULONG *methodSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetILFunctionBodyAllocator(ModuleID module, IMethodMalloc **malloc) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetILFunctionBody(ModuleID module, mdToken method,
      const BYTE *header) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetAppDomainInfo(AppDomainID appDomain, ULONG nameRoom, ULONG *nameLen,
      WCHAR *name, ProcessID *process) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetAssemblyInfo(AssemblyID assembly, ULONG nameRoom, ULONG *nameLen,
      WCHAR *name, AppDomainID *appDomain, ModuleID *module) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetFunctionReJIT(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE ForceGC() = 0;
  virtual HRESULT STDMETHODCALLTYPE SetILInstrumentedCodeMap(FunctionID function, BOOL startJit,
      ULONG entriesLen, const COR_IL_MAP *entries) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetInprocInspectionInterface(IUnknown **inspection) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetInprocInspectionIThisThread(IUnknown **inspection) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetThreadContext(ThreadID thread, ContextID *context) = 0;
  virtual HRESULT STDMETHODCALLTYPE BeginInprocDebugging(BOOL thisThreadOnly, ULONG *profilerContext) = 0;
  virtual HRESULT STDMETHODCALLTYPE EndInprocDebugging(ULONG profilerContext) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetILToNativeMapping(FunctionID function, ULONG mapRoom, ULONG *mapLen,
      COR_DEBUG_IL_TO_NATIVE_MAP *map) = 0;
};

// ICorProfilerInfo2: DoStackSnapshot, layouts, statics, generations.
static const GUID IID_ICorProfilerInfo2 = {0xcc0935cd, 0xa518, 0x487d, {0xb0, 0xbb, 0xa9, 0x32, 0x14, 0xe6, 0x54, 0x78}};
struct ICorProfilerInfo2 : ICorProfilerInfo {
  virtual HRESULT STDMETHODCALLTYPE DoStackSnapshot(ThreadID thread, StackSnapshotCallback *callback,
      ULONG infoFlags, void *clientData, const BYTE *context, ULONG contextSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEnterLeaveFunctionHooks2(const void *enter, const void *leave,
      const void *tailcall) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionInfo2(FunctionID function, COR_PRF_FRAME_INFO frameInfo,
      ClassID *classId, ModuleID *module, mdToken *token, ULONG typeArgsRoom, ULONG *typeArgsLen,
      ClassID *typeArgs) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetStringLayout(ULONG *bufferLengthOffset, ULONG *stringLengthOffset,
      ULONG *bufferOffset) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetClassLayout(ClassID classId, COR_FIELD_OFFSET *fieldOffsets,
      ULONG fieldOffsetsRoom, ULONG *fieldOffsetsLen, ULONG *classSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetClassIDInfo2(ClassID classId, ModuleID *module, mdToken *typeDefToken,
      ClassID *parentClass, ULONG typeArgsRoom, ULONG *typeArgsLen, ClassID *typeArgs) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCodeInfo2(FunctionID function, ULONG rangesRoom, ULONG *rangesLen,
      COR_PRF_CODE_INFO *ranges) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetClassFromTokenAndTypeArgs(ModuleID module, mdToken typeDef,
      ULONG typeArgsLen, const ClassID *typeArgs, ClassID *classId) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionFromTokenAndTypeArgs(ModuleID module, mdToken method,
      ClassID classId, ULONG typeArgsLen, const ClassID *typeArgs, FunctionID *function) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumModuleFrozenObjects(ModuleID module,
      ICorProfilerObjectEnum **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetArrayObjectInfo(ObjectID object, ULONG dimensionsLen,
      ULONG *dimensionSizes, int *dimensionLowerBounds, BYTE **data) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetBoxClassLayout(ClassID classId, ULONG *bufferOffset) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetThreadAppDomain(ThreadID thread, AppDomainID *appDomain) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetRVAStaticAddress(ClassID classId, mdToken fieldToken,
      void **address) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetAppDomainStaticAddress(ClassID classId, mdToken fieldToken,
      AppDomainID appDomain, void **address) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetThreadStaticAddress(ClassID classId, mdToken fieldToken,
      ThreadID thread, void **address) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetContextStaticAddress(ClassID classId, mdToken fieldToken,
      ContextID context, void **address) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetStaticFieldInfo(ClassID classId, mdToken fieldToken,
      ULONG *fieldInfo) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetGenerationBounds(ULONG objectRangesRoom, ULONG *objectRangesLen,
      COR_PRF_GC_GENERATION_RANGE *ranges) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetObjectGeneration(ObjectID object,
      COR_PRF_GC_GENERATION_RANGE *range) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetNotifiedExceptionClauseInfo(COR_PRF_EX_CLAUSE_INFO *info) = 0;
};

// ICorProfilerInfo3: version of the runtime, enumerations, hooks with data.
static const GUID IID_ICorProfilerInfo3 = {0xb555ed4f, 0x452a, 0x4e54, {0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0}};
struct ICorProfilerInfo3 : ICorProfilerInfo2 {
  virtual HRESULT STDMETHODCALLTYPE EnumJITedFunctions(ICorProfilerFunctionEnum **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE RequestProfilerDetach(ULONG milliseconds) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetFunctionIDMapper2(const void *mapper, void *clientData) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetStringLayout2(ULONG *stringLengthOffset, ULONG *bufferOffset) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEnterLeaveFunctionHooks3(const void *enter, const void *leave,
      const void *tailcall) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEnterLeaveFunctionHooks3WithInfo(const void *enter, const void *leave,
      const void *tailcall) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionEnter3Info(FunctionID function, COR_PRF_ELT_INFO eltInfo,
      COR_PRF_FRAME_INFO *frameInfo, ULONG *argumentInfoSize,
      COR_PRF_FUNCTION_ARGUMENT_INFO *argumentInfo) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionLeave3Info(FunctionID function, COR_PRF_ELT_INFO eltInfo,
      COR_PRF_FRAME_INFO *frameInfo, COR_PRF_FUNCTION_ARGUMENT_RANGE *retvalRange) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionTailcall3Info(FunctionID function, COR_PRF_ELT_INFO eltInfo,
      COR_PRF_FRAME_INFO *frameInfo) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumModules(ICorProfilerModuleEnum **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetRuntimeInformation(uint16_t *clrInstanceId, ULONG *runtimeType,
      uint16_t *majorVersion, uint16_t *minorVersion, uint16_t *buildNumber, uint16_t *qfeVersion,
      ULONG versionStringRoom, ULONG *versionStringLen, WCHAR *versionString) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetThreadStaticAddress2(ClassID classId, mdToken fieldToken,
      AppDomainID appDomain, ThreadID thread, void **address) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetAppDomainsContainingModule(ModuleID module, ULONG appDomainsRoom,
      ULONG *appDomainsLen, AppDomainID *appDomains) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetModuleInfo2(ModuleID module, const BYTE **baseLoadAddress,
      ULONG nameRoom, ULONG *nameLen, WCHAR *name, AssemblyID *assembly, ULONG *moduleFlags) = 0;
};

// ICorProfilerInfo4: threads, re-JIT.
static const GUID IID_ICorProfilerInfo4 = {0x0d8fdcaa, 0x6257, 0x47bf, {0xb1, 0xbf, 0x94, 0xda, 0xc8, 0x84, 0x66, 0xee}};
struct ICorProfilerInfo4 : ICorProfilerInfo3 {
  virtual HRESULT STDMETHODCALLTYPE EnumThreads(ICorProfilerThreadEnum **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE InitializeCurrentThread() = 0;
  virtual HRESULT STDMETHODCALLTYPE RequestReJIT(ULONG functionsLen, const ModuleID *modules,
      const mdToken *methods) = 0;
  virtual HRESULT STDMETHODCALLTYPE RequestRevert(ULONG functionsLen, const ModuleID *modules,
      const mdToken *methods, HRESULT *status) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCodeInfo3(FunctionID function, ReJITID rejit, ULONG rangesRoom,
      ULONG *rangesLen, COR_PRF_CODE_INFO *ranges) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionFromIP2(const BYTE *ip, FunctionID *function,
      ReJITID *rejit) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetReJITIDs(FunctionID function, ULONG rejitIdsRoom, ULONG *rejitIdsLen,
      ReJITID *rejitIds) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetILToNativeMapping2(FunctionID function, ReJITID rejit, ULONG mapRoom,
      ULONG *mapLen, COR_DEBUG_IL_TO_NATIVE_MAP *map) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumJITedFunctions2(ICorProfilerFunctionEnum **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetObjectSize2(ObjectID object, size_t *size) = 0;
};

// ICorProfilerInfo5: the high part of the event mask.
static const GUID IID_ICorProfilerInfo5 = {0x07602928, 0xce38, 0x4b83, {0x81, 0xe7, 0x74, 0xad, 0xaf, 0x78, 0x12, 0x14}};
struct ICorProfilerInfo5 : ICorProfilerInfo4 {
  virtual HRESULT STDMETHODCALLTYPE GetEventMask2(ULONG *eventsLow, ULONG *eventsHigh) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEventMask2(ULONG eventsLow, ULONG eventsHigh) = 0;
};

// ICorProfilerInfo6: inlining in precompiled code.
static const GUID IID_ICorProfilerInfo6 = {0xf30a070d, 0xbffb, 0x46a7, {0xb1, 0xd8, 0x87, 0x81, 0xef, 0x7b, 0x69, 0x8a}};
struct ICorProfilerInfo6 : ICorProfilerInfo5 {
  virtual HRESULT STDMETHODCALLTYPE EnumNgenModuleMethodsInliningThisMethod(ModuleID inlinersModule,
      ModuleID inlineeModule, mdToken inlineeMethod, BOOL *incompleteData,
      ICorProfilerMethodEnum **enumerator) = 0;
};

// ICorProfilerInfo7: symbols of modules in memory.
static const GUID IID_ICorProfilerInfo7 = {0x9aeecc0d, 0x63e0, 0x4187, {0x8c, 0x00, 0xe3, 0x12, 0xf5, 0x03, 0xf6, 0x63}};
struct ICorProfilerInfo7 : ICorProfilerInfo6 {
  virtual HRESULT STDMETHODCALLTYPE ApplyMetaData(ModuleID module) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetInMemorySymbolsLength(ModuleID module, ULONG *countSymbolBytes) = 0;
  virtual HRESULT STDMETHODCALLTYPE ReadInMemorySymbols(ModuleID module, ULONG symbolsReadOffset,
      BYTE *symbolBytes, ULONG countSymbolBytes, ULONG *countSymbolBytesRead) = 0;
};

// ICorProfilerInfo8: dynamic methods.
static const GUID IID_ICorProfilerInfo8 = {0xc5ac80a6, 0x782e, 0x4716, {0x80, 0x44, 0x39, 0x59, 0x8c, 0x60, 0xcf, 0xbf}};
struct ICorProfilerInfo8 : ICorProfilerInfo7 {
  virtual HRESULT STDMETHODCALLTYPE IsFunctionDynamic(FunctionID function, BOOL *isDynamic) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFunctionFromIP3(const BYTE *ip, FunctionID *function,
      ReJITID *rejit) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetDynamicFunctionInfo(FunctionID function, ModuleID *module,
      const BYTE **signature, ULONG *signatureSize, ULONG nameRoom, ULONG *nameLen, WCHAR *name) = 0;
};

// ICorProfilerInfo9: the bodies that tiered compilation makes.
static const GUID IID_ICorProfilerInfo9 = {0x008170db, 0xf8cc, 0x4796, {0x9a, 0x51, 0xdc, 0x8a, 0xa0, 0xb4, 0x70, 0x12}};
struct ICorProfilerInfo9 : ICorProfilerInfo8 {
  virtual HRESULT STDMETHODCALLTYPE GetNativeCodeStartAddresses(FunctionID function, ReJITID rejit,
      ULONG addressesRoom, ULONG *addressesLen, uintptr_t *addresses) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetILToNativeMapping3(uintptr_t start, ULONG mapRoom, ULONG *mapLen,
      COR_DEBUG_IL_TO_NATIVE_MAP *map) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCodeInfo4(uintptr_t start, ULONG rangesRoom, ULONG *rangesLen,
      COR_PRF_CODE_INFO *ranges) = 0;
};

// ICorProfilerInfo10: suspension of the runtime.
static const GUID IID_ICorProfilerInfo10 = {0x2f1b5152, 0xc869, 0x40c9, {0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20}};
struct ICorProfilerInfo10 : ICorProfilerInfo9 {
  virtual HRESULT STDMETHODCALLTYPE EnumerateObjectReferences(ObjectID object, const void *callback,
      void *clientData) = 0;
  virtual HRESULT STDMETHODCALLTYPE IsFrozenObject(ObjectID object, BOOL *frozen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetLOHObjectSizeThreshold(ULONG *threshold) = 0;
  virtual HRESULT STDMETHODCALLTYPE RequestReJITWithInliners(ULONG rejitFlags, ULONG functionsLen,
      const ModuleID *modules, const mdToken *methods) = 0;
  virtual HRESULT STDMETHODCALLTYPE SuspendRuntime() = 0;
  virtual HRESULT STDMETHODCALLTYPE ResumeRuntime() = 0;
};

// ICorProfilerInfo11: environment variables of managed code.
static const GUID IID_ICorProfilerInfo11 = {0x06398876, 0x8987, 0x4154, {0xb6, 0x21, 0x40, 0xa0, 0x0d, 0x6e, 0x4d, 0x04}};
struct ICorProfilerInfo11 : ICorProfilerInfo10 {
  virtual HRESULT STDMETHODCALLTYPE GetEnvironmentVariable(const WCHAR *name, ULONG valueRoom,
      ULONG *valueLen, WCHAR *value) = 0;
  virtual HRESULT STDMETHODCALLTYPE SetEnvironmentVariable(const WCHAR *name, const WCHAR *value) = 0;
};

// ICorProfilerInfo12: EventPipe.
static const GUID IID_ICorProfilerInfo12 = {0x27b24ccd, 0x1cb1, 0x47c5, {0x96, 0xee, 0x98, 0x19, 0x0d, 0xc3, 0x09, 0x59}};
struct ICorProfilerInfo12 : ICorProfilerInfo11 {
  virtual HRESULT STDMETHODCALLTYPE EventPipeStartSession(ULONG providerConfigsLen,
      const COR_PRF_EVENTPIPE_PROVIDER_CONFIG *providerConfigs, BOOL requestRundown, UINT64 *session) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeAddProviderToSession(UINT64 session,
      COR_PRF_EVENTPIPE_PROVIDER_CONFIG providerConfig) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeStopSession(UINT64 session) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeCreateProvider(const WCHAR *providerName,
      uintptr_t *provider) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeGetProviderInfo(uintptr_t provider, ULONG nameRoom,
      ULONG *nameLen, WCHAR *name) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeDefineEvent(uintptr_t provider, const WCHAR *eventName,
      ULONG eventId, UINT64 keywords, ULONG eventVersion, ULONG level, BYTE opcode, BOOL needStack,
      ULONG parametersLen, const COR_PRF_EVENTPIPE_PARAM_DESC *parameters, UINT64 *event) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeWriteEvent(UINT64 event, ULONG dataLen,
      const COR_PRF_EVENT_DATA *data, const GUID *activityId, const GUID *relatedActivityId) = 0;
};

// ICorProfilerInfo13: handles to objects.
static const GUID IID_ICorProfilerInfo13 = {0x6e6c7ee2, 0x0701, 0x4ec2, {0x9d, 0x29, 0x2e, 0x87, 0x33, 0xb6, 0x69, 0x34}};
struct ICorProfilerInfo13 : ICorProfilerInfo12 {
  virtual HRESULT STDMETHODCALLTYPE CreateHandle(ObjectID object, ULONG handleType,
      ObjectHandleID *handle) = 0;
  virtual HRESULT STDMETHODCALLTYPE DestroyHandle(ObjectHandleID handle) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetObjectIDFromHandle(ObjectHandleID handle, ObjectID *object) = 0;
};

// ICorProfilerInfo14: objects outside the GC heap.
static const GUID IID_ICorProfilerInfo14 = {0xf460e352, 0xd76d, 0x4fe9, {0x83, 0x5f, 0xf6, 0xaf, 0x9d, 0x6e, 0x86, 0x2d}};
struct ICorProfilerInfo14 : ICorProfilerInfo13 {
  virtual HRESULT STDMETHODCALLTYPE EnumerateNonGCObjects(ICorProfilerObjectEnum **enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetNonGCHeapBounds(ULONG rangesRoom, ULONG *rangesLen,
      COR_PRF_NONGC_HEAP_RANGE *ranges) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeCreateProvider2(const WCHAR *providerName, const void *callback,
      uintptr_t *provider) = 0;
};

// ICorProfilerInfo15: objects of the GC heap.
static const GUID IID_ICorProfilerInfo15 = {0xb446462d, 0xbd22, 0x41dd, {0x87, 0x2d, 0xdc, 0x71, 0x4c, 0x49, 0xeb, 0x56}};
struct ICorProfilerInfo15 : ICorProfilerInfo14 {
  virtual HRESULT STDMETHODCALLTYPE EnumerateGCHeapObjects(const void *callback, void *callbackState) = 0;
};

// ICorProfilerCallback: the events since .NET Framework 1.
static const GUID IID_ICorProfilerCallback = {0x176fbed1, 0xa55c, 0x4796, {0x98, 0xca, 0xa9, 0xda, 0x0e, 0xf8, 0x83, 0xe7}};
struct ICorProfilerCallback : IUnknown {
  virtual HRESULT STDMETHODCALLTYPE Initialize(IUnknown *info) = 0;
  virtual HRESULT STDMETHODCALLTYPE Shutdown() = 0;
  virtual HRESULT STDMETHODCALLTYPE AppDomainCreationStarted(AppDomainID appDomain) = 0;
  virtual HRESULT STDMETHODCALLTYPE AppDomainCreationFinished(AppDomainID appDomain, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE AppDomainShutdownStarted(AppDomainID appDomain) = 0;
  virtual HRESULT STDMETHODCALLTYPE AppDomainShutdownFinished(AppDomainID appDomain, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE AssemblyLoadStarted(AssemblyID assembly) = 0;
  virtual HRESULT STDMETHODCALLTYPE AssemblyLoadFinished(AssemblyID assembly, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE AssemblyUnloadStarted(AssemblyID assembly) = 0;
  virtual HRESULT STDMETHODCALLTYPE AssemblyUnloadFinished(AssemblyID assembly, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE ModuleLoadStarted(ModuleID module) = 0;
  virtual HRESULT STDMETHODCALLTYPE ModuleLoadFinished(ModuleID module, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE ModuleUnloadStarted(ModuleID module) = 0;
  virtual HRESULT STDMETHODCALLTYPE ModuleUnloadFinished(ModuleID module, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE ModuleAttachedToAssembly(ModuleID module, AssemblyID assembly) = 0;
  virtual HRESULT STDMETHODCALLTYPE ClassLoadStarted(ClassID classId) = 0;
  virtual HRESULT STDMETHODCALLTYPE ClassLoadFinished(ClassID classId, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE ClassUnloadStarted(ClassID classId) = 0;
  virtual HRESULT STDMETHODCALLTYPE ClassUnloadFinished(ClassID classId, HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE FunctionUnloadStarted(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE JITCompilationStarted(FunctionID function, BOOL isSafeToBlock) = 0;
  virtual HRESULT STDMETHODCALLTYPE JITCompilationFinished(FunctionID function, HRESULT status,
      BOOL isSafeToBlock) = 0;
  virtual HRESULT STDMETHODCALLTYPE JITCachedFunctionSearchStarted(FunctionID function,
      BOOL *useCachedFunction) = 0;
  virtual HRESULT STDMETHODCALLTYPE JITCachedFunctionSearchFinished(FunctionID function, ULONG result) = 0;
  virtual HRESULT STDMETHODCALLTYPE JITFunctionPitched(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE JITInlining(FunctionID caller, FunctionID callee, BOOL *shouldInline) = 0;
  virtual HRESULT STDMETHODCALLTYPE ThreadCreated(ThreadID thread) = 0;
  virtual HRESULT STDMETHODCALLTYPE ThreadDestroyed(ThreadID thread) = 0;
  virtual HRESULT STDMETHODCALLTYPE ThreadAssignedToOSThread(ThreadID managedThread, ULONG osThread) = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingClientInvocationStarted() = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingClientSendingMessage(GUID *cookie, BOOL isAsync) = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingClientReceivingReply(GUID *cookie, BOOL isAsync) = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingClientInvocationFinished() = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingServerReceivingMessage(GUID *cookie, BOOL isAsync) = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingServerInvocationStarted() = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingServerInvocationReturned() = 0;
  virtual HRESULT STDMETHODCALLTYPE RemotingServerSendingReply(GUID *cookie, BOOL isAsync) = 0;
  virtual HRESULT STDMETHODCALLTYPE UnmanagedToManagedTransition(FunctionID function, ULONG reason) = 0;
  virtual HRESULT STDMETHODCALLTYPE ManagedToUnmanagedTransition(FunctionID function, ULONG reason) = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeSuspendStarted(ULONG suspendReason) = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeSuspendFinished() = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeSuspendAborted() = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeResumeStarted() = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeResumeFinished() = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeThreadSuspended(ThreadID thread) = 0;
  virtual HRESULT STDMETHODCALLTYPE RuntimeThreadResumed(ThreadID thread) = 0;
  virtual HRESULT STDMETHODCALLTYPE MovedReferences(ULONG rangesLen, const ObjectID *oldStarts,
      const ObjectID *newStarts, const ULONG *lengths) = 0;
  virtual HRESULT STDMETHODCALLTYPE ObjectAllocated(ObjectID object, ClassID classId) = 0;
  virtual HRESULT STDMETHODCALLTYPE ObjectsAllocatedByClass(ULONG classesLen, const ClassID *classes,
      const ULONG *objects) = 0;
  virtual HRESULT STDMETHODCALLTYPE ObjectReferences(ObjectID object, ClassID classId, ULONG objectRefsLen,
      const ObjectID *objectRefs) = 0;
  virtual HRESULT STDMETHODCALLTYPE RootReferences(ULONG rootRefsLen, const ObjectID *rootRefs) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionThrown(ObjectID thrownObject) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionSearchFunctionEnter(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionSearchFunctionLeave() = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionSearchFilterEnter(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionSearchFilterLeave() = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionSearchCatcherFound(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionOSHandlerEnter(uintptr_t unused) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionOSHandlerLeave(uintptr_t unused) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionUnwindFunctionEnter(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionUnwindFunctionLeave() = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionUnwindFinallyEnter(FunctionID function) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionUnwindFinallyLeave() = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionCatcherEnter(FunctionID function, ObjectID object) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionCatcherLeave() = 0;
  virtual HRESULT STDMETHODCALLTYPE COMClassicVTableCreated(ClassID wrappedClass, const GUID *implemented,
      void *vtable, ULONG slotsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE COMClassicVTableDestroyed(ClassID wrappedClass, const GUID *implemented,
      void *vtable) = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionCLRCatcherFound() = 0;
  virtual HRESULT STDMETHODCALLTYPE ExceptionCLRCatcherExecute() = 0;
};

// ICorProfilerCallback2: names of threads, the GC. The least that a profiler must have.
static const GUID IID_ICorProfilerCallback2 = {0x8a8cc829, 0xccf2, 0x49fe, {0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a}};
struct ICorProfilerCallback2 : ICorProfilerCallback {
  virtual HRESULT STDMETHODCALLTYPE ThreadNameChanged(ThreadID thread, ULONG nameLen, const WCHAR *name) = 0;
  virtual HRESULT STDMETHODCALLTYPE GarbageCollectionStarted(int generationsLen,
      const BOOL *generationCollected, ULONG reason) = 0;
  virtual HRESULT STDMETHODCALLTYPE SurvivingReferences(ULONG rangesLen, const ObjectID *starts,
      const ULONG *lengths) = 0;
  virtual HRESULT STDMETHODCALLTYPE GarbageCollectionFinished() = 0;
  virtual HRESULT STDMETHODCALLTYPE FinalizeableObjectQueued(ULONG finalizerFlags, ObjectID object) = 0;
  virtual HRESULT STDMETHODCALLTYPE RootReferences2(ULONG rootRefsLen, const ObjectID *rootRefs,
      const ULONG *rootKinds, const ULONG *rootFlags, const uintptr_t *rootIds) = 0;
  virtual HRESULT STDMETHODCALLTYPE HandleCreated(GCHandleID handle, ObjectID object) = 0;
  virtual HRESULT STDMETHODCALLTYPE HandleDestroyed(GCHandleID handle) = 0;
};

// ICorProfilerCallback3: attaching and detaching.
static const GUID IID_ICorProfilerCallback3 = {0x4fd2ed52, 0x7731, 0x4b8d, {0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5}};
struct ICorProfilerCallback3 : ICorProfilerCallback2 {
  virtual HRESULT STDMETHODCALLTYPE InitializeForAttach(IUnknown *info, void *clientData,
      ULONG clientDataSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE ProfilerAttachComplete() = 0;
  virtual HRESULT STDMETHODCALLTYPE ProfilerDetachSucceeded() = 0;
};

// ICorProfilerCallback4: re-JIT, 64-bit sizes of moved objects.
static const GUID IID_ICorProfilerCallback4 = {0x7b63b2e3, 0x107d, 0x4d48, {0xb2, 0xf6, 0xf6, 0x1e, 0x22, 0x94, 0x70, 0xd2}};
struct ICorProfilerCallback4 : ICorProfilerCallback3 {
  virtual HRESULT STDMETHODCALLTYPE ReJITCompilationStarted(FunctionID function, ReJITID rejit,
      BOOL isSafeToBlock) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetReJITParameters(ModuleID module, mdToken method,
      ICorProfilerFunctionControl *functionControl) = 0;
  virtual HRESULT STDMETHODCALLTYPE ReJITCompilationFinished(FunctionID function, ReJITID rejit,
      HRESULT status, BOOL isSafeToBlock) = 0;
  virtual HRESULT STDMETHODCALLTYPE ReJITError(ModuleID module, mdToken method, FunctionID function,
      HRESULT status) = 0;
  virtual HRESULT STDMETHODCALLTYPE MovedReferences2(ULONG rangesLen, const ObjectID *oldStarts,
      const ObjectID *newStarts, const size_t *lengths) = 0;
  virtual HRESULT STDMETHODCALLTYPE SurvivingReferences2(ULONG rangesLen, const ObjectID *starts,
      const size_t *lengths) = 0;
};

// ICorProfilerCallback5: elements of ConditionalWeakTable.
static const GUID IID_ICorProfilerCallback5 = {0x8dfba405, 0x8c9f, 0x45f8, {0xbf, 0xfa, 0x83, 0xb1, 0x4c, 0xef, 0x78, 0xb5}};
struct ICorProfilerCallback5 : ICorProfilerCallback4 {
  virtual HRESULT STDMETHODCALLTYPE ConditionalWeakTableElementReferences(ULONG rootRefsLen,
      const ObjectID *keyRefs, const ObjectID *valueRefs, const GCHandleID *rootIds) = 0;
};

// ICorProfilerCallback6: assembly references that the profiler will add.
static const GUID IID_ICorProfilerCallback6 = {0xfc13df4b, 0x4448, 0x4f4f, {0x95, 0x0c, 0xba, 0x8d, 0x19, 0xd0, 0x0c, 0x36}};
struct ICorProfilerCallback6 : ICorProfilerCallback5 {
  virtual HRESULT STDMETHODCALLTYPE GetAssemblyReferences(const WCHAR *assemblyPath,
      ICorProfilerAssemblyReferenceProvider *provider) = 0;
};

// ICorProfilerCallback7: symbols of modules in memory.
static const GUID IID_ICorProfilerCallback7 = {0xf76a2dba, 0x1d52, 0x4539, {0x86, 0x6c, 0x2a, 0xa5, 0x18, 0xf9, 0xef, 0xc3}};
struct ICorProfilerCallback7 : ICorProfilerCallback6 {
  virtual HRESULT STDMETHODCALLTYPE ModuleInMemorySymbolsUpdated(ModuleID module) = 0;
};

// ICorProfilerCallback8: compilation of dynamic methods and IL stubs.
static const GUID IID_ICorProfilerCallback8 = {0x5bed9b15, 0xc079, 0x4d47, {0xbf, 0xe2, 0x21, 0x5a, 0x14, 0x0c, 0x07, 0xe0}};
struct ICorProfilerCallback8 : ICorProfilerCallback7 {
  virtual HRESULT STDMETHODCALLTYPE DynamicMethodJITCompilationStarted(FunctionID function,
      BOOL isSafeToBlock, const BYTE *ilHeader, ULONG ilHeaderLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE DynamicMethodJITCompilationFinished(FunctionID function, HRESULT status,
      BOOL isSafeToBlock) = 0;
};

// ICorProfilerCallback9: unloading of dynamic methods.
static const GUID IID_ICorProfilerCallback9 = {0x27583ec3, 0xc8f5, 0x482f, {0x80, 0x52, 0x19, 0x4b, 0x8c, 0xe4, 0x70, 0x5a}};
struct ICorProfilerCallback9 : ICorProfilerCallback8 {
  virtual HRESULT STDMETHODCALLTYPE DynamicMethodUnloaded(FunctionID function) = 0;
};

// ICorProfilerCallback10: EventPipe.
static const GUID IID_ICorProfilerCallback10 = {0xcec5b60e, 0xc69c, 0x495f, {0x87, 0xf6, 0x84, 0xd2, 0x8e, 0xe1, 0x6f, 0xfb}};
struct ICorProfilerCallback10 : ICorProfilerCallback9 {
  virtual HRESULT STDMETHODCALLTYPE EventPipeEventDelivered(uintptr_t provider, ULONG eventId,
      ULONG eventVersion, ULONG metadataBlobLen, const BYTE *metadataBlob, ULONG eventDataLen,
      const BYTE *eventData, const GUID *activityId, const GUID *relatedActivityId, ThreadID eventThread,
      ULONG stackFramesLen, const uintptr_t *stackFrames) = 0;
  virtual HRESULT STDMETHODCALLTYPE EventPipeProviderCreated(uintptr_t provider) = 0;
};

// ICorProfilerCallback11: profilers that only want notifications.
static const GUID IID_ICorProfilerCallback11 = {0x42350846, 0xaaed, 0x47f7, {0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde}};
struct ICorProfilerCallback11 : ICorProfilerCallback10 {
  virtual HRESULT STDMETHODCALLTYPE LoadAsNotificationOnly(BOOL *notificationOnly) = 0;
};

// IMetaDataImport: names and signatures of types and members.
static const GUID IID_IMetaDataImport = {0x7dac8207, 0xd3ae, 0x4c75, {0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44}};
struct IMetaDataImport : IUnknown {
  virtual void STDMETHODCALLTYPE CloseEnum(HCORENUM enumerator) = 0;
  virtual HRESULT STDMETHODCALLTYPE CountEnum(HCORENUM enumerator, ULONG *count) = 0;
  virtual HRESULT STDMETHODCALLTYPE ResetEnum(HCORENUM enumerator, ULONG pos) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumTypeDefs(HCORENUM *enumerator, mdToken *typeDefs, ULONG room,
      ULONG *typeDefsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumInterfaceImpls(HCORENUM *enumerator, mdToken typeDef, mdToken *impls,
      ULONG room, ULONG *implsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumTypeRefs(HCORENUM *enumerator, mdToken *typeRefs, ULONG room,
      ULONG *typeRefsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE FindTypeDefByName(const WCHAR *name, mdToken enclosingClass,
      mdToken *typeDef) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetScopeProps(WCHAR *name, ULONG nameRoom, ULONG *nameLen,
      GUID *mvid) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetModuleFromScope(mdToken *module) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetTypeDefProps(mdToken token, WCHAR *typeDef, ULONG typeDefRoom,
      ULONG *typeDefLen, ULONG *typeDefFlags, mdToken *extends) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetInterfaceImplProps(mdToken interfaceImpl, mdToken *classId,
      mdToken *interfaceToken) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetTypeRefProps(mdToken typeRef, mdToken *resolutionScope, WCHAR *name,
      ULONG nameRoom, ULONG *nameLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE ResolveTypeRef(mdToken typeRef, REFIID riid, IUnknown **scope,
      mdToken *typeDef) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMembers(HCORENUM *enumerator, mdToken typeDef, mdToken *members,
      ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMembersWithName(HCORENUM *enumerator, mdToken typeDef,
      const WCHAR *name, mdToken *members, ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMethods(HCORENUM *enumerator, mdToken typeDef, mdToken *methods,
      ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMethodsWithName(HCORENUM *enumerator, mdToken typeDef,
      const WCHAR *name, mdToken *methods, ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumFields(HCORENUM *enumerator, mdToken typeDef, mdToken *fields,
      ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumFieldsWithName(HCORENUM *enumerator, mdToken typeDef,
      const WCHAR *name, mdToken *fields, ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumParams(HCORENUM *enumerator, mdToken method, mdToken *params,
      ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMemberRefs(HCORENUM *enumerator, mdToken parent, mdToken *memberRefs,
      ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMethodImpls(HCORENUM *enumerator, mdToken typeDef,
      mdToken *methodBody, mdToken *methodDecl, ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumPermissionSets(HCORENUM *enumerator, mdToken token, ULONG actions,
      mdToken *permission, ULONG room, ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE FindMember(mdToken typeDef, const WCHAR *name, const BYTE *signature,
      ULONG signatureSize, mdToken *member) = 0;
  virtual HRESULT STDMETHODCALLTYPE FindMethod(mdToken typeDef, const WCHAR *name, const BYTE *signature,
      ULONG signatureSize, mdToken *member) = 0;
  virtual HRESULT STDMETHODCALLTYPE FindField(mdToken typeDef, const WCHAR *name, const BYTE *signature,
      ULONG signatureSize, mdToken *member) = 0;
  virtual HRESULT STDMETHODCALLTYPE FindMemberRef(mdToken typeDef, const WCHAR *name, const BYTE *signature,
      ULONG signatureSize, mdToken *memberRef) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetMethodProps(mdToken token, mdToken *classId, WCHAR *name,
      ULONG nameRoom, ULONG *nameLen, ULONG *attr, const BYTE **signature, ULONG *signatureSize,
      ULONG *codeRva, ULONG *implFlags) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetMemberRefProps(mdToken token, mdToken *parent, WCHAR *member,
      ULONG memberRoom, ULONG *memberLen, const BYTE **signature, ULONG *signatureSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumProperties(HCORENUM *enumerator, mdToken typeDef, mdToken *properties,
      ULONG room, ULONG *propertiesLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumEvents(HCORENUM *enumerator, mdToken typeDef, mdToken *events,
      ULONG room, ULONG *eventsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetEventProps(mdToken token, mdToken *classId, const WCHAR *event,
      ULONG eventRoom, ULONG *eventLen, ULONG *eventFlags, mdToken *eventType, mdToken *addOn,
      mdToken *removeOn, mdToken *fire, mdToken *otherMethods, ULONG room, ULONG *otherMethodsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMethodSemantics(HCORENUM *enumerator, mdToken method,
      mdToken *eventOrProperty, ULONG room, ULONG *eventOrPropertyLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetMethodSemantics(mdToken member, mdToken eventOrProperty,
      ULONG *semanticsFlags) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetClassLayout(mdToken typeDef, ULONG *packSize,
      COR_FIELD_OFFSET *fieldOffsets, ULONG room, ULONG *fieldOffsetsLen, ULONG *classSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFieldMarshal(mdToken token, const BYTE **nativeType,
      ULONG *nativeTypeLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetRVA(mdToken token, ULONG *codeRva, ULONG *implFlags) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetPermissionSetProps(mdToken permissionSet, ULONG *action,
      const void **permission, ULONG *permissionSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetSigFromToken(mdToken signatureToken, const BYTE **signature,
      ULONG *signatureSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetModuleRefProps(mdToken moduleRef, WCHAR *name, ULONG nameRoom,
      ULONG *nameLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumModuleRefs(HCORENUM *enumerator, mdToken *moduleRefs, ULONG room,
      ULONG *moduleRefsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetTypeSpecFromToken(mdToken typeSpec, const BYTE **signature,
      ULONG *signatureSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetNameFromToken(mdToken token, const BYTE **utf8Name) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumUnresolvedMethods(HCORENUM *enumerator, mdToken *methods, ULONG room,
      ULONG *tokensLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetUserString(mdToken stringToken, WCHAR *string, ULONG stringRoom,
      ULONG *stringLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetPinvokeMap(mdToken token, ULONG *mappingFlags, WCHAR *importName,
      ULONG importNameRoom, ULONG *importNameLen, mdToken *importDll) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumSignatures(HCORENUM *enumerator, mdToken *signatures, ULONG room,
      ULONG *signaturesLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumTypeSpecs(HCORENUM *enumerator, mdToken *typeSpecs, ULONG room,
      ULONG *typeSpecsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumUserStrings(HCORENUM *enumerator, mdToken *strings, ULONG room,
      ULONG *stringsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetParamForMethodIndex(mdToken method, ULONG sequence,
      mdToken *parameter) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumCustomAttributes(HCORENUM *enumerator, mdToken token, mdToken kind,
      mdToken *customAttributes, ULONG room, ULONG *customAttributesLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCustomAttributeProps(mdToken attribute, mdToken *object, mdToken *kind,
      const void **blob, ULONG *size) = 0;
  virtual HRESULT STDMETHODCALLTYPE FindTypeRef(mdToken resolutionScope, const WCHAR *name,
      mdToken *typeRef) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetMemberProps(mdToken token, mdToken *classId, WCHAR *member,
      ULONG memberRoom, ULONG *memberLen, ULONG *attr, const BYTE **signature, ULONG *signatureSize,
      ULONG *codeRva, ULONG *implFlags, ULONG *elementType, const void **value, ULONG *valueLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetFieldProps(mdToken token, mdToken *classId, WCHAR *field,
      ULONG fieldRoom, ULONG *fieldLen, ULONG *attr, const BYTE **signature, ULONG *signatureSize,
      ULONG *elementType, const void **value, ULONG *valueLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetPropertyProps(mdToken propertyToken, mdToken *classId,
      const WCHAR *property, ULONG propertyRoom, ULONG *propertyLen, ULONG *flags, const BYTE **signature,
      ULONG *signatureSize, ULONG *elementType, const void **defaultValue, ULONG *defaultValueLen,
      mdToken *setter, mdToken *getter, mdToken *otherMethods, ULONG room, ULONG *otherMethodsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetParamProps(mdToken token, mdToken *method, ULONG *sequence,
      WCHAR *name, ULONG nameRoom, ULONG *nameLen, ULONG *attr, ULONG *elementType, const void **value,
      ULONG *valueLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetCustomAttributeByName(mdToken object, const WCHAR *name,
      const void **data, ULONG *dataLen) = 0;
  virtual BOOL STDMETHODCALLTYPE IsValidToken(mdToken token) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetNestedClassProps(mdToken nested, mdToken *enclosing) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetNativeCallConvFromSig(const void *signature, ULONG signatureSize,
      ULONG *callConv) = 0;
  virtual HRESULT STDMETHODCALLTYPE IsGlobal(mdToken token, int *global) = 0;
};

// IMetaDataImport2: generics.
static const GUID IID_IMetaDataImport2 = {0xfce5efa0, 0x8bba, 0x4f8e, {0xa0, 0x36, 0x8f, 0x20, 0x22, 0xb0, 0x84, 0x66}};
struct IMetaDataImport2 : IMetaDataImport {
  virtual HRESULT STDMETHODCALLTYPE EnumGenericParams(HCORENUM *enumerator, mdToken token,
      mdToken *genericParams, ULONG room, ULONG *genericParamsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetGenericParamProps(mdToken token, ULONG *sequence, ULONG *paramFlags,
      mdToken *owner, ULONG *reserved, WCHAR *name, ULONG nameRoom, ULONG *nameLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetMethodSpecProps(mdToken methodSpec, mdToken *parent,
      const BYTE **signature, ULONG *signatureSize) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumGenericParamConstraints(HCORENUM *enumerator, mdToken token,
      mdToken *genericParamConstraints, ULONG room, ULONG *genericParamConstraintsLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetGenericParamConstraintProps(mdToken constraint, mdToken *parameter,
      mdToken *constraintType) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetPEKind(ULONG *peKind, ULONG *machine) = 0;
  virtual HRESULT STDMETHODCALLTYPE GetVersionString(WCHAR *version, ULONG versionRoom,
      ULONG *versionLen) = 0;
  virtual HRESULT STDMETHODCALLTYPE EnumMethodSpecs(HCORENUM *enumerator, mdToken token, mdToken *methodSpecs,
      ULONG room, ULONG *methodSpecsLen) = 0;
};

#endif
