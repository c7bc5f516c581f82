//! The declarations in C++.

use crate::declarations::{Declarations, Interface, Method, Structure};
use clr_com::Guid;
use clr_walker::profiling::HResult;
use std::fmt::Write as _;

/// Structures with their names and those of their fields in the documentation.
const STRUCTURES: [(&str, &str, &[&str]); 13] = [
    ("Method", "COR_PRF_METHOD", &["moduleId", "methodId"]),
    ("Function", "COR_PRF_FUNCTION", &["functionId", "reJitId"]),
    ("IlMap", "COR_IL_MAP", &["oldOffset", "newOffset", "fAccurate"]),
    (
        "IlToNative",
        "COR_DEBUG_IL_TO_NATIVE_MAP",
        &["ilOffset", "nativeStartOffset", "nativeEndOffset"],
    ),
    ("FieldOffset", "COR_FIELD_OFFSET", &["ridOfField", "ulOffset"]),
    ("ArgumentRange", "COR_PRF_FUNCTION_ARGUMENT_RANGE", &["startAddress", "length"]),
    (
        "FunctionArguments",
        "COR_PRF_FUNCTION_ARGUMENT_INFO",
        &["numRanges", "totalArgumentSize", "ranges[1]"],
    ),
    (
        "GenerationRange",
        "COR_PRF_GC_GENERATION_RANGE",
        &["generation", "rangeStart", "rangeLength", "rangeLengthReserved"],
    ),
    (
        "NonGcRange",
        "COR_PRF_NONGC_HEAP_RANGE",
        &["rangeStart", "rangeLength", "rangeLengthReserved"],
    ),
    (
        "ClauseInfo",
        "COR_PRF_EX_CLAUSE_INFO",
        &["clauseType", "programCounter", "framePointer", "shadowStackPointer"],
    ),
    (
        "EventProviderConfig",
        "COR_PRF_EVENTPIPE_PROVIDER_CONFIG",
        &["providerName", "keywords", "loggingLevel", "filterData"],
    ),
    ("EventParameter", "COR_PRF_EVENTPIPE_PARAM_DESC", &["type", "elementType", "name"]),
    ("EventData", "COR_PRF_EVENT_DATA", &["ptr", "size", "reserved"]),
];

/// Types with other names in C++.
const TYPES: [(&str, &str); 26] = [
    ("c_void", "void"),
    ("u8", "BYTE"),
    ("u16", "WCHAR"),
    ("u32", "ULONG"),
    ("i32", "int"),
    ("u64", "UINT64"),
    ("Bool", "BOOL"),
    ("Guid", "GUID"),
    ("HResult", "HRESULT"),
    ("Token", "mdToken"),
    ("Handle", "HANDLE"),
    ("EnumHandle", "HCORENUM"),
    ("FrameHandle", "COR_PRF_FRAME_INFO"),
    ("EltInfo", "COR_PRF_ELT_INFO"),
    ("FunctionHook", "const void *"),
    ("FunctionIdMapper", "const void *"),
    ("StackSnapshotCallback", "StackSnapshotCallback *"),
    ("AppDomainId", "AppDomainID"),
    ("AssemblyId", "AssemblyID"),
    ("ClassId", "ClassID"),
    ("ContextId", "ContextID"),
    ("GcHandleId", "GCHandleID"),
    ("ObjectHandleId", "ObjectHandleID"),
    ("ObjectId", "ObjectID"),
    ("ModuleId", "ModuleID"),
    ("ProcessId", "ProcessID"),
];

const MORE_TYPES: [(&str, &str); 4] = [
    ("FunctionId", "FunctionID"),
    ("ThreadId", "ThreadID"),
    ("ReJitId", "ReJITID"),
    ("CodeRange", "COR_PRF_CODE_INFO"),
];

