//! Who waits for whom.

use super::{Doubt, Edge, Evidence, Unknown};
use crate::error::InspectError;
use crate::runtime::Runtime;
use crate::stack::{CodeKind, Stack, StackWalker};
use crate::threads::{ManagedThread, Mode, ThreadStore};
use clr_dump::{StoppedProcess, Thread, Wait};
use clr_unwind::Gpr;
use std::collections::BTreeSet;

/// The file of a runtime that does not export its contracts, and so does not say which module it is.
const RUNTIME: &str = "libcoreclr.so";

/// Reads the waits of a process.
pub(super) struct Reader<'p, P: ?Sized> {
    process: &'p P,
    /// Path of the runtime's module.
    runtime: Option<String>,
    store: Option<ThreadStore>,
    managed: Vec<ManagedThread>,
    pub(super) edges: Vec<Edge>,
    pub(super) unknown: Vec<Unknown>,
}

/// Returns the doubt about a wait, which may have an end of its own: the fourth argument of futex(2).
fn timeout(thread: &Thread) -> Option<Doubt> {
    (thread.registers.get(Gpr::R10) != 0).then_some(Doubt::Timeout)
}

impl<'p, P: StoppedProcess + ?Sized> Reader<'p, P> {
    pub(super) fn new(process: &'p P, runtime: Result<&Runtime, InspectError>) -> Self {
        let mut unknown = Vec::new();
        let read = runtime.and_then(|runtime| runtime.threads(process));
        let (store, managed) = match read {
            Ok(list) => {
                unknown.extend(list.end.err().map(Unknown::Threads));
                (Some(list.store), list.threads)
            }
            Err(error) => {
                unknown.push(Unknown::Runtime(error));
                (None, Vec::new())
            }
        };
        let known = runtime.ok().map(|runtime| runtime.path().to_owned());
        let named = || process.modules().iter().find(|module| module.name() == RUNTIME);
        let runtime = known.or_else(|| Some(named()?.path.clone()));
        Self { process, runtime, store, managed, edges: Vec::new(), unknown }
    }

    /// Reads what memory says: waits for owners, for ends, for the list's lock, and those of a suspension.
    pub(super) fn read_waits(&mut self) {
        for thread in self.process.threads() {
            let wait = Wait::of(self.process, thread);
            if let Some(Wait::Word { address, value: None }) = wait {
                self.unknown.push(Unknown::Word { thread: thread.id, address });
            }
            let Some((to, evidence)) = wait.and_then(|wait| self.target(thread, wait)) else {
                continue;
            };
            self.edges.push(Edge { from: thread.id, to, evidence, doubt: timeout(thread) });
        }
        self.read_suspension();
    }

    /// Returns the thread that has to go on before a waiting one, and what says so.
    fn target(&self, thread: &Thread, wait: Wait) -> Option<(u32, Evidence)> {
        let held = self.store.and_then(|store| Some((store, self.holder()?)));
        match wait {
            Wait::Mutex { address, owner } => Some((owner, Evidence::Mutex { address })),
            Wait::Thread { id } => {
                let address = thread.registers.get(Gpr::Rdi);
                Some((id, Evidence::End { address }))
            }
            Wait::Word { address, value } => {
                let (store, holder) = held.filter(|(_, holder)| *holder != thread.id)?;
                let at = store.address;
                if store.lock().contains(&address) {
                    return Some((holder, Evidence::ThreadStoreLock { address, store: at }));
                }
                // A word that has changed has let the thread go on, which has not run since.
                let still =
                    value.is_none_or(|value| value == thread.registers.get(Gpr::Rdx) as u32);
                let is_trapped = self.managed(thread.id)?.is_trapped == Some(true);
                (is_trapped && still)
                    .then_some((holder, Evidence::Suspension { address, store: at }))
            }
            _ => None,
        }
    }

