//! `perf script`: samples with their call chains.

use super::thread::{PastedCode, PastedFrame, PastedThread};
use super::words::{file_name, hex, method_name};

/// Reads the samples. Each is a thread as it was at a moment; its id is that of its thread.
pub(super) fn read(text: &str) -> Vec<PastedThread> {
    let mut samples: Vec<PastedThread> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if let Some(frame) = frame(line) {
            if !is_open {
                samples.push(PastedThread::default());
                is_open = true;
            }
            if let Some(sample) = samples.last_mut() {
                sample.frames.push(frame);
            }
        } else if line.starts_with(char::is_whitespace) || line.trim().is_empty() {
            is_open = false;
        } else {
            samples.push(PastedThread { id: thread(line), ..PastedThread::default() });
            is_open = true;
        }
    }
    samples.retain(|sample| !sample.frames.is_empty());
    samples
}

/// Returns the thread of the first line of a sample: `dotnet 1234/1240 [001] 10.5: cycles:`, with or without the process.
fn thread(line: &str) -> u32 {
    let number = |word: &str| word.rsplit('/').next()?.parse().ok();
    line.split_whitespace().skip(1).find_map(number).unwrap_or_default()
}

/// Reads a frame: `7f2b3c1d2e3f JIT_New+0x12 (/usr/share/dotnet/libcoreclr.so)`. Methods are those of a map that perf reads.
pub(super) fn frame(line: &str) -> Option<PastedFrame> {
    let words = line.trim_start();
    let (address, rest) = words.split_once(' ')?;
    hex(address).filter(|_| line.len() > words.len() && !address.starts_with("0x"))?;
    let (site, path) = rest.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
    let (site, offset) = match site.rsplit_once("+0x") {
        Some((site, offset)) => (site, hex(offset)),
        None => (site, None),
    };
    let process = file_name(path).strip_prefix("perf-").and_then(|name| name.strip_suffix(".map"));
    let is_map = process.is_some();
    let frame = |code, name| Some(PastedFrame { code, name, offset, sp: None });
    // `void [Hang] Shop.Program::Main(string[])[Tier0]`: its return type, module and tier.
    match site.split_once("] ") {
        Some((_, method)) if is_map => frame(PastedCode::Managed, method_name(method)),
        _ if site == "[unknown]" => frame(PastedCode::Unknown, String::new()),
        _ if is_map => frame(PastedCode::Native, "stub".to_owned()),
        _ => frame(PastedCode::Native, format!("{}!{}", file_name(path), method_name(site))),
    }
}