/// Arguments that point to objects, by method and argument, with the type that they have in C++.
const OBJECTS: [(&str, &str, &str); 20] = [
    ("CreateInstance", "outer", "IUnknown *"),
    ("Initialize", "info", "IUnknown *"),
    ("InitializeForAttach", "info", "IUnknown *"),
    ("GetReJITParameters", "function_control", "ICorProfilerFunctionControl *"),
    ("GetAssemblyReferences", "provider", "ICorProfilerAssemblyReferenceProvider *"),
    ("GetTokenAndMetaDataFromFunction", "import", "IUnknown **"),
    ("GetModuleMetaData", "out", "IUnknown **"),
    ("GetILFunctionBodyAllocator", "malloc", "IMethodMalloc **"),
    ("GetInprocInspectionInterface", "inspection", "IUnknown **"),
    ("GetInprocInspectionIThisThread", "inspection", "IUnknown **"),
    ("EnumModuleFrozenObjects", "enumerator", "ICorProfilerObjectEnum **"),
    ("EnumJITedFunctions", "enumerator", "ICorProfilerFunctionEnum **"),
    ("EnumJITedFunctions2", "enumerator", "ICorProfilerFunctionEnum **"),
    ("EnumModules", "enumerator", "ICorProfilerModuleEnum **"),
    ("EnumThreads", "enumerator", "ICorProfilerThreadEnum **"),
    ("EnumNgenModuleMethodsInliningThisMethod", "enumerator", "ICorProfilerMethodEnum **"),
    ("EnumerateNonGCObjects", "enumerator", "ICorProfilerObjectEnum **"),
    ("ResolveTypeRef", "scope", "IUnknown **"),
    ("GetEnvironmentVariable", "value", "WCHAR *"),
    ("SetEnvironmentVariable", "value", "const WCHAR *"),
];

const HEAD: &str = "// The CLR's profiling interfaces for C++, generated from clr-com's declarations by
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
";

/// Returns the text of the header.
pub(crate) fn header(all: &Declarations) -> String {
    let mut text = HEAD.to_owned();
    for one in &all.structures {
        structure(&mut text, one);
    }
    text.push_str("\n// HRESULTs that stack walking profilers meet.\n");
    for result in HResult::NAMED {
        let name = result.name().expect("these have names");
        writeln!(text, "#ifndef {name}\n#define {name} ((HRESULT)0x{:08X})\n#endif", result.0)
            .unwrap();
    }
    for one in &all.interfaces {
        interface(&mut text, one);
    }
    text.push_str("\n#endif\n");
    text
}

fn structure(text: &mut String, one: &Structure) {
    let (_, name, fields) =
        STRUCTURES.iter().find(|(name, ..)| *name == one.name).expect("it has a name in C++");
    assert_eq!(fields.len(), one.fields.len(), "{name}");
    writeln!(text, "\nstruct {name} {{").unwrap();
    for (field, (_, kind)) in fields.iter().zip(&one.fields) {
        let kind = if kind == "u64" { "uintptr_t".to_owned() } else { type_of(kind) };
        let kind = if *field == "keywords" { "UINT64".to_owned() } else { kind };
        writeln!(text, "  {};", joined(&kind, field)).unwrap();
    }
    text.push_str("};\n");
}

fn interface(text: &mut String, one: &Interface) {
    let Interface { name, base, .. } = one;
    let guard = if name == "IClassFactory" { "#ifndef _WIN32\n" } else { "" };
    let id = Guid::parse(&one.iid).expect("it is one");
    let bytes: Vec<_> = id.data4.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let bytes = bytes.join(", ");
    writeln!(text, "\n// {}", one.doc.replace('`', "")).unwrap();
    text.push_str(guard);
    let Guid { data1, data2, data3, .. } = id;
    let head = format!("{data1:#010x}, {data2:#06x}, {data3:#06x}");
    writeln!(text, "static const GUID IID_{name} = {{{head}, {{{bytes}}}}};").unwrap();
    writeln!(text, "struct {name} : {base} {{").unwrap();
    for method in &one.methods {
        writeln!(text, "{}", declaration(method)).unwrap();
    }
    text.push_str("};\n");
    if !guard.is_empty() {
        text.push_str("#endif\n");
    }
}

