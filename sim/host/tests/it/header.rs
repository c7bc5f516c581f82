//! `clrsim_interfaces.hpp` has the interfaces of `clr-com`, and no others.

use std::fmt::Write as _;

const HEAD: &str = "\
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

";

/// Words of Rust source.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let len = match first {
                '"' => rest[1..].find('"').unwrap() + 2,
                '-' if rest.starts_with("->") => 2,
                _ if first.is_alphanumeric() || first == '_' => {
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
                }
                _ => first.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(rest[..len].to_owned());
            }
            rest = &rest[len..];
        }
    }
    tokens
}

/// A method: its result and arguments in C++.
struct Method {
    name: String,
    result: &'static str,
    arguments: Vec<(String, String)>,
}

/// Returns the C++ type of the words of a Rust type.
fn cpp(words: &[String], argument: &str) -> String {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        // A REFIID.
        ["*", "const", "Guid"] if argument == "riid" => "const GUID &".to_owned(),
        ["*", "mut", of @ ..] => pointer(of_pointer(of, argument)),
        ["*", "const", of @ ..] => pointer(format!("const {}", of_pointer(of, argument))),
        [one] => value(one, argument).to_owned(),
        other => panic!("{other:?}"),
    }
}

fn pointer(to: String) -> String {
    if to.ends_with('*') { to + "*" } else { to + " *" }
}

fn of_pointer(words: &[&str], argument: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    cpp(&words, argument).trim_end_matches(' ').to_owned()
}

fn value<'w>(word: &'w str, argument: &str) -> &'w str {
    let numbers = ["version", "number", "instance", "major", "minor", "build", "revision"];
    let is_number =
        numbers.iter().any(|part| argument.contains(part)) && !argument.contains("string");
    match word {
        "u8" => "uint8_t",
        "u16" if is_number => "uint16_t",
        "u16" => "WCHAR",
        "u32" => "uint32_t",
        "i32" => "int32_t",
        "c_void" => "void",
        "Bool" => "BOOL",
        "Token" => "mdToken",
        "HResult" => "HRESULT",
        "Guid" => "GUID",
        "Handle" => "HANDLE",
        "EnumHandle" => "HCORENUM",
        "FunctionHook" | "FunctionIdMapper" => "const void *",
        "u64" | "FrameHandle" | "EltInfo" => "uint64_t",
        id if id.ends_with("Id") => "uint64_t",
        other => other,
    }
}

/// Reads one interface from the words. Returns the words after it.
fn interface<'t>(words: &'t [String], out: &mut String, methods: &mut Vec<Method>) -> &'t [String] {
    let [name, comma, _, _, iid, _, base, _, _, brace, rest @ ..] = words else { return &[] };
    assert_eq!((comma.as_str(), brace.as_str()), (",", "{"), "{name}");
    let iid = clr_com::Guid::parse(iid.trim_matches('"')).unwrap();
    let bytes: Vec<_> = iid.data4.iter().map(|byte| format!("0x{byte:02x}")).collect();
    writeln!(out, "struct {name} : {base} {{").unwrap();
    let (a, b, c, d) = (iid.data1, iid.data2, iid.data3, bytes.join(", "));
    writeln!(out, "    static constexpr GUID IID = {{{a:#010x}, {b:#06x}, {c:#06x}, {{{d}}}}};")
        .unwrap();
    let mut rest = rest;
    while let [slot, method, open, after @ ..] = rest {
        if slot == "}" {
            break;
        }
        assert_eq!(open, "(", "{name}");
        let end = after.iter().position(|word| word == ")").unwrap();
        let arguments = after[..end].split(|word| word == ",").filter(|words| !words.is_empty());
        let arguments = arguments.map(|words| (cpp(&words[2..], &words[0]), words[0].clone()));
        rest = &after[end + 1..];
        let mut result = "HRESULT";
        if rest[0] == "->" {
            let end = rest.iter().position(|word| word == ";").unwrap();
            result = match rest[1].as_str() {
                "(" => "void",
                "Bool" => "BOOL",
                "*" => "void *",
                other => panic!("{other}"),
            };
            rest = &rest[end..];
        }
        rest = &rest[1..];
        let arguments: Vec<_> = arguments.collect();
        let list: Vec<_> = arguments.iter().map(|(kind, name)| declared(kind, name)).collect();
        let space = if result.ends_with('*') { "" } else { " " };
        writeln!(out, "    virtual {result}{space}{method}({}) = 0; // {slot}", list.join(", "))
            .unwrap();
        methods.push(Method { name: method.clone(), result, arguments });
    }
    out.push_str("};\n\n");
    &rest[1..]
}

