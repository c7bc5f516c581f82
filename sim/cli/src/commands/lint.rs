//! `clrsim lint`: judges the unwind data of images by executing their functions.

mod image;

use crate::args::LintArgs;
use crate::input::Source;
use crate::render::code::Code;
use crate::render::console::{Console, DIM};
use crate::render::error::CliError;
use crate::render::json;
use crate::render::progress::Progress;
use crate::report::lint::{
    FindingReport, ImageFacts, ImageReport, conventions, groups, write_heading,
};
use crate::{FAILED, PASSED, UNUSABLE};
use clr_lint::{Finding, Linter};
use clr_unwind::CodeRegion;
use clr_unwind::cfi::CfiTable;
use image::Image;
use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

/// Number of functions between two changes of the progress line.
const STEP: usize = 64;

/// Judges the images and returns the exit code.
pub(crate) fn lint(args: &LintArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let mut code = PASSED;
    for (at, path) in args.images.iter().enumerate() {
        if at > 0 && !args.json.wanted {
            writeln!(console.out)?;
        }
        match lint_image(path, args, console) {
            Ok(own) => code = code.max(own),
            // The other images are judged all the same.
            Err(error) if args.images.len() > 1 => {
                console.print_error(&error);
                code = UNUSABLE;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(code)
}

fn lint_image(path: &Path, args: &LintArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(path)?;
    let bytes = source.read()?;
    let Image { format, map, symbols, layout, dotnet } = image::read(&source, &bytes)?;
    let code = Code { map: &map, symbols, image: source.name.clone() };
    let Some(region) = map.regions().next() else { return Ok(PASSED) };
    let conventions = conventions(&layout);
    let linter = Linter::new(&map, region).with_layout(layout);
    let wanted = wanted(&source, &code, region, &linter, args.function.wanted.as_deref())?;
    let len = linter.ranges().len();
    let progress = Progress::with_rate(console.progress, len as u64, source.name.clone());
    let report = linter.run(&wanted, args.jobs.count(), &mut |done| {
        if done % STEP == 0 {
            progress.set(done as u64);
        }
    });
    progress.finish();
    let findings = report.findings.as_slice();
    let unusable = region.cfi().map_or(0, CfiTable::problems);
    let facts = ImageFacts { file: &source.name, format, unusable, dotnet, conventions };
    let image = ImageReport::new(facts, &report);
    if args.json.wanted {
        if !args.summary {
            for finding in findings {
                json::write_json(&FindingReport::new(&code, region, finding), console)?;
            }
        }
        json::write_json(&image, console)?;
    } else {
        image.write(console.out)?;
        for group in groups(findings) {
            write_group(&code, region, group, args, console)?;
        }
    }
    Ok(if findings.is_empty() { PASSED } else { FAILED })
}

/// Prints the findings of one kind, as many as wanted: those first that harm most samples.
fn write_group<'a>(
    code: &Code<'_, 'a>,
    region: &CodeRegion<'a>,
    group: &[Finding],
    args: &LintArgs,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    write_heading(region, group, console.out)?;
    if args.summary {
        return Ok(());
    }
    let limit = args.limit.0;
    let mut worst: Vec<_> = group.iter().collect();
    worst.sort_by_key(|one| Reverse((one.calls, one.instructions.len())));
    for finding in worst.into_iter().take(limit) {
        FindingReport::new(code, region, finding).write(console.out)?;
    }
    let more = group.len().saturating_sub(limit);
    if more > 0 {
        writeln!(console.out)?;
        writeln!(console.out, "  {DIM}{more} more; --limit all prints them{DIM:#}")?;
    }
    Ok(())
}

/// Returns the RVAs in which the wanted functions begin.
fn wanted<'a>(
    source: &Source,
    code: &Code<'_, 'a>,
    region: &CodeRegion<'a>,
    linter: &Linter<'_, 'a>,
    function: Option<&str>,
) -> Result<Range<u32>, CliError> {
    let Some(function) = function else { return Ok(0..u32::MAX) };
    let is_meant = |range: &Range<u32>| code.is_meant(region, range, Some(function));
    let found = linter.ranges().into_iter().find(is_meant);
    found.ok_or_else(|| {
        source.error(format_args!(
            "no unwind data for --function {function}; without it all functions are judged"
        ))
    })
}
