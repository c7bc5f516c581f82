//! framehop as a walker of simulated threads.

use clr_sim::harness::{Found, StackWalker, StoppedThread};
use clr_tests::peers::framehop::{Sections, reader, registers};
use clr_unwind::CodeMap;
use clr_walker::mixed::Policy;
use clr_walker::profiling::ProfilerInfo as _;
use framehop::x86_64::{CacheX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder as _};

/// Maximum number of frames.
const LIMIT: usize = 1 << 10;

/// framehop, with the images and code heaps that have UNWIND_INFO: on Windows all. Elsewhere it has frame pointers.
pub(crate) struct Framehop;

/// Creates an unwinder of the code in a map.
fn unwinder(map: &CodeMap<'_>) -> UnwinderX86_64<Vec<u8>> {
    let mut unwinder = UnwinderX86_64::new();
    for region in map.regions() {
        if let Some(sections) = Sections::of(region) {
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
        let mut read = reader(&memory);
        let mut registers = registers(&target.registers);
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
