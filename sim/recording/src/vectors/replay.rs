//! Replay of recorded unwinds through the walker, and comparison with the expected answers.

use crate::vectors::fuzz::{self, FuzzMemory, FuzzRecord};
use crate::vectors::win64::Vector;
use crate::vectors::{UnwindAnswer, UnwindStatus};
use clr_unwind::compat::Rules;
use clr_unwind::{
    CodeMap, CodeMapError, CodeRegion, FunctionTable, Gpr, Handler, PeImage, Position, Registers,
    Segments, SegmentsError, Step, UnwindError, Unwinder,
};
use thiserror::Error;

/// The result of replaying one recorded unwind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorVerdict {
    /// Every compared value is as recorded.
    Passed,
    /// The expected answer is unknown; the walker terminated.
    Skipped,
    /// A value is not as recorded.
    Failed(Box<VectorFailure>),
}

/// A step whose answer is not the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorFailure {
    /// Number of callers between the recorded registers and the step: 0 for the recorded registers
    /// themselves.
    pub depth: u32,
    /// Registers before the step.
    pub before: Registers,
    /// Expected result of the step.
    pub expected: ExpectedUnwind,
    /// Actual result of the step.
    pub got: Result<(Registers, Step), UnwindError>,
}

/// The expected result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedUnwind {
    /// Caller's registers.
    pub registers: Registers,
    /// Mask of the known integer registers by encoding; rip is always known.
    pub gpr_known: u16,
    /// The values of xmm6 to xmm15 are known.
    pub xmm_known: bool,
    /// Establisher frame (VA) and handler, if an unwinder's answer is expected.
    pub frame: Option<(u64, Option<Handler>)>,
}

/// A value that is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorDifference {
    /// Quantity that differs.
    pub of: Quantity,
    /// Recorded value.
    pub expected: u128,
    /// Walker's value.
    pub got: u128,
}

/// A quantity in the result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The return address (VA).
    Rip,
    /// An integer register.
    Gpr(Gpr),
    /// The vector register xmm*n*.
    Xmm(u8),
    /// The establisher frame (VA).
    EstablisherFrame,
    /// The handler's RVA, 0 for none.
    Handler,
    /// The RVA of the handler's data, 0 for none.
    HandlerData,
}

impl core::fmt::Display for Quantity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Rip => f.write_str("rip"),
            Self::Gpr(register) => f.write_str(register.name()),
            Self::Xmm(n) => write!(f, "xmm{n}"),
            Self::EstablisherFrame => f.write_str("establisher frame"),
            Self::Handler => f.write_str("handler"),
            Self::HandlerData => f.write_str("handler data"),
        }
    }
}

/// The reason why a case cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The code does not fit at its recorded address.
    #[error(transparent)]
    Code(#[from] CodeMapError),
    /// The recorded stack contradicts itself.
    #[error(transparent)]
    Stack(#[from] SegmentsError),
}

/// rsp and the nonvolatile integer registers, by encoding.
const PRESERVED: u16 = 0b1111_0000_1111_1000;

impl ExpectedUnwind {
    /// Creates the expectation from the state that execution reached.
    fn recorded(truth: &UnwindAnswer, before: &Registers) -> Self {
        Self { registers: truth.apply(before), gpr_known: PRESERVED, xmm_known: true, frame: None }
    }

    /// Creates the expectation from another unwinder's answer: all registers, and with `with_frame`
    /// the establisher frame and handler.
    fn answer(answer: &UnwindAnswer, before: &Registers, with_frame: bool) -> Self {
        let handler = Handler { rva: answer.handler, data_rva: answer.handler_data };
        let handler = (handler.rva != 0).then_some(handler);
        Self {
            registers: answer.apply(before),
            gpr_known: u16::MAX,
            xmm_known: true,
            frame: with_frame.then_some((answer.frame, handler)),
        }
    }

    /// Returns the values in which `registers` and `step` are not as expected.
    pub fn differences(&self, registers: &Registers, step: &Step) -> Vec<VectorDifference> {
        let mut found = Vec::new();
        let mut compare = |of, expected: u128, got: u128| {
            if expected != got {
                found.push(VectorDifference { of, expected, got });
            }
        };
        compare(Quantity::Rip, self.registers.rip.into(), registers.rip.into());
        for register in Gpr::ALL {
            if self.gpr_known >> register.number() & 1 != 0 {
                let expected = self.registers.get(register);
                compare(Quantity::Gpr(register), expected.into(), registers.get(register).into());
            }
        }
        if self.xmm_known {
            for (n, (expected, got)) in (6..).zip(self.registers.xmm.iter().zip(registers.xmm)) {
                compare(Quantity::Xmm(n), *expected, got);
            }
        }
        if let Some((frame, handler)) = self.frame {
            compare(Quantity::EstablisherFrame, frame.into(), step.establisher_frame.into());
            let rvas = |handler: Option<Handler>| {
                handler.map_or((0, 0), |handler| (handler.rva, handler.data_rva))
            };
            let ((rva, data), (got_rva, got_data)) = (rvas(handler), rvas(step.handler));
            compare(Quantity::Handler, rva.into(), got_rva.into());
            compare(Quantity::HandlerData, data.into(), got_data.into());
        }
        found
    }
}

/// Makes one step and compares the result. Returns the caller's frame if all is as expected.
fn check_step(
    unwinder: Unwinder<'_, '_>,
    (before, position): &(Registers, Position),
    memory: &impl clr_unwind::Memory,
    depth: u32,
    expected: &ExpectedUnwind,
) -> Result<(Registers, Position), Box<VectorFailure>> {
    let mut registers = *before;
    let got = unwinder.step(&mut registers, *position, memory).map(|step| (registers, step));
    match got {
        Ok((registers, step)) if expected.differences(&registers, &step).is_empty() => {
            Ok((registers, step.caller))
        }
        _ => Err(Box::new(VectorFailure { depth, before: *before, expected: *expected, got })),
    }
}

/// A replay of the vectors of one image.
#[derive(Clone, Debug)]
pub struct VectorReplay<'a> {
    map: CodeMap<'a>,
    rules: Rules,
}

