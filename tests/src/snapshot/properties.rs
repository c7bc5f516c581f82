//! The promises that hold for all calls.

use super::world::{MAX_CALLBACKS, Observed, Request, World};
use super::{Broken, Checked, Mistake, model, promise, same, whole};
use clr_generate::{SyntheticCall, SyntheticSeed};
use clr_reference::runtimes::{self, XSTATE};
use clr_reference::{ExpectedCall, ExpectedReport};
use clr_runtime::frame::{FrameShape, layout};
use clr_runtime::generation::{Family, Os};
use clr_runtime::profiling::{HResult, SnapshotRequest};
use clr_runtime::{ContextSafety, MethodKind, THREAD_OBJECT_SIZE};
use clr_runtime::{FAIL_FAST, Outcome};
use clr_unwind::{Memory, Registers};
use clr_walker::profiling::{FunctionId, SnapshotFlags, ThreadId};
use clr_world::synthetic::{
    CodeLocation, MANAGED_WALKER, SELF, SELF_OBJECT, SyntheticProcess, SyntheticThread,
    WALKER_OBJECT,
};
use std::cell::Cell;

/// A call for a stage that is set up.
pub(super) struct Properties<'c> {
    case: &'c SyntheticCall,
    set: &'c SyntheticProcess,
    world: World<'c>,
    seed: Option<Vec<u8>>,
    calls: Cell<u64>,
}

impl<'c> Properties<'c> {
    pub(super) fn new(case: &'c SyntheticCall, set: &'c SyntheticProcess) -> Self {
        let seed = case.seed.map(|seed| seed.bytes(set));
        Self { case, set, world: World::new(set), seed, calls: Cell::new(0) }
    }

