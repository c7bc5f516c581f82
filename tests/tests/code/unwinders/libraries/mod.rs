//! Tests of every row of every FDE of the host's libraries, whose code is independent of this
//! project. The tables have the rows that gimli parses, and each step agrees with an
//! evaluation of gimli's row and with framehop.
//!
//! Libraries that do not exist, or are for another processor, are reported and skipped.

mod framehop;
mod gimli_rows;

use crate::unwinders::*;
use clr_unwind::cfi::{CfaRule, CfiTable, Column, RegisterRule, Row};
use clr_unwind::{ElfError, ElfImage};
use std::path::Path;

const NAMES: [&str; 8] = [
    "libc.so.6",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "ld-linux-x86-64.so.2",
    "libcrypto.so.3",
    "libcrypto.so.1.1",
    "libssl.so.3",
];

const DIRECTORIES: [&str; 5] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"];

/// Base address of the libraries (VA).
pub(crate) const BASE: u64 = 0x7F00_0000_0000;

/// Calls `check` with each library that exists.
fn each(mut check: impl FnMut(&str, &ElfImage<'_>)) {
    let mut checked = 0;
    for name in NAMES {
        let paths = DIRECTORIES.map(|directory| Path::new(directory).join(name));
        let Some(data) = paths.iter().find_map(|path| std::fs::read(path).ok()) else {
            eprintln!("skipped: {name} is not on this host");
            continue;
        };
        match ElfImage::parse(&data) {
            Ok(image) => check(name, &image),
            Err(ElfError::Header | ElfError::Machine { .. }) => {
                eprintln!("skipped: {name} is for another processor");
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        }
        checked += 1;
    }
    let expected = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    assert!(checked > 0 || !expected, "this host must at least have its C library");
}

/// A maker of tables.
type Kind<'a> = fn(&CfiSections<'a>, &Sections<'_>) -> CfiTable<'a>;

fn map<'a>(image: &ElfImage<'a>, kind: Kind<'a>) -> CodeMap<'a> {
    let table = kind(&image.cfi(), image.sections());
    let mut map = CodeMap::new();
    map.insert(CodeRegion::elf(BASE, image).unwrap().with_cfi(table)).unwrap();
    map
}

/// Makes a table that does not go by the linker's index.
fn with_own_index<'a>(cfi: &CfiSections<'a>, sections: &Sections<'_>) -> CfiTable<'a> {
    CfiTable::lazy(&CfiSections { eh_frame_hdr: None, ..*cfi }, sections)
}

/// A stack whose words are computed from their addresses, and look like addresses further up.
pub(crate) struct Computed;

impl Computed {
    pub(crate) fn word(address: u64) -> u64 {
        let mixed = address.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        0x7FFF_4000_0000 | (mixed >> 34 & 0x3FFF_FFF8)
    }
}

impl Memory for Computed {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        for (byte, address) in buffer.iter_mut().zip(address..) {
            *byte = Self::word(address & !7).to_le_bytes()[(address & 7) as usize];
        }
        Ok(())
    }
}

/// Returns registers that point into the stack; rsp is the lowest.
pub(crate) fn registers(rip: u64) -> Registers {
    let mut registers = Registers { rip, ..Registers::default() };
    for register in Gpr::ALL {
        registers.set(register, 0x7FFE_0010_0000 + 0x10_0000 * u64::from(register.number()));
    }
    registers.set(Gpr::Rsp, 0x7FFE_0000_0000);
    registers
}

#[test]
fn rows_equal_those_of_gimli() {
    each(|name, image| {
        let kinds: [(&str, Kind<'_>); 3] = [
            ("by the header", CfiTable::lazy),
            ("by its own index", with_own_index),
            ("compiled beforehand", CfiTable::new),
        ];
        for (kind, table) in kinds {
            let counts = gimli_rows::check(name, image, table);
            eprintln!("{name}, {kind}: {counts:?}");
            assert!(counts.rows > 20, "{name}, {kind} has only {counts:?}");
        }
    });
}

#[test]
fn steps_are_those_that_framehop_makes() {
    each(|name, image| {
        let counts = framehop::check(name, image);
        eprintln!("{name}: {counts:?}");
        assert!(counts.compared > 20, "{name}: {counts:?}");
    });
}

/// The steps use rules of every form, including expressions.
#[test]
fn steps_allocate_nothing() {
    each(|name, image| {
        let map = map(image, CfiTable::lazy);
        let (unwinder, mut cache) = (Unwinder::new(&map), Cache::new());
        let mut steps = 0;
        let info = measure(|| {
            for function in map.regions().next().unwrap().cfi().unwrap().functions() {
                for rva in function.clone().step_by(7) {
                    for position in [Position::Interrupted, Position::ReturnAddress] {
                        let start = registers(BASE + u64::from(rva));
                        let (mut plain, mut cached) = (start, start);
                        let step = unwinder.step(&mut plain, position, &Computed);
                        let known =
                            unwinder.step_cached(&mut cache, &mut cached, position, &Computed);
                        steps += usize::from(step.is_ok() && known == step && cached == plain);
                    }
                }
            }
        });
        assert_eq!(info.count_total, 0, "{name}");
        assert!(steps > 200, "{name}: {steps}");
    });
}
