//! `clrsim lint`: judges the unwind data of images by executing their functions.

mod baseline;
mod dotnet;
mod image;

use crate::args::{LintArgs, LintFormat};
use crate::input::Source;
use crate::render::code::Code;
use crate::render::console::{Console, DIM};
use crate::render::error::CliError;
use crate::render::json;
use crate::render::progress::Progress;
use crate::report::lint::{
    FindingReport, Fingerprint, ImageFacts, ImageReport, Sarif, conventions, groups, write_heading,
};
use crate::{FAILED, PASSED, UNUSABLE};
use baseline::Baseline;
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
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let sarif = args.format.map(|LintFormat::Sarif| Sarif::new(baseline.is_some()));
    let mut run = Run { args, baseline: baseline.unwrap_or_default(), sarif };
    let mut code = PASSED;
    for (at, path) in args.images.iter().enumerate() {
        if at > 0 && !args.json.wanted && run.sarif.is_none() {
            writeln!(console.out)?;
        }
        match run.lint_image(path, console) {
            Ok(own) => code = code.max(own),
            // The other images are judged all the same.
            Err(error) if args.images.len() > 1 => {
                console.print_error(&error);
                code = UNUSABLE;
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(sarif) = run.sarif {
        sarif.write(code != UNUSABLE, console)?;
    }
    Ok(code)
}

/// A run over all images.
struct Run<'r> {
    args: &'r LintArgs,
    baseline: Baseline,
    /// The document that is printed at the end, in place of text.
    sarif: Option<Sarif>,
}

impl Run<'_> {
    fn lint_image(&mut self, path: &Path, console: &mut Console<'_>) -> Result<u8, CliError> {
        let args = self.args;
        let source = Source::find(path)?;
        let bytes = source.read()?;
        let Image { format, map, symbols, layout, dotnet } = image::read(&source, &bytes)?;
        let code = Code { map: &map, symbols, image: source.name.clone() };
        let Some(region) = map.regions().next() else { return Ok(PASSED) };
        let conventions = conventions(&layout);
        let linter = Linter::new(&map, region).with_layout(layout);
        let function = args.function.wanted.as_deref();
        let wanted = wanted(&code, region, &linter, function);
        let len = linter.ranges().len();
        let progress = Progress::with_rate(console.progress, len as u64, &source.name);
        let whole = wanted.clone().unwrap_or(0..u32::MAX);
        let mut report = linter.run(&whole, args.jobs.count(), &mut |done| {
            if done % STEP == 0 {
                progress.set(done as u64);
            }
        });
        progress.finish();
        if wanted.is_none() {
            // A function without data has no range, and is known by what was found in it.
            report.findings.retain(|one| code.is_meant(region, &one.function, function));
            if report.findings.is_empty() {
                let function = function.unwrap_or_default();
                return Err(source.error(format_args!(
                    "no unwind data for --function {function}, and no finding in it; without it all \
                     functions are judged"
                )));
            }
        }
        let findings = report.findings.as_slice();
        let judged: Vec<_> = findings.iter().map(|it| self.judge(&code, region, it)).collect();
        let failing = judged.iter().filter(|it| it.fails()).count();
        let unusable = region.cfi().map_or(0, CfiTable::problems);
        let facts = ImageFacts { file: &source.name, format, unusable, dotnet, conventions };
        let image = ImageReport::new(facts, &report, failing);
        if let Some(sarif) = &mut self.sarif {
            for finding in &judged {
                sarif.add(finding);
            }
        } else if args.json.wanted {
            for finding in judged.iter().filter(|_| !args.summary) {
                json::write_json(finding, console)?;
            }
            json::write_json(&image, console)?;
        } else {
            image.write(console.out)?;
            let mut judged = judged.as_slice();
            for group in groups(findings) {
                let (own, others) = judged.split_at(group.len().min(judged.len()));
                judged = others;
                write_group(region, group, own, args, console)?;
            }
        }
        Ok(if failing == 0 { PASSED } else { FAILED })
    }

    /// Returns a finding in words, and whether it was known beforehand.
    fn judge<'a>(
        &mut self,
        code: &Code<'_, 'a>,
        region: &CodeRegion<'a>,
        finding: &Finding,
    ) -> FindingReport {
        let fingerprint = Fingerprint::new(code, region, finding);
        let is_known = self.baseline.take(&code.image, fingerprint);
        let is_allowed = self.args.allow.contains(&finding.cause);
        FindingReport::new(code, region, finding).with_state(is_allowed, is_known)
    }
}

/// Prints the findings of one kind that the baseline does not have, as many as wanted: those first that harm
/// most samples.
fn write_group(
    region: &CodeRegion<'_>,
    group: &[Finding],
    judged: &[FindingReport],
    args: &LintArgs,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let mut new: Vec<_> = group.iter().zip(judged).filter(|(_, it)| !it.is_known()).collect();
    let findings: Vec<_> = new.iter().map(|(finding, _)| (*finding).clone()).collect();
    if findings.is_empty() {
        return Ok(());
    }
    write_heading(region, &findings, console.out)?;
    if args.summary {
        return Ok(());
    }
    let limit = args.limit.0;
    new.sort_by_key(|(one, _)| Reverse((one.calls, one.instructions.len())));
    for (_, report) in new.iter().take(limit) {
        report.write(console.out)?;
    }
    let more = new.len().saturating_sub(limit);
    if more > 0 {
        writeln!(console.out)?;
        writeln!(console.out, "  {DIM}{more} more; --limit all prints them{DIM:#}")?;
    }
    Ok(())
}

/// Returns the RVAs of the wanted function; `None` if the unwind data has no range for it.
fn wanted<'a>(
    code: &Code<'_, 'a>,
    region: &CodeRegion<'a>,
    linter: &Linter<'_, 'a>,
    function: Option<&str>,
) -> Option<Range<u32>> {
    let Some(function) = function else { return Some(0..u32::MAX) };
    let is_meant = |range: &Range<u32>| code.is_meant(region, range, Some(function));
    linter.ranges().into_iter().find(is_meant)
}
