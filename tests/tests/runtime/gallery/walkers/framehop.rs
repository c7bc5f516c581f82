//! framehop as a walker of simulated threads.

use clr_sim::harness::{Found, StackWalker, StoppedThread};
use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::memory::Memory as _;
use clr_walker::mixed::Policy;
use clr_walker::profiling::ProfilerInfo as _;
use clr_walker::registers::Gpr;
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, ModuleSectionInfo, Unwinder as _};
use std::ops::Range;

/// Maximum number of frames.
const LIMIT: usize = 1 << 10;

/// framehop, with the images and code heaps that have UNWIND_INFO: on Windows all. Elsewhere it has frame pointers.
pub(crate) struct Framehop;

/// The sections of a region by which framehop reads it: code, unwind data, and the function table.
struct Sections<'m> {
    base: u64,
    text: (u32, &'m [u8]),
    xdata: (u32, &'m [u8]),
    pdata: Vec<u8>,
}

impl<'m> Sections<'m> {
    /// Returns the sections of a region. `None` if it has no function table.
    fn new(region: &'m CodeRegion<'_>) -> Option<Self> {
        let functions: Vec<_> = region.functions().iter().collect();
        let from = |rva: Option<u32>| Some((rva?, region.bytes_from(rva?)?));
        let words = functions.iter().flat_map(|it| [it.begin, it.end, it.unwind_info]);
        Some(Self {
            base: region.base(),
            text: from(functions.iter().map(|it| it.begin).min())?,
            xdata: from(functions.iter().map(|it| it.unwind_info).min())?,
            pdata: words.flat_map(u32::to_le_bytes).collect(),
        })
    }
}

impl ModuleSectionInfo<Vec<u8>> for Sections<'_> {
    fn base_svma(&self) -> u64 {
        self.base
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let (rva, bytes) = match name {
            b".text" => self.text,
            b".xdata" => self.xdata,
            _ => return None,
        };
        let start = self.base + u64::from(rva);
        Some(start..start + bytes.len() as u64)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        match name {
            b".text" => Some(self.text.1.to_vec()),
            b".xdata" => Some(self.xdata.1.to_vec()),
            b".pdata" => Some(self.pdata.clone()),
            _ => None,
        }
    }
}

/// Returns framehop's name of a register.
const fn register(gpr: Gpr) -> Reg {
    match gpr {
        Gpr::Rax => Reg::RAX,
        Gpr::Rcx => Reg::RCX,
        Gpr::Rdx => Reg::RDX,
        Gpr::Rbx => Reg::RBX,
        Gpr::Rsp => Reg::RSP,
        Gpr::Rbp => Reg::RBP,
        Gpr::Rsi => Reg::RSI,
        Gpr::Rdi => Reg::RDI,
        Gpr::R8 => Reg::R8,
        Gpr::R9 => Reg::R9,
        Gpr::R10 => Reg::R10,
        Gpr::R11 => Reg::R11,
        Gpr::R12 => Reg::R12,
        Gpr::R13 => Reg::R13,
        Gpr::R14 => Reg::R14,
        Gpr::R15 => Reg::R15,
    }
}

/// Creates an unwinder of the code in a map.
fn unwinder(map: &CodeMap<'_>) -> UnwinderX86_64<Vec<u8>> {
    let mut unwinder = UnwinderX86_64::new();
    for region in map.regions() {
        if let Some(sections) = Sections::new(region) {
            let range = region.start()..region.last() + 1;
            unwinder.add_module(Module::new(String::new(), range, region.base(), sections));
        }
    }
    unwinder
}

impl StackWalker for Framehop {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let map = target.code_map(Policy::Unseeded).map_err(|error| error.to_string())?;
        let unwinder = unwinder(&map);
        let (info, memory) = (target.info(), target.memory());
        let mut read = |address| memory.read_u64(address).map_err(|_| ());
        let [rsp, rbp] = [Gpr::Rsp, Gpr::Rbp].map(|gpr| target.registers.get(gpr));
        let mut registers = UnwindRegsX86_64::new(target.registers.rip, rsp, rbp);
        for gpr in Gpr::ALL {
            registers.set(register(gpr), target.registers.get(gpr));
        }
        let mut address = FrameAddress::from_instruction_pointer(target.registers.rip);
        let mut cache = CacheX86_64::new();
        for _ in 0..LIMIT {
            let ip = address.address();
            if let Ok(function) = info.get_function_from_ip(ip) {
                found.push(Found { function, ip });
            }
            if target.is_root(ip) {
                return Ok(());
            }
            match unwinder.unwind_frame(address, &mut registers, &mut cache, &mut read) {
                Ok(Some(caller)) => {
                    address = FrameAddress::from_return_address(caller).ok_or("no address")?;
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("too many frames".to_owned())
    }
}