fn declaration(method: &Method) -> String {
    let result = match method.result.as_str() {
        "" => "HRESULT",
        "()" => "void",
        other => &type_of(other),
    };
    let name = &method.name;
    let arguments: Vec<_> = method
        .arguments
        .iter()
        .map(|(argument, kind)| {
            let object = OBJECTS.iter().find(|(of, called, _)| of == name && called == argument);
            let kind = match object {
                Some((.., kind)) => (*kind).to_owned(),
                None if kind == "*const Guid" && argument == "riid" => "REFIID".to_owned(),
                None => type_in(name, argument, kind),
            };
            joined(&kind, &camel_case(argument))
        })
        .collect();
    wrapped(&format!("  virtual {result} STDMETHODCALLTYPE {name}("), &arguments)
}

/// Returns the list of arguments behind `head`, on lines of at most 110 characters.
fn wrapped(head: &str, arguments: &[String]) -> String {
    let mut lines = vec![head.to_owned()];
    for (at, argument) in arguments.iter().enumerate() {
        let end = if at + 1 == arguments.len() { ") = 0;" } else { "," };
        let last = lines.last_mut().expect("there is the head");
        let is_first = last.ends_with('(') || last.trim().is_empty();
        if last.len() + argument.len() + end.len() + 1 > 110 {
            lines.push(format!("      {argument}{end}"));
        } else {
            let space = if is_first { "" } else { " " };
            write!(last, "{space}{argument}{end}").unwrap();
        }
    }
    if arguments.is_empty() {
        lines[0].push_str(") = 0;");
    }
    lines.join("\n")
}

/// Returns the type of an argument, where the same type of Rust stands for several of C++.
fn type_in(method: &str, argument: &str, kind: &str) -> String {
    let is_version = method == "GetRuntimeInformation" && argument != "version_string";
    match kind {
        "*mut u16" if is_version => "uint16_t *".to_owned(),
        "*mut *mut c_void" if method == "Clone" => "IUnknown **".to_owned(),
        "u64" | "*mut u64" if is_address(argument) => {
            kind.replace("u64", "uintptr_t").replace("*mut uintptr_t", "uintptr_t *")
        }
        "*const u64" if argument == "lengths" => "const size_t *".to_owned(),
        "*const u64" => "const uintptr_t *".to_owned(),
        "*mut u64" if argument == "size" => "size_t *".to_owned(),
        _ => type_of(kind),
    }
}

fn is_address(argument: &str) -> bool {
    matches!(argument, "start" | "addresses" | "unused" | "provider" | "stack_frames")
}

fn type_of(kind: &str) -> String {
    if let Some(inner) = kind.strip_prefix("*mut ") {
        let inner = type_of(inner);
        return if inner.ends_with('*') { format!("{inner}*") } else { format!("{inner} *") };
    }
    if let Some(inner) = kind.strip_prefix("*const ") {
        return format!("const {} *", type_of(inner));
    }
    let structure = STRUCTURES.iter().find(|(name, ..)| *name == kind).map(|(_, name, _)| *name);
    let named =
        TYPES.iter().chain(&MORE_TYPES).find(|(name, _)| *name == kind).map(|(_, name)| *name);
    structure.or(named).unwrap_or_else(|| panic!("{kind} has no name in C++")).to_owned()
}

fn joined(kind: &str, name: &str) -> String {
    if kind.ends_with('*') { format!("{kind}{name}") } else { format!("{kind} {name}") }
}

/// Returns a name as the documentation writes it, other than the words of C++ and Windows' macros.
fn camel_case(name: &str) -> String {
    match name {
        "class" => return "classId".to_owned(),
        "interface" => return "interfaceToken".to_owned(),
        _ => {}
    }
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let (head, rest) = part.split_at(1);
        name + &head.to_uppercase() + rest
    })
}
