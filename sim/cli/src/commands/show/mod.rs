//! `clrsim show`: draws one case, or prints the functions of an image.

mod frames;
mod image;
mod layout;
mod recorded;

use crate::PASSED;
use crate::args::ShowArgs;
use crate::commands::explain::recorded::with_walk;
use crate::input::program::ProgramFixture;
use crate::input::{self, COMPRESSED, GZIP, Kind, Source};
use crate::render::code::{self, Code, Line};
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::differences::{self, Differing};
use crate::render::error::CliError;
use crate::render::unwind_data;
use crate::report::vector;
use clr_recording::vectors::UnwindAnswer;
use clr_recording::vectors::fuzz::{Epilogue, FuzzFile, FuzzKind, FuzzMemory, FuzzRecord};
use clr_recording::vectors::replay::{ExpectedUnwind, VectorVerdict, run_fuzz_record};
use clr_recording::vectors::win64::{Vector, VectorKind};
use clr_unwind::{Memory, Registers, Segments, Trust, Unwinder};
use frames::UnwoundFrame;
use layout::{Frame, Layout};
use std::fmt::Display;
use std::io::{self, Write};

/// Number of instructions that are shown before the one at rip.
const BEFORE: usize = 5;
/// Number of instructions that are shown after the one at rip.
const AFTER: usize = 5;

/// Prints what `args` name and returns the exit code. The content of the file decides what that is.
pub(crate) fn show(args: &ShowArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.file)?;
    if source.is_program() {
        let fixture = ProgramFixture::read(&source)?;
        let what =
            "is a scenario, and clrsim show is for images and for recorded walks and unwinds";
        return Err(source.error(format_args!("{what}: {}", fixture.commands())));
    }
    let bytes = source.read()?;
    if image::is_image(&bytes) {
        image::print(&source, &bytes, args, console)?;
        return Ok(PASSED);
    }
    if let Some(option) = args.of_images() {
        return Err(source.error(format_args!("is no image, and {option} is for images")));
    }
    if source.is_recording() {
        if args.case.is_some() {
            return Err(source.error("is a recording of walks: --walk says which one"));
        }
        with_walk(&source, args.walk.number, |replayed| {
            Ok(recorded::draw(replayed, console.out)?)
        })?;
        return Ok(PASSED);
    }
    if !bytes.starts_with(GZIP) && !source.name.ends_with(COMPRESSED) {
        return Err(source.error(
            "is neither an image (PE or ELF), nor a recording of walks (*.walks.jsonl), nor compressed: \
             unwind vectors or fuzz records",
        ));
    }
    if args.walk.number.is_some() {
        return Err(source.error("has no walks: --case says which case"));
    }
    draw_case(args, &source, console)?;
    Ok(PASSED)
}

impl ShowArgs {
    /// Returns the name of an option that is for images alone.
    fn of_images(&self) -> Option<&'static str> {
        let function = self.function.wanted.is_some().then_some("--function");
        function.or(self.json.wanted.then_some("--json"))
    }
}

/// Draws a case of a file of vectors or fuzz records.
fn draw_case(args: &ShowArgs, source: &Source, console: &mut Console<'_>) -> Result<(), CliError> {
    let case = args.case.unwrap_or(0);
    let (kind, content) = source.read_fixture()?;
    match kind {
        Kind::Vectors => {
            input::with_vectors(source, &content, args.rules.rules(), |file, replay, code| {
                let vector = pick(source, case, file.len(), |case| file.get(case))?;
                let verdict = replay.run(&vector).map_err(|error| source.error(error))?;
                let drawing = Drawing { args, source, case, code, verdict, cases: file.len() };
                drawing.vector(&vector, console.out)
            })
        }
        Kind::Fuzz => {
            let file = FuzzFile::parse(&content).map_err(|error| source.error(error))?;
            let record = pick(source, case, file.len(), |case| file.get(case))?;
            let verdict = run_fuzz_record(&record, args.rules.rules())
                .map_err(|error| source.error(error))?;
            code::with_fuzz_code(&record, |code, image| {
                let drawing = Drawing { args, source, case, code, verdict, cases: file.len() };
                drawing.fuzz(&record, &FuzzMemory::new(image), console.out)
            })
            .map_err(|error| source.error(error))?
        }
    }
}

/// Returns case `wanted` of a file.
fn pick<T, E: Display>(
    source: &Source,
    case: u64,
    len: usize,
    get: impl FnOnce(usize) -> Option<Result<T, E>>,
) -> Result<T, CliError> {
    match usize::try_from(case).ok().and_then(get) {
        Some(found) => found.map_err(|error| source.error(error)),
        None if len == 0 => Err(source.error("has no cases")),
        None => {
            Err(source.error(format_args!("has no case {case}; its cases are 0 to {}", len - 1)))
        }
    }
}

