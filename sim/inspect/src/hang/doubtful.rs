//! Waits of which memory does not say all.

use super::edges::{Reader, timeout};
use super::outline::Outline;
use super::{Doubt, Edge, Evidence, Unknown};
use crate::stack::{CodeKind, StackWalker};
use crate::threads::Mode;
use clr_dump::{StoppedProcess, Thread, Wait};
use clr_unwind::Gpr;
use std::collections::{BTreeMap, BTreeSet};

/// System calls in which a thread waits for another one without futex(2) (arch/x86/entry/syscalls/syscall_64.tbl of Linux): read, poll,
/// select, pause, recvfrom, rt_sigtimedwait, rt_sigsuspend, epoll_wait, pselect6, ppoll, epoll_pwait.
const WAITS: [u64; 11] = [0, 7, 23, 34, 45, 128, 130, 232, 270, 271, 281];
/// The value of a lock that somebody waits for: of glibc's, and of others after Drepper's "Futexes are tricky".
const CONTENDED: u64 = 2;

/// The code of each thread.
type Outlines = BTreeMap<u32, Outline>;

impl<P: StoppedProcess + ?Sized> Reader<'_, P> {
    /// Reads waits that fit: for locks that do not name their owners, for the end of a handler, for the end of a suspension, and for
    /// threads that run in cooperative mode.
    pub(super) fn read_doubtful_waits(&mut self, walker: &mut StackWalker<'_, '_, P>) {
        let process = self.process;
        let outlines = process.threads().iter();
        let outlines = outlines.map(|it| (it.id, Outline::of(process, walker, it))).collect();
        self.read_nameless_locks(&outlines);
        self.read_ends_of_suspensions(&outlines);
        self.read_handlers(&outlines);
        self.read_running(walker, &outlines);
        self.read_unknown_owners(&outlines);
        let cut = outlines.iter().filter(|(_, outline)| outline.is_cut);
        self.unknown.extend(cut.map(|(thread, _)| Unknown::Stack { thread: *thread }));
    }

    fn waiting(&self) -> BTreeSet<u32> {
        self.edges.iter().map(|edge| edge.from).collect()
    }

    fn wanted(&self) -> BTreeSet<u32> {
        self.edges.iter().map(|edge| edge.to).collect()
    }

    /// Returns the lock that a thread waits for, if its owner is not known. The kernel lets a thread wait for a lock with this value.
    fn nameless_lock(&self, thread: &Thread) -> Option<(u64, Option<u32>)> {
        let Wait::Word { address, value } = Wait::of(self.process, thread)? else { return None };
        let is_lock = thread.registers.get(Gpr::Rdx) == CONTENDED;
        let still = value.is_none_or(|value| u64::from(value) == CONTENDED);
        (is_lock && still).then_some((address, value))
    }

    /// Reads waits for locks without owners, which code that a signal has interrupted may own: the waiting thread's, or another's.
    fn read_nameless_locks(&mut self, outlines: &Outlines) {
        let waiting = self.waiting();
        let mut edges = Vec::new();
        for thread in self.process.threads().iter().filter(|it| !waiting.contains(&it.id)) {
            let Some((address, _)) = self.nameless_lock(thread) else { continue };
            let own = outlines.get_key_value(&thread.id);
            let owns = |(id, outline): &(&u32, &Outline)| {
                let others = own.and_then(|(_, own)| own.modules.first());
                self.may_own(**id, outline, address, others)
            };
            // A thread that waits in its own way is the simplest reason.
            if let Some((id, _)) = own.filter(owns).or_else(|| outlines.iter().find(owns)) {
                let evidence = Evidence::InterruptedOwner { address };
                edges.push(Edge { from: thread.id, to: *id, evidence, doubt: Some(Doubt::Owner) });
            }
        }
        self.edges.extend(edges);
    }

    /// Returns true if a thread waits in a handler that has interrupted code with the address of the lock, or code of the module that
    /// has the lock, unless that is the module in which all threads wait.
    fn may_own(&self, id: u32, outline: &Outline, lock: u64, waits: Option<&String>) -> bool {
        let Some(interrupted) = &outline.interrupted else { return false };
        let module = self.process.module_at(lock).map(|module| &module.path);
        let is_of_module = module.is_some()
            && module != waits
            && interrupted.modules.iter().any(|path| Some(path) == module);
        (is_of_module || interrupted.has(self.process, lock)) && self.waits_in_handler(id, outline)
    }

    /// Returns true if a thread waits in the handler of a signal, which is not the runtime's own.
    fn waits_in_handler(&self, id: u32, outline: &Outline) -> bool {
        let Some(thread) = self.process.thread(id) else { return false };
        let is_runtimes =
            self.runtime.as_ref().is_some_and(|runtime| outline.modules.contains(runtime));
        outline.interrupted.is_some()
            && !is_runtimes
            && match Wait::of(self.process, thread) {
                Some(Wait::Word { value, .. }) => {
                    value.is_none_or(|it| it == thread.registers.get(Gpr::Rdx) as u32)
                }
                Some(Wait::Call { number }) => WAITS.contains(&number),
                Some(_) | None => false,
            }
    }

    /// Reads waits of handlers: for a thread that waits for the interrupted one, and has code of the handler's module on its stack.
    fn read_handlers(&mut self, outlines: &Outlines) {
        let waiting = self.waiting();
        let mut edges = Vec::new();
        for (id, outline) in outlines.iter().filter(|(id, _)| !waiting.contains(id)) {
            let (Some(handler), Some(code)) = (outline.handler(), &outline.interrupted) else {
                continue;
            };
            if !self.waits_in_handler(*id, outline) {
                continue;
            }
            let evidence = Evidence::Handler { interrupted: code.registers.rip };
            let is_parker = |edge: &&Edge| {
                let parker = outlines.get(&edge.from).filter(|_| edge.to == *id);
                parker.is_some_and(|parker| parker.all.iter().any(|path| path == handler))
            };
            let parkers = self.edges.iter().filter(is_parker);
            edges.extend(parkers.map(|edge| Edge {
                from: *id,
                to: edge.from,
                evidence,
                doubt: Some(Doubt::Waker),
            }));
        }
        self.edges.extend(edges);
    }

    /// Reads waits that may be for a suspension's end: inside the runtime, for a word of which nothing is known.
    fn read_ends_of_suspensions(&mut self, outlines: &Outlines) {
        let (waiting, wanted) = (self.waiting(), self.wanted());
        let mut edges = Vec::new();
        // A circle goes through threads that others wait for.
        for thread in self.process.threads() {
            let Some(Wait::Word { address, value }) = Wait::of(self.process, thread) else {
                continue;
            };
            let is_candidate = wanted.contains(&thread.id) && !waiting.contains(&thread.id);
            let is_in_runtime =
                outlines.get(&thread.id).is_some_and(|outline| self.is_in_runtime(outline));
            if !is_candidate || !is_in_runtime {
                continue;
            }
            let doubt =
                timeout(self.process, thread).or(Some(Doubt::Word { is_dumped: value.is_some() }));
            let is_preemptive = || Some(self.managed(thread.id)?.mode == Mode::Preemptive);
            match (self.store, self.holder()) {
                (Some(store), Some(holder)) if holder != thread.id => {
                    if is_preemptive() == Some(true) {
                        let evidence = Evidence::Suspension { address, store: store.address };
                        edges.push(Edge { from: thread.id, to: holder, evidence, doubt });
                    }
                }
                // Nobody suspends.
                (Some(_), _) => {}
                (None, _) => {
                    let others = outlines.iter().filter(|(id, outline)| {
                        waiting.contains(id) && **id != thread.id && self.is_in_call(outline)
                    });
                    let evidence = Evidence::Call { address };
                    let edge = |to| Edge { from: thread.id, to, evidence, doubt };
                    edges.extend(others.map(|(id, _)| edge(*id)));
                }
            }
        }
        self.edges.extend(edges);
    }

    /// Reads which threads keep a suspension waiting and run: native code that managed code has called, in cooperative mode. Managed
    /// code that runs will come to a safe point, and the runtime's own code comes back, too.
    fn read_running(&mut self, walker: &mut StackWalker<'_, '_, P>, outlines: &Outlines) {
        let Some((suspender, None)) = self.suspender() else { return };
        let kept = self.edges.iter().filter(|edge| {
            edge.from == suspender && matches!(edge.evidence, Evidence::CooperativeMode { .. })
        });
        let is_waiting = self.process.thread(suspender).is_some_and(|it| it.system_call.is_some());
        let mut edges = Vec::new();
        for edge in kept.filter(|_| is_waiting) {
            let (Some(thread), Some(outline)) =
                (self.process.thread(edge.to), outlines.get(&edge.to))
            else {
                continue;
            };
            let is_runtimes =
                outline.modules.iter().any(|path| Some(path) == self.runtime.as_ref());
            let is_native = !outline.modules.is_empty() && outline.interrupted.is_none();
            let calls = |frame: &crate::stack::StackFrame| frame.code != CodeKind::Native;
            if thread.system_call.is_none()
                && is_native
                && !is_runtimes
                && walker.walk(&thread.registers).frames.iter().any(calls)
            {
                let evidence = Evidence::Runs { address: thread.registers.rip };
                let doubt = Some(Doubt::Moment);
                edges.push(Edge { from: thread.id, to: thread.id, evidence, doubt });
            }
        }
        self.edges.extend(edges);
    }

    /// Reads who keeps a suspension waiting by a lock whose owner the dump lacks: the thread that suspends, in a callback, or one in
    /// cooperative mode.
    fn read_unknown_owners(&mut self, outlines: &Outlines) {
        let Some((suspender, _)) = self.suspender() else { return };
        let (waiting, wanted) = (self.waiting(), self.wanted());
        for thread in self.process.threads() {
            let Some((address, None)) = self.nameless_lock(thread) else { continue };
            let is_kept = |edge: &Edge| {
                edge.to == thread.id && matches!(edge.evidence, Evidence::CooperativeMode { .. })
            };
            let is_in_way = thread.id == suspender && wanted.contains(&suspender)
                || self.edges.iter().any(is_kept);
            let is_callers = outlines
                .get(&thread.id)
                .is_some_and(|outline| outline.interrupted.is_none() && self.is_called(outline));
            if is_in_way && is_callers && !waiting.contains(&thread.id) {
                self.unknown.push(Unknown::Owner { thread: thread.id, address });
            }
        }
    }

    fn is_runtime(&self, module: Option<&String>) -> bool {
        module.is_some() && module == self.runtime.as_ref()
    }

    /// Returns true if the runtime has called what waits: the module of the system call.
    fn is_in_runtime(&self, outline: &Outline) -> bool {
        self.is_runtime(outline.modules.get(1))
    }

    /// Returns true if native code waits that the runtime has called.
    pub(super) fn is_called(&self, outline: &Outline) -> bool {
        outline.modules.iter().position(|path| self.is_runtime(Some(path))) >= Some(2)
    }

    /// Returns true if native code has called the runtime, which has called native code.
    pub(super) fn is_in_call(&self, outline: &Outline) -> bool {
        self.runtime.as_ref().is_some_and(|runtime| outline.is_in_call(runtime))
    }
}