    fn synthetic(&self) -> &'c SyntheticThread {
        &self.case.target
    }

    fn family(&self) -> Family {
        self.synthetic().generation.family()
    }

    fn is_unix(&self) -> bool {
        self.family().os == Os::Unix
    }

    fn call(&self) -> SnapshotRequest<'_> {
        self.case.call(self.seed.as_deref())
    }

    /// Returns a request whose callback accepts all frames.
    fn request<'r>(&self, call: SnapshotRequest<'r>) -> Request<'r> {
        let caller = self.case.caller;
        Request { caller, call, stop_at: None, null_callback: false, nested: false }
    }

    fn make(&self, request: &Request<'_>) -> Observed {
        self.calls.set(self.calls.get() + 1);
        self.world.make(request)
    }

    pub(super) fn check(&self, mistake: Option<Mistake>) -> Result<Checked, Broken> {
        let full = self.make(&self.request(self.call()));
        let expected = model::expected(self.case, self.set, mistake);
        let whole = whole::targets(self.synthetic()).is_some();
        self.outcome_is_allowed(&full)?;
        self.callbacks_are_real(&full)?;
        self.nothing_is_left_behind(&full)?;
        if let Some(expected) = &expected {
            self.is_as_expected(&full, expected)?;
        }
        if whole {
            self.activations_come_in_order(&full)?;
        } else {
            self.markers_lie_on_the_stack(&full)?;
        }
        same("the same call has the same result", &full, &self.make(&self.request(self.call())))?;
        let mut checked = Checked {
            rejected: false,
            callbacks: full.frame_reports.len() as u64,
            calls: self.calls.get(),
            expected: expected.is_some(),
            whole,
            outcome: Some(full.outcome),
        };
        if full.outcome == Outcome::Endless {
            // An endless call takes long, and repeating it shows nothing more.
            return Ok(checked);
        }
        self.seed_is_ignored_if_preemptive(&full)?;
        self.own_id_is_null(&full)?;
        self.contexts_change_nothing(&full)?;
        self.sizes_and_flags_change_nothing(&full)?;
        self.seed_is_read_so_far(&full)?;
        self.the_callback_ends_it(&full)?;
        self.null_callback(&full)?;
        self.nested_call(&full)?;
        checked.calls = self.calls.get();
        Ok(checked)
    }

    /// Returns true if the Thread objects are unchanged since the set-up, and one of them is the
    /// target.
    fn objects_are_whole(&self) -> bool {
        let overwritten = &self.synthetic().overwritten;
        let in_object = |object: ThreadId, at: u64| {
            at.wrapping_sub(object.0.wrapping_sub(7)) < THREAD_OBJECT_SIZE + 7
        };
        let is_hit = |at: u64| in_object(SELF_OBJECT, at) || in_object(WALKER_OBJECT, at);
        self.target().is_none_or(|target| target == SELF_OBJECT || target == WALKER_OBJECT)
            && !overwritten.iter().any(|(at, _)| is_hit(*at))
    }

    fn caller_object(&self) -> Option<ThreadId> {
        match self.case.caller {
            SELF => Some(SELF_OBJECT),
            MANAGED_WALKER => Some(WALKER_OBJECT),
            _ => None,
        }
    }

    fn target(&self) -> Option<ThreadId> {
        if self.case.thread == ThreadId(0) { self.caller_object() } else { Some(self.case.thread) }
    }

    /// Checks that the outcome is possible at all (contract §2.2 and §3.8).
    fn outcome_is_allowed(&self, full: &Observed) -> Result<(), Broken> {
        let synthetic = self.synthetic();
        let is_2 = runtimes::is_framework_2(self.family());
        let unix = self.is_unix();
        let other = self.target() != self.caller_object();
        let whole = whole::targets(synthetic).is_some() && self.objects_are_whole();
        let busy = synthetic.process.code_manager_writer.is_some();
        // Reads before the walk are not guarded.
        let unguarded =
            !self.objects_are_whole() || self.seed.as_ref().is_some_and(|seed| seed.len() < 0x100);
        let allowed = match full.outcome {
            Outcome::Returned(result) => match result {
                HResult::OK
                | HResult::FAIL
                | HResult::UNSAFE
                | HResult::UNMANAGED_CONTEXT
                | HResult::INVALID_ARGUMENT => true,
                HResult::PROFILER_DETACHING | HResult::INCONSISTENT_WITH_FLAGS => !is_2,
                HResult::UNEXPECTED => !unix && (!whole || self.case.seed.is_some()),
                HResult::NOT_IMPLEMENTED => unix && other,
                HResult::ABORTED => !whole && full.frame_reports.len() == MAX_CALLBACKS,
                HResult::ASYNCHRONOUS_UNSAFE => runtimes::refuses_to_wait(self.family()) && busy,
                _ => false,
            },
            Outcome::ProcessKilled { code: FAIL_FAST } => {
                synthetic.process.gs_cookie.is_some() || !whole && has_helper(synthetic)
            }
            Outcome::ProcessKilled { code } => {
                code == HResult::INVALID_TARGET_THREAD.0 && other && !unix
            }
            Outcome::AccessViolation { .. } => {
                unguarded || unix && (!whole || self.case.seed.is_some())
            }
            Outcome::Blocked => busy,
            Outcome::Endless => !whole || super::leads_active_calls_astray(synthetic),
        };
        promise("the outcome is one of those of the runtime", allowed, || {
            format!("{} on {}", full.outcome, synthetic.generation)
        })?;
        let refused = matches!(
            full.outcome,
            Outcome::Returned(
                HResult::UNSAFE
                    | HResult::UNMANAGED_CONTEXT
                    | HResult::INVALID_ARGUMENT
                    | HResult::PROFILER_DETACHING
                    | HResult::INCONSISTENT_WITH_FLAGS
                    | HResult::NOT_IMPLEMENTED
                    | HResult::ASYNCHRONOUS_UNSAFE
            ) | Outcome::Blocked
        );
        promise(
            "a refused call makes no callback",
            !refused || full.frame_reports.is_empty(),
            || format!("{full:#x?}"),
        )
    }

    /// Checks that no frame is invented: callbacks report existing code, in the requested form.
    fn callbacks_are_real(&self, full: &Observed) -> Result<(), Broken> {
        let wants = self.case.flags.0 & 1 != 0;
        let size = if wants { runtimes::context_size(self.family()) as usize } else { 0 };
        promise("clientData is passed through", full.client_data_same, String::new)?;
        for report in &full.frame_reports {
            let known = self.is_code_of(report.function, report.ip)
                || self
                    .looked_up_instead_of(report.ip)
                    .any(|looked_up| self.is_code_of(report.function, looked_up));
            promise("ip is code of the function, or no managed code", known, || {
                format!("{report:#x?}")
            })?;
            let rip = report.context.map(|context| context.registers.rip);
            let fits = report.context_size == size && rip == wants.then_some(report.ip);
            promise("contexts have their size, and their rip is ip", fits, || {
                format!("{report:#x?}")
            })?;
        }
        Ok(())
    }

    /// Returns true if `ip` is code of the method, which profilers see, or no managed code if there
    /// is no method.
    fn is_code_of(&self, function: Option<FunctionId>, ip: u64) -> bool {
        match (function, self.world.runtime.code.find(ip)) {
            (Some(function), Some(managed)) => {
                let kind = managed.method.kind;
                managed.method.id == function
                    && !matches!(kind, MethodKind::IlStub | MethodKind::Dynamic)
            }
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns the return addresses of the SoftwareExceptionFrames whose CONTEXT has this rip: a
    /// walk looks the code up by the one and reports the other. They differ where memory is
    /// overwritten, or a Frame lies on top of another, or of a hijacked return address.
    fn looked_up_instead_of(&self, ip: u64) -> impl Iterator<Item = u64> + '_ {
        let frames = self.synthetic().frames.iter();
        let software = frames.filter(|frame| frame.kind.shape() == FrameShape::Software);
        software.filter_map(move |frame| {
            let memory = self.world.runtime.memory.borrow();
            let word = |offset| memory.read_u64(frame.at.wrapping_add(offset)).ok();
            let rip = word(layout::SOFTWARE_CONTEXT + layout::CONTEXT_RIP)?;
            let slot = frame.at.wrapping_add(layout::RETURN_ADDRESS);
            let restored = self.hijacked().filter(|caller| caller.rsp().wrapping_sub(8) == slot);
            let address = restored.map(|caller| caller.rip).or(word(layout::RETURN_ADDRESS));
            (rip == ip).then_some(address).flatten()
        })
    }

    fn is_as_expected(&self, full: &Observed, expected: &ExpectedCall) -> Result<(), Broken> {
        let wants = self.case.flags.0 & 1 != 0;
        // Other Frames in a native row may lie on the registers that a lazy capture there finds.
        let mut lazy = self.synthetic().frames.iter().filter(|frame| frame.captured_in.is_some());
        let certain = lazy.next().map_or(u64::MAX, |frame| frame.at);
        let fits = expected.callbacks.len() == full.frame_reports.len()
            && expected.outcome == full.outcome
            && full.frame_reports.iter().zip(&expected.callbacks).all(|(report, expected)| {
                let ExpectedReport { function, context, .. } = expected;
                let found = report.context.map(|context| context.registers);
                let rsp = context.registers.rsp();
                report.place() == (*function, context.registers.rip)
                    && (!wants || report.rsp() == Some(rsp))
                    && (!wants || rsp > certain || found == Some(context.registers))
            });
        promise("a whole thread gives the rows of its table", fits, || {
            format!("expected {expected:#x?}, found {full:#x?}")
        })
    }

    /// Checks that callbacks are rows in order, for calls without a seed or with one that is a
    /// row's.
    fn activations_come_in_order(&self, full: &Observed) -> Result<(), Broken> {
        let seeded = self.case.seed.is_some_and(|seed| seed.whole().is_none());
        if seeded || self.case.flags.0 & 1 == 0 {
            return Ok(());
        }
        let mut last = None;
        for report in &full.frame_reports {
            let rsp = report.rsp();
            let activation = rsp.and_then(|rsp| self.set.activation_of(report.ip, rsp));
            let native =
                activation.is_some_and(|activation| activation.place == CodeLocation::Native);
            let fits = activation.is_some() && rsp > last && native == report.function.is_none();
            promise("callbacks are rows of the table, in its order", fits, || {
                format!("{full:#x?}")
            })?;
            last = rsp;
        }
        Ok(())
    }

    /// Checks damaged threads: frames found by unwinding lie on the stack. (Frames lead anywhere.)
    fn markers_lie_on_the_stack(&self, full: &Observed) -> Result<(), Broken> {
        let synthetic = self.synthetic();
        let (limit, base) = synthetic.stack;
        if runtimes::is_framework_2(self.family()) || !self.objects_are_whole() {
            return Ok(());
        }
        let mut before: Option<u64> = None;
        for report in &full.frame_reports {
            let Some(rsp) = report.rsp() else { continue };
            let marker = report.function.is_none();
            let on_stack = !marker || (limit..base).contains(&rsp);
            promise("markers lie on the stack", on_stack, || format!("{full:#x?}"))?;
            let grows = !marker || before.is_none_or(|before| before < rsp);
            // Only hidden frames lie between a frame and its marker, unless handlers hide some.
            let plain = synthetic.exceptions.trackers.is_empty() && !has_hiding(synthetic);
            promise("a marker lies above its frame", grows || !plain, || format!("{full:#x?}"))?;
            before = (!marker).then_some(rsp);
        }
        Ok(())
    }

    /// C-025: checks that a returned call leaves everything unchanged, except for what it must
    /// restore.
    fn nothing_is_left_behind(&self, full: &Observed) -> Result<(), Broken> {
        if !matches!(full.outcome, Outcome::Returned(_)) {
            return Ok(());
        }
        promise("threads are as before", full.threads_same, || full.outcome.to_string())?;
        if !self.objects_are_whole() {
            return Ok(());
        }
        let synthetic = self.synthetic();
        let hijacked = self.hijacked();
        for (at, now) in &full.changes {
            let slot = hijacked.is_some_and(|caller| {
                let offset = at.wrapping_sub(caller.rsp() - 8) as usize;
                caller.rip.to_le_bytes().get(offset) == Some(now)
            });
            // The bit TS_Hijacked.
            let flag = hijacked.is_some() && *at == SELF_OBJECT.0;
            let helper = synthetic.frames.iter().any(|frame| {
                let is_helper = frame.kind.shape() == FrameShape::HelperMethod;
                is_helper && (0x10..0xE8).contains(&at.wrapping_sub(frame.at))
            });
            promise("only what is to be restored is changed", slot || flag || helper, || {
                format!("{at:#x} became {now:#x}; {}", full.outcome)
            })?;
        }
        Ok(())
    }

    /// Returns the registers of the activation to which a hijacked return address leads: a walk restores the address (C-077).
    fn hijacked(&self) -> Option<Registers> {
        let synthetic = self.synthetic();
        let name = synthetic.hijacked.as_ref()?;
        let mut activations = synthetic.activations.iter();
        let activation = activations.position(|activation| activation.function == *name)?;
        self.set.registers(activation + 1)
    }

    /// C-037: checks that the seed of a preemptive target is ignored.
    fn seed_is_ignored_if_preemptive(&self, full: &Observed) -> Result<(), Broken> {
        let synthetic = self.synthetic();
        let cooperative = self.target() == Some(SELF_OBJECT) && synthetic.cooperative;
        // Framework 2 reads the context first if there is no seed (C-035).
        let reads = runtimes::is_framework_2(self.family())
            && synthetic.safety == ContextSafety::Unreadable;
        if cooperative || reads || !self.objects_are_whole() {
            return Ok(());
        }
        let activation = SyntheticSeed::of_activation(0).bytes(self.set);
        let wild = [0xA5; 0x300];
        for seed in [None, Some(&activation[..]), Some(&[]), Some(&wild)] {
            let other = self.make(&self.request(SnapshotRequest { seed, ..self.call() }));
            same("a preemptive target's seed does not matter", full, &other)?;
        }
        Ok(())
    }

    /// C-009, C-013: checks that the caller's own id and 0 are equivalent.
    fn own_id_is_null(&self, full: &Observed) -> Result<(), Broken> {
        let Some(own) = self.caller_object().filter(|own| Some(*own) == self.target()) else {
            return Ok(());
        };
        let thread = if self.case.thread == own { ThreadId(0) } else { own };
        let other = self.make(&self.request(SnapshotRequest { thread, ..self.call() }));
        same("0 is the caller's own id", full, &other)
    }

    /// C-052, C-092: checks that requesting contexts does not change the walk.
    fn contexts_change_nothing(&self, full: &Observed) -> Result<(), Broken> {
        if self.case.flags.0 > 1 {
            return Ok(());
        }
        let flags = SnapshotFlags(1 - self.case.flags.0);
        let other = self.make(&self.request(SnapshotRequest { flags, ..self.call() }));
        let alike = full.places().eq(other.places()) && full.outcome == other.outcome;
        promise("contexts change nothing", alike, || format!("{full:#x?}\nand\n{other:#x?}"))
    }

    /// C-022, C-023: checks that contextSize and ContextFlags do not change the walk.
    fn sizes_and_flags_change_nothing(&self, full: &Observed) -> Result<(), Broken> {
        let context_size = !self.case.context_size;
        let other = self.make(&self.request(SnapshotRequest { context_size, ..self.call() }));
        same("contextSize does not matter", full, &other)?;
        let Some(seed) = self.case.seed else { return Ok(()) };
        let changed = SyntheticSeed { flags: seed.flags ^ !XSTATE, ..seed };
        let bytes = changed.bytes(self.set);
        let mut other =
            self.make(&self.request(SnapshotRequest { seed: Some(&bytes), ..self.call() }));
        for (report, original) in other.frame_reports.iter_mut().zip(&full.frame_reports) {
            if let (Some(context), Some(original)) = (&mut report.context, &original.context)
                && context.flags == changed.flags
            {
                context.flags = original.flags;
            }
        }
        other.digest = full.digest;
        same("a seed's ContextFlags do not matter", full, &other)
    }

    /// C-053, C-162: checks that a used seed is read up to a certain byte.
    fn seed_is_read_so_far(&self, full: &Observed) -> Result<(), Broken> {
        let synthetic = self.synthetic();
        let is_own = self.target() == Some(SELF_OBJECT) && self.objects_are_whole();
        let used = synthetic.cooperative && is_own;
        let (Some(seed), true) = (self.case.seed, used && !full.frame_reports.is_empty()) else {
            return Ok(());
        };
        let len = runtimes::seed_size(self.family(), seed.flags, seed.features);
        let long = SyntheticSeed { len, ..seed }.bytes(self.set);
        let mut other =
            self.make(&self.request(SnapshotRequest { seed: Some(&long), ..self.call() }));
        other.digest = full.digest;
        same("a seed is not read further", full, &other)?;
        let short = SyntheticSeed { len: len - 1, ..seed }.bytes(self.set);
        let other = self.make(&self.request(SnapshotRequest { seed: Some(&short), ..self.call() }));
        let died = matches!(other.outcome, Outcome::AccessViolation { .. });
        let unexpected = other.outcome == HResult::UNEXPECTED.into();
        let fault = if self.is_unix() { died } else { unexpected };
        promise("a seed is read so far", fault && other.frame_reports.is_empty(), || {
            format!("{other:#x?}")
        })
    }

    /// C-104, C-105: checks that the callback ends the walk at once.
    fn the_callback_ends_it(&self, full: &Observed) -> Result<(), Broken> {
        let Some(stop_at) = self.case.stop_at else { return Ok(()) };
        let stop_at = stop_at as usize;
        let request = Request { stop_at: Some(stop_at), ..self.request(self.call()) };
        let ended = self.make(&request);
        let (expected, outcome) = match full.frame_reports.get(..=stop_at) {
            Some(frame_reports) => (frame_reports, HResult::ABORTED.into()),
            None => (&full.frame_reports[..], full.outcome),
        };
        let fits = ended.frame_reports == expected && ended.outcome == outcome;
        promise("the callback's answer ends the walk at once", fits, || {
            format!("{stop_at}: {full:#x?}\nand\n{ended:#x?}")
        })?;
        self.nothing_is_left_behind(&ended)
    }

    /// C-024: checks a NULL callback, which fails at the first report.
    fn null_callback(&self, full: &Observed) -> Result<(), Broken> {
        if !self.case.null_callback {
            return Ok(());
        }
        let request = Request { null_callback: true, ..self.request(self.call()) };
        let without = self.make(&request);
        let expected = match (full.frame_reports.is_empty(), self.is_unix()) {
            (true, _) => full.outcome,
            (false, false) => HResult::UNEXPECTED.into(),
            (false, true) => Outcome::AccessViolation { at: 0 },
        };
        same("a NULL callback matters with the first report", &without.outcome, &expected)?;
        self.nothing_is_left_behind(&without)
    }

    /// C-015: checks that a nested call is refused and does not affect the outer one.
    fn nested_call(&self, full: &Observed) -> Result<(), Broken> {
        if full.frame_reports.is_empty() || !self.objects_are_whole() {
            return Ok(());
        }
        let mut outer = self.make(&Request { nested: true, ..self.request(self.call()) });
        same("a nested call is unsafe", &outer.nested.take(), &Some(HResult::UNSAFE.into()))?;
        same("a nested call leaves the outer one alone", full, &outer)
    }
}

fn has_helper(synthetic: &SyntheticThread) -> bool {
    synthetic.frames.iter().any(|frame| frame.kind.shape() == FrameShape::HelperMethod)
}

/// Returns true if methods of the stage are hidden together with the native runs that called them.
fn has_hiding(synthetic: &SyntheticThread) -> bool {
    synthetic.activations.iter().any(|activation| {
        activation.kind == MethodKind::ExceptionHandling || activation.funclet.is_some()
    })
}
