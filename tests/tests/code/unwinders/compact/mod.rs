//! Compact unwind information of Mach-O images, against code that compilers made.
//!
//! The functions are those of `fixtures/macho`, in which every layout occurs.

mod execution;
mod framehop;
mod truth;

use super::*;
use clr_unwind::compact::Layout;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use truth::{Doubt, Frame, RETURN_SLOT};

/// Returns the bytes of the library.
fn sample() -> &'static [u8] {
    clr_fixtures::get("macho/sample.dylib").unwrap()
}

const BASE: u64 = 0x1_0000_0000;
const RETURN_ADDRESS: u64 = 0x1111_2222_3333;

const GPRS: [Gpr; 6] = [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// Returns the caller's value of a preserved register.
const fn caller(index: usize) -> u64 {
    0xC0DE_0000_0010 + index as u64 * 0x1111_0000
}

/// A copy of the stack from rsp on, as a frame says it is.
struct Stack<'f>(&'f Frame);

impl Memory for Stack<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        if buffer.len() != 8 || address < self.0.rsp || address > RETURN_SLOT {
            return Err(unreadable);
        }
        let copy = self.0.copies.get(&address).map(|index| caller(*index));
        let garbage = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let word = if address == RETURN_SLOT { Some(RETURN_ADDRESS) } else { copy };
        buffer.copy_from_slice(&word.unwrap_or(garbage).to_le_bytes());
        Ok(())
    }
}

/// Returns the names and RVAs of the sample's functions, with their bytes.
fn functions<'a>(image: &MachoImage<'a>) -> Vec<(&'a str, u32, &'a [u8])> {
    let symbols = image.symbols();
    let table = image.compact_unwind();
    let end = table.entries().last().unwrap().unwrap().range.end;
    let starts: Vec<_> = symbols.as_slice().iter().filter(|(rva, _)| *rva < end).collect();
    let ends = starts.iter().skip(1).map(|(rva, _)| *rva).chain([end]);
    let bytes = |rva, end: u32| &image.sections().bytes_from(rva).unwrap()[..(end - rva) as usize];
    starts.iter().zip(ends).map(|((rva, name), end)| (*name, *rva, bytes(*rva, end))).collect()
}

/// Every instruction that can be reached without passing a `switch` is unwound to the caller that
/// following the code forwards from the entry gives.
#[test]
fn frames_of_compiled_functions_are_those_of_their_code() {
    let image = MachoImage::parse(sample()).unwrap();
    let mut map = CodeMap::new();
    map.insert_macho(BASE, &image).unwrap();
    let unwinder = Unwinder::new(&map);
    let mut counts: BTreeMap<Trust, u32> = BTreeMap::new();
    let functions = functions(&image);
    assert_eq!(functions.len(), 26);
    for (name, rva, code) in functions {
        let start = BASE + u64::from(rva);
        let frames = match truth::frames(code, start) {
            Ok(frames) => frames,
            // These set rsp from a register; execution knows their frames.
            Err(Doubt::Stack) if name.starts_with("dynamic") => continue,
            Err(doubt) => panic!("{name}: {doubt:?}"),
        };
        for (rip, frame) in &frames {
            let mut before = Registers { rip: *rip, ..Registers::default() };
            for (index, register) in GPRS.into_iter().enumerate() {
                let value = if frame.intact[index] { caller(index) } else { 0xBAD0 };
                before.set(register, value);
            }
            if let Some(rbp) = frame.rbp {
                before.set(Gpr::Rbp, rbp);
            }
            before.set(Gpr::Rsp, frame.rsp);
            let at = usize::try_from(rip - start).unwrap();
            let instruction =
                Decoder::with_ip(64, &code[at..], *rip, DecoderOptions::NONE).decode();
            let calls =
                matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            let after = calls.then(|| (instruction.next_ip(), Position::ReturnAddress));
            for (rip, position) in [(*rip, Position::Interrupted)].into_iter().chain(after) {
                let mut registers = Registers { rip, ..before };
                let place = format!("{name}+{at:#x} {position:?} {frame:x?}");
                let step = unwinder
                    .step(&mut registers, position, &Stack(frame))
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(registers.rip, RETURN_ADDRESS, "{place} {step:?}");
                assert_eq!(registers.rsp(), RETURN_SLOT + 8, "{place} {step:?}");
                for (index, register) in GPRS.into_iter().enumerate() {
                    assert_eq!(registers.get(register), caller(index), "{place} {step:?}");
                }
                *counts.entry(step.trust).or_default() += 1;
            }
        }
    }
    println!("{counts:?}");
    for trust in [Trust::Compact, Trust::FollowedCode, Trust::CompactAssumed] {
        assert!(counts.contains_key(&trust), "{trust:?}: {counts:?}");
    }
    assert!(counts.values().sum::<u32>() > 600, "{counts:?}");
}

#[test]
fn the_sample_has_every_layout() {
    let image = MachoImage::parse(sample()).unwrap();
    let mut found = [0; 5];
    for entry in image.compact_unwind().entries() {
        found[match entry.unwrap().encoding.layout().unwrap() {
            Layout::Nothing => 0,
            Layout::FramePointer(_) => 1,
            Layout::Frameless { .. } => 2,
            Layout::FramelessIndirect { .. } => 3,
            Layout::Dwarf { .. } => 4,
        }] += 1;
    }
    assert!(found[1..].iter().all(|count| *count > 0), "{found:?}");
}
