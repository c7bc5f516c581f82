//! A whole file of one call: what it has, and what it does not show.

use super::file::Output;
use super::frames::{Chain, Frame};
use super::hidden::Hidden;
use super::layout::{Layout, Shape, field};
use super::managed::ManagedCode;
use super::reads::{self, Noted};
use super::referenced_code::{Body, Entry, Method, ReferencedCode};
use super::text;
use super::walk::{Answer, Call, Report, Seed, Situation, State, Suspension, Thread, Walk};
use clr_unwind::{
    CodeMap, CodeRegion, Convention, Gpr, Registers, Run, RuntimeFunction, Segment, Segments,
};
use clr_walker::profiling::{FunctionId, HResult, StackBounds, StackRoot};
use data_encoding::BASE64;

const HEAP: u64 = 0x7F00_0000_0000;
const METHOD: u64 = HEAP + 0x1000;
const STACK: u64 = 0x7FFF_0000_0000;
/// A text of a user, as bytes in memory and as the value of a register.
const SECRET: &[u8; 8] = b"hunter2!";

/// A method that saves rbx and allocates 32 bytes: push rbx; sub rsp, 32.
fn map() -> CodeMap<'static> {
    let unwind_info = vec![1, 5, 2, 0, 5, 0x32, 1, 0x30];
    let mut code = vec![0x90; 0x40];
    code[0x20] = 0x48;
    let runs = vec![Run { rva: 0x1000, bytes: code }, Run { rva: 0x2000, bytes: unwind_info }];
    let function = RuntimeFunction { begin: 0x1000, end: 0x1040, unwind_info: 0x2000 };
    let range = METHOD..METHOD + 0x40;
    let region = CodeRegion::generated(range, HEAP, &[function], runs).unwrap();
    let mut map = CodeMap::new();
    map.insert(region.with_convention(Convention::SystemV)).unwrap();
    map
}

