//! `clrsim runtimes`: the simulated runtimes, what they do, and how that is known.

use crate::PASSED;
use crate::args::RuntimesArgs;
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::wrap::write_wrapped;
use clr_runtime::generation::{Generation, Generations, Known, Os, Product, QUESTIONS, Question};
use serde::Serialize;

/// The words of [`Known`], strongest first.
const KNOWN: [&str; 4] = ["observed", "read", "documented", "assumed"];

/// Prints the runtimes that `args` name and returns the exit code.
pub(crate) fn runtimes(args: &RuntimesArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    if let Some([left, right]) = args.diff.as_deref() {
        return difference(*left, *right, args.json.wanted, console);
    }
    let named = args.runtimes.iter().copied().fold(Generations::NONE, Generations::with);
    let all = if named.is_empty() { Generations::ALL } else { named };
    if args.json.wanted {
        for generation in all.iter() {
            write_json(&Runtime::new(generation), console)?;
        }
    } else if named.is_empty() {
        overview(console)?;
    } else {
        for (n, generation) in all.iter().enumerate() {
            if n > 0 {
                writeln!(console.out)?;
            }
            answers(generation, console)?;
        }
    }
    Ok(PASSED)
}

/// Prints a line for each runtime: how many answers are known how.
fn overview(console: &mut Console<'_>) -> Result<(), CliError> {
    let width = Generation::ALL.map(|generation| generation.name().len()).into_iter().max();
    let width = width.unwrap_or_default();
    write!(console.out, "{HEAD}{:width$}", "runtime")?;
    for known in KNOWN {
        write!(console.out, "  {known}")?;
    }
    writeln!(console.out, "{HEAD:#}")?;
    for generation in Generation::ALL {
        write!(console.out, "{generation:width$}")?;
        for known in KNOWN {
            let count =
                QUESTIONS.iter().filter(|it| (it.known)(generation).word() == known).count();
            write!(console.out, "  {count:>0$}", known.len())?;
        }
        writeln!(console.out, "  {DIM}{}{DIM:#}", generation.title())?;
    }
    Ok(())
}

/// Prints the answers of a runtime, each with its evidence.
fn answers(generation: Generation, console: &mut Console<'_>) -> Result<(), CliError> {
    writeln!(console.out, "{HEAD}{generation}{HEAD:#}  {}", generation.title())?;
    for question in QUESTIONS {
        let (answer, known) = ((question.answer)(generation), (question.known)(generation));
        writeln!(console.out, "  {}: {answer}  {DIM}{known}{DIM:#}", question.name)?;
        write!(console.out, "    ")?;
        write_wrapped(console.out, 4, DIM, question.meaning.trim(), "")?;
    }
    Ok(())
}

/// Prints the questions that two runtimes answer differently.
fn difference(
    left: Generation,
    right: Generation,
    json: bool,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let differ = |question: &&Question| (question.answer)(left) != (question.answer)(right);
    let found: Vec<_> = QUESTIONS.iter().filter(differ).collect();
    if json {
        for question in found {
            write_json(&Difference::new(question, left, right), console)?;
        }
        return Ok(PASSED);
    }
    let width = left.name().len().max(right.name().len());
    for question in &found {
        writeln!(console.out, "{HEAD}{}{HEAD:#}", question.name)?;
        write!(console.out, "  ")?;
        write_wrapped(console.out, 2, DIM, question.meaning.trim(), "")?;
        for generation in [left, right] {
            let (answer, known) = ((question.answer)(generation), (question.known)(generation));
            writeln!(console.out, "  {generation:width$}  {answer}  {DIM}{known}{DIM:#}")?;
        }
    }
    let count = found.len();
    writeln!(console.out, "{count} of {} answers differ.", QUESTIONS.len())?;
    Ok(PASSED)
}

/// A runtime as a line of JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Runtime {
    kind: &'static str,
    name: &'static str,
    title: &'static str,
    os: &'static str,
    product: &'static str,
    version: String,
    legacy_exceptions: bool,
    answers: Vec<Answer>,
}

impl Runtime {
    fn new(generation: Generation) -> Self {
        let family = generation.family();
        Self {
            kind: "runtime",
            name: generation.name(),
            title: generation.title(),
            os: match family.os {
                Os::Windows => "windows",
                Os::Unix => "unix",
            },
            product: match family.product {
                Product::Framework => "framework",
                Product::Core => "core",
            },
            version: family.version.to_string(),
            legacy_exceptions: family.legacy_exceptions,
            answers: QUESTIONS.iter().map(|question| Answer::new(question, generation)).collect(),
        }
    }
}

/// An answer of a runtime.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Answer {
    question: &'static str,
    #[serde(rename = "answer")]
    value: String,
    known: &'static str,
    source: Option<&'static str>,
}

impl Answer {
    fn new(question: &Question, generation: Generation) -> Self {
        let known: Known = (question.known)(generation);
        Self {
            question: question.name,
            value: (question.answer)(generation),
            known: known.word(),
            source: known.source(),
        }
    }
}

/// A question that two runtimes answer differently, as a line of JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Difference {
    kind: &'static str,
    question: &'static str,
    meaning: &'static str,
    runtimes: [&'static str; 2],
    answers: [Answer; 2],
}

impl Difference {
    fn new(question: &Question, left: Generation, right: Generation) -> Self {
        Self {
            kind: "difference",
            question: question.name,
            meaning: question.meaning.trim(),
            runtimes: [left.name(), right.name()],
            answers: [left, right].map(|generation| Answer::new(question, generation)),
        }
    }
}
