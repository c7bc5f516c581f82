//! The sentences for events.

use super::{Scene, StoryWriter};
use crate::explain::{
    DropReason, EntryCheck, Event, HiddenReason, NamedAddress, SilentReason, WalkStart,
    first_managed,
};
use crate::frame::FrameShape;
use crate::generation::StackCheck;
use crate::profiling::CallbackKind;
use crate::{ContextSafety, FrameKind, Funclet};

/// Limit on the names in a list; for more, only the number is printed.
const MOST_NAMES: usize = 4;

impl StoryWriter<'_> {
    /// Returns the sentence for events that belong together.
    pub(super) fn words_of_run(&self, run: &[Event], scene: &Scene) -> String {
        match run {
            [Event::Passed(_), ..] => {
                let checks = run.iter().filter_map(|event| match event {
                    Event::Passed(check) => Some(passed(*check).to_owned()),
                    _ => None,
                });
                format!("passed: {}", checks.collect::<Vec<_>>().join(", "))
            }
            [Event::Mode { .. }, Event::SeedIgnored] => {
                "the target is preemptive: the seed is not looked at".to_owned()
            }
            [Event::FrameFollowed { at, kind, .. }, Event::ResumableFrame { .. }] => format!(
                "{kind} at {at:#x} leads to managed code, but is resumable, and the call itself has \
                 suspended the target: the walk ends"
            ),
            [Event::FrameDropped { why, .. }, ..] => self.dropped(run, *why, scene),
            [Event::Hidden { why, .. }, ..] => self.hidden(run, *why),
            [first, ..] => self.words(first, scene),
            [] => String::new(),
        }
    }

    fn place(&self, address: u64) -> NamedAddress {
        self.names.place(address)
    }

    /// Returns the name of the managed frame at this ip, or of the marker.
    fn frame(&self, ip: u64) -> String {
        match self.place(ip) {
            place @ NamedAddress::Managed { .. } => place.to_string(),
            place => format!("the marker at {place}"),
        }
    }

    /// Returns the address, followed by the name of its place if it has one.
    fn both(&self, address: u64) -> String {
        match self.place(address) {
            NamedAddress::Unknown { .. } => format!("{address:#x}"),
            place => format!("{address:#x} ({place})"),
        }
    }

    /// Returns the sentence for one event.
    pub(super) fn words(&self, event: &Event, scene: &Scene) -> String {
        if let Some(fixed) = fixed(event) {
            return fixed.to_owned();
        }
        match *event {
            Event::Called { thread, flags, seed } => {
                let of = if thread.0 == 0 { "thread 0" } else { "a thread by its id" };
                let seed = match seed {
                    Some(rip) => format!("a seed with rip {}", self.both(rip)),
                    None => "no seed".to_owned(),
                };
                format!("DoStackSnapshot of {of}, infoFlags {:#x}, {seed}", flags.0)
            }
            Event::BadFlags(flags) => {
                format!("refused: infoFlags {:#x} have bits beside bit 0", flags.0)
            }
            Event::SuspensionForbidden(count) => {
                let s = if count == 1 { "" } else { "s" };
                format!("refused: the target is in {count} forbid-suspend region{s}")
            }
            Event::CalledBack(callback) => {
                format!("the profiler is called back: {}", CallbackKind::from(callback).name())
            }
            Event::ContextUnsafe { safety } => {
                format!("refused: the target's context is not safe to use: {}", unsafe_by(safety))
            }
            Event::CodeManagerBusy { ip } => format!(
                "refused: whether {ip:#x} is managed code cannot be looked up, because \
                 another thread writes the code manager's tables"
            ),
            Event::ManagedButPreemptive { ip } => format!(
                "refused: the target's rip is in managed code, {}, but it has gone preemptive",
                self.place(ip)
            ),
            Event::FrameBelowSp { frame, rsp } => format!(
                "refused: the topmost Frame, at {frame:#x}, lies below the target's rsp {rsp:#x}"
            ),
            Event::SeedUnmanaged { ip, own } => self.unmanaged(ip, own, scene),
            Event::SeedManaged { ip } => format!("rip is in managed code: {}", self.place(ip)),
            Event::Started(start) => format!("the walk starts from {}", start_point(start)),
            Event::Unhijacked { slot, address } => format!(
                "the hijacked return address at {slot:#x} is put back: {}",
                self.place(address)
            ),
            Event::CannotUnwindHelper { ip } => {
                format!("the native code of a helper cannot be unwound: {}", self.place(ip))
            }
            Event::SeedTooShort { readable, needed } => {
                format!("of the seed {readable:#x} bytes can be read, but {needed:#x} are copied")
            }
            Event::NoFrame { at, word } => format!(
                "the entry at {at:#x} on the Frame chain is no Frame: its first word is {word:#x}"
            ),
            Event::NeverLeft { at, ip } => format!(
                "the active InlinedCallFrame at {at:#x} returns to unmanaged code, {}: the walk comes back to it without end",
                self.place(ip)
            ),
            Event::Fault { at } => format!("memory at {at:#x} cannot be read"),
            Event::BadCookie { at } => format!("the GS cookie at {at:#x} is wrong"),
            Event::Injected(result) => format!("made to fail with {result}: fault injection"),
            Event::Aborted(result) => format!("the callback returned {result}: the walk ends"),
            Event::Ended(outcome) => {
                let count = scene.callbacks;
                let s = if count == 1 { "" } else { "s" };
                format!("ended: {outcome} after {count} callback{s}")
            }
            _ => self.step(event, scene),
        }
    }

    /// Returns the sentence for a step of the walk.
    fn step(&self, event: &Event, scene: &Scene) -> String {
        match *event {
            Event::Managed { ip, rsp, caller_sp, .. } => {
                format!("the walk is at {}, rsp {rsp:#x}, caller SP {caller_sp:#x}", self.place(ip))
            }
            Event::FrameFollowed { at, kind, ip, rsp } => {
                let registers = registers_set(kind.shape());
                format!("{kind} at {at:#x} leads to {}, rsp {rsp:#x}{registers}", self.place(ip))
            }
            Event::FrameCompleted { at } => format!(
                "the Frame at {at:#x} is asked for the first time: its helper's native code is \
                 unwound"
            ),
            Event::FuncletMet { ip, parent: Some(sp) } => format!(
                "{} is a handler funclet: hidden, with all up to its method's frame, whose caller \
                 SP is {sp:#x}",
                self.place(ip)
            ),
            Event::FuncletMet { ip, parent: None } => format!(
                "{} is a handler funclet that managed code has called: only it is hidden",
                self.place(ip)
            ),
            Event::NotReported { at, why } => match why {
                SilentReason::Frame => {
                    format!("the Frame at {at:#x} has a method, but is no frame to report")
                }
                SilentReason::Dynamic => {
                    format!("{} is not reported: a method without metadata", self.place(at))
                }
                SilentReason::ExceptionHandling => format!(
                    "{} is not reported: managed exception handling, or called by it",
                    self.frame(at)
                ),
            },
            Event::ReportedManaged { function, ip, rsp, funclet, .. } => {
                let n = scene.callbacks;
                let place = self.place(ip);
                let named = self.names.function(function);
                let name = match (&place, named) {
                    (NamedAddress::Managed { method, .. }, Some(name)) if *method != name => {
                        format!("{name} at {place}")
                    }
                    _ => place.to_string(),
                };
                let within = match funclet {
                    None => "",
                    Some(Funclet::Filter) => ", in a filter",
                    Some(Funclet::Handler) => ", in a handler that no exception tracker knows",
                };
                format!("callback {n}: {name}, ip {ip:#x}, rsp {rsp:#x}{within}")
            }
            Event::ReportedMarker { ip, rsp, .. } => {
                let n = scene.callbacks;
                let called = match scene.managed {
                    Some(Event::Managed { ip, .. }) => match self.place(ip) {
                        NamedAddress::Managed { method, .. } => format!(" that called {method}"),
                        _ => String::new(),
                    },
                    _ => String::new(),
                };
                let ip = self.both(ip);
                format!("callback {n}: marker of the native code{called}, ip {ip}, rsp {rsp:#x}")
            }
            Event::OffStack { rsp, stack: (limit, base) } => match self.generation.stack_check() {
                StackCheck::Bounds => {
                    format!("rsp {rsp:#x} is not on the stack, {limit:#x} to {base:#x}")
                }
                StackCheck::Readable => {
                    format!("below rsp {rsp:#x} or at its rip there is no readable memory")
                }
            },
            Event::CannotUnwind { ip } => {
                format!(
                    "{} cannot be unwound: its unwind data are broken, or its code is not there",
                    self.place(ip)
                )
            }
            _ => String::new(),
        }
    }

    fn unmanaged(&self, ip: u64, own: bool, scene: &Scene) -> String {
        let whose = if own { "refused: the target's own" } else { "seed refused: its" };
        let what = match self.place(ip) {
            _ if ip == 0 => "is 0".to_owned(),
            NamedAddress::Native(name) => format!("{ip:#x} is in native code, {name}"),
            _ => format!("{ip:#x} is not in managed code"),
        };
        // Only in these cases the start of a call without a seed is certain.
        let chain = first_managed(self.chain).filter(|_| own || !scene.other);
        let advice = match chain {
            Some(led) if own => format!(
                "; that its Frame chain would have led to {} does not count",
                self.place(led)
            ),
            Some(led) => {
                format!("; without a seed, the Frame chain would have led to {}", self.place(led))
            }
            None => String::new(),
        };
        format!("{whose} rip {what}{advice}")
    }

    fn dropped(&self, run: &[Event], why: DropReason, scene: &Scene) -> String {
        let name = |at: u64, kind: Option<FrameKind>| match kind {
            Some(kind) => format!("{kind} at {at:#x}"),
            None => format!("no Frame at {at:#x}"),
        };
        let frames = run.iter().filter_map(|event| match *event {
            Event::FrameDropped { at, kind, why: DropReason::LeadsToUnmanagedCode(ip) } => {
                Some(format!("{} (to {})", name(at, kind), self.place(ip)))
            }
            Event::FrameDropped { at, kind, .. } => Some(name(at, kind)),
            _ => None,
        });
        let count = run.len();
        let listed = listed(&frames.collect::<Vec<_>>(), "Frames");
        match why {
            DropReason::BelowCallerSp(sp) => {
                let whose = match scene.managed {
                    Some(Event::Managed { ip, .. }) => match self.place(ip) {
                        NamedAddress::Managed { method, .. } => {
                            format!(", the caller SP of {method}")
                        }
                        _ => String::new(),
                    },
                    _ => String::new(),
                };
                let (frames, are) = if count == 1 { ("Frame", "is") } else { ("Frames", "are") };
                format!("{count} {frames} below {sp:#x}{whose}, {are} dropped unseen: {listed}")
            }
            DropReason::LeadsNowhere => {
                let lead = if count == 1 { "leads" } else { "lead" };
                format!("{listed} {lead} nowhere")
            }
            DropReason::LeadsToUnmanagedCode(_) => {
                let lead = if count == 1 { "leads" } else { "lead" };
                format!("{listed} {lead} to unmanaged code: left behind")
            }
        }
    }

    fn hidden(&self, run: &[Event], why: HiddenReason) -> String {
        let places = run.iter().filter_map(|event| match *event {
            Event::Hidden { ip, .. } => Some(self.frame(ip)),
            _ => None,
        });
        let places: Vec<_> = places.collect();
        let are = if places.len() == 1 { "is" } else { "are" };
        let why = match why {
            HiddenReason::IlStub => "an IL stub",
            HiddenReason::Funclet => "a handler funclet",
            HiddenReason::BelowFunclet => "between a handler funclet and its method",
            HiddenReason::Unwound => "the current exception has unwound this part of the stack",
        };
        format!("{} {are} hidden: {why}", listed(&places, "frames"))
    }
}