/// A case to draw.
struct Drawing<'d> {
    args: &'d ShowArgs,
    source: &'d Source,
    /// Index of the case.
    case: u64,
    code: &'d Code<'d, 'd>,
    verdict: VectorVerdict,
    /// Number of cases of the file.
    cases: usize,
}

impl Drawing<'_> {
    fn vector(&self, vector: &Vector<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let memory = Segments::new(vector.segments()).map_err(|error| self.source.error(error))?;
        let truths = frames::truths(vector);
        let frames = self.walk(&vector.registers, &memory, truths.len());
        self.header(vector.registers.rip, out)?;
        field(out, "kind", kind(vector.kind))?;
        field(out, "flags", flags(vector))?;
        field(out, "has", attrs(vector))?;
        field(
            out,
            "test",
            format_args!("line {} of the test names, depth {}", vector.test, vector.depth),
        )?;
        self.verdict(out)?;
        self.body(&frames, truths.first(), &memory, out)?;
        heading(out, "Frames")?;
        Ok(frames::write(&frames, &truths, self.code, out)?)
    }

    fn fuzz(
        &self,
        record: &FuzzRecord<'_>,
        memory: &dyn Memory,
        out: &mut dyn Write,
    ) -> Result<(), CliError> {
        let before = &record.registers;
        let frames = self.walk(before, memory, 1);
        let coreclr = frames::answer(&record.coreclr, before);
        self.header(before.rip, out)?;
        field(out, "kind", fuzz_kind(record.kind))?;
        let epilogue = match record.epilogue {
            Epilogue::No => "no",
            Epilogue::ByCode => "by the bytes of code",
            Epilogue::ByEpilogCodes => "by EPILOG codes",
        };
        field(out, "epilogue", epilogue)?;
        field(out, "oracles", if record.agree { "agree" } else { "do not agree" })?;
        self.verdict(out)?;
        self.body(&frames, coreclr.as_ref(), memory, out)?;
        heading(out, "Frames")?;
        frames::write(&frames, &[], self.code, out)?;
        heading(out, "Answers of others")?;
        other("wine", &record.wine, &frames, out)?;
        Ok(other("CoreCLR", &record.coreclr, &frames, out)?)
    }

    fn walk(
        &self,
        registers: &Registers,
        memory: &dyn Memory,
        callers: usize,
    ) -> Vec<UnwoundFrame> {
        let unwinder = Unwinder::new(self.code.map).with_rules(self.args.rules.rules());
        frames::walk(unwinder, registers, memory, callers)
    }

    fn header(&self, rip: u64, out: &mut dyn Write) -> io::Result<()> {
        let last = self.cases.saturating_sub(1);
        writeln!(out, "{HEAD}{} case {}{HEAD:#} of 0 to {last}", self.source.name, self.case)?;
        if let Some((region, rva)) = self.code.map.find(rip) {
            field(out, "image", format_args!("{} at {:#x}", self.code.image, region.base()))?;
            let name = self.code.locate(region, rva);
            if name.is_known() {
                field(out, "at", format_args!("{rip:#x} {name}, RVA {rva:#x}"))?;
            } else {
                field(out, "at", format_args!("{rip:#x}, {name}"))?;
            }
        } else {
            field(out, "image", &self.code.image)?;
            field(out, "at", format_args!("{rip:#x}, outside the image"))?;
        }
        Ok(())
    }

    fn verdict(&self, out: &mut dyn Write) -> io::Result<()> {
        let (style, word) = match self.verdict {
            VectorVerdict::Passed => (GOOD, "passed"),
            VectorVerdict::Skipped => (DIM, "skipped (no answer is expected)"),
            VectorVerdict::Failed(_) => (BAD, "failed"),
        };
        let rules = self.args.rules.name();
        field(out, "verdict", format_args!("{style}{word}{style:#} under {rules} rules"))
    }

    /// Writes code, unwind data and stack of the first frame.
    fn body(
        &self,
        frames: &[UnwoundFrame],
        truth: Option<&ExpectedUnwind>,
        memory: &dyn Memory,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(first) = frames.first() else {
            return Ok(());
        };
        let registers = &first.registers;
        heading(out, "Code")?;
        self.instructions(registers.rip, out)?;
        let trust = first.step.and_then(Result::ok).map(|step| step.trust);
        heading(out, unwind_data::title(trust))?;
        let functions = vector::unwind_data(self.code, registers.rip, trust);
        if functions.is_empty() {
            writeln!(out, "  none")?;
        }
        for function in functions {
            function.write(out, "  ")?;
        }
        // Without the truth, the walker's caller is used.
        let own = frames.get(1).map(|caller| &caller.registers);
        let caller = truth.map(|truth| &truth.registers).or(own);
        heading(out, "Stack")?;
        self.stack(registers, caller.unwrap_or(registers), trust, memory, out)
    }

    fn instructions(&self, rip: u64, out: &mut dyn Write) -> io::Result<()> {
        let (lines, own) = self.code.instructions(rip, BEFORE, AFTER);
        if lines.is_empty() {
            return writeln!(out, "  no code here");
        }
        let width = 2 * lines.iter().map(|line| line.bytes.len()).max().unwrap_or(0);
        for (n, line) in lines.iter().enumerate() {
            let (mark, style) = if n == own { ("=>", HEAD) } else { ("  ", DIM) };
            let Line { rva, bytes, text } = line;
            let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let bytes = bytes.concat();
            writeln!(out, "  {mark} {style}{rva:#x}  {bytes:width$}  {text}{style:#}")?;
        }
        Ok(())
    }

    fn stack(
        &self,
        registers: &Registers,
        caller: &Registers,
        trust: Option<Trust>,
        memory: &dyn Memory,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let found = self.code.map.find(registers.rip);
        let entry = found.and_then(|(region, rva)| {
            region.functions().find(rva).map(|entry| code::chain(region, entry))
        });
        let frame = Frame {
            chain: entry.as_deref().unwrap_or_default(),
            rva: found.map_or(0, |(_, rva)| rva),
            by_codes: !unwind_data::is_epilogue(trust),
            registers,
            caller,
        };
        Layout::new(&frame, memory).write(registers, self.code, memory, out)
    }
}

