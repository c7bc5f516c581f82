//! Scripts executed as blocking code of a profiler.

use crate::Scenario;
use crate::model::{Action, Entrance, ProfilerScript, ScriptSeed, SnapshotOptions, ThreadName};
use crate::model::{SEED_FLAGS, SEED_RAX, SEED_SIZE};
use crate::run::coverage::{CoverableCall, Demands, OrderProgress};
use crate::run::script_place::{Place, Start};
use crate::text::keywords::Keyword as _;
use clr_explore::{CurrentThread, EventObject, ExaminedThread, ProfilerLock, Setup, ThreadIndex};
use clr_runtime::profiling::{CallbackKind, HResult, Policy, PolicyWalker};
use clr_runtime::{Context, Outcome};
use clr_unwind::{Gpr, Registers};
use clr_walker::mixed::{Completeness, MixedStack, WalkBuffer};
use clr_walker::profiling::{
    CallError, FunctionId, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, SnapshotRequest,
    TargetThread as _, ThreadId,
};
use clr_world::content::ContentHasher;
use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Number of frames in the buffer of a walk.
const ROOM: usize = 64;

/// Values that the profiler remembers for each thread during one interleaving.
#[derive(Debug, Default, Hash)]
pub(crate) struct Memory {
    registers: BTreeMap<ThreadIndex, Registers>,
    pub(crate) functions: BTreeMap<ThreadIndex, FunctionId>,
    orders: OrderProgress,
}

/// Buffers of walks, which all interleavings of a search use.
#[derive(Debug, Default)]
pub(crate) struct Buffers(RefCell<Vec<WalkBuffer>>);

impl Buffers {
    /// Calls `body` with a buffer that no other walk uses.
    fn with<T>(&self, body: impl FnOnce(&mut WalkBuffer) -> T) -> T {
        let free = self.0.borrow_mut().pop();
        let mut buffer = free.unwrap_or_else(|| WalkBuffer::new(ROOM));
        let done = body(&mut buffer);
        self.0.borrow_mut().push(buffer);
        done
    }
}

/// State of the scripts during one interleaving.
#[derive(Debug)]
pub(crate) struct Script<'p> {
    locks: Vec<ProfilerLock>,
    events: Vec<EventObject>,
    memory: RefCell<Memory>,
    buffers: &'p Buffers,
    scenario: &'p Scenario,
    demands: &'p Demands<'p>,
}

impl ProfilerScript {
    /// Loads the profiler for one interleaving.
    pub(crate) fn load<'p>(
        &'p self,
        scenario: &'p Scenario,
        demands: &'p Demands<'p>,
        buffers: &'p Buffers,
        setup: &mut Setup<'p>,
    ) {
        setup.hide_places();
        let script = Rc::new(Script {
            locks: self.locks.iter().map(|name| setup.lock(name)).collect(),
            events: (0..self.events.len() as u32)
                .map(|event| if self.times(event) { setup.timed_event() } else { setup.event() })
                .collect(),
            memory: RefCell::default(),
            buffers,
            scenario,
            demands,
        });
        let kept = Rc::clone(&script);
        setup.keeps(move || ContentHasher::of(&*kept.memory.borrow()));
        for thread in &self.threads {
            let script = Rc::clone(&script);
            let body = move |me: &CurrentThread<'_, '_>| {
                script.act(me, &thread.actions, Place::of(Start::Thread));
            };
            if thread.managed {
                setup.managed_thread(&thread.name, body);
            } else {
                setup.thread(&thread.name, body);
            }
        }
        for (kind, actions) in &self.callbacks {
            let script = Rc::clone(&script);
            setup.on(*kind, move |me| {
                script.covers_callback(me, *kind);
                script.act(me, actions, Place::of(Start::Callback(*kind)));
            });
        }
        if let Some(actions) = &self.hook {
            let script = Rc::clone(&script);
            setup.on_hook(move |me| script.begin(me, Entrance::Hook, actions, Start::Hook));
        }
        if let Some(actions) = &self.signal {
            let script = Rc::clone(&script);
            setup.on_signal(move |me| script.begin(me, Entrance::Signal, actions, Start::Signal));
        }
        if let Some(actions) = &self.crash {
            let script = Rc::clone(&script);
            setup.on_crash(move |me| script.begin(me, Entrance::Crash, actions, Start::Crash));
        }
    }
}

