//! The stack need of steps: a profiler makes them in a signal handler, on an alternate stack that may have
//! 12 KiB. Measured in a build for this test, with the optimisation that the workspace gives this crate.

use clr_coroutine::Stacks;
use clr_unwind::compat::Rules;
use clr_unwind::{
    Cache, CodeMap, ElfImage, Gpr, Guesses, MachoImage, Memory, PeImage, Position, Registers, Step,
    Unreadable, UnwindError, Unwinder,
};

/// Maximum of a step in bytes.
const LIMIT: usize = 4096;

const BASE: u64 = 0x7F00_0000_0000;
const STACK: u64 = 0x7FFE_0000_0000;

/// Returns the most stack that a step of `unwinder` from any of these places needs, in bytes, and the number of
/// steps that were made; `None` where that cannot be measured.
fn need(unwinder: Unwinder<'_, '_>, places: &[u64]) -> Option<(usize, usize)> {
    let (mut cache, mut steps) = (Cache::new(), 0);
    // The registers and results are the caller's, wherever it has them.
    let mut made = Box::new([const { Made::new() }; 3]);
    let walk = || {
        for &rip in places {
            for position in [Position::Interrupted, Position::ReturnAddress] {
                let [first, learns, knows] = &mut *made;
                step(&unwinder, None, rip, position, first);
                step(&unwinder, Some(&mut cache), rip, position, learns);
                step(&unwinder, Some(&mut cache), rip, position, knows);
                let is_same = first == learns && first == knows;
                steps += usize::from(is_same && matches!(first.step, Some(Ok(_))));
            }
        }
    };
    match Stacks::new(256 << 10).used_by(walk) {
        Ok(used) => Some((used, steps)),
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => None,
        Err(error) => panic!("{error}"),
    }
}

/// A step, and the caller's registers.
#[derive(PartialEq)]
struct Made {
    registers: Registers,
    step: Option<Result<Step, UnwindError>>,
}

impl Made {
    const fn new() -> Self {
        Self { registers: Registers { rip: 0, gpr: [0; 16], xmm: [0; 10] }, step: None }
    }
}

/// Makes a step with registers that point into the stack; rsp is the lowest.
#[inline(never)]
fn step(
    unwinder: &Unwinder<'_, '_>,
    cache: Option<&mut Cache>,
    rip: u64,
    position: Position,
    made: &mut Made,
) {
    let registers = &mut made.registers;
    registers.rip = rip;
    for register in Gpr::ALL {
        registers.set(register, STACK + 0x10_0000 * u64::from(register.number()));
    }
    registers.set(Gpr::Rsp, STACK);
    made.step = Some(match cache {
        Some(cache) => unwinder.step_cached(cache, registers, position, &Computed),
        None => unwinder.step(registers, position, &Computed),
    });
}

/// A stack whose words are computed from their addresses, and look like addresses further up.
struct Computed;

impl Memory for Computed {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        for (byte, address) in buffer.iter_mut().zip(address..) {
            let mixed = (address & !7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let word = STACK | (mixed >> 34 & 0x3FFF_FFF8);
            *byte = word.to_le_bytes()[(address & 7) as usize];
        }
        Ok(())
    }
}

/// The steps go through prologues, epilogues, chains, thunks and code without unwind data.
#[test]
fn steps_through_windows_code_need_less_than_4_kib() {
    for name in ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"] {
        let data = clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap();
        let image = PeImage::parse(data).unwrap();
        let mut map = CodeMap::new();
        map.insert_image(BASE, &image).unwrap();
        let code = image.sections().as_slice().iter().filter(|section| section.executable);
        let places: Vec<u64> = code
            .flat_map(|section| section.rva..section.rva + section.bytes.len() as u32)
            .map(|rva| BASE + u64::from(rva))
            .collect();
        for rules in [Rules::Precise, Rules::CoreClr, Rules::CoreClrUnix, Rules::Ntdll] {
            let Some((used, steps)) = need(Unwinder::new(&map).with_rules(rules), &places) else {
                return;
            };
            println!("{name}, {rules:?}: {used} bytes");
            assert!(used < LIMIT && steps > 1000, "{name}, {rules:?}: {used} bytes, {steps} steps");
        }
    }
}

/// Every function is compiled when the step needs it. Some have expressions, some are signal frames.
#[test]
fn steps_through_native_code_need_less_than_4_kib() {
    for name in ["libc.so.6", "ld-linux-x86-64.so.2", "libcrypto.so.3"] {
        let folders = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib"];
        let data = folders.iter().find_map(|folder| std::fs::read(format!("{folder}/{name}")).ok());
        let Some(Ok(image)) = data.as_deref().map(ElfImage::parse) else {
            println!("skipped: no {name}");
            continue;
        };
        let mut map = CodeMap::new();
        map.insert_elf(BASE, &image).unwrap();
        let functions = map.regions().next().unwrap().cfi().unwrap().functions();
        let places: Vec<u64> = functions
            .flat_map(|function| function.step_by(7))
            .map(|rva| BASE + u64::from(rva))
            .collect();
        let unwinder = Unwinder::new(&map).with_guesses(Guesses::FramePointers);
        let Some((used, steps)) = need(unwinder, &places) else { return };
        println!("{name}: {used} bytes");
        assert!(used < LIMIT && steps > 1000, "{name}: {used} bytes, {steps} steps");
    }
}

/// An interrupted instruction is followed to a call or a return, along both sides of each branch; a return
/// address has the frame that its function's entry describes. Bytes within instructions are followed, too.
#[test]
fn steps_by_compact_unwind_information_need_less_than_4_kib() {
    let image = MachoImage::parse(clr_fixtures::get("macho/sample.dylib").unwrap()).unwrap();
    let mut map = CodeMap::new();
    map.insert_macho(BASE, &image).unwrap();
    let table = image.compact_unwind();
    let entries = table.entries().map(|entry| entry.unwrap().range);
    let places: Vec<u64> = entries.flatten().map(|rva| BASE + u64::from(rva)).collect();
    for guesses in [Guesses::None, Guesses::FramePointers] {
        let unwinder = Unwinder::new(&map).with_guesses(guesses);
        let Some((used, steps)) = need(unwinder, &places) else { return };
        println!("{guesses:?}: {used} bytes, {steps} steps");
        assert!(used < LIMIT && steps > 1000, "{guesses:?}: {used} bytes, {steps} steps");
    }
}
