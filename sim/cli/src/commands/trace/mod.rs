//! `clrsim trace`: prints a program's run, instruction by instruction.

mod effect;
pub(crate) mod row;
mod stack;

use crate::PASSED;
use crate::args::TraceArgs;
use crate::input::Source;
use crate::input::program::{Names, ProgramFixture};
use crate::render::cfi::Rules;
use crate::render::console::{BAD, Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::counted;
use clr_codegen::FunctionIndex;
use clr_codegen::execution::{Execution, ExecutionEnd};
use clr_scenario::{INSTRUCTION_LIMIT, Stops};
use clr_unwind::CodeMap;
use row::{End, Mistake, Row, State};
use serde::Serialize;

/// Prints the run that `args` name and returns the exit code.
pub(crate) fn trace(args: &TraceArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.scenario.path)?;
    let fixture = ProgramFixture::read(&source)?;
    let scenario = &fixture.scenario;
    let linked = fixture.link(&source, "trace")?;
    let map = linked.code_map().map_err(|error| source.error(error))?;
    let thread = thread(args, &source, &fixture)?;
    let only = only(args, &source, &fixture)?;
    let run = scenario.start(thread, &linked).map_err(|error| source.error(error))?;
    let stops = Stops::new(scenario, &linked, thread);
    let names = Names { scenario, linked: &linked };
    if !args.json.wanted {
        let name = scenario.threads.get(thread as usize).map_or("", |thread| &thread.name);
        writeln!(console.out, "{HEAD}{}{HEAD:#}, thread {name}\n", source.name)?;
        writeln!(
            console.out,
            "{DIM}    n    {:22}  {:8}  {:28}  what it does{DIM:#}",
            "function", "role", "instruction"
        )?;
    }
    let mut trace = Trace {
        args,
        fixture: &fixture,
        names,
        map: &map,
        only,
        printed: 0,
        last_mistakes: Vec::new(),
        described: None,
    };
    trace.run(run, stops, console)?;
    Ok(PASSED)
}

fn thread(args: &TraceArgs, source: &Source, fixture: &ProgramFixture) -> Result<u32, CliError> {
    let Some(name) = &args.thread else { return Ok(0) };
    fixture.scenario.thread(name).ok_or_else(|| {
        let names: Vec<_> = fixture.scenario.threads.iter().map(|t| t.name.as_str()).collect();
        source.error(format_args!("has no thread {name}; its threads: {}", names.join(", ")))
    })
}

fn only(
    args: &TraceArgs,
    source: &Source,
    fixture: &ProgramFixture,
) -> Result<Option<FunctionIndex>, CliError> {
    let Some(name) = &args.function else { return Ok(None) };
    let found = fixture.scenario.function(name);
    found.map(Some).ok_or_else(|| source.error(format_args!("has no function {name}")))
}

/// The state of a trace between its lines.
struct Trace<'t> {
    args: &'t TraceArgs,
    fixture: &'t ProgramFixture,
    names: Names<'t>,
    map: &'t CodeMap<'t>,
    only: Option<FunctionIndex>,
    /// Number of lines printed.
    printed: usize,
    /// Mistakes at the last line.
    last_mistakes: Vec<Mistake>,
    /// Call frame information at the last line.
    described: Option<Rules>,
}

/// The last line of JSON of a trace that is cut off, with the reason.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Cut {
    kind: &'static str,
    why: String,
}

impl Trace<'_> {
    fn run(
        &mut self,
        mut run: Execution<'_>,
        mut stops: Stops,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        loop {
            let reached = stops.reach(&run);
            let state = State::of(&run);
            let wanted = self.wants(&state);
            if wanted && self.printed >= self.args.limit.0 {
                return self.cut(self.after_limit(), console);
            }
            let row = wanted.then(|| self.row(&run, &state, reached));
            let outcome = run.step();
            if let Some(mut row) = row {
                row.finish(&state, &run, outcome, self.names);
                self.printed += 1;
                self.write(&row, console)?;
            }
            if let Err(outcome) = outcome {
                return self.end(&run, outcome, &mut stops, console);
            }
            if run.machine().executed() >= INSTRUCTION_LIMIT {
                let why = format!("not ended after {INSTRUCTION_LIMIT} instructions");
                return self.cut(why, console);
            }
        }
    }

    fn wants(&self, state: &State) -> bool {
        state.executed >= self.args.from
            && self.only.is_none_or(|only| state.function == Some(only))
    }

    /// Returns the line of an instruction that is about to be executed.
    fn row(&self, run: &Execution<'_>, state: &State, stops: Vec<usize>) -> Row {
        let drawn = self.args.stack || !stops.is_empty() || self.args.at.contains(&state.executed);
        let mut row = Row::new(state, run, stops, self.names);
        row.stack = drawn.then(|| stack::lines(run, self.map, self.names));
        row.cfi = if self.args.cfi { self.described(state.registers.rip) } else { None };
        row
    }

    /// Returns the call frame information of an instruction (VA).
    fn described(&self, rip: u64) -> Option<Rules> {
        let (region, rva) = self.map.find(rip)?;
        let table = region.cfi()?;
        Some(Rules::new(table, &table.row(rva).ok()??))
    }

    fn write(&mut self, row: &Row, console: &mut Console<'_>) -> Result<(), CliError> {
        if self.args.json.wanted {
            return write_json(row, console);
        }
        for stop in &row.stops {
            self.write_stop(*stop, console)?;
        }
        if let Some(lines) = &row.stack {
            stack::write(lines, console.out)?;
        }
        if row.cfi != self.described {
            if let Some(rules) = &row.cfi {
                writeln!(console.out, "{:10}{DIM}{rules}{DIM:#}", "")?;
            }
            self.described.clone_from(&row.cfi);
        }
        row.write(console.out)?;
        let mistakes = row.mistakes();
        for mistake in mistakes.iter().filter(|mistake| !self.last_mistakes.contains(mistake)) {
            let Mistake { who, function, words, .. } = mistake;
            writeln!(console.out, "      {BAD}! {who}{BAD:#} in {function}: {words}")?;
        }
        self.last_mistakes = mistakes;
        Ok(())
    }

    fn write_stop(&self, stop: usize, console: &mut Console<'_>) -> Result<(), CliError> {
        let line = self.fixture.place(stop, None).map_or(0, |place| place.line);
        Ok(writeln!(console.out, "{HEAD}-- stop {stop}{HEAD:#} (line {line})")?)
    }

    fn end(
        &self,
        run: &Execution<'_>,
        outcome: ExecutionEnd,
        stops: &mut Stops,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        let end =
            End::new(run, outcome, stops.reach_end(), || stack::lines(run, self.map, self.names));
        if self.args.json.wanted {
            return write_json(&end, console);
        }
        for stop in &end.stops {
            self.write_stop(*stop, console)?;
        }
        if let Some(lines) = &end.stack {
            stack::write(lines, console.out)?;
        }
        writeln!(console.out, "\nended after {} instructions: {outcome}", end.number)?;
        Ok(())
    }

    /// Prints the reason why the trace is cut off.
    fn cut(&self, why: String, console: &mut Console<'_>) -> Result<(), CliError> {
        if self.args.json.wanted {
            return write_json(&Cut { kind: "cut", why }, console);
        }
        Ok(writeln!(console.out, "\ncut: {why}")?)
    }

    fn after_limit(&self) -> String {
        let lines = counted(self.args.limit.0, "line", "lines");
        format!("{lines}; --limit allows more, --from begins further on")
    }
}