pub(crate) const fn index(of: ThreadName, me: &CurrentThread<'_, '_>) -> ThreadIndex {
    match of {
        ThreadName::Own => me.index(),
        ThreadName::Thread(index) => ThreadIndex(index),
    }
}

pub(crate) fn hresult<T>(result: &Result<T, CallError<Outcome>>) -> HResult {
    match result {
        Ok(_) => HResult::OK,
        Err(CallError::Failed(failed)) => *failed,
        // The interleaving has ended.
        Err(CallError::Fatal(_)) => HResult::FAIL,
    }
}

/// Walks a thread. The names of a walk that asks nothing are left to another thread. If the walk is
/// checked, the interleaving fails if it claims to have the whole stack, and has not.
fn walk(
    me: &CurrentThread<'_, '_>,
    target: &ExaminedThread<'_, '_, '_>,
    policy: Policy,
    checked: bool,
    buffer: &mut WalkBuffer,
) {
    let (info, modules) = (me.info(), me.modules_for(policy));
    let walker = PolicyWalker::new(&info, modules, policy);
    // An error that ends the process also ends the interleaving.
    if walker.take(target, buffer).is_err() {
        return;
    }
    let stack = match policy {
        Policy::Signal => PolicyWalker::new(&me.names_later(), modules, policy).stitch(buffer).ok(),
        _ => walker.stitch(buffer).ok(),
    };
    let claims = |stack: &MixedStack| stack.completeness() == Completeness::Whole;
    if let Some(stack) = stack.filter(|stack| checked && claims(stack)) {
        let ends = stack.frames.last().is_some_and(|last| target.begins_at(last.ip));
        if !ends {
            me.report_false_claim();
        }
    }
}

/// Returns true if the snapshot must be made.
fn is_wanted(
    me: &CurrentThread<'_, '_>,
    target: &ExaminedThread<'_, '_, '_>,
    care: SnapshotOptions,
) -> bool {
    !care.listed || me.info().enum_threads().is_ok_and(|threads| threads.contains(&target.id()))
}