/// Returns the names as a list, or their number if there are many.
fn listed(names: &[String], what: &str) -> String {
    match names {
        [first, .., last] if names.len() > MOST_NAMES => {
            format!("{} {what} from {first} to {last}", names.len())
        }
        _ => names.join(", "),
    }
}

/// Returns the sentence for an event without values.
const fn fixed(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Target { other: true, .. } => "the target is another thread",
        Event::Target { other: false, .. } => "the target is the calling thread",
        Event::Detaching => "refused: the profiler is being detached",
        Event::NotStarted => "refused: the runtime has not started yet",
        Event::SnapshotNotEnabled => "refused: the event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT",
        Event::NoManagedThread => "nothing to walk: the caller has no Thread object",
        Event::GcSpecial => "nothing to walk: the target belongs to the GC",
        Event::NoGc => "nothing to walk: the GC is not initialized",
        Event::HijackLocked => {
            "refused: the target's hijack lock is taken, another walk of it is in progress"
        }
        Event::SuspensionInProgress => {
            "refused: the runtime is being suspended, and the caller is one of its threads"
        }
        Event::OtherThread => {
            "refused: no other thread can be walked here unless the profiler has suspended the \
             runtime"
        }
        Event::OtherCooperativeThread => {
            "refused: no other thread can be walked here while it is cooperative"
        }
        Event::NoSuspensionNeeded => {
            "the target need not be suspended: the profiler has suspended the runtime"
        }
        Event::InvalidTarget => {
            "the target is no thread that can be suspended: it has ended, or never started"
        }
        Event::SuspensionFailed => "refused: the target could not be suspended",
        Event::Suspended(_) => "the target is suspended",
        Event::Resumed(_) => "the target is resumed",
        Event::Mode { cooperative: true } => "the target is cooperative",
        Event::Mode { cooperative: false } => "the target is preemptive",
        Event::SeedIgnored => "the seed is not looked at",
        Event::ContextUnreadable => "refused: the target's context cannot be read",
        Event::OwnContext { .. } => "without a seed, the target's own context serves as one",
        Event::UnwindingNatively => {
            "refused: an exception of the target is in its second pass, and native code handles it"
        }
        Event::InconsistentExceptions => {
            "refused: an exception of the target has ended, and the thread has not gone on yet"
        }
        Event::InitialNative => "native code on top of the stack is not reported",
        Event::NullCallback => "the callback is NULL, and is called all the same",
        Event::Empty => "the walk has met nothing to stop at",
        _ => return None,
    })
}

