//! What the commands of SOS print: managed frames, and the runtime's Frames.

use super::thread::{PastedCode, PastedFrame, PastedThread};
use super::words::{hex, method_name};
use clr_runtime::FrameKind;

/// Returns the thread with an id, which is added if there is none.
fn thread(threads: &mut Vec<PastedThread>, id: u32) -> &mut PastedThread {
    let index = threads.iter().position(|thread| thread.id == id);
    let index = index.unwrap_or_else(|| {
        threads.push(PastedThread { id, ..PastedThread::default() });
        threads.len() - 1
    });
    &mut threads[index]
}

/// Reads `clrstack`, `clrstack -all` and `clrstack -f -all`, and the modes of `clrthreads`. Of a thread that is there twice the
/// stack counts that has more to say.
pub(super) fn clr_stack(text: &str) -> Vec<PastedThread> {
    let mut threads = Vec::new();
    let mut modes = Vec::new();
    let mut read: Option<(u32, Vec<PastedFrame>)> = None;
    let keep = |threads: &mut Vec<PastedThread>, read: Option<(u32, Vec<PastedFrame>)>| {
        let Some((id, frames)) = read else { return };
        let thread = thread(threads, id);
        let known = |frames: &[PastedFrame]| frames.iter().filter(|it| it.offset.is_some()).count();
        if thread.frames.is_empty() || known(&frames) > known(&thread.frames) {
            thread.frames = frames;
        }
    };
    for line in text.lines() {
        if let Some((_, id)) = line.split_once("OS Thread Id: ") {
            keep(&mut threads, read.take());
            let id = id.split_whitespace().next().and_then(hex);
            read = id.and_then(|id| Some((u32::try_from(id).ok()?, Vec::new())));
        } else if let Some(mode) = mode(line) {
            modes.push(mode);
        } else if let (Some((_, frames)), Some(frame)) = (&mut read, clr_stack_line(line)) {
            let is_again =
                |before: &&PastedFrame| before.sp == frame.sp && before.code == frame.code;
            match frames.last_mut().filter(|before| is_again(&&**before)) {
                Some(before) if before.name.is_empty() => *before = frame,
                Some(_) => {}
                None => frames.push(frame),
            }
        }
    }
    keep(&mut threads, read);
    for (id, is_cooperative) in modes {
        let known = threads.iter_mut().find(|thread| thread.id == id);
        if let Some(known) = known {
            known.is_cooperative = Some(is_cooperative);
        }
    }
    threads
}

/// Reads a line of `clrthreads`: the id of a thread, and whether it is in cooperative mode.
fn mode(line: &str) -> Option<(u32, bool)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let at = words.iter().position(|word| ["Preemptive", "Cooperative"].contains(word))?;
    // OSID, the Thread and its state are before the mode.
    let id = hex(words.get(at.checked_sub(3)?)?)?;
    Some((u32::try_from(id).ok()?, words.get(at) == Some(&"Cooperative")))
}

/// Reads a line of `clrstack`: stack pointer, ip if there is one, and the call site.
fn clr_stack_line(line: &str) -> Option<PastedFrame> {
    let (sp, rest) = line.trim_start().split_once(' ')?;
    let sp = hex(sp).filter(|_| sp.len() >= 8)?;
    let rest = rest.trim_start();
    let site = match rest.split_once(' ') {
        Some((ip, site)) if ip.len() >= 8 && hex(ip).is_some() => site.trim(),
        _ => rest,
    };
    if let Some(frame) = site.strip_prefix('[') {
        let (kind, method) = frame.split_once(']')?;
        let kind = FrameKind::from_name(kind.split(':').next()?.trim())?;
        let (code, name) = (PastedCode::Frame(kind), method_name(method));
        return Some(PastedFrame { code, name, offset: None, sp: Some(sp) });
    }
    managed(site, Some(sp))
}

/// Reads a managed call site: `Module.dll!Type.Method(Arguments) + 17 [file @ 134]`.
fn managed(site: &str, sp: Option<u64>) -> Option<PastedFrame> {
    let name = method_name(site);
    if name.is_empty() || !site.contains('(') {
        return None;
    }
    let after = site.rsplit_once(')').map_or("", |(_, after)| after);
    let offset = after
        .split_once("+ ")
        .and_then(|(_, offset)| offset.split_whitespace().next()?.parse().ok());
    Some(PastedFrame { code: PastedCode::Managed, name, offset, sp })
}

/// Distance between the indentation of a group of threads and the last digit before its frames.
const COUNT: usize = 3;

/// Reads `pstacks`: groups of threads, each with its own frames, before those that the deeper groups above share.
pub(super) fn parallel_stacks(text: &str) -> Vec<PastedThread> {
    let mut threads: Vec<PastedThread> = Vec::new();
    // Groups by their indentation, and the indices of their threads.
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for line in text.lines() {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        if words.starts_with("____") || words.starts_with("==>") {
            groups.clear();
        } else if let Some(ids) = words.strip_prefix("~~~~ ") {
            let first = threads.len();
            let ids = ids.split(',').filter_map(|id| u32::try_from(hex(id.trim())?).ok());
            threads.extend(ids.map(|id| PastedThread { id, ..PastedThread::default() }));
            groups.push((indent, (first..threads.len()).collect()));
        } else if let Some((count, site)) = words.split_once(' ')
            && count.bytes().all(|byte| byte.is_ascii_digit())
            && let Some(frame) = managed(site, None)
        {
            let level = (indent + count.len()).saturating_sub(1 + COUNT);
            let mut shared = Vec::new();
            while let Some((_, of)) = groups.pop_if(|(deep, _)| *deep > level) {
                shared.splice(..0, of);
            }
            if !shared.is_empty() {
                groups.push((level, shared));
            }
            for index in groups.last().into_iter().flat_map(|(_, of)| of) {
                if let Some(thread) = threads.get_mut(*index) {
                    thread.frames.push(frame.clone());
                }
            }
        }
    }
    threads
}

/// Reads `dotnet-stack report`: `Thread (0x48839B):`, and a method a line. Native frames are one line for all of a row.
pub(super) fn dotnet_stack(text: &str) -> Vec<PastedThread> {
    let mut threads: Vec<PastedThread> = Vec::new();
    for line in text.lines() {
        if let Some(id) = line.strip_prefix("Thread (") {
            let id = id.split(')').next().and_then(hex).and_then(|id| u32::try_from(id).ok());
            threads.push(PastedThread { id: id.unwrap_or_default(), ..PastedThread::default() });
            continue;
        }
        let (Some(thread), true) = (threads.last_mut(), line.starts_with(' ')) else { continue };
        if line.trim() == "[Native Frames]" {
            let (code, name) = (PastedCode::Native, "native".to_owned());
            thread.frames.push(PastedFrame { code, name, offset: None, sp: None });
        } else {
            thread.frames.extend(managed(line.trim(), None));
        }
    }
    threads
}
