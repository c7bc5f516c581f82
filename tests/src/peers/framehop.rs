//! framehop.

use clr_unwind::{CodeRegion, ElfImage, Gpr, Memory, Registers, Section};
use framehop::x86_64::{Reg, UnwindRegsX86_64};
use framehop::{ExplicitModuleSectionInfo, ModuleSectionInfo};
use std::ops::{Deref, Range};

/// framehop's names of the registers, in the order of their numbers.
const REGISTERS: [Reg; 16] = [
    Reg::RAX,
    Reg::RCX,
    Reg::RDX,
    Reg::RBX,
    Reg::RSP,
    Reg::RBP,
    Reg::RSI,
    Reg::RDI,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

/// Returns registers in framehop's form.
#[must_use]
pub fn registers(ours: &Registers) -> UnwindRegsX86_64 {
    let mut theirs = UnwindRegsX86_64::new(ours.rip, 0, 0);
    for (register, value) in REGISTERS.into_iter().zip(ours.gpr) {
        theirs.set(register, value);
    }
    theirs
}

/// Returns the registers after a step that has found this rip. framehop restores no vector registers.
#[must_use]
pub fn restored(before: &Registers, rip: u64, theirs: &UnwindRegsX86_64) -> Registers {
    let mut ours = Registers { rip, ..*before };
    for (gpr, register) in Gpr::ALL.into_iter().zip(REGISTERS) {
        ours.set(gpr, theirs.get(register));
    }
    ours
}

/// Returns the function by which framehop reads memory.
pub fn reader(memory: &(impl Memory + ?Sized)) -> impl FnMut(u64) -> Result<u64, ()> + '_ {
    |address| memory.read_u64(address).map_err(|_| ())
}

/// The sections of code with UNWIND_INFO, which framehop's own `ExplicitModuleSectionInfo` does not know.
#[derive(Clone, Debug)]
pub struct Sections<D> {
    /// The base of the code (VA).
    pub base: u64,
    /// RVA and bytes of the code.
    pub text: (u32, D),
    /// RVA and bytes of the unwind data.
    pub xdata: (u32, D),
    /// The function table, if there is one.
    pub pdata: Option<D>,
}

impl Sections<Vec<u8>> {
    /// Returns the sections of a region. `None` if it has no function table.
    #[must_use]
    pub fn of(region: &CodeRegion<'_>) -> Option<Self> {
        let functions: Vec<_> = region.functions().iter().collect();
        let from = |rva: Option<u32>| Some((rva?, region.bytes_from(rva?)?.to_vec()));
        let words = functions.iter().flat_map(|it| [it.begin, it.end, it.unwind_info]);
        Some(Self {
            base: region.base(),
            text: from(functions.iter().map(|it| it.begin).min())?,
            xdata: from(functions.iter().map(|it| it.unwind_info).min())?,
            pdata: Some(words.flat_map(u32::to_le_bytes).collect()),
        })
    }
}

impl<D: Clone + Deref<Target = [u8]>> Sections<D> {
    fn find(&self, name: &[u8]) -> Option<&(u32, D)> {
        match name {
            b".text" => Some(&self.text),
            b".xdata" => Some(&self.xdata),
            _ => None,
        }
    }
}

impl<D: Clone + Deref<Target = [u8]>> ModuleSectionInfo<D> for Sections<D> {
    fn base_svma(&self) -> u64 {
        self.base
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let (rva, bytes) = self.find(name)?;
        let start = self.base + u64::from(*rva);
        Some(start..start + bytes.len() as u64)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<D> {
        match name {
            b".pdata" => self.pdata.clone(),
            _ => self.find(name).map(|(_, bytes)| bytes.clone()),
        }
    }
}

/// Returns the sections of an ELF image.
#[must_use]
pub fn elf<'a>(image: &ElfImage<'a>) -> ExplicitModuleSectionInfo<&'a [u8]> {
    let cfi = image.cfi();
    let base = image.preferred_base();
    let range = |section: &Section<'_>| {
        let start = base + u64::from(section.rva);
        start..start + section.bytes.len() as u64
    };
    ExplicitModuleSectionInfo {
        base_svma: base,
        text_svma: cfi.text.map(|rva| base + u64::from(rva)..base + u64::from(image.size())),
        eh_frame_svma: cfi.eh_frame.as_ref().map(range),
        eh_frame: cfi.eh_frame.map(|section| section.bytes),
        eh_frame_hdr_svma: cfi.eh_frame_hdr.as_ref().map(range),
        eh_frame_hdr: cfi.eh_frame_hdr.map(|section| section.bytes),
        ..ExplicitModuleSectionInfo::default()
    }
}
