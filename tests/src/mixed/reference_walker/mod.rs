//! A second walker, and mistakes that can be planted in it.
//!
//! The second walker shares only the unwinder of single frames with the first, and works in the
//! opposite order: the frames that the runtime reports are the skeleton, and each hole in it is
//! filled separately. It allocates, and is written for readability. A test that claims to find
//! wrong walks must find each planted [`Bug`].

mod name;

use super::{Bug, CAPACITY, Found, PROFILER, Stop, Way, naming_thread};
use clr_codegen::execution::BASE;
use clr_runtime::profiling::{Caller, Policy, SimulatedThread, SnapshotRequest};
use clr_runtime::{Context, Outcome};
use clr_unwind::{CodeMap, Gpr, Memory, Position, Registers, Trust, UnwindError, Unwinder};
use clr_walker::mixed::{Reason, SeedRefused, Source};
use clr_walker::profiling::{
    CallError, FunctionId, HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, StackRoot,
    TargetThread as _,
};

/// The second walker.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceWalker {
    bug: Option<Bug>,
}

impl ReferenceWalker {
    /// Creates a second walker with this bug, and no other.
    #[must_use]
    pub const fn with_bug(bug: Bug) -> Self {
        Self { bug: Some(bug) }
    }
}

impl Way for ReferenceWalker {
    fn walk(&mut self, stop: Stop<'_, '_>) -> Result<Option<Found>, Outcome> {
        let Stop { world, map, thread, policy, before } = stop;
        // The second walker does not guess by frame pointers.
        let os = world.os(thread).filter(|_| policy != Policy::FramePointers);
        let Some(os) = os else { return Ok(None) };
        let runtime = world.runtime();
        let Some(target) = SimulatedThread::new(runtime, os, BASE) else { return Ok(None) };
        let calling_thread = if policy.is_for_itself() { os } else { PROFILER };
        let target = target.called_by(calling_thread);
        let info = runtime.on(naming_thread(policy, calling_thread));
        let walk = Walk {
            bug: self.bug,
            policy,
            info,
            map,
            target,
            before: before.copied(),
            frame_reports: Vec::new(),
            snapshot: None,
            out: Vec::new(),
            relies_on_order: false,
            leaf_runs: false,
        };
        walk.go().map(Some)
    }
}

/// The content of one callback.
#[derive(Clone, Copy, Debug)]
struct FrameReport {
    function: Option<FunctionId>,
    registers: Registers,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    registers: Registers,
    position: Position,
    source: Source,
    /// The callback that reports the frame.
    report: Option<FrameReport>,
}

impl Frame {
    fn sp(&self) -> u64 {
        self.registers.rsp()
    }

    fn inside(&self) -> u64 {
        self.registers.rip - u64::from(self.position == Position::ReturnAddress)
    }
}

/// A part of a walk.
enum Item {
    Frame(Box<Frame>),
    Gap(Reason),
}

/// A reason why there is no caller.
enum NoCaller {
    Root,
    Unknown(Reason),
}

struct Walk<'w, 'a, M> {
    bug: Option<Bug>,
    policy: Policy,
    info: Caller<'w, 'a, M>,
    map: &'w CodeMap<'a>,
    target: SimulatedThread<'w, 'a, M>,
    /// The thread's registers one step before.
    before: Option<Registers>,
    frame_reports: Vec<FrameReport>,
    snapshot: Option<HResult>,
    out: Vec<Item>,
    relies_on_order: bool,
    /// The native leaf is not stopped.
    leaf_runs: bool,
}