/// Compares the first step with another unwinder's answer.
fn other(
    name: &str,
    outcome: &UnwindAnswer,
    frames: &[UnwoundFrame],
    out: &mut dyn Write,
) -> io::Result<()> {
    let [first, caller, ..] = frames else {
        let fate = if outcome.is_answer() { "an answer" } else { "no answer" };
        return writeln!(out, "  {name}: {fate}");
    };
    let Some(expected) = frames::answer(outcome, &first.registers) else {
        return writeln!(out, "  {name}: no answer");
    };
    let Some(Ok(step)) = first.step else {
        return Ok(());
    };
    let differences: Vec<_> =
        expected.differences(&caller.registers, &step).into_iter().map(Differing::from).collect();
    let word = if differences.is_empty() { "the same answer" } else { "another answer" };
    writeln!(out, "  {name}: {word}")?;
    differences::write_differences(&differences, "      ", out)
}

fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "\n{HEAD}{text}{HEAD:#}")
}

fn field(out: &mut dyn Write, name: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "  {name:8}  {value}")
}

const fn kind(kind: VectorKind) -> &'static str {
    match kind {
        VectorKind::Leaf => "leaf",
        VectorKind::Prologue => "prologue",
        VectorKind::Body => "body",
        VectorKind::CodeEpilogue => "epilogue, by the bytes of code",
        VectorKind::CodesEpilogue => "epilogue, by EPILOG codes",
    }
}

const fn fuzz_kind(kind: FuzzKind) -> &'static str {
    match kind {
        FuzzKind::Plain => "plain codes",
        FuzzKind::EpilogueLike => "code like an epilogue's",
        FuzzKind::Malformed => "malformed",
        FuzzKind::Chained => "chained",
        FuzzKind::EpilogCodes => "with EPILOG codes",
        FuzzKind::AnyOrder => "codes in any order",
        FuzzKind::MachineFrame => "with a machine frame",
    }
}

fn flags(vector: &Vector<'_>) -> String {
    let flags = vector.flags;
    listed(&[
        (flags.is_gold(), "gold"),
        (!flags.is_gold(), "not gold"),
        (flags.truth_from_return(), "truth from the return"),
        (!flags.truth_from_return(), "truth from the call"),
        (flags.wine_right(), "wine right"),
        (flags.coreclr_right(), "CoreCLR right"),
        (flags.entered_by_machine_frame(), "entered by a machine frame"),
        (flags.has_chain(), "callers recorded"),
        (flags.no_runtime_function(), "no function entry"),
    ])
}

fn attrs(vector: &Vector<'_>) -> String {
    let attrs = vector.attrs;
    listed(&[
        (attrs.bits() == 0, "nothing special"),
        (attrs.frame_register(), "frame register"),
        (attrs.chained(), "chained"),
        (attrs.machine_frame(), "machine frame"),
        (attrs.version_2(), "version 2"),
        (attrs.save_xmm(), "saved xmm"),
        (attrs.save_nonvol(), "moved saves"),
        (attrs.alloc_large(), "large allocation"),
        (attrs.handler(), "handler"),
        (attrs.far_forms(), "32-bit operands"),
    ])
}

/// Joins the words whose condition is true.
fn listed(words: &[(bool, &str)]) -> String {
    let held: Vec<_> = words.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect();
    held.join(", ")
}