/// Two calls of the method, on a stack full of secrets, below a Frame that leads to them.
fn record() -> String {
    let mut stack: Vec<u8> = SECRET.iter().copied().cycle().take(0x200).collect();
    let mut put = |offset: u64, value: u64| {
        let at = offset as usize;
        stack[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    let layout = Layout::of([9, 0, 7], Convention::SystemV, None).unwrap();
    // An InlinedCallFrame: datum, stack pointer, return address, frame pointer.
    put(0x40 + field::FIRST, 0);
    put(0x40 + layout.call_site_sp, STACK + 0x80);
    put(0x40 + layout.call_site_sp + 8, METHOD + 0x20);
    put(0x40 + layout.call_site_sp + 16, 0);
    // The saved rbx at 0xA0 is a secret; the second call returns to native code.
    put(0xA8, METHOD + 0x20);
    put(0xD0, STACK + 0x100);
    put(0xD8, 0x1234_5678);
    let memory = Segments::new([Segment::new(STACK, &stack)]).unwrap();
    let inlined = layout.frames().find(|kind| kind.shape == Shape::InlinedCall);
    let chain = Chain {
        is_cooperative: false,
        frames: vec![Frame { at: STACK + 0x40, kind: inlined.unwrap() }],
    };
    let noted = Noted::new(&memory);
    let passed =
        reads::repeat(ManagedCode::new(&map(), &[]), &layout, (None, None), &chain, &noted);
    assert_eq!(passed.len(), 2);
    let registers = |rip, rsp, rbx| {
        let mut registers = Registers { rip, ..Registers::default() };
        registers.set(Gpr::Rsp, rsp);
        registers.set(Gpr::Rbx, rbx);
        registers
    };
    let secret = u64::from_le_bytes(*SECRET);
    let report = |function: Option<u64>, registers: Registers| Report {
        function: function.map(FunctionId),
        ip: registers.rip,
        has_frame_info: true,
        context_size: 1232,
        context: Some((registers, 0)),
    };
    let seed = Seed { made: "a test", registers: registers(5, 6, secret), flags: text::SEED_FLAGS };
    let walk = Walk {
        situation: Situation {
            name: "callback:Test",
            is_own: true,
            is_managed_walker: true,
            suspended: Suspension::Nothing,
        },
        call: Call {
            variant: "seeded",
            thread: Thread::Null,
            flags: 1,
            seed: Some(seed),
            stop_at: None,
        },
        made_at: 0,
        state: State::Usual,
        target: 1,
        stack: StackBounds { limit: STACK, base: STACK + 0x200, root: StackRoot::Undefined },
        chain,
        leaf: None,
        passed,
        words: noted.into_words(),
        answer: Answer {
            result: HResult::OK,
            reports: vec![
                report(Some(7), registers(METHOD + 0x20, STACK + 0x80, 0)),
                report(Some(7), registers(METHOD + 0x20, STACK + 0xB0, secret)),
                report(None, registers(0x1234_5678, STACK + 0xE0, STACK + 0x100)),
            ],
            count: 3,
        },
    };
    let mut met = ReferencedCode::default();
    let method = Method { id: FunctionId(7), name: "A\"B".to_owned(), is_dynamic: false };
    met.methods.insert(method.id, method);
    let unwind_info = vec![1, 5, 2, 0, 5, 0x32, 1, 0x30];
    let entry = Entry { begin: 0x1000, end: 0x1040, unwind_info, funclet: None };
    let body = Body {
        range: METHOD..METHOD + 0x40,
        base: HEAP,
        entries: vec![entry],
        function: Some(FunctionId(7)),
        image: None,
    };
    met.bodies.insert(METHOD, body);
    let path = std::env::temp_dir().join(format!("clr-recorder-test-{}", std::process::id()));
    let header = text::header(layout.generation, ".NET 9.0.7", false, "");
    let mut output = Output::create(&path, &header, 1 << 20, "test".to_owned()).unwrap();
    let hidden = Hidden::of(&walk, &output.known(&walk).facts);
    let is_code = |address| map().find(address).is_some();
    assert!(output.append(&walk, &hidden, &met, &is_code).unwrap());
    assert!(output.append(&walk, &hidden, &met, &is_code).unwrap());
    let beside = path.with_extension("full");
    let mut full = Output::create(&beside, &header, 300, String::new()).unwrap();
    assert!(!full.append(&walk, &hidden, &met, &is_code).unwrap() && full.is_full());
    // Another method with the id of one that has ended would have its name.
    output.free(FunctionId(8), &[]);
    assert!(output.append(&walk, &hidden, &met, &is_code).unwrap());
    output.free(FunctionId(7), &[]);
    assert!(!output.append(&walk, &hidden, &met, &is_code).unwrap() && !output.is_full());
    let text = std::fs::read_to_string(&path).unwrap();
    [path, beside].iter().try_for_each(std::fs::remove_file).unwrap();
    text
}

#[test]
fn a_secret_between_and_in_saved_words_is_not_shown() {
    let text = record();
    let secret = u64::from_le_bytes(*SECRET);
    assert!(!text.contains(&format!("{secret:#x}")), "in a register");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["t"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["recording", "function", "code", "walk", "walk", "walk"]);
    assert_eq!(lines[1]["name"], "A\"B");
    let walk = &lines[3];
    let decoded =
        |part: &serde_json::Value| BASE64.decode(part.as_str().unwrap().as_bytes()).unwrap();
    let limit = if cfg!(target_env = "musl") { 0 } else { STACK };
    assert_eq!(walk["stack"]["limit"], format!("{limit:#x}"));
    let parts = walk["stack"]["parts"].as_array().unwrap();
    let places: Vec<_> = parts.iter().map(|part| part[0].as_str().unwrap()).collect();
    // The Frame's four fields; then of each method the saved register and the return address.
    assert_eq!(places, ["0x7fff00000050", "0x7fff000000a0", "0x7fff000000d0"]);
    for part in parts {
        let bytes = decoded(&part[1]);
        assert!(!bytes.windows(4).any(|bytes| bytes == &SECRET[..4]), "{part}");
    }
    // The replay carries the same number from the stack to the register.
    let saved = decoded(&parts[1][1]);
    let saved = u64::from_le_bytes(*saved.first_chunk().unwrap());
    assert_eq!(walk["result"]["callbacks"][1]["registers"][3], format!("{saved:#x}"));
    assert_eq!(walk["call"]["seed"]["registers"][3], format!("{saved:#x}"));
    assert_eq!(walk["result"]["callbacks"][0]["registers"][16], format!("{:#x}", METHOD + 0x20));
}
