//! `k` of WinDbg.

use super::thread::{PastedCode, PastedFrame, PastedThread};
use super::words::{hex, method_name};

/// Reads stacks: one after each line with `Child-SP`. The id is that in the line before, `   0  Id: 1e40.1f2c Suspend: 1`.
pub(super) fn read(text: &str) -> Vec<PastedThread> {
    let mut threads: Vec<PastedThread> = Vec::new();
    let mut id = 0;
    for line in text.lines() {
        if let Some((_, ids)) = line.split_once("Id: ") {
            let thread = ids.split_whitespace().next().and_then(|ids| ids.rsplit('.').next());
            id = thread.and_then(hex).and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
        } else if line.contains("Child-SP") {
            threads.push(PastedThread { id, ..PastedThread::default() });
            id = 0;
        } else if let (Some(thread), Some(frame)) = (threads.last_mut(), frame(line)) {
            thread.frames.push(frame);
        }
    }
    threads
}

/// Reads a frame: `02 000000d5`1d97e6c8 00007ffb`3c1b3f2e ntdll!NtWaitForSingleObject+0x14`, with or without the number.
fn frame(line: &str) -> Option<PastedFrame> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let sp = if first.len() >= 8 { first } else { words.next()? };
    let sp = hex(sp).filter(|_| sp.len() >= 8)?;
    words.next().and_then(hex)?;
    let site = words.collect::<Vec<_>>().join(" ");
    // `kv` has arguments before the call site.
    let site = site.rsplit_once(" : ").map_or(site.as_str(), |(_, site)| site);
    let site = site.split(" [").next().unwrap_or(site);
    let (function, offset) = match site.rsplit_once("+0x") {
        Some((function, offset)) => (function, hex(offset)),
        None => (site, None),
    };
    let (code, name) = match function.split_once('!') {
        // C++ has `::` where managed code has dots.
        Some((_, method)) if method.contains('.') && !method.contains("::") => {
            (PastedCode::Managed, method_name(method))
        }
        Some((module, function)) => {
            (PastedCode::Native, format!("{module}!{}", method_name(function)))
        }
        None if function.starts_with("0x") || function.is_empty() => {
            (PastedCode::Unknown, String::new())
        }
        None => (PastedCode::Native, format!("{function}!unknown")),
    };
    Some(PastedFrame { code, name, offset, sp: Some(sp) })
}
