//! Stacks that deceive: every word that a rule could take for a return address is one, of a call made before.
//! The truth is what the code returns to when it is executed.

use super::*;
use clr_machine::{Protection, SplitMix64};
use clr_unwind::{RegionKind, RegisterSet, Section};
use clr_walker::mixed::{Completeness, Policy, WalkBuffer, Walker};
use clr_walker::profiling::{
    ProfilerInfo, StackBounds, StackRoot, TargetThread, ThreadContext, ThreadId,
};
use std::convert::Infallible;
use std::fmt::Write as _;

const BASE: u64 = 0x1_0000_0000;
/// RVAs of the function, of another one, of the callers, and of the unwind data.
const FUNCTION: u32 = 0x1000;
const OTHER: u32 = 0x1800;
const CALLERS: u32 = 0x2000;
const DATA: u32 = 0x3000;
const STACK: u64 = 0x7FFF_0000_0000;
const PAGES: u64 = 4;
/// The caller's stack pointer.
const TOP: u64 = STACK + 0x2000;

/// Returns the return address of the call of caller `n`.
const fn returns_to(n: u64) -> u64 {
    BASE + CALLERS as u64 + 16 * (n % 64) + 12
}

/// A function, and where its epilogue is.
struct Function {
    code: Vec<u8>,
    /// Instructions of call frame information: none for the epilogue.
    cfi: Vec<u8>,
    epilogue: usize,
    /// The form, for people.
    name: String,
}

/// Draws a function with any of the epilogues that compilers make.
fn draw(random: &mut SplitMix64) -> Function {
    let mut draw = |below: u64| random.draw() % below;
    let saved: Vec<u8> = [3, 12, 13, 14, 15].into_iter().filter(|_| draw(3) == 0).collect();
    let by_rbp = draw(2) == 0;
    let locals = 8 * draw(8) as u8;
    let mut code = Vec::new();
    let mut cfi = Vec::new();
    let mut cfa = 8_u8;
    let dwarf = |register: u8| if register == 3 { 3 } else { register };
    let mut pushed =
        |code: &mut Vec<u8>, cfi: &mut Vec<u8>, register: u8, bytes: &[u8], moves: bool| {
            code.extend(bytes);
            cfa += 8;
            cfi.push(0x40 | bytes.len() as u8);
            if moves {
                cfi.extend([0x0E, cfa]);
            }
            cfi.extend([0x80 | register, cfa / 8]);
        };
    if by_rbp {
        pushed(&mut code, &mut cfi, 6, &[0x55], true);
        code.extend([0x48, 0x89, 0xE5]);
        cfi.extend([0x43, 0x0D, 6]);
    }
    for register in &saved {
        let bytes: &[u8] = if *register < 8 { &[0x53] } else { &[0x41, 0x50 | (register & 7)] };
        pushed(&mut code, &mut cfi, dwarf(*register), bytes, !by_rbp);
    }
    if locals > 0 {
        code.extend([0x48, 0x83, 0xEC, locals]);
        if !by_rbp {
            cfi.extend([0x44, 0x0E, cfa + locals]);
        }
    }
    // lea rax, [rip+OTHER]
    let distance =
        i64::from(OTHER) - i64::from(FUNCTION) - (i64::try_from(code.len()).unwrap() + 7);
    code.extend([0x48, 0x8D, 0x05]);
    code.extend((distance as i32).to_le_bytes());
    let ending = draw(6);
    let mut noise = |code: &mut Vec<u8>| {
        // Moves into rax, unless a jump needs it; nop; moves into other volatile registers.
        let all: [&[u8]; 8] = [
            &[0x0F, 0xB6, 0xC0],
            &[0x31, 0xC0],
            &[0x89, 0xD8],
            &[0x48, 0x8B, 0x44, 0x24, 8],
            &[0x90],
            &[0x89, 0xCA],
            &[0x48, 0x8D, 0x4C, 0x24, 16],
            &[0x0F, 0x1F, 0x40, 0],
        ];
        let first = if ending == 4 { 4 } else { 0 };
        if draw(3) == 0 {
            code.extend(all[first + draw(8 - first as u64) as usize]);
        }
    };
    let epilogue = code.len();
    let is_leave = by_rbp && saved.is_empty();
    let name = format!("rbp {by_rbp}, saves {saved:?}, locals {locals}, ending {ending}");
    noise(&mut code);
    if is_leave {
        code.push(0xC9);
        noise(&mut code);
    } else {
        if by_rbp && ending % 2 == 0 {
            code.extend([0x48, 0x8D, 0x65, (8 * saved.len() as u8).wrapping_neg()]);
        } else if locals > 0 {
            code.extend([0x48, 0x83, 0xC4, locals]);
        }
        for register in saved.iter().rev() {
            noise(&mut code);
            if *register < 8 {
                code.push(0x5B);
            } else {
                code.extend([0x41, 0x58 | (register & 7)]);
            }
        }
        if by_rbp {
            noise(&mut code);
            code.push(0x5D);
        }
        noise(&mut code);
    }
    match ending {
        0 | 1 => code.push(0xC3),
        2 => code.extend([0xF3, 0xC3]),
        // jmp rel32
        3 => {
            let distance =
                i64::from(OTHER) - i64::from(FUNCTION) - (i64::try_from(code.len()).unwrap() + 5);
            code.push(0xE9);
            code.extend((distance as i32).to_le_bytes());
        }
        // jmp rax: without a release before, it would be a `switch`
        4 if is_leave || !saved.is_empty() || locals > 0 || by_rbp => code.extend([0xFF, 0xE0]),
        // test eax, eax; jne +0; ret
        _ => code.extend([0x85, 0xC0, 0x75, 0, 0xC3]),
    }
    Function { code, cfi, epilogue, name }
}