    /// Reads for whom the thread waits that suspends the others: for each one in cooperative mode.
    fn read_suspension(&mut self) {
        let suspender = self.store.and_then(|store| store.suspender);
        let suspender = self.managed.iter().find(|thread| Some(thread.address) == suspender);
        let (from, doubt) = match (suspender, self.holder()) {
            (Some(suspender), _) => (suspender.os_id, None),
            // A thread that the runtime does not know suspends it without a Thread, but others hold the lock, too.
            (None, Some(holder)) => (holder, Some(Doubt::Holder)),
            (None, None) => return,
        };
        let cooperative = self
            .managed
            .iter()
            .filter(|thread| thread.mode == Mode::Cooperative && thread.os_id != from);
        let edges = cooperative.map(|thread| Edge {
            from,
            to: thread.os_id,
            evidence: Evidence::CooperativeMode { thread: thread.address },
            doubt,
        });
        self.edges.extend(edges);
    }

    /// Reads waits that may be for a suspension's end: inside the runtime, for a word of which nothing is known.
    pub(super) fn read_doubtful_waits(&mut self, walker: &mut StackWalker<'_, '_, P>) {
        let waiting: BTreeSet<_> = self.edges.iter().map(|edge| edge.from).collect();
        let wanted: BTreeSet<_> = self.edges.iter().map(|edge| edge.to).collect();
        // A circle goes through threads that others wait for.
        for thread in self.process.threads() {
            let Some(Wait::Word { address, value }) = Wait::of(self.process, thread) else {
                continue;
            };
            let is_candidate = wanted.contains(&thread.id) && !waiting.contains(&thread.id);
            if !is_candidate || !self.is_in_runtime(&walker.walk(&thread.registers)) {
                continue;
            }
            let doubt = timeout(thread).or(Some(Doubt::Word { is_dumped: value.is_some() }));
            let is_preemptive = || Some(self.managed(thread.id)?.mode == Mode::Preemptive);
            let mut edges = Vec::new();
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
                    let others = self.process.threads().iter().filter(|other| {
                        waiting.contains(&other.id)
                            && other.id != thread.id
                            && self.is_in_call(&walker.walk(&other.registers))
                    });
                    let evidence = Evidence::Call { address };
                    let edge = |to| Edge { from: thread.id, to, evidence, doubt };
                    edges.extend(others.map(|other| edge(other.id)));
                }
            }
            self.edges.extend(edges);
        }
    }

    /// Returns the thread of the process that holds the lock of the list of threads.
    fn holder(&self) -> Option<u32> {
        let holder = self.store?.holder?;
        self.process.thread(holder).map(|thread| thread.id)
    }

    fn managed(&self, id: u32) -> Option<&ManagedThread> {
        self.managed.iter().find(|thread| thread.os_id == id)
    }

    /// Returns the modules of a stack's native code, leafmost first, each once for frames in a row, up to other code.
    fn modules(&self, stack: &Stack) -> Vec<&str> {
        let native = stack.frames.iter().take_while(|frame| frame.code == CodeKind::Native);
        let mut modules: Vec<&str> = native
            .map_while(|frame| Some(self.process.module_at(frame.registers.rip)?.path.as_str()))
            .collect();
        modules.dedup();
        modules
    }

    /// Returns true if the runtime has called what waits: the module of the system call.
    fn is_in_runtime(&self, stack: &Stack) -> bool {
        self.modules(stack).get(1).copied() == self.runtime.as_deref() && self.runtime.is_some()
    }

    /// Returns true if native code has called the runtime, which has called native code.
    fn is_in_call(&self, stack: &Stack) -> bool {
        let modules = self.modules(stack);
        let is_runtime = |module: &&str| Some(*module) == self.runtime.as_deref();
        let Some(at) = modules.iter().position(is_runtime) else { return false };
        // The system's library waits, and begins threads; what the runtime called is between.
        let system = modules.first();
        at >= 2 && modules.get(at + 1).is_some_and(|module| Some(module) != system)
    }
}
