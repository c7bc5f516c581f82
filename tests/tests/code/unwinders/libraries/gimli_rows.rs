//! Comparison with gimli's rows, and with an evaluation of them.

use super::*;
use crate::unwinders::readers::{Comparison, compare_row, convert};
use clr_unwind::{Gpr, Position, Registers, UnwindError, Unwinder};
use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, LittleEndian,
    UnwindContext, UnwindExpression, UnwindSection as _, UnwindTableRow, Value,
};
use std::collections::BTreeMap;

/// Counts of the compared rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    functions: usize,
    pub(crate) rows: usize,
    expressions: usize,
    signal_frames: usize,
    outermost: usize,
}

type TheirRow = UnwindTableRow<usize>;
type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// Compares rows at the first and the last address of each.
pub(crate) fn check<'a>(name: &str, image: &ElfImage<'a>, kind: Kind<'a>) -> Counts {
    let map = map(image, kind);
    let table = map.regions().next().unwrap().cfi().unwrap();
    assert_eq!((table.problems(), table.first_problem()), (0, None), "{name}");
    let (eh_frame, header) = (image.cfi().eh_frame.unwrap(), image.cfi().eh_frame_hdr.unwrap());
    let base = image.preferred_base();
    let bases = BaseAddresses::default()
        .set_eh_frame(base + u64::from(eh_frame.rva))
        .set_eh_frame_hdr(base + u64::from(header.rva));
    let section = EhFrame::new(eh_frame.bytes, LittleEndian);
    let parsed = EhFrameHdr::new(header.bytes, LittleEndian).parse(&bases, 8).unwrap();
    let search = parsed.table().unwrap();

    let mut counts = Counts::default();
    let (mut context, mut found) = (UnwindContext::new(), UnwindContext::new());
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        counts.functions += 1;
        let range = fde.initial_address() - base..fde.end_address() - base;
        let function = table.function(range.start as u32).unwrap();
        assert_eq!(u64::from(function.start)..u64::from(function.end), range, "{name}");
        let column = fde.cie().return_address_register();
        let mut rows = fde.rows(&section, &bases, &mut context).unwrap();
        while let Some(theirs) = rows.next_row().unwrap() {
            let start = theirs.start_address() - base;
            let end = (theirs.end_address() - base).min(range.end);
            if start >= end {
                continue;
            }
            counts.rows += 1;
            for rva in [start, end - 1] {
                let place = format!("{name}+{rva:#x}");
                // The look-up goes through the header, as in a debugger.
                let address = base + rva;
                let get_cie = EhFrame::cie_from_offset;
                let looked_up =
                    search.unwind_info_for_address(&section, &bases, &mut found, address, get_cie);
                assert_eq!(looked_up.unwrap(), theirs, "{place}: gimli differs from itself");

                let ours = table.row(rva as u32).unwrap().unwrap();
                let mut found = Comparison::default();
                compare_row(&ours, theirs, column, rva as u32, &mut found);
                assert_eq!(found.differences, BTreeMap::new(), "{place}: {ours:?} {theirs:?}");
                assert_eq!(ours.signal_frame, fde.is_signal_trampoline(), "{place}");
                counts.expressions += usize::from(has_expression(&ours));
                counts.signal_frames += usize::from(ours.signal_frame);
                counts.outermost +=
                    usize::from(ours.return_address == Some(RegisterRule::Undefined));
                step(
                    &Unwinder::new(&map).by_data_alone(),
                    table,
                    &section,
                    (theirs, &ours),
                    column,
                    rva as u32,
                );
            }
        }
    }
    assert_eq!(table.functions().count(), counts.functions, "{name}");
    counts
}

fn has_expression(row: &Row) -> bool {
    let is_expression = |rule: &RegisterRule| {
        matches!(rule, RegisterRule::Expression(_) | RegisterRule::ValExpression(_))
    };
    matches!(row.cfa, CfaRule::Expression(_))
        || row.registers.iter().chain([&row.return_address]).flatten().any(is_expression)
}

/// Checks that a step yields the same registers as an evaluation of gimli's row, rule by rule.
fn step(
    unwinder: &Unwinder<'_, '_>,
    table: &CfiTable<'_>,
    section: &Section<'_>,
    (theirs, ours): (&TheirRow, &Row),
    column: gimli::Register,
    rva: u32,
) {
    let before = registers(BASE + u64::from(rva));
    let evaluate = |expression: &UnwindExpression<usize>, cfa| {
        let code = expression.get(section).unwrap();
        assert_eq!(code.0.slice(), table.expression(convert(expression)));
        evaluate(code, &before, cfa)
    };
    let cfa = match theirs.cfa() {
        gimli::CfaRule::RegisterAndOffset { register, offset } => {
            value(&before, *register).wrapping_add_signed(*offset)
        }
        gimli::CfaRule::Expression(expression) => evaluate(expression, None),
    };
    let apply = |column: gimli::Register| {
        Some(match theirs.register(column)? {
            gimli::RegisterRule::Offset(offset) => Computed::word(cfa.wrapping_add_signed(offset)),
            gimli::RegisterRule::ValOffset(offset) => cfa.wrapping_add_signed(offset),
            gimli::RegisterRule::Register(register) => value(&before, register),
            gimli::RegisterRule::Expression(expression) => {
                Computed::word(evaluate(&expression, Some(cfa)))
            }
            gimli::RegisterRule::ValExpression(expression) => evaluate(&expression, Some(cfa)),
            _ => return None,
        })
    };
    let mut expected = before;
    expected.set(Gpr::Rsp, cfa);
    for register in Gpr::ALL {
        if let Some(value) = apply(gimli::Register(Column::from(register).0)) {
            expected.set(register, value);
        }
    }
    let mut found = before;
    let made = unwinder.step(&mut found, Position::Interrupted, &Computed);
    if ours.return_address == Some(RegisterRule::Undefined) {
        assert_eq!(made, Err(UnwindError::EndOfStack { address: before.rip }));
        return;
    }
    expected.rip = apply(column).unwrap();
    let made = made.unwrap_or_else(|error| panic!("{rva:#x}: {error}"));
    assert_eq!(found, expected, "{rva:#x}");
    assert_eq!(made.establisher_frame, cfa, "{rva:#x}");
    assert_eq!(made.caller == Position::Interrupted, ours.signal_frame, "{rva:#x}");
}

fn value(registers: &Registers, column: gimli::Register) -> u64 {
    match Column(column.0).gpr() {
        Some(register) => registers.get(register),
        None if column == gimli::X86_64::RA => registers.rip,
        None => panic!("{column:?} has no value"),
    }
}

/// Returns the result of gimli's evaluation of an expression.
fn evaluate(
    code: gimli::Expression<EndianSlice<'_, LittleEndian>>,
    registers: &Registers,
    cfa: Option<u64>,
) -> u64 {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut evaluation = code.evaluation(encoding);
    if let Some(cfa) = cfa {
        evaluation.set_initial_value(cfa);
    }
    let mut result = evaluation.evaluate().unwrap();
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                let word = Computed::word(address);
                evaluation.resume_with_memory(Value::Generic(word)).unwrap()
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = value(registers, register);
                evaluation.resume_with_register(Value::Generic(value)).unwrap()
            }
            other => panic!("{other:?}"),
        };
    }
    match evaluation.as_result() {
        [gimli::Piece { location: gimli::Location::Address { address }, .. }] => *address,
        other => panic!("{other:?}"),
    }
}