impl<M: clr_runtime::TargetMemory> Walk<'_, '_, M> {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn go(mut self) -> Result<Found, Outcome> {
        match self.policy {
            Policy::Unseeded => {
                self.gap(Reason::NotUnwound);
                self.call(None)?;
                for report in self.frame_reports.clone() {
                    self.out.push(Item::Frame(Box::new(self.reported(&report))));
                    if report.function.is_none() {
                        self.gap(Reason::NotUnwound);
                    }
                }
                self.gap_of_refusal();
            }
            Policy::RuntimeSuspended => match self.info.suspend_runtime() {
                Ok(()) => {
                    self.leaf_runs = true;
                    self.call(None)?;
                    if self.frame_reports.is_empty() {
                        self.gap_of_refusal();
                    } else {
                        self.skeleton(0);
                    }
                    let _ = self.info.resume_runtime();
                }
                Err(CallError::Failed(result)) => self.gap(Reason::Suspend(result)),
                Err(CallError::Fatal(fatal)) => return Err(fatal),
            },
            Policy::Seeded => {
                let suspended = self.target.suspend().is_ok();
                let ended = self.by_context(true);
                if suspended {
                    let _ = self.target.resume();
                }
                ended?;
            }
            Policy::Signal => self.without_the_runtime(),
            Policy::SignalSnapshot => self.by_context(true)?,
            Policy::Synchronous => self.by_context(false)?,
            Policy::FramePointers => {}
        }
        self.name()
    }

    /// Returns the frame with the thread's own registers, if they can be read.
    fn leaf(&self) -> Option<Frame> {
        let context = self.target.context().ok()?;
        let early = self.before.filter(|_| self.has(Bug::ContextBeforeSuspension));
        Some(Frame {
            registers: early.unwrap_or(context.registers),
            position: Position::Interrupted,
            source: Source::Context,
            report: None,
        })
    }

    /// Walks from the leaf to the root by unwind data alone. Of code without any, only the leaf can
    /// be left: if a method has called it and nothing else is on the stack.
    fn without_the_runtime(&mut self) {
        let Some(mut frame) = self.leaf() else { return self.gap(Reason::NotStopped) };
        loop {
            self.out.push(Item::Frame(Box::new(frame)));
            if self.out.len() > CAPACITY {
                return self.gap(Reason::BufferFull);
            }
            let caller = self.in_register(&frame).map_or_else(|| self.caller(&frame), Ok);
            frame = match (caller, self.called_by_method(&frame)) {
                (Ok(caller), _) | (Err(NoCaller::Unknown(_)), Some(caller)) => caller,
                (Err(NoCaller::Root), _) => return,
                (Err(NoCaller::Unknown(reason)), None) => return self.gap(reason),
            };
        }
    }

    /// Returns the method that has called code without unwind data, if its return address is on top
    /// of the stack, or above a word that a stub has pushed.
    fn called_by_method(&self, leaf: &Frame) -> Option<Frame> {
        let leaves = leaf.position == Position::Interrupted
            && self.map.find_function(leaf.registers.rip).is_none();
        let words = [(0, Trust::StackTop), (8, Trust::Stub)];
        words.into_iter().filter(|_| leaves).find_map(|(above, trust)| {
            let sp = leaf.sp() + above;
            let word = self.target.read_u64(sp).ok()?;
            let is_method = self.map.find_function(word.wrapping_sub(1)).is_some();
            (is_method && self.is_call(word)).then(|| {
                let mut registers = leaf.registers;
                registers.rip = word;
                registers.set(Gpr::Rsp, sp + 8);
                let source = Source::Unwound(trust);
                Frame { registers, position: Position::ReturnAddress, source, report: None }
            })
        })
    }