/// Returns `.eh_frame` of functions: start and size (RVA), and instructions.
fn eh_frame(functions: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut bytes =
        vec![16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1B, 0x0C, 7, 8];
    bytes.extend([0x90, 1]);
    bytes[0] = bytes.len() as u8 - 4;
    for (start, len, program) in functions {
        let content = 4 + 4 + 4 + 1 + program.len();
        bytes.extend((content as u32).to_le_bytes());
        bytes.extend((bytes.len() as u32).to_le_bytes());
        let here = DATA + bytes.len() as u32;
        bytes.extend(start.wrapping_sub(here).to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.push(0);
        bytes.extend(*program);
    }
    bytes
}

/// Returns the code of everything, from [`FUNCTION`] on.
fn text(function: &Function) -> Vec<u8> {
    let mut text = vec![0xCC; (DATA - FUNCTION) as usize];
    text[..function.code.len()].copy_from_slice(&function.code);
    // mov eax, 7; ret
    let other = (OTHER - FUNCTION) as usize;
    text[other..other + 6].copy_from_slice(&[0xB8, 7, 0, 0, 0, 0xC3]);
    for n in 0..64 {
        // call rax
        let at = (CALLERS - FUNCTION) as usize + 16 * n + 10;
        text[at..at + 2].copy_from_slice(&[0xFF, 0xD0]);
    }
    text
}

/// Returns a machine in which caller 0 has just called the function, on a stack full of return addresses.
fn machine(text: &[u8], random: &mut SplitMix64) -> (Machine, Registers) {
    let mut machine = Machine::new();
    machine
        .map(BASE + u64::from(FUNCTION), 2, Protection::READ_WRITE | Protection::EXECUTE)
        .unwrap();
    machine.write(BASE + u64::from(FUNCTION), text).unwrap();
    machine.map(STACK, PAGES, Protection::READ_WRITE).unwrap();
    for address in (STACK..STACK + PAGES * 0x1000).step_by(8) {
        machine.write(address, &returns_to(1 + random.draw() % 63).to_le_bytes()).unwrap();
    }
    machine.write(TOP - 8, &returns_to(0).to_le_bytes()).unwrap();
    let mut caller = Registers { rip: returns_to(0), ..Registers::default() };
    for register in Gpr::ALL {
        caller.set(register, 0x5EED_0000 + u64::from(register.number()));
    }
    // The caller has a frame pointer, too: the row of the body would take it.
    caller.set(Gpr::Rbp, TOP + 0x40 + 8 * (random.draw() % 8));
    caller.set(Gpr::Rsp, TOP);
    let mut start = caller;
    start.rip = BASE + u64::from(FUNCTION);
    start.set(Gpr::Rsp, TOP - 8);
    machine.cpu_mut().set_registers(&start);
    (machine, caller)
}

const PRESERVED: [Gpr; 6] = [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// Executes the function. Calls `at` at each instruction of it and of what it jumps to, with whether that is
/// in the epilogue.
fn execute(machine: &mut Machine, function: &Function, mut at: impl FnMut(&Machine, bool)) {
    let epilogue = BASE + u64::from(FUNCTION) + function.epilogue as u64;
    for _ in 0..100 {
        let rip = machine.cpu().rip();
        if rip == returns_to(0) {
            assert_eq!(machine.cpu().registers().rsp(), TOP);
            return;
        }
        at(machine, rip >= epilogue);
        machine.step().unwrap_or_else(|reason| panic!("{}: {reason:?}", function.name));
    }
    panic!("{} does not return", function.name);
}

#[test]
fn undescribed_epilogues_are_left_as_execution_leaves_them() {
    let mut random = SplitMix64(0xDECE_1BED);
    let (mut steps, mut corrected) = (0, 0);
    for _ in 0..cases(4000) {
        let function = draw(&mut random);
        let text = text(&function);
        let size = function.code.len() as u32;
        let callers = DATA - CALLERS;
        let frames = eh_frame(&[
            (FUNCTION, size, &function.cfi),
            (OTHER, 6, &[]),
            (CALLERS, callers, &[0x0E, 16]),
        ]);
        let code = Section { rva: FUNCTION, bytes: &text, executable: true };
        let data = Section { rva: DATA, bytes: &frames, executable: false };
        let sections = Sections::new(vec![code, data]).unwrap();
        let cfi = CfiSections { eh_frame: Some(data), ..CfiSections::default() };
        let table = clr_unwind::cfi::CfiTable::new(&cfi, &sections);
        let none = FunctionTable::default();
        let region = CodeRegion::from_sections(BASE, 0x1_0000, RegionKind::Image, sections, none);
        let mut map = CodeMap::new();
        map.insert(region.unwrap().with_cfi(table)).unwrap();
        let unwinder = Unwinder::new(&map);
        let (mut machine, caller) = machine(&text, &mut random);
        execute(&mut machine, &function, |machine, _| {
            let mut frame = machine.cpu().registers();
            let place =
                format!("{} at {:#x}: {:02x?}", function.name, frame.rip - BASE, function.code);
            let step = unwinder.step(&mut frame, Position::Interrupted, machine);
            let step = step.unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!((frame.rip, frame.rsp()), (caller.rip, caller.rsp()), "{place}: {step:?}");
            for register in PRESERVED {
                let is_known = step.known(RegisterSet::ALL).contains(register);
                let values = (is_known, frame.get(register));
                assert_eq!(values, (true, caller.get(register)), "{place}: {}", register.name());
            }
            steps += 1;
            corrected += u32::from(step.trust == Trust::EpilogueInstructions);
        });
    }
    println!("{steps} steps, {corrected} against the row");
    assert!(corrected * 10 > steps, "{steps} {corrected}");
}

/// A runtime that is asked nothing.
struct Silent;

impl ProfilerInfo for Silent {
    type Fatal = Infallible;
}

/// The interrupted thread.
struct Thread<'m>(&'m Machine);

impl Memory for Thread<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read(address, buffer)
    }
}

