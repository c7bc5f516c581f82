//! Who waits for whom.

use super::{Doubt, Edge, Evidence, Unknown};
use crate::error::InspectError;
use crate::runtime::{Runtime, is_runtime};
use crate::threads::{ManagedThread, Mode, ThreadStore};
use clr_dump::{StoppedProcess, System, Thread, Wait};
use clr_unwind::Gpr;

/// Reads the waits of a process.
pub(super) struct Reader<'p, P: ?Sized> {
    pub(super) process: &'p P,
    /// Path of the runtime's module.
    pub(super) runtime: Option<String>,
    pub(super) store: Option<ThreadStore>,
    managed: Vec<ManagedThread>,
    pub(super) edges: Vec<Edge>,
    pub(super) unknown: Vec<Unknown>,
}

/// Returns the doubt about a wait, which may have an end of its own.
pub(super) fn timeout<P: StoppedProcess + ?Sized>(process: &P, thread: &Thread) -> Option<Doubt> {
    Wait::may_time_out(process, thread).then_some(Doubt::Timeout)
}

/// Returns the path of the runtime's module.
pub(super) fn runtime_module<P: StoppedProcess + ?Sized>(
    process: &P,
    runtime: Option<&Runtime>,
) -> Option<String> {
    let known = runtime.map(|runtime| runtime.path().to_owned());
    let named = || process.modules().iter().find(|module| is_runtime(module));
    known.or_else(|| Some(named()?.path.clone()))
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
        let runtime = runtime_module(process, runtime.ok());
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
            self.edges.push(Edge {
                from: thread.id,
                to,
                evidence,
                doubt: timeout(self.process, thread),
            });
        }
        self.read_suspension();
    }

    /// Notes the threads that wait in the kernel of Windows, for what a minidump does not say.
    pub(super) fn read_system_waits(&mut self) {
        if self.process.system() != System::Windows {
            return;
        }
        let waiting = self.process.threads().iter().filter(|thread| thread.system_call.is_some());
        let is_known = |thread: &&Thread| self.edges.iter().any(|edge| edge.from == thread.id);
        let unknown = waiting.filter(|thread| !is_known(thread));
        self.unknown.extend(unknown.map(|thread| Unknown::System { thread: thread.id }));
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
            Wait::Call { .. } => None,
        }
    }

    /// Returns the thread that suspends the others, and the doubt about that.
    pub(super) fn suspender(&self) -> Option<(u32, Option<Doubt>)> {
        let suspender = self.store?.suspender;
        let suspender = self.managed.iter().find(|thread| Some(thread.address) == suspender);
        match (suspender, self.holder()) {
            (Some(suspender), _) => Some((suspender.os_id, None)),
            // A thread that the runtime does not know suspends it without a Thread, but others hold the lock, too.
            (None, Some(holder)) => Some((holder, Some(Doubt::Holder))),
            (None, None) => None,
        }
    }

    /// Reads for whom the thread waits that suspends the others: for each one in cooperative mode.
    fn read_suspension(&mut self) {
        let Some((from, doubt)) = self.suspender() else { return };
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

    /// Returns the thread of the process that holds the lock of the list of threads.
    pub(super) fn holder(&self) -> Option<u32> {
        let holder = self.store?.holder?;
        self.process.thread(holder).map(|thread| thread.id)
    }

    /// Returns the threads that the runtime knows.
    pub(super) fn threads(&self) -> &[ManagedThread] {
        &self.managed
    }

    pub(super) fn managed(&self, id: u32) -> Option<&ManagedThread> {
        self.managed.iter().find(|thread| thread.os_id == id)
    }
}
