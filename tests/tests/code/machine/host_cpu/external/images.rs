//! Functions of compiled images, stepped on both the machine and the host.

use super::*;
use crate::machine::host_cpu::external::host as processes;
use crate::machine::host_cpu::external::host::{EXECUTE, Host, READ, WRITE};
use crate::machine::host_cpu::external::sequences::step;
use clr_machine::Protection;
use clr_unwind::{Memory as _, PeImage};
use core::ops::Range;

const STACK: Range<u64> = 0x0010_0000..0x0020_0000;
/// Return address of tests, where nothing is mapped.
const BACK: u64 = 0x7FFE_0000_1230;
/// Maximum number of instructions of a test.
const STEPS: u32 = 5_000;

fn field(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
}

/// Loads an image at its preferred base, and a stack.
fn load(machine: &mut Machine, host: &mut Host, data: &[u8], image: &PeImage<'_>) {
    let base = image.preferred_base();
    let pages = |size: u32| u64::from(size).div_ceil(PAGE_SIZE);
    machine.map(base, pages(image.size()), Protection::READ).unwrap();
    host.map(base, pages(image.size()), READ).unwrap();
    for section in image.sections().as_slice() {
        machine.write(base + u64::from(section.rva), section.bytes).unwrap();
        host.write(base + u64::from(section.rva), section.bytes);
    }
    let headers = field(data, 0x3C) as usize;
    let count = field(data, headers + 6) as usize & 0xFFFF;
    let table = headers + 24 + (field(data, headers + 20) as usize & 0xFFFF);
    for header in (0..count).map(|n| table + 40 * n) {
        let characteristics = field(data, header + 36);
        let (mut protection, mut of_host) = (Protection::NONE, 0);
        for (bit, own, other) in [
            (29, Protection::EXECUTE, EXECUTE),
            (30, Protection::READ, READ),
            (31, Protection::WRITE, WRITE),
        ] {
            if characteristics >> bit & 1 != 0 {
                protection = protection | own;
                of_host |= other;
            }
        }
        let start = base + u64::from(field(data, header + 12));
        let pages = pages(field(data, header + 8));
        machine.protect(start, pages, protection).unwrap();
        host.protect(start, pages, of_host).unwrap();
    }
    let pages = (STACK.end - STACK.start) / PAGE_SIZE;
    machine.map(STACK.start, pages, Protection::READ_WRITE).unwrap();
    host.map(STACK.start, pages, READ | WRITE).unwrap();
}

/// Returns the number of a test's variants: n if the name ends in `__nN`, else 1.
fn variants(name: &str) -> u64 {
    name.rsplit_once("__n").and_then(|(_, n)| n.parse().ok()).unwrap_or(1)
}

/// Calls a test, and returns the number of its instructions.
fn call(machine: &mut Machine, host: &mut Host, address: u64, k: u64) -> Result<u32, String> {
    let mut random = Random::new(address ^ k);
    let mut state = State {
        rip: address,
        gpr: core::array::from_fn(|_| random.next()),
        flags: 0,
        xmm: core::array::from_fn(|_| random.wide()),
        mxcsr: MXCSR,
    };
    let rsp = STACK.end - 0x1008;
    state.gpr[4] = rsp;
    state.gpr[1] = k;
    state.gpr[2] &= 0xFFFF;
    state.gpr[8] &= 0xFF;
    machine.write(rsp, &BACK.to_le_bytes()).unwrap();
    host.write(rsp, &BACK.to_le_bytes());
    state.load_into(machine);
    host.set(&state);
    for n in 0..STEPS {
        if machine.cpu().rip() == BACK {
            return Ok(n);
        }
        let mut bytes = [0; 15];
        machine.read(machine.cpu().rip(), &mut bytes).unwrap();
        if !step(machine, host, &|_| bytes.to_vec())? {
            return Err("a fault".to_owned());
        }
    }
    Ok(STEPS)
}

#[test]
#[ignore = "external: steps a process by ptrace"]
fn images_step_as_on_the_host() {
    for (name, least) in
        [("asm_raw", 20_000), ("gcc_O2", 7_000), ("clang_O2", 7_000), ("clang_O2_lld", 7_000)]
    {
        let mut host = processes();
        let mut machine = Machine::new();
        let data = clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap();
        let image = PeImage::parse(data).unwrap();
        load(&mut machine, &mut host, data, &image);
        machine.set_access_log(true);
        let mut instructions = 0;
        for (rva, test) in image.symbols().as_slice() {
            for k in 0..if test.starts_with("t_") { variants(test) } else { 0 } {
                let address = image.preferred_base() + u64::from(*rva);
                match call(&mut machine, &mut host, address, k) {
                    Ok(steps) => instructions += steps,
                    Err(error) => panic!("{name}, {test}({k}): {error}"),
                }
            }
        }
        println!("{name}: {instructions} instructions");
        assert!(instructions > least, "{name}: {instructions}");
    }
}
