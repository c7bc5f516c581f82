//! Comparison with framehop, which restores rip, rsp and rbp.

use crate::unwinders::libraries::{BASE, Computed, map, registers};
use clr_tests::peers::framehop::{elf, reader};
use clr_unwind::cfi::{CfaRule, CfiTable, Column, RegisterRule, Row};
use clr_unwind::{ElfImage, Gpr, Position, UnwindError, Unwinder};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder as _};

/// Counts of the compared steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) compared: usize,
    outermost: usize,
    /// Steps whose rule takes a register that framehop does not keep, or reads memory in an
    /// expression.
    beyond_framehop: usize,
}

/// Compares steps from the first and the last address of each row.
pub(crate) fn check(name: &str, image: &ElfImage<'_>) -> Counts {
    let map = map(image, CfiTable::lazy);
    let table = map.regions().next().unwrap().cfi().unwrap();
    let theirs = module(image);
    // The places may be within instructions.
    let ours = Unwinder::new(&map).by_data_alone();
    let mut counts = Counts::default();
    for function in table.functions() {
        let mut start = function.start;
        while start < function.end {
            let row = table.row(start).unwrap().unwrap();
            let end = row.range.end.min(function.end);
            for rva in [start, end - 1] {
                let place = format!("{name}+{rva:#x}");
                if is_beyond(&row, table) {
                    counts.beyond_framehop += 1;
                    continue;
                }
                let before = registers(BASE + u64::from(rva));
                let mut registers =
                    UnwindRegsX86_64::new(before.rip, before.rsp(), before.get(Gpr::Rbp));
                let address = FrameAddress::from_instruction_pointer(before.rip);
                let mut read = reader(&Computed);
                let mut cache = CacheX86_64::new();
                let found = theirs.unwind_frame(address, &mut registers, &mut cache, &mut read);
                let mut after = before;
                let made = ours.step(&mut after, Position::Interrupted, &Computed);
                if let Err(UnwindError::EndOfStack { .. }) = made {
                    assert_eq!(found, Ok(None), "{place}");
                    counts.outermost += 1;
                    continue;
                }
                made.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(found, Ok(Some(after.rip)), "{place}: {row:?}");
                let theirs = [registers.sp(), registers.bp()];
                assert_eq!(theirs, [after.rsp(), after.get(Gpr::Rbp)], "{place}: {row:?}");
                counts.compared += 1;
            }
            start = end;
        }
    }
    counts
}

/// Returns true if framehop cannot know the canonical frame address or the return address: framehop
/// keeps no other registers than rip, rsp and rbp, and reads no memory in expressions. (In vfork,
/// whose return address is in rdi for a while, framehop takes the word below the canonical frame
/// address instead.)
fn is_beyond(row: &Row, table: &CfiTable<'_>) -> bool {
    const DW_OP_DEREF: u8 = 0x06;
    if let Some(RegisterRule::Register(_)) = row.return_address {
        return true;
    }
    match row.cfa {
        CfaRule::Register { register, .. } => {
            ![Gpr::Rsp, Gpr::Rbp].map(Column::from).contains(&register)
        }
        // In expressions of these libraries that read no memory, no operand happens to be 6.
        CfaRule::Expression(expression) => table.expression(expression).contains(&DW_OP_DEREF),
    }
}

fn module<'a>(image: &ElfImage<'a>) -> UnwinderX86_64<&'a [u8]> {
    let mut unwinder = UnwinderX86_64::new();
    let range = BASE..BASE + u64::from(image.size());
    unwinder.add_module(Module::new("library".into(), range, BASE, elf(image)));
    unwinder
}
