//! Walks, and their shapes.

use super::names::Named;
use super::{Block, Trace};
use clr_walker::profiling::{
    CallError, FunctionId, HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame,
    SnapshotRequest, ThreadId,
};

/// Size of the largest CONTEXT of x64 that is kept, in bytes.
const CONTEXT_ROOM: usize = 0x1000;
/// Most frames that a shape has.
const FRAMES: usize = 200;

/// A CONTEXT, aligned as one is.
#[repr(align(64))]
#[derive(Clone, Debug)]
pub(super) struct Context([u8; CONTEXT_ROOM]);

/// A walk as a trace shows it.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) result: HResult,
    /// The frames' methods, `None` for markers.
    frames: Vec<Option<Named>>,
    /// The innermost method and its ip (VA).
    innermost: Option<(FunctionId, u64)>,
}

impl Shape {
    /// Returns the names of the program's methods, `+` for others and `*` for markers.
    pub(super) fn text(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        for frame in &self.frames {
            let word = match frame {
                Some(named) if named.is_own => &named.text,
                Some(_) => "+",
                None => "*",
            };
            let is_again = matches!(word, "+" | "*") && words.last() == Some(&word);
            if !is_again {
                words.push(word);
            }
        }
        words.join(" ")
    }

    /// Returns true if a method of the program is on the stack.
    pub(super) fn is_in_program(&self) -> bool {
        self.frames.iter().flatten().any(|named| named.is_own)
    }

    /// Returns true if the innermost method is the program's.
    pub(super) fn is_innermost_of_program(&self) -> bool {
        self.frames.iter().flatten().next().is_some_and(|named| named.is_own)
    }
}

/// The arguments of a walk.
#[derive(Clone, Copy)]
pub(super) struct Walk<'w> {
    pub(super) thread: ThreadId,
    pub(super) flags: u32,
    pub(super) seed: Option<(&'w Context, u32)>,
    /// The first callback returns this.
    pub(super) returns: HResult,
}

impl Walk<'_> {
    /// The walk of a thread without a seed.
    pub(super) const fn of(thread: ThreadId, flags: u32) -> Self {
        Self { thread, flags, seed: None, returns: HResult::OK }
    }
}

impl Trace {
    /// Walks the calling thread.
    pub(super) fn walk_own(&self) -> Shape {
        self.walk(Walk::of(ThreadId(0), 0), &mut Vec::new())
    }

