//! The runs of a profiler on several runtimes, as a table.

use super::account::{Account, Verdict};
use crate::render::console::{BAD, DIM, GOOD, HEAD};
use crate::render::style::Style;
use crate::render::wrap::write_wrapped;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes a line for each runtime, and below what the verdicts rest on.
pub(super) fn write(accounts: &[Account], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = accounts.first() else { return Ok(()) };
    writeln!(out, "{HEAD}{}{HEAD:#}", first.library)?;
    let names = accounts.iter().map(|account| account.runtime.len());
    let width = names.max().unwrap_or_default();
    writeln!(
        out,
        "  {DIM}{:width$}  {:13}  {:>5}  {:>5}  {:>5}  walks{DIM:#}",
        "runtime", "verdict", "calls", "found", "stubs"
    )?;
    for account in accounts {
        let style = if account.verdict == Verdict::Clean { GOOD } else { BAD };
        let calls: u32 = account.calls.iter().map(|calls| calls.count).sum();
        let stubs: u64 = account.not_simulated.iter().map(|calls| calls.count).sum();
        let line = format!(
            "  {:width$}  {style}{:13}{style:#}  {calls:>5}  {:>5}  {stubs:>5}  {}",
            account.runtime,
            account.verdict.word(),
            account.findings.len(),
            walks(account),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    for (text, runtimes) in reasons(accounts) {
        write!(out, "  ")?;
        write_wrapped(out, 4, Style::new(), &format!("{}: {text}", runtimes.join(", ")), "")?;
    }
    Ok(())
}

/// Returns the results of an account's walks, with their numbers.
fn walks(account: &Account) -> String {
    let mut results = BTreeMap::<&str, u32>::new();
    for walk in &account.walks {
        let name = &walk.result;
        let short = name.strip_prefix("CORPROF_E_STACKSNAPSHOT_").unwrap_or(name);
        *results.entry(short.strip_prefix("CORPROF_E_").unwrap_or(short)).or_default() += 1;
    }
    results.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Returns what verdicts rest on, each with its runtimes, in the order of the table.
fn reasons(accounts: &[Account]) -> Vec<(String, Vec<&'static str>)> {
    let mut reasons: Vec<(String, Vec<&'static str>)> = Vec::new();
    for account in accounts {
        let because = account.because.iter().cloned();
        let findings = account.findings.iter().map(|found| found.text.clone());
        for text in because.chain(findings) {
            match reasons.iter_mut().find(|(known, _)| *known == text) {
                Some((_, runtimes)) if runtimes.contains(&account.runtime) => {}
                Some((_, runtimes)) => runtimes.push(account.runtime),
                None => reasons.push((text, vec![account.runtime])),
            }
        }
    }
    reasons
}