    /// Walks over the native leaf frames to the first managed one, and from there on.
    fn by_context(&mut self, seeded: bool) -> Result<(), Outcome> {
        let Some(mut frame) = self.leaf() else {
            self.gap(Reason::NotStopped);
            return Ok(());
        };
        loop {
            match self.function(&frame) {
                Err(CallError::Fatal(fatal)) => return Err(fatal),
                Ok(Some(_)) => break,
                Ok(None) => self.out.push(Item::Frame(Box::new(frame))),
                Err(CallError::Failed(result)) => {
                    self.out.push(Item::Frame(Box::new(frame)));
                    return self.without(Reason::Lookup(result));
                }
            }
            if self.out.len() >= CAPACITY {
                self.gap(Reason::BufferFull);
                return Ok(());
            }
            let caller = self.in_register(&frame).map_or_else(|| self.caller(&frame), Ok);
            let pushes = matches!(caller, Err(NoCaller::Unknown(Reason::NotACall { .. })));
            match (caller, self.called_by_method(&frame).filter(|_| pushes)) {
                (Ok(caller), _) | (_, Some(caller)) => frame = caller,
                (Err(NoCaller::Root), _) => return Ok(()),
                (Err(NoCaller::Unknown(reason)), None) => return self.without(reason),
            }
        }
        if seeded && !self.target.stack().contain(frame.sp()) {
            let sp = frame.sp();
            self.gap(Reason::Seed(SeedRefused::OutsideStack { sp }));
            return Ok(());
        }
        self.call(seeded.then(|| self.seed(&frame)).as_ref())?;
        // If the runtime reports another frame at the same instruction, the runtime is right: the
        // thread has been redirected.
        let leaf = self.meet_leaf();
        let first = self.frame_reports.get(leaf).filter(|report| report.function.is_some());
        let redirected = first.is_some_and(|report| {
            report.registers.rip == frame.registers.rip && report.registers.rsp() != frame.sp()
        });
        self.relies_on_order |= redirected;
        if redirected {
            self.skeleton(leaf);
            return Ok(());
        }
        let met = self.meet(&mut frame, leaf);
        self.out.push(Item::Frame(Box::new(frame)));
        self.hole(&frame, met);
        Ok(())
    }

    /// Returns the caller of a leaf if a volatile register appears to hold the return address (a
    /// planted bug).
    fn in_register(&self, leaf: &Frame) -> Option<Frame> {
        use Gpr::{R8, R9, R10, R11, Rax, Rcx, Rdx};
        let values = [Rax, Rcx, Rdx, R8, R9, R10, R11].map(|gpr| leaf.registers.get(gpr));
        let is_managed = |value: &u64| self.info.get_function_from_ip(*value).is_ok();
        let has_them =
            leaf.position == Position::Interrupted && self.has(Bug::VolatileRegistersTrusted);
        let rip = values.into_iter().find(is_managed).filter(|_| has_them)?;
        let mut registers = leaf.registers;
        registers.rip = rip;
        registers.set(Gpr::Rsp, leaf.sp() + 8);
        let source = Source::Unwound(Trust::Stub);
        Some(Frame { registers, position: Position::ReturnAddress, source, report: None })
    }

    /// Continues without a seed if no managed frame is found from the leaf.
    fn without(&mut self, reason: Reason) -> Result<(), Outcome> {
        self.gap(reason);
        self.call(None)?;
        let met = self.meet_leaf();
        self.skeleton(met);
        Ok(())
    }

    /// Matches the leaf frames with callbacks that report them, as native code that a Frame belongs
    /// to, and returns the number of matched callbacks.
    fn meet_leaf(&mut self) -> usize {
        let mut met = 0;
        for item in &mut self.out {
            let (Item::Frame(frame), Some(report)) = (item, self.frame_reports.get(met)) else {
                continue;
            };
            if report.registers.rsp() == frame.sp() {
                frame.report = Some(*report);
                met += 1;
            }
        }
        met
    }

    fn seed(&self, frame: &Frame) -> Registers {
        let mut seed = frame.registers;
        let first = self.out.iter().find_map(|item| match item {
            Item::Frame(frame) => Some(&**frame),
            Item::Gap(_) => None,
        });
        if let Some(leaf) = first.filter(|_| self.has(Bug::SeedByScanning)) {
            let slots = (leaf.sp()..self.target.stack().base).step_by(8);
            let found = slots.into_iter().find_map(|slot| {
                let word = self.target.read_u64(slot).ok()?;
                self.info.get_function_from_ip(word).ok()?;
                Some((slot, word))
            });
            if let Some((slot, word)) = found {
                seed.rip = word;
                seed.set(Gpr::Rsp, slot + 8);
            }
        }
        seed
    }