impl<'a> VectorReplay<'a> {
    /// Creates a replay with `image` at `base` (VA).
    ///
    /// # Errors
    /// Returns [`ReplayError::Code`] if the image is empty or does not fit there.
    pub fn new(image: &PeImage<'a>, base: u64, rules: Rules) -> Result<Self, ReplayError> {
        let mut map = CodeMap::new();
        map.insert_image(base, image)?;
        Ok(Self { map, rules })
    }

    /// Returns the code map, which contains only the image.
    pub const fn code_map(&self) -> &CodeMap<'a> {
        &self.map
    }

    /// Unwinds the vector's frame, and under precise rules its whole recorded stack.
    ///
    /// Precise rules are checked against the execution's result in gold vectors; the Windows rules
    /// against CoreCLR's answer, if there is one, with establisher frame and handler.
    ///
    /// # Errors
    /// Returns [`ReplayError::Stack`] if the vector's segments do not form a memory.
    pub fn run(&self, vector: &Vector<'_>) -> Result<VectorVerdict, ReplayError> {
        let memory = Segments::new(vector.segments())?;
        let unwinder = Unwinder::new(&self.map).with_rules(self.rules);
        let start = (vector.registers, Position::Interrupted);
        let before = vector.registers;
        let precise = self.rules == Rules::Precise;
        let expected = if precise {
            vector.flags.is_gold().then(|| ExpectedUnwind::recorded(&vector.truth, &before))
        } else {
            (vector.coreclr.status == UnwindStatus::Fine)
                .then(|| ExpectedUnwind::answer(&vector.coreclr, &before, true))
        };
        let Some(expected) = expected else {
            // The step must still terminate.
            let mut registers = before;
            let _: Result<Step, UnwindError> =
                unwinder.step(&mut registers, Position::Interrupted, &memory);
            return Ok(VectorVerdict::Skipped);
        };
        let mut frame = match check_step(unwinder, &start, &memory, 0, &expected) {
            Ok(frame) => frame,
            Err(failure) => return Ok(VectorVerdict::Failed(failure)),
        };
        if !precise {
            return Ok(VectorVerdict::Passed);
        }
        for (depth, caller) in (1..).zip(&vector.chain) {
            let mut registers = Registers { rip: caller.rip, ..frame.0 };
            registers.set(Gpr::Rsp, caller.rsp);
            for (register, value) in Gpr::NONVOLATILE.into_iter().zip(caller.nonvolatile) {
                registers.set(register, value);
            }
            let expected =
                ExpectedUnwind { registers, gpr_known: PRESERVED, xmm_known: false, frame: None };
            frame = match check_step(unwinder, &frame, &memory, depth, &expected) {
                Ok(frame) => frame,
                Err(failure) => return Ok(VectorVerdict::Failed(failure)),
            };
        }
        Ok(VectorVerdict::Passed)
    }
}

/// Number of readable bytes of a fuzz record's image: the content, then zeroes.
const FUZZ_IMAGE_SIZE: usize = 0x2000;

/// Returns the image of a fuzz record from its base on.
pub fn fuzz_image(record: &FuzzRecord<'_>) -> Vec<u8> {
    let mut image = vec![0; FUZZ_IMAGE_SIZE];
    let content = record.content();
    image[fuzz::BLOB_RVA as usize..][..content.len()].copy_from_slice(&content);
    image
}

/// Returns the function table of a fuzz record as bytes, ascending by start address.
pub fn fuzz_functions(record: &FuzzRecord<'_>) -> Vec<u8> {
    let mut functions = record.functions.clone();
    functions.sort_unstable();
    functions.iter().flatten().flat_map(|field| field.to_le_bytes()).collect()
}

/// Unwinds a fuzz record.
///
/// Precise rules are checked against the answer on which wine and CoreCLR agree; the Windows rules
/// against CoreCLR's answer, if there is one, with establisher frame and handler.
///
/// # Errors
/// Returns [`ReplayError::Code`] if the image does not fit, which the constants of the format
/// exclude.
pub fn run_fuzz_record(
    record: &FuzzRecord<'_>,
    rules: Rules,
) -> Result<VectorVerdict, ReplayError> {
    let image = fuzz_image(record);
    let functions = fuzz_functions(record);
    let mut map = CodeMap::new();
    map.insert(CodeRegion::heap(fuzz::IMAGE_BASE, &image, FunctionTable::new(&functions))?)?;
    let unwinder = Unwinder::new(&map).with_rules(rules);
    let memory = FuzzMemory::new(&image);
    let before = record.registers;
    let known = record.coreclr.status == UnwindStatus::Fine;
    let precise = rules == Rules::Precise;
    if !known || (precise && !record.agree) {
        let mut registers = before;
        let _: Result<Step, UnwindError> =
            unwinder.step(&mut registers, Position::Interrupted, &memory);
        return Ok(VectorVerdict::Skipped);
    }
    let expected = ExpectedUnwind::answer(&record.coreclr, &before, !precise);
    Ok(match check_step(unwinder, &(before, Position::Interrupted), &memory, 0, &expected) {
        Ok(_) => VectorVerdict::Passed,
        Err(failure) => VectorVerdict::Failed(failure),
    })
}
