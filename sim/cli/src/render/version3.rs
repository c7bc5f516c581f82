//! The winding operations of UNWIND_INFO version 3 in words.

use super::unwind_data::{Hex, Line};
use clr_unwind::win64::{EpilogueV3, UnwindInfo, UnwindInfoV3, Winding, WindingOperation};
use clr_unwind::{RuntimeFunction, UnwindError};
use serde::Serialize;
use std::io::{self, Write};

/// An epilogue that version 3 describes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Epilogue {
    /// RVA of the first instruction.
    start: Hex,
    /// RVA of the last instruction.
    last: Hex,
    /// True if it returns to the parent fragment.
    to_parent: bool,
    /// The operations that the instructions undo, the first one first.
    codes: Vec<Line>,
}

impl Epilogue {
    fn new(epilogue: &EpilogueV3<'_>) -> Result<Self, UnwindError> {
        let mut codes = Vec::new();
        lines(&epilogue.winding, &mut codes)?;
        Ok(Self {
            start: epilogue.start.into(),
            last: epilogue.start.wrapping_add(epilogue.last.into()).into(),
            to_parent: epilogue.is_transfer,
            codes,
        })
    }

    /// Writes the description, each line after `indent`.
    pub(crate) fn write(&self, out: &mut (impl Write + ?Sized), indent: &str) -> io::Result<()> {
        let Self { start, last, to_parent, codes } = self;
        let leaves = if *to_parent { "returns to the parent" } else { "leaves" };
        writeln!(out, "{indent}  epilogue at {start} {leaves} at {last}, and undoes")?;
        for code in codes {
            writeln!(out, "{indent}    +{:#04x}  {}", code.offset, code.text)?;
        }
        Ok(())
    }
}

/// Returns the epilogues of the fragment that `function` describes.
pub(crate) fn epilogues(
    payload: &UnwindInfoV3<'_>,
    function: RuntimeFunction,
    into: &mut Vec<Epilogue>,
) -> Result<(), UnwindError> {
    for epilogue in payload.epilogues(function) {
        into.push(Epilogue::new(&epilogue?)?);
    }
    Ok(())
}

/// Returns the operations that are done, and not undone, before the instruction at `rva` of the fragment
/// that `function` describes. Each counts from the begin of its instruction.
pub(crate) fn applying(
    info: &UnwindInfo<'_>,
    function: RuntimeFunction,
    rva: u32,
) -> Result<Vec<String>, UnwindError> {
    let payload = UnwindInfoV3::read(info)?;
    let (mut winding, mut begin, mut is_epilogue) = (payload.prologue(), function.begin, false);
    for epilogue in payload.epilogues(function) {
        let epilogue = epilogue?;
        let end = epilogue.start.wrapping_add(epilogue.last.into());
        if (epilogue.start..=end).contains(&rva) {
            (winding, begin, is_epilogue) = (epilogue.winding, epilogue.start, true);
        }
    }
    let mut words = Vec::new();
    for code in winding.codes() {
        let code = code?;
        let at = begin.saturating_add(code.ip_offset.into());
        if if is_epilogue { at >= rva } else { at < rva } {
            words.push(operation(code.operation));
        }
    }
    Ok(words)
}

/// Appends a line for each operation up to an error.
pub(crate) fn lines(winding: &Winding<'_>, into: &mut Vec<Line>) -> Result<(), UnwindError> {
    for code in winding.codes() {
        let code = code?;
        into.push(Line { offset: code.ip_offset, text: operation(code.operation) });
    }
    Ok(())
}

/// Returns the words for an operation.
fn operation(operation: WindingOperation) -> String {
    match operation {
        WindingOperation::Push(register) => format!("push {register}"),
        WindingOperation::Push2(first, second) => format!("push {first}, then {second}"),
        WindingOperation::Alloc(bytes) => format!("allocate {bytes:#x} bytes"),
        WindingOperation::SetFpreg(register, offset) => {
            format!("set {} to rsp + {offset:#x}", register.name())
        }
        WindingOperation::SaveNonvol(register, at) => format!("save {register} at rsp + {at:#x}"),
        WindingOperation::SaveXmm128(n, at) => format!("save xmm{n} at rsp + {at:#x}"),
        WindingOperation::PushCanonicalFrame(frame_type) => {
            format!("frame of type {frame_type} pushed by the processor or the system")
        }
    }
}