    fn call(&mut self, seed: Option<&Registers>) -> Result<(), Outcome> {
        let mut bytes = [0; 0xC20];
        if let Some(registers) = seed {
            let context = Context { registers: *registers, flags: 0x10_000B }.to_bytes();
            bytes[..context.len()].copy_from_slice(&context);
        }
        let call = SnapshotRequest {
            thread: self.target.id(),
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: seed.is_some().then_some(&bytes[..]),
            ..SnapshotRequest::default()
        };
        let frame_reports = &mut self.frame_reports;
        let mut callback = |frame: &mut SnapshotFrame<'_>| {
            let mut registers = Registers::from_context(frame.context).unwrap_or_default();
            registers.rip = frame.ip;
            frame_reports.push(FrameReport { function: frame.function, registers });
            HResult::OK
        };
        match self.info.do_stack_snapshot(&call, Some(&mut callback)) {
            Outcome::Returned(result) => self.snapshot = Some(result),
            fatal => return Err(fatal),
        }
        // A reported native ip that does not follow a call is not a frame.
        let is_none =
            |report: &FrameReport| report.function.is_none() && !self.is_call(report.registers.rip);
        if let Some(first) = self.frame_reports.iter().position(is_none) {
            self.frame_reports.truncate(first);
        }
        Ok(())
    }

    /// Adds the frames that the runtime reports, from callback `first` on.
    fn skeleton(&mut self, first: usize) {
        match self.frame_reports.get(first) {
            Some(report) => {
                let frame = self.reported(report);
                self.out.push(Item::Frame(Box::new(frame)));
                self.hole(&frame, first + 1);
            }
            None => self.gap_of_end(),
        }
    }

    /// Fills the hole between a frame and the frame of callback `next`, or the root, and then the
    /// following holes.
    fn hole(&mut self, frame: &Frame, next: usize) {
        let is_marker = frame.report.is_some_and(|report| report.function.is_none());
        let mut from = *frame;
        if is_marker && self.has(Bug::RunFromWrongFrame) && next >= 2 {
            from.registers = self.frame_reports[next - 2].registers;
        }
        let mut run = Vec::new();
        let end = loop {
            let mut caller = match self.caller(&from) {
                Ok(caller) => caller,
                Err(end) => break Err(end),
            };
            let report = self.frame_reports.get(next).map(|report| report.registers.rsp());
            if report.is_some_and(|sp| sp < caller.sp()) {
                let sp = report.unwrap_or_default();
                break Err(NoCaller::Unknown(Reason::Disagreement { sp }));
            }
            if self.meet(&mut caller, next) > next {
                break Ok(caller);
            }
            if self.out.len() + run.len() >= CAPACITY {
                break Err(NoCaller::Unknown(Reason::BufferFull));
            }
            run.push(caller);
            from = caller;
        };
        if self.has(Bug::RunEndsEarly) {
            run.pop();
        }
        let times = if self.has(Bug::HoleFilledTwice) { 2 } else { 1 };
        for _ in 0..times {
            self.out.extend(run.iter().map(|frame| Item::Frame(Box::new(*frame))));
        }
        if is_marker && self.has(Bug::StopsAtFirstMarker) {
            return;
        }
        match end {
            Ok(met) => {
                self.out.push(Item::Frame(Box::new(met)));
                self.hole(&met, next + 1);
            }
            Err(NoCaller::Root) if self.frame_reports.get(next).is_none() => {}
            Err(NoCaller::Root) => {
                let sp = self.frame_reports[next].registers.rsp();
                self.gap(Reason::Disagreement { sp });
                self.skeleton(next);
            }
            Err(NoCaller::Unknown(reason)) => {
                // The runtime would have reported native code after a managed frame (contract
                // §3.3).
                let unknown = matches!(reason, Reason::Unwind(UnwindError::UnknownCode { .. }));
                let is_managed = frame.report.is_some_and(|report| report.function.is_some());
                if unknown && is_managed && run.len() < 2 && self.frame_reports.get(next).is_some()
                {
                    self.relies_on_order = true;
                } else {
                    self.gap(reason);
                }
                self.skeleton(next);
            }
        }
    }

    /// Returns a frame that only the runtime reports.
    fn reported(&self, report: &FrameReport) -> Frame {
        let position = if self.is_call(report.registers.rip) {
            Position::ReturnAddress
        } else {
            Position::Interrupted
        };
        Frame {
            registers: report.registers,
            position,
            source: Source::Snapshot,
            report: Some(*report),
        }
    }

    /// Links a frame with callback `next` if that reports it. Returns the number of the following
    /// callback.
    fn meet(&self, frame: &mut Frame, next: usize) -> usize {
        let report = self.frame_reports.get(next);
        frame.report = report.copied().filter(|report| {
            let same = report.registers.rip == frame.registers.rip || report.function.is_some();
            same && report.registers.rsp() == frame.sp()
        });
        next + usize::from(frame.report.is_some())
    }

    fn caller(&self, frame: &Frame) -> Result<Frame, NoCaller> {
        let mut registers = frame.registers;
        let step = Unwinder::new(self.map).step(&mut registers, frame.position, &self.target);
        let (position, trust) = match step {
            Ok(step) => (step.caller, step.trust),
            Err(UnwindError::EndOfStack { .. }) => return Err(NoCaller::Root),
            Err(UnwindError::UnknownCode { .. })
                if frame.position == Position::ReturnAddress
                    && self.has(Bug::LeafRuleForCallers) =>
            {
                registers = frame.registers;
                registers.rip = self.target.read_u64(frame.sp()).unwrap_or_default();
                registers.set(Gpr::Rsp, frame.sp() + 8);
                (Position::ReturnAddress, Trust::Leaf)
            }
            Err(error) => return Err(NoCaller::Unknown(error.into())),
        };
        let is_return = position == Position::ReturnAddress;
        if is_return && self.target.stack().root == StackRoot::ReturnAddress(registers.rip) {
            return Err(NoCaller::Root);
        }
        let sp = registers.rsp();
        let stack = self.target.stack();
        if stack.contain(frame.sp()) && !stack.contain(sp) {
            return Err(NoCaller::Unknown(Reason::OutsideStack { sp }));
        }
        if is_return && !self.is_call(registers.rip) {
            return Err(NoCaller::Unknown(Reason::NotACall { address: registers.rip }));
        }
        let source = Source::Unwound(trust);
        Ok(Frame { registers, position, source, report: None })
    }

    /// Returns true if a call instruction may end before an address: a relative call, or one
    /// through a register or memory in any form.
    fn is_call(&self, address: u64) -> bool {
        let byte = |back: u64| {
            let mut byte = [0];
            let read = self.target.read(address.wrapping_sub(back), &mut byte);
            read.ok().map(|()| byte[0])
        };
        let indirect = |len: u64| {
            byte(len) == Some(0xFF) && byte(len - 1).is_some_and(|modrm| modrm >> 3 & 7 == 2)
        };
        let region = self.map.find(address.wrapping_sub(1));
        byte(5) == Some(0xE8) || (2..8).any(indirect) || byte(1).is_none() && region.is_some()
    }

    /// Returns the managed function that contains a frame's ip.
    fn function(&self, frame: &Frame) -> Result<Option<FunctionId>, CallError<Outcome>> {
        let past = frame.registers.rip - 1;
        let believes =
            self.has(Bug::OnePastEndBelieved) && self.info.get_function_from_ip(past).is_ok();
        let at = if believes { past } else { frame.inside() };
        match self.info.get_function_from_ip(at) {
            Ok(function) => Ok(Some(function).filter(|_| believes || !self.is_padding(at))),
            Err(CallError::Failed(HResult::FAIL)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if an address lies between functions.
    fn is_padding(&self, address: u64) -> bool {
        let place = self.map.find(address);
        place.is_some_and(|(region, rva)| region.functions().find(rva).is_none())
    }

    fn gap(&mut self, reason: Reason) {
        self.out.push(Item::Gap(reason));
    }

    fn gap_of_refusal(&mut self) {
        if let Some(result) = self.snapshot.filter(|result| *result != HResult::OK) {
            self.gap(Reason::Snapshot(result));
        }
    }

    /// Adds a gap if no further frames are reported.
    fn gap_of_end(&mut self) {
        // The first reason counts.
        if !matches!(self.out.last(), Some(Item::Gap(_))) {
            match self.snapshot {
                Some(result) if result != HResult::OK => self.gap(Reason::Snapshot(result)),
                _ => self.gap(Reason::Unreported),
            }
        }
    }
}