impl Script<'_> {
    /// Returns the values that the profiler remembers, which all its threads share.
    pub(crate) fn memory(&self, me: &CurrentThread<'_, '_>) -> RefMut<'_, Memory> {
        me.shares();
        self.memory.borrow_mut()
    }

    /// Notes a callback for the demands on coverage.
    fn covers_callback(&self, me: &CurrentThread<'_, '_>, kind: CallbackKind) {
        let thread = self.scenario.name_of(ThreadName::Thread(me.index().0));
        self.demands.note(CoverableCall::Callback(kind), thread, |point| me.passes(point));
        if self.demands.have_order() {
            let orders = &mut self.memory(me).orders;
            self.demands.note_order(kind, thread, orders, |point| me.passes(point));
        }
    }

    /// Executes actions that no callback begins.
    fn begin(&self, me: &CurrentThread<'_, '_>, at: Entrance, actions: &[Action], start: Start) {
        let thread = self.scenario.name_of(ThreadName::Thread(me.index().0));
        self.demands.note(CoverableCall::Actions(at), thread, |point| me.passes(point));
        self.act(me, actions, Place::of(start));
    }

    /// Notes a call of a method for the demands on coverage.
    fn covers_call(&self, me: &CurrentThread<'_, '_>, method: &str, found: HResult) {
        let thread = self.scenario.name_of(ThreadName::Thread(me.index().0));
        let call = CoverableCall::Method(method, Some(found));
        self.demands.note(call, thread, |point| me.passes(point));
    }

    /// Notes that a method has returned. The interleaving fails if another result is wanted.
    fn returned(
        &self,
        me: &CurrentThread<'_, '_>,
        method: &str,
        found: HResult,
        wanted: Option<HResult>,
    ) {
        self.covers_call(me, method, found);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            me.fail(format!("{method} returned {found} instead of {wanted}"));
        }
    }

    fn act(&self, me: &CurrentThread<'_, '_>, actions: &[Action], place: Place) {
        for (number, action) in (1..).zip(actions) {
            if me.is_over() || me.escapes() {
                return;
            }
            let place = place.with(number);
            me.is_at(place.hash());
            self.one(me, action, place);
        }
    }

    fn one(&self, me: &CurrentThread<'_, '_>, action: &Action, place: Place) {
        let target = |of: ThreadName| me.target(index(of, me));
        let lock = |index: u32| self.locks.get(index as usize).copied();
        let event = |index: u32| self.events.get(index as usize).copied();
        match action {
            Action::Suspend(of) => drop(target(*of).map(|target| target.suspend())),
            Action::Suspended(of, actions) => {
                if let Some(target) = target(*of) {
                    self.while_suspended(me, &target, actions, place);
                }
            }
            Action::Resume(of) => drop(target(*of).map(|target| target.resume())),
            Action::Context(of) => drop(target(*of).and_then(|target| self.read(me, *of, &target))),
            Action::SetContext(of) => {
                let known = self.memory(me).registers.get(&index(*of, me)).copied();
                if let Some((target, registers)) = target(*of).zip(known) {
                    target.set_context(&registers);
                }
            }
            Action::Snapshot { of, seed, returns, care, callback } => {
                if let Some(target) = target(*of).filter(|target| is_wanted(me, target, *care)) {
                    let found = self.snapshots(me, (*of, &target), *seed, (*care, callback));
                    self.returned(me, "DoStackSnapshot", found, *returns);
                }
            }
            Action::Walk { of, policy, root, checked } => {
                if let Some(target) = target(*of) {
                    let target = target.with_root(*root);
                    self.buffers.with(|buffer| walk(me, &target, *policy, *checked, buffer));
                }
            }
            Action::Lock(index, actions) => {
                let _guard = lock(*index).map(|lock| me.lock(lock));
                self.act(me, actions, place);
            }
            Action::Acquire(index) => drop(lock(*index).map(|lock| me.acquire(lock))),
            Action::Release(index) => drop(lock(*index).map(|lock| me.unlock(lock))),
            Action::TryLock { lock: index, micros, then, otherwise } => {
                let taken = lock(*index).filter(|lock| me.try_acquire(*lock, *micros));
                match taken {
                    Some(lock) => {
                        self.act(me, then, place);
                        if !me.escapes() {
                            me.unlock(lock);
                        }
                    }
                    None => self.act(me, otherwise, place.with(0)),
                }
            }
            Action::Escape => me.escape(),
            Action::Detach => me.request_detach(),
            Action::Set(index) => drop(event(*index).map(|event| me.set(event))),
            Action::Since { event: index, micros, then } => {
                if event(*index).is_some_and(|event| me.was_set_before(event, *micros)) {
                    self.act(me, then, place);
                }
            }
            Action::Reset(index) => drop(event(*index).map(|event| me.reset(event))),
            Action::Wait { event: index, micros, then, otherwise } => {
                let was_set = match (event(*index), micros) {
                    (Some(event), None) => {
                        me.wait_for(event);
                        true
                    }
                    (Some(event), Some(micros)) => me.wait_at_most(event, *micros),
                    (None, _) => false,
                };
                self.act(me, if was_set { then } else { otherwise }, place.with(was_set.into()));
            }
            Action::Sleep(micros) => me.sleep(*micros),
            Action::Allocate => me.allocate(),
            Action::Log => me.log(),
            Action::LoadLibrary => me.load_library(),
            Action::LookUpFunctionEntry => me.look_up_function_entry(),
            Action::Unwind => me.unwind(),
            Action::Call { method, of, returns, then } => {
                if let Some(target) = target(*of) {
                    let found = self.call(me, *method, (*of, &target));
                    self.returned(me, method.word(), found, *returns);
                    if !found.is_failure() {
                        self.act(me, then, place);
                    }
                }
            }
            Action::SuspendRuntime => drop(self.suspend_runtime(me)),
            Action::RuntimeSuspended(actions) => self.while_runtime_suspended(me, actions, place),
            Action::ResumeRuntime => self.resume_runtime(me),
            Action::Prepare => drop(me.info().get_function_from_ip(0)),
            Action::Signal(of) => me.signal(index(*of, me)),
            Action::Repeat(times, actions) => {
                (0..*times).for_each(|time| self.act(me, actions, place.with(time.into())));
            }
            Action::Join(of) => me.join(index(*of, me)),
            Action::Bark => me.bark(),
            Action::Fail(words) => me.fail(words.as_str()),
        }
    }

    fn while_suspended(
        &self,
        me: &CurrentThread<'_, '_>,
        target: &ExaminedThread<'_, '_, '_>,
        actions: &[Action],
        place: Place,
    ) {
        if target.suspend().is_ok() {
            // The thread may have got its id since.
            self.act(me, actions, place.with(target.id().0));
            if !me.escapes() {
                // Another thread may have resumed the target: that is reported as a rule violation.
                let _ = target.resume();
            }
        }
    }

    fn while_runtime_suspended(
        &self,
        me: &CurrentThread<'_, '_>,
        actions: &[Action],
        place: Place,
    ) {
        if self.suspend_runtime(me).is_ok() {
            self.act(me, actions, place);
            if !me.escapes() {
                self.resume_runtime(me);
            }
        }
    }

    fn suspend_runtime(&self, me: &CurrentThread<'_, '_>) -> Result<(), CallError<Outcome>> {
        let result = me.info().suspend_runtime();
        self.covers_call(me, "SuspendRuntime", hresult(&result));
        result
    }

    fn resume_runtime(&self, me: &CurrentThread<'_, '_>) {
        let found = hresult(&me.info().resume_runtime());
        self.covers_call(me, "ResumeRuntime", found);
    }

    /// Reads the registers of a thread.
    fn read(
        &self,
        me: &CurrentThread<'_, '_>,
        of: ThreadName,
        target: &ExaminedThread<'_, '_, '_>,
    ) -> Option<Registers> {
        let context = target.context().ok()?;
        let of = index(of, me);
        self.memory(me).registers.insert(of, context.registers);
        Some(context.registers)
    }

    /// Returns the registers that were read last, or reads them if there are none.
    pub(crate) fn registers(
        &self,
        me: &CurrentThread<'_, '_>,
        of: ThreadName,
        target: &ExaminedThread<'_, '_, '_>,
    ) -> Option<Registers> {
        let known = self.memory(me).registers.get(&index(of, me)).copied();
        known.or_else(|| self.read(me, of, target))
    }

    /// Makes a snapshot, and repeats it while it is refused as unsafe if the script asks for that.
    fn snapshots(
        &self,
        me: &CurrentThread<'_, '_>,
        of: (ThreadName, &ExaminedThread<'_, '_, '_>),
        seed: ScriptSeed,
        callback: (SnapshotOptions, &[Action]),
    ) -> HResult {
        loop {
            let found = self.snapshot(me, of, seed, callback);
            if !callback.0.again || found != HResult::UNSAFE || me.is_over() {
                return found;
            }
        }
    }

    fn snapshot(
        &self,
        me: &CurrentThread<'_, '_>,
        (of, target): (ThreadName, &ExaminedThread<'_, '_, '_>),
        seed: ScriptSeed,
        (care, callback): (SnapshotOptions, &[Action]),
    ) -> HResult {
        let registers = match seed {
            ScriptSeed::None => None,
            ScriptSeed::Leaf => self.registers(me, of, target),
            ScriptSeed::TopManaged => target.top_managed(),
        };
        let seed = registers.map(|mut registers| {
            registers.set(Gpr::Rax, SEED_RAX);
            let mut bytes = Context { registers, flags: SEED_FLAGS }.to_bytes().to_vec();
            bytes.resize(SEED_SIZE as usize, 0);
            bytes
        });
        let id = if of == ThreadName::Own { ThreadId(0) } else { target.id() };
        let place = index(of, me);
        self.memory(me).functions.remove(&place);
        let flags = SnapshotFlags::REGISTER_CONTEXT;
        let request = SnapshotRequest::of(id, flags).seeded(seed.as_deref());
        let mut on_frame = |frame: &mut SnapshotFrame<'_>| {
            if let Some(function) = frame.function {
                self.memory(me).functions.entry(place).or_insert(function);
            }
            if care.checked && frame.function.is_some() && !target.is_on_stack(frame.ip) {
                me.report_false_frame();
            }
            self.act(me, callback, Place::of(Start::Snapshot));
            if me.escapes() { HResult::FAIL } else { HResult::OK }
        };
        let result = me.info().do_stack_snapshot(&request, Some(&mut on_frame));
        hresult(&result)
    }
}
