//! `clrsim host --schedules`: histories of a profiler with its own threads.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(super) use linux::search;

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
pub(super) use elsewhere::search;

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod elsewhere {
    use crate::args::HostArgs;
    use crate::input::Source;
    use crate::render::console::Console;
    use crate::render::error::CliError;

    /// Refuses the search: only on Linux threads of a profiler are scheduled.
    pub(in super::super) fn search(
        _: &HostArgs,
        _: u64,
        _: &Source,
        _: &mut Console<'_>,
    ) -> Result<u8, CliError> {
        let words = "--schedules is for Linux on x86-64 with glibc: elsewhere threads of profilers are not scheduled";
        Err(CliError::Text(words.to_owned()))
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod linux {
    use super::super::{child, newest};
    use crate::args::HostArgs;
    use crate::input::{Source, slashed};
    use crate::render::console::{BAD, Console, GOOD, HEAD};
    use crate::render::error::CliError;
    use crate::render::json::write_json;
    use crate::render::progress::Progress;
    use crate::{FAILED, PASSED};
    use clr_explore::Strategy;
    use clr_runtime::generation::Generation;
    use clrsim::scheduled::{Died, GuestEnding, Kept, ScheduledVisit, fix_addresses};
    use serde::Serialize;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// An outcome of histories.
    #[derive(Clone, Debug, Serialize)]
    struct Outcome {
        /// The fingerprint of the verdict, or the end of the process; `ends` for histories that do not
        /// fail.
        end: String,
        count: u64,
        /// Number of the first such history.
        first: u64,
        /// The verdict and how it came about; empty if the process ended, or the history does not fail.
        story: Vec<String>,
        /// True if the first history came out the same once more.
        repeats: bool,
    }

    /// The histories of a profiler on a runtime.
    #[derive(Clone, Debug, Serialize)]
    struct Histories {
        kind: &'static str,
        library: String,
        file: String,
        runtime: &'static str,
        seed: u64,
        first: u64,
        schedules: u64,
        outcomes: Vec<Outcome>,
    }

    const ENDS: &str = "ends";

    fn word(ended: &Result<GuestEnding, Died>) -> String {
        match ended {
            Ok(ending) => ending.verdict.clone().unwrap_or_else(|| ENDS.to_owned()),
            Err(died) => died.to_string(),
        }
    }

    /// Searches histories on each of the runtimes. Returns the exit code.
    pub(in super::super) fn search(
        args: &HostArgs,
        schedules: u64,
        source: &Source,
        console: &mut Console<'_>,
    ) -> Result<u8, CliError> {
        let library = slashed(&args.library);
        if fix_addresses() {
            let again = || -> std::io::Result<std::convert::Infallible> {
                let tool = std::env::current_exe()?;
                Err(Command::new(tool).args(std::env::args_os().skip(1)).exec())
            };
            // With random addresses it works as well.
            let _ = again();
        }
        let class = child::class(args)?;
        let text = source.read_text()?;
        let path = std::path::absolute(&args.library)
            .map_err(|error| CliError::new(&library, error.kind()))?;
        let mut code = PASSED;
        for generation in args.on.unwrap_or(newest()).iter() {
            let mut visit = ScheduledVisit::open(&path, class, &text, generation)
                .map_err(|error| CliError::new(&library, error))?;
            let found = explore(args, schedules, &mut visit, console);
            let found = Histories {
                kind: "histories",
                library: library.clone(),
                file: source.name.clone(),
                runtime: generation.name(),
                seed: args.seed,
                first: args.first,
                schedules,
                outcomes: found,
            };
            if found.outcomes.iter().any(|outcome| outcome.end != ENDS) {
                code = FAILED;
            }
            if args.json {
                write_json(&found, console)?;
            } else {
                write(&found, generation, console)?;
            }
        }
        Ok(code)
    }

    /// Executes histories, and groups them by their outcomes.
    fn explore(
        args: &HostArgs,
        schedules: u64,
        visit: &mut ScheduledVisit,
        console: &mut Console<'_>,
    ) -> Vec<Outcome> {
        let progress = Progress::with_rate(console.progress, schedules, "histories".to_owned());
        let mut outcomes: Vec<Outcome> = Vec::new();
        let mut search = Strategy::Random.search(args.seed);
        let mut run = |number, kept| {
            search.begin(number);
            visit.run_in_copy(&mut *search, kept)
        };
        for number in args.first..args.first.saturating_add(schedules) {
            let ended = run(number, Kept::Ending);
            progress.set(number - args.first + 1);
            let outcome = word(&ended);
            if let Some(known) = outcomes.iter_mut().find(|known| known.end == outcome) {
                known.count += 1;
                continue;
            }
            let (mut story, mut repeats) = (Vec::new(), true);
            if outcome != ENDS {
                let again = run(number, Kept::Story);
                let digest = |ended: &Result<GuestEnding, Died>| {
                    ended.as_ref().map(|ending| ending.digest).map_err(|died| *died)
                };
                repeats = digest(&again) == digest(&ended);
                story = again.map(|ending| ending.story).unwrap_or_default();
            }
            outcomes.push(Outcome { end: outcome, count: 1, first: number, story, repeats });
        }
        progress.finish();
        outcomes
            .sort_by(|one, other| other.count.cmp(&one.count).then(one.first.cmp(&other.first)));
        outcomes
    }

    /// Writes the outcomes, and the story of each failure.
    fn write(
        found: &Histories,
        generation: Generation,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        let Histories { library, file, seed, first, schedules, outcomes, .. } = found;
        let out = &mut *console.out;
        writeln!(
            out,
            "{HEAD}{library}{HEAD:#} over {file} on {}: {schedules} histories from {first}, seed {seed}",
            generation.name()
        )?;
        for Outcome { end, count, first, .. } in outcomes {
            let style = if end == ENDS { GOOD } else { BAD };
            let since =
                if end == ENDS { String::new() } else { format!("   first: history {first}") };
            writeln!(out, "  {count:>8}  {style}{end}{style:#}{since}")?;
        }
        for Outcome { end, first, story, repeats, .. } in outcomes {
            if end == ENDS {
                continue;
            }
            writeln!(out)?;
            let headline = story.first().unwrap_or(end);
            writeln!(out, "{BAD}history {first}: {headline}{BAD:#}")?;
            for line in story.iter().skip(1) {
                writeln!(out, "{}", format!("  {line}").trim_end())?;
            }
            if !repeats {
                writeln!(
                    out,
                    "  it did not come out the same once more: the profiler depends on something that is not scheduled"
                )?;
            }
            writeln!(
                out,
                "  again: clrsim host {library} {file} --on {} --seed {seed} --first {first} --schedules 1",
                generation.name()
            )?;
        }
        Ok(())
    }
}