    /// Walks a stack, and collects the contexts of its methods with their sizes in bytes.
    pub(super) fn walk(&self, walk: Walk<'_>, contexts: &mut Vec<(Context, u32)>) -> Shape {
        let mut found = Vec::new();
        let mut on_frame = |frame: &mut SnapshotFrame<'_>| {
            if found.len() < FRAMES {
                found.push((frame.function, frame.ip));
            }
            let size = frame.context.len();
            if frame.function.is_some() && (1..=CONTEXT_ROOM).contains(&size) && contexts.len() < 2
            {
                let mut context = Context([0; CONTEXT_ROOM]);
                if let Some(room) = context.0.get_mut(..size) {
                    room.copy_from_slice(frame.context);
                }
                contexts.push((context, size as u32));
            }
            walk.returns
        };
        let flags = SnapshotFlags(walk.flags);
        let seed = walk.seed.map(|(context, _)| &context.0[..]);
        let size = walk.seed.map_or(0, |(_, size)| size);
        let callback = Some(&mut on_frame as &mut dyn FnMut(&mut SnapshotFrame<'_>) -> HResult);
        let request = SnapshotRequest::of(walk.thread, flags).seeded(seed);
        let request = SnapshotRequest { context_size: size, ..request };
        let called = self.info.do_stack_snapshot(&request, callback);
        let result = match called {
            Ok(()) => HResult::OK,
            Err(CallError::Failed(result)) => result,
        };
        let innermost = found.iter().find_map(|(function, ip)| Some(((*function)?, *ip)));
        let name = |function| self.names.function(&self.raw, function);
        let frames = found.into_iter().map(|(function, _)| function.map(name)).collect();
        Shape { result, frames, innermost }
    }

    /// Walks the calling thread in several ways. `first` is the walk by NULL without flags.
    pub(super) fn ask_walks(&self, block: &mut Block, own: ThreadId, first: &Shape) {
        block.add_walk("DoStackSnapshot(NULL, 0)", first);
        let mut contexts = Vec::new();
        let with_contexts = self.walk(Walk::of(ThreadId(0), 1), &mut contexts);
        block.add_walk("DoStackSnapshot(NULL, 1)", &with_contexts);
        if own.0 != 0 {
            let by_id = self.walk(Walk::of(own, 0), &mut Vec::new());
            block.add_walk("DoStackSnapshot(own id, 0)", &by_id);
        }
        for (place, (context, size)) in ["first", "second"].iter().zip(&contexts) {
            let seed = Some((context, *size));
            let seeded = Walk { seed, ..Walk::of(ThreadId(0), 0) };
            let call = format!("DoStackSnapshot(NULL, 0, CONTEXT of the {place} method)");
            block.add_walk(&call, &self.walk(seeded, &mut Vec::new()));
        }
        for (returns, name) in [(HResult::FALSE, "S_FALSE"), (HResult::FAIL, "E_FAIL")] {
            let stopped = Walk { returns, ..Walk::of(ThreadId(0), 0) };
            let call = format!("DoStackSnapshot(NULL, 0) that returns {name}");
            block.add_walk(&call, &self.walk(stopped, &mut Vec::new()));
        }
        let bad = self.walk(Walk::of(ThreadId(0), 2), &mut Vec::new());
        block.add("DoStackSnapshot(NULL, 2)", bad.result, &bad.text());
        if let Some((function, ip)) = first.innermost {
            let found = self.info.get_function_from_ip(ip);
            let is_same = found.is_ok_and(|found| found == function);
            let same = if is_same { "the same" } else { "" };
            block.add("GetFunctionFromIP(of the first method)", result(&found), same);
            let found = self.info.get_function_from_ip2(ip);
            block.add("GetFunctionFromIP2(of the first method)", result(&found), "");
            let found = self.info.get_function_from_ip3(ip);
            block.add("GetFunctionFromIP3(of the first method)", result(&found), "");
        }
        self.ask_in_walk(block);
    }

    /// Makes calls in a callback of a walk of the calling thread: one that needs a callback of the runtime around it,
    /// and, in the first frame of a second function, one that gives the frame's frameInfo with the function before.
    fn ask_in_walk(&self, block: &mut Block) {
        let around = result(&self.info.get_function_from_ip2(0));
        let (mut inside, mut foreign, mut last) = (None, None, None);
        let mut on_frame = |frame: &mut SnapshotFrame<'_>| {
            inside.get_or_insert_with(|| result(&self.info.get_function_from_ip2(0)));
            if let (Some(function), Some(last)) = (frame.function, last)
                && function != last
                && foreign.is_none()
            {
                let info = self.info.get_function_info2(last, Some(frame.frame_info), 0);
                foreign = Some(result(&info));
            }
            last = frame.function.or(last);
            HResult::OK
        };
        let request = SnapshotRequest::of(ThreadId(0), SnapshotFlags(0));
        let _ = self.info.do_stack_snapshot(&request, Some(&mut on_frame));
        if let Some(inside) = inside {
            let given = if inside == around { "as around it" } else { "" };
            block.add("GetFunctionFromIP2(0) in a walk", inside, given);
        }
        if let Some(foreign) = foreign {
            block.add("GetFunctionInfo2(with the frameInfo of another)", foreign, "");
        }
    }
}

/// Returns the HRESULT of a call.
pub(super) fn result<T>(called: &Result<T, CallError<std::convert::Infallible>>) -> HResult {
    match called {
        Ok(_) => HResult::OK,
        Err(CallError::Failed(result)) => *result,
        Err(CallError::Fatal(never)) => match *never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_name_the_program_and_fold_the_rest() {
        let named = |text: &str, is_own| Some(Named { text: text.to_owned(), is_own });
        let shape = |frames| Shape { result: HResult::OK, frames, innermost: None };
        let library = || named("System.GC.Collect", false);
        let found = shape(vec![
            library(),
            library(),
            named("Doors.A", true),
            named("Doors.A", true),
            None,
            None,
            library(),
            None,
        ]);
        assert_eq!(found.text(), "+ Doors.A Doors.A * + *");
        assert!(found.is_in_program() && !found.is_innermost_of_program());
        assert!(shape(vec![None, named("Doors.A", true)]).is_innermost_of_program());
        assert!(!shape(vec![library()]).is_in_program());
    }
}