impl TargetThread for Thread<'_> {
    type Error = Infallible;

    fn id(&self) -> ThreadId {
        ThreadId(0)
    }

    fn stack(&self) -> StackBounds {
        StackBounds { limit: STACK, base: STACK + PAGES * 0x1000, root: StackRoot::Undefined }
    }

    fn suspend(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn resume(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, Infallible> {
        Ok(ThreadContext { registers: self.0.cpu().registers(), flags: ThreadContext::FULL })
    }
}

/// Another JIT's functions, which no map has, are called by methods. A guess may be wrong, but is never
/// presented as a whole stack.
#[test]
fn no_guess_about_unknown_code_is_a_whole_stack() {
    let mut random = SplitMix64(0xDECE_1BED + 1);
    let mut counts = BTreeMap::<String, [u32; 2]>::new();
    for _ in 0..cases(2000) {
        let function = draw(&mut random);
        let text = text(&function);
        // The methods have 8 bytes of stack each: UWOP_ALLOC_SMALL.
        let start = (CALLERS - FUNCTION) as usize;
        let info = DATA + 0x100;
        let methods = RuntimeFunction { begin: CALLERS, end: DATA, unwind_info: info };
        let runs = vec![
            clr_unwind::Run { rva: CALLERS, bytes: text[start..].to_vec() },
            clr_unwind::Run { rva: info, bytes: vec![1, 0, 1, 0, 0, 0x02, 0, 0] },
        ];
        let range = BASE + u64::from(CALLERS)..BASE + u64::from(DATA);
        let region = CodeRegion::generated(range, BASE, &[methods], runs).unwrap();
        let mut map = CodeMap::new();
        map.insert(region.with_convention(Convention::SystemV)).unwrap();
        let walker = Walker::new(&Silent, &map, Policy::Signal);
        let mut buffer = WalkBuffer::new(16);
        let (mut machine, caller) = machine(&text, &mut random);
        execute(&mut machine, &function, |machine, _| {
            let Ok(()) = walker.take(&Thread(machine), &mut buffer);
            let Ok(stack) = walker.stitch(&buffer);
            let Some(next) = stack.frames.get(1) else { return };
            let is_right = (next.ip, next.sp) == (caller.rip, caller.rsp());
            let mut found = String::new();
            let _ = write!(found, "{:?}", next.source);
            counts.entry(found).or_default()[usize::from(is_right)] += 1;
            let is_guess = next.source == clr_walker::mixed::Source::Unwound(Trust::StackTop);
            let place = format!("{} at {:#x}", function.name, machine.cpu().rip() - BASE);
            assert!(is_right || is_guess, "{place}: {:?}", next.source);
            assert!(!is_guess || stack.completeness() != Completeness::Whole, "{place}");
        });
    }
    println!("wrong and right callers: {counts:?}");
    let [wrong, right] = counts["Unwound(FollowedCode)"];
    assert!(wrong == 0 && right > 0);
}