const fn passed(check: EntryCheck) -> &'static str {
    match check {
        EntryCheck::NotDetaching => "the profiler is not being detached",
        EntryCheck::Started => "the runtime has started",
        EntryCheck::SnapshotEnabled => "snapshots are enabled",
        EntryCheck::InfoFlags => "infoFlags are valid",
        EntryCheck::HijackLock => "the hijack lock is free",
        EntryCheck::NoSuspensionInProgress => "no suspension of the runtime is in the way",
        EntryCheck::ForbidSuspend => "the target may be suspended",
        EntryCheck::ContextSafe => "the target's context is safe to use",
        EntryCheck::Exceptions => "the target's exceptions allow a walk",
    }
}

const fn start_point(start: WalkStart) -> &'static str {
    match start {
        WalkStart::FrameChain => "the Frame chain with all registers 0",
        WalkStart::Seed => "the seed",
        WalkStart::OwnContext => "the target's own context",
        WalkStart::DebuggerContext => "the context that a debugger has of the thread",
    }
}

const fn unsafe_by(safety: ContextSafety) -> &'static str {
    match safety {
        ContextSafety::Safe => "a debugger has a context of its own",
        ContextSafety::InSystemCall => "the thread is in a system call",
        ContextSafety::InExceptionDispatch => "the kernel is dispatching an exception",
        ContextSafety::NotReported => "the system does not report that it is",
        ContextSafety::Unreadable => "it cannot be read",
    }
}

/// Returns the text about the registers that a Frame sets, besides rip and rsp.
const fn registers_set(shape: FrameShape) -> &'static str {
    match shape {
        FrameShape::InlinedCall => ": of the callee-saved registers only rbp is set",
        FrameShape::FramedMethod
        | FrameShape::Transition
        | FrameShape::HelperMethod
        | FrameShape::Hijack
        | FrameShape::TailCall
        | FrameShape::Software => ": all callee-saved registers are set",
        FrameShape::Resumable | FrameShape::Faulting | FrameShape::FuncEval => {
            ": a whole CONTEXT is taken"
        }
        FrameShape::UnmanagedToManaged | FrameShape::Mark => "",
    }
}
