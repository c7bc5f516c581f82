//! framehop on the functions of the sample, for `UNWINDERS.md`: it is wrong at the listed places, and at
//! no others.

use super::{BASE, RETURN_ADDRESS, Stack, caller, functions, sample, truth};
use clr_tests::peers::framehop::reader;
use clr_unwind::MachoImage;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use object::read::macho::MachOFile64;
use object::{LittleEndian, Object as _, ObjectSection as _};
use std::collections::BTreeMap;
use std::ops::Range;
use truth::{Frame, RETURN_SLOT};

/// A mistake that `UNWINDERS.md` lists, under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mistake {
    /// Before `sub rsp` that does not directly follow a push, nothing is taken to be pushed.
    AlignedFrame,
    /// The frame that the entry describes is undone where it is not made yet, or not any more.
    FrameElsewhere,
    /// Pops that other instructions separate from the return are not recognized as an epilogue.
    SeparatedReturn,
}

impl Mistake {
    /// Returns the mistake that is made before the last of these instructions.
    fn of(frame: &Frame, instructions: &[Instruction]) -> Option<Self> {
        let [.., before, next] = instructions else { return None };
        let aligns = before.mnemonic() == Mnemonic::And && before.op0_register() == Register::RSP;
        if aligns && next.mnemonic() == Mnemonic::Sub && next.op0_register() == Register::RSP {
            Some(Self::AlignedFrame)
        } else if frame.rsp == RETURN_SLOT {
            Some(Self::FrameElsewhere)
        } else {
            let pops = before.mnemonic() == Mnemonic::Pop && next.mnemonic() == Mnemonic::Pop;
            pops.then_some(Self::SeparatedReturn)
        }
    }
}

/// Returns framehop with the sample at [`BASE`].
fn framehop(image: &MachoImage<'static>) -> UnwinderX86_64<&'static [u8]> {
    let file = MachOFile64::<LittleEndian>::parse(sample()).unwrap();
    let range = |name: &str| -> Option<Range<u64>> {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let data = |name: &str| file.section_by_name(name)?.data().ok();
    let text = image.sections().as_slice().iter().find(|segment| segment.executable).unwrap();
    let start = image.preferred_base() + u64::from(text.rva);
    let sections = ExplicitModuleSectionInfo {
        base_svma: image.preferred_base(),
        text_svma: range("__text"),
        text: data("__text"),
        stubs_svma: range("__stubs"),
        stub_helper_svma: range("__stub_helper"),
        eh_frame_svma: range("__eh_frame"),
        eh_frame: data("__eh_frame"),
        unwind_info: data("__unwind_info"),
        text_segment_svma: Some(start..start + text.bytes.len() as u64),
        text_segment: Some(text.bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    let mut unwinder = UnwinderX86_64::new();
    let range = BASE..BASE + u64::from(image.size());
    unwinder.add_module(Module::new("sample".into(), range, BASE, sections));
    unwinder
}

/// Returns true if framehop's step from a frame gives the caller's rip, rsp and rbp: it restores no
/// other register there.
fn is_right(unwinder: &UnwinderX86_64<&[u8]>, address: FrameAddress, frame: &Frame) -> bool {
    let own = if frame.intact[1] { caller(1) } else { 0xBAD0 };
    let rbp = frame.rbp.unwrap_or(own);
    let mut registers = UnwindRegsX86_64::new(address.address(), frame.rsp, rbp);
    let stack = Stack(frame);
    let mut read = reader(&stack);
    let cache = &mut CacheX86_64::new();
    let found = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
    found == Ok(Some(RETURN_ADDRESS))
        && (registers.sp(), registers.bp()) == (RETURN_SLOT + 8, caller(1))
}

#[test]
fn framehop_makes_the_listed_mistakes_in_compiled_functions() {
    let image = MachoImage::parse(sample()).unwrap();
    let unwinder = framehop(&image);
    let mut made: BTreeMap<Mistake, Vec<String>> = BTreeMap::new();
    let (mut interrupted, mut calls) = (0, 0);
    for (name, rva, code) in functions(&image) {
        let start = BASE + u64::from(rva);
        let Ok(frames) = truth::frames(code, start) else { continue };
        let all: Vec<_> = Decoder::with_ip(64, code, start, DecoderOptions::NONE).iter().collect();
        for (rip, frame) in &frames {
            let at = all.iter().position(|instruction| instruction.ip() == *rip).unwrap();
            interrupted += 1;
            if !is_right(&unwinder, FrameAddress::from_instruction_pointer(*rip), frame) {
                let place = format!("{name}+{:#x}", rip - start);
                let mistake = Mistake::of(frame, &all[..=at]);
                let mistake = mistake.unwrap_or_else(|| panic!("{place}: {}", all[at]));
                made.entry(mistake).or_default().push(place);
            }
            if matches!(all[at].flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                calls += 1;
                let address = FrameAddress::from_return_address(all[at].next_ip()).unwrap();
                assert!(is_right(&unwinder, address, frame), "{name}: {}", all[at]);
            }
        }
    }
    assert_eq!((interrupted, calls), (625, 44));
    let places = |mistake| made.get(&mistake).map(Vec::as_slice).unwrap_or_default().join(" ");
    assert_eq!(places(Mistake::AlignedFrame), "aligned_with+0x8 aligned_without+0x8");
    assert_eq!(
        places(Mistake::FrameElsewhere),
        "pure_with+0x3 pure_with+0xbe pure_with+0xc2 pure_without+0x3 pure_without+0xbd \
         pure_without+0xc1"
    );
    assert_eq!(
        places(Mistake::SeparatedReturn),
        "pure_without+0xb7 pure_without+0xb9 pure_without+0xbb"
    );
}