fn declared(kind: &str, name: &str) -> String {
    // A word of C++.
    let name = if name == "class" { "class_id" } else { name };
    if kind.ends_with(['*', '&']) { format!("{kind}{name}") } else { format!("{kind} {name}") }
}

/// Reads the structures.
fn structures(source: &str, out: &mut String) {
    let words = tokens(source);
    let at = words.windows(3).rposition(|three| three == ["structures", "!", "{"]).unwrap();
    let mut rest = &words[at + 3..];
    while let [name, open, after @ ..] = rest {
        if name == "}" {
            break;
        }
        assert_eq!(open, "{");
        let end = after.iter().position(|word| word == "}").unwrap();
        writeln!(out, "struct {name} {{").unwrap();
        for field in after[..end].split(|word| word == ",").filter(|words| !words.is_empty()) {
            writeln!(out, "    {};", declared(&cpp(&field[2..], &field[0]), &field[0])).unwrap();
        }
        out.push_str("};\n\n");
        rest = &after[end + 1..];
    }
}

pub(crate) fn header() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("struct CodeRange {\n    uint64_t start;\n    uint64_t size;\n};\n\n");
    structures(include_str!("../../../../walker/com/src/data.rs"), &mut out);
    out.push_str(
        "struct IUnknown {\n    static constexpr GUID IID = {0, 0, 0, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};\n    \
         virtual HRESULT QueryInterface(const GUID &iid, void **object) = 0; // 0\n    \
         virtual uint32_t AddRef() = 0; // 1\n    virtual uint32_t Release() = 0; // 2\n};\n\n",
    );
    let mut callbacks = Vec::new();
    for (source, of_profiler) in [
        (include_str!("../../../../walker/com/src/enumerator.rs"), false),
        (include_str!("../../../../walker/com/src/info.rs"), false),
        (include_str!("../../../../walker/com/src/metadata.rs"), false),
        (include_str!("../../../../walker/com/src/emit.rs"), false),
        (include_str!("../../../../walker/com/src/dispenser.rs"), false),
        (include_str!("../../../../walker/com/src/tables.rs"), false),
        (include_str!("../../../../walker/com/src/callback.rs"), true),
    ] {
        let words = tokens(source);
        let at = words.windows(3).position(|three| three == ["interfaces", "!", "{"]).unwrap();
        let after = &words[at..];
        let start = after.iter().position(|word| word == ";").unwrap() + 1;
        let mut rest = &after[start..];
        let mut methods = Vec::new();
        while rest.len() > 10 {
            rest = interface(rest, &mut out, &mut methods);
        }
        if of_profiler {
            callbacks = methods;
        }
    }
    out.push_str(
        "// A profiler's object, whose callbacks do nothing: with the interfaces that derived classes do not take away.\n\
         struct Profiler : ICorProfilerCallback11 {\n    std::atomic<uint32_t> references{1};\n\n    \
         virtual ~Profiler() = default;\n    \
         HRESULT QueryInterface(const GUID &iid, void **object) override {\n        \
         bool known = iid == IUnknown::IID || iid == ICorProfilerCallback::IID || iid == ICorProfilerCallback2::IID\n            \
         || iid == ICorProfilerCallback3::IID || iid == ICorProfilerCallback4::IID || iid == ICorProfilerCallback5::IID\n            \
         || iid == ICorProfilerCallback6::IID || iid == ICorProfilerCallback7::IID || iid == ICorProfilerCallback8::IID\n            \
         || iid == ICorProfilerCallback9::IID || iid == ICorProfilerCallback10::IID || iid == ICorProfilerCallback11::IID;\n        \
         *object = known ? static_cast<ICorProfilerCallback11 *>(this) : nullptr;\n        \
         if (known) AddRef();\n        \
         return known ? 0 : static_cast<HRESULT>(0x80004002);\n    }\n    \
         uint32_t AddRef() override { return ++references; }\n    \
         uint32_t Release() override { return --references; }\n",
    );
    for Method { name, result, arguments } in callbacks {
        assert_eq!(result, "HRESULT");
        let list: Vec<_> = arguments.iter().map(|(kind, _)| kind.trim().to_owned()).collect();
        writeln!(out, "    HRESULT {name}({}) override {{ return 0; }}", list.join(", ")).unwrap();
    }
    out.push_str("};\n\n} // namespace clrsim\n\n#endif\n");
    out
}

/// `CLR_BLESS=1` writes the header.
#[test]
fn the_header_has_the_interfaces_of_the_crate() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/include/clrsim_interfaces.hpp");
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(file, header()).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap().replace("\r\n", "\n");
    assert!(found == header(), "CLR_BLESS=1 writes it anew");
}
