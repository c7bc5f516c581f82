//! COM objects that outlive their references, so that calls after the last one can be noticed.

use crate::coverage::CallKind;
use crate::inner::{Inner, Kept, find};
use crate::journal::Entry;
use crate::report::Finding;
use crate::results;
use crate::shared::Shared;
use crate::turns;
use clr_com::{
    Callable, Guid, ICorProfilerInfo, ICorProfilerInfo2, ICorProfilerInfo3, ICorProfilerInfo4,
    ICorProfilerInfo5, ICorProfilerInfo6, ICorProfilerInfo7, ICorProfilerInfo8, ICorProfilerInfo9,
    ICorProfilerInfo10, ICorProfilerInfo11, ICorProfilerInfo12, ICorProfilerInfo13,
    ICorProfilerInfo14, ICorProfilerInfo15, IUnknown, IUnknownMethods, Implements, Interface,
    OwnUnknown, OwnedObject, own,
};
use clr_runtime::Outcome;
use clr_runtime::profiling::callers_of;
use clr_walker::profiling::{CallError, HResult};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Number of objects of closed sessions that are kept: a profiler may release them late.
const GRAVES: usize = 0x1_0000;

/// Objects of closed sessions, the newest last.
static DEAD: Mutex<VecDeque<Box<dyn Any + Send>>> = Mutex::new(VecDeque::new());

/// Keeps objects of a closed session.
pub(crate) fn bury(objects: impl IntoIterator<Item = Box<dyn Any + Send>>) {
    let mut dead = DEAD.lock().unwrap_or_else(PoisonError::into_inner);
    dead.extend(objects);
    while dead.len() > GRAVES {
        dead.pop_front();
    }
}

macro_rules! infos {
    ($($interface:ident)*) => {
        /// The ids of `ICorProfilerInfo` to 15.
        pub(crate) const INFO_IDS: [Guid; 15] = [$($interface::IID),*];
        /// The number of slots of each.
        const INFO_SLOTS: [usize; 15] =
            [$(size_of::<<$interface as Interface>::Vtable>() / size_of::<usize>()),*];
    };
}

infos! {
    ICorProfilerInfo ICorProfilerInfo2 ICorProfilerInfo3 ICorProfilerInfo4 ICorProfilerInfo5
    ICorProfilerInfo6 ICorProfilerInfo7 ICorProfilerInfo8 ICorProfilerInfo9 ICorProfilerInfo10
    ICorProfilerInfo11 ICorProfilerInfo12 ICorProfilerInfo13 ICorProfilerInfo14 ICorProfilerInfo15
}

/// Returns the number of the first `ICorProfilerInfo` with a method.
fn interface_of(method: &str) -> Option<u8> {
    static INTERFACES: LazyLock<BTreeMap<&'static str, u8>> = LazyLock::new(|| {
        let methods = (0..).map_while(ICorProfilerInfo15::method).enumerate();
        let interface = |slot: usize| INFO_SLOTS.iter().filter(|slots| **slots <= slot).count() + 1;
        methods.map(|(slot, method)| (method.name, interface(slot) as u8)).collect()
    });
    INTERFACES.get(method).copied()
}

/// Makes the tables that calls look into, so that copies of this process have them.
pub fn prepare_calls() {
    interface_of("");
    callers_of("");
}

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The runtime, up to this `ICorProfilerInfo`. A CLR does not count its references:
    /// `ProfToEEInterfaceImpl::AddRef` and `Release` return 1.
    Info(u8),
    /// Another object of the runtime whose references are not counted, with these interfaces.
    Uncounted(&'static [Guid]),
    /// An enumerator, or the metadata of a module: with these interfaces besides `IUnknown`.
    Counted(&'static str, &'static [Guid]),
}

impl Kind {
    const fn is_counted(self) -> bool {
        matches!(self, Self::Counted(..))
    }
}

/// The part that all objects have.
pub(crate) struct Head {
    pub(crate) session: u64,
    shared: Arc<Shared>,
    /// Number of the object in its session, from 0.
    pub(crate) number: u32,
    kind: Kind,
    references: AtomicU32,
}

impl Head {
    pub(crate) fn new(session: &Inner, number: u32, kind: Kind) -> Self {
        let references = AtomicU32::new(u32::from(kind.is_counted()));
        Self { session: session.key, shared: Arc::clone(&session.shared), number, kind, references }
    }

    /// Calls `act` in the session, unless the call is refused: on another thread, after the last
    /// reference, after the end of the process.
    pub(crate) fn call(
        &self,
        method: &'static str,
        act: impl FnOnce(&Rc<Inner>) -> Result<HResult, CallError<Outcome>>,
    ) -> HResult {
        if let Some(turns) = turns::of_this_thread() {
            let (mut answer, mut act) = (results::ENDED, Some(act));
            turns.ask(method, &mut |me| {
                if let Some(act) = act.take() {
                    answer = self.answer_in_history(me, method, act);
                }
            });
            return answer;
        }
        self.shared.write(&Entry::Calls(method));
        // Calls of other threads of the system are on none of the text's.
        let session = find(self.session);
        let number = session.as_ref().map_or(u32::MAX, |session| session.thread_number());
        let shared = &self.shared;
        let result = shared.counting(CallKind::Method, method, number, || self.answer(method, act));
        let thread = session.as_ref().map_or("", |session| session.thread_name(number));
        shared.write(&Entry::Returns { method, thread, result });
        result
    }

    fn answer(
        &self,
        method: &'static str,
        act: impl FnOnce(&Rc<Inner>) -> Result<HResult, CallError<Outcome>>,
    ) -> HResult {
        let session = match self.enter(method) {
            Ok(session) => session,
            Err(refused) => return refused,
        };
        match act(&session) {
            Ok(result) | Err(CallError::Failed(result)) => result,
            Err(CallError::Fatal(outcome)) => {
                session.shared.find(Finding::Ended { method, outcome });
                session.end();
                results::ENDED
            }
        }
    }

    /// Calls `act` for a thread of an interleaving. Other threads may run before.
    fn answer_in_history(
        &self,
        me: &clr_explore::CurrentThread<'_, '_>,
        method: &'static str,
        act: impl FnOnce(&Rc<Inner>) -> Result<HResult, CallError<Outcome>>,
    ) -> HResult {
        let thread = me.index().0;
        self.shared
            .counting(CallKind::Method, method, thread, || self.call_runtime(me, method, act))
    }

    fn call_runtime(
        &self,
        me: &clr_explore::CurrentThread<'_, '_>,
        method: &'static str,
        act: impl FnOnce(&Rc<Inner>) -> Result<HResult, CallError<Outcome>>,
    ) -> HResult {
        let result = me.call_runtime(method, |_| {
            let session = self.enter(method).map_err(CallError::Failed)?;
            // SAFETY: threads of guests belong to interleavings of the session's process alone.
            let answer = unsafe { session.on_behalf_of(me, || act(&session)) }?;
            // The interleaving records how the call has ended.
            if answer.is_failure() { Err(CallError::Failed(answer)) } else { Ok(answer) }
        });
        match result {
            Ok(result) | Err(CallError::Failed(result)) => result,
            Err(CallError::Fatal(_)) => results::ENDED,
        }
    }

    fn enter(&self, method: &'static str) -> Result<Rc<Inner>, HResult> {
        let Some(session) = find(self.session) else {
            let wrong = self.shared.is_open();
            if wrong {
                self.shared.find(Finding::WrongThread { method });
            }
            return Err(if wrong { results::WRONG_THREAD } else { results::RELEASED });
        };
        if self.kind.is_counted() && self.references.load(Ordering::Relaxed) == 0 {
            self.shared.find(Finding::UseAfterRelease { method, object: self.number });
            return Err(results::RELEASED);
        }
        if session.has_ended() { Err(results::ENDED) } else { Ok(session) }
    }

    /// Returns true, and notes it, for a method that the runtime's interfaces do not have.
    pub(crate) fn lacks(&self, method: &'static str) -> bool {
        let Kind::Info(newest) = self.kind else { return false };
        let Some(interface) = interface_of(method).filter(|number| *number > newest) else {
            return false;
        };
        self.shared.find(Finding::NoMethod { method, interface });
        true
    }

    /// Counts a call of a method that is not simulated.
    pub(crate) fn not_simulated(&self, method: &'static str) {
        if find(self.session).is_none() && self.shared.is_open() {
            self.shared.find(Finding::WrongThread { method });
        }
        self.shared.with(|report| report.not_simulated(method));
        self.shared.write(&Entry::NotSimulated(method));
    }

    fn query_interface(&self, iid: Option<&Guid>) -> HResult {
        let Some(iid) = iid else { return results::POINTER };
        self.call("QueryInterface", |_| {
            let is_known = *iid == IUnknown::IID
                || match self.kind {
                    Kind::Info(newest) => INFO_IDS.iter().take(newest.into()).any(|id| id == iid),
                    Kind::Uncounted(ids) | Kind::Counted(_, ids) => ids.contains(iid),
                };
            if !is_known {
                return Ok(HResult::NO_INTERFACE);
            }
            self.share();
            Ok(HResult::OK)
        })
    }

    fn add_reference(&self) -> u32 {
        if !self.kind.is_counted() {
            return 1;
        }
        // An object without references does not come to life again.
        if self.share() {
            return self.references.load(Ordering::Relaxed);
        }
        let method = "AddRef";
        self.shared.find(Finding::UseAfterRelease { method, object: self.number });
        0
    }

    fn release(&self) -> u32 {
        let less = |references: u32| references.checked_sub(1);
        let before = self.references.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        match (self.kind, before) {
            (Kind::Info(_) | Kind::Uncounted(_), _) => 1,
            (_, Ok(before)) => before.saturating_sub(1),
            (_, Err(_)) => {
                self.shared.find(Finding::OverRelease { object: self.number });
                0
            }
        }
    }

    /// Counts another reference, if the object has one.
    pub(crate) fn share(&self) -> bool {
        let more = |references: u32| references.checked_add(1).filter(|_| references > 0);
        self.references.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Returns the references that are left, of an object whose references count.
    pub(crate) fn leak(&self) -> Option<Finding> {
        let Kind::Counted(interface, _) = self.kind else { return None };
        let references = self.references.load(Ordering::Relaxed);
        (references > 0).then_some(Finding::Leak { object: self.number, interface, references })
    }
}

/// An object of a session.
pub(crate) trait Headed: IUnknownMethods + Send + Sync + 'static {
    /// Returns the part that all objects have.
    fn head(&self) -> &Head;

    /// Returns the pointer for one of the object's interfaces, if it is another than the object's own.
    fn face(&self, iid: &Guid) -> Option<NonNull<c_void>> {
        let _ = iid;
        None
    }
}

/// Makes an object with the interface `I`.
pub(crate) fn make<I: Implements<T>, T: Headed>(value: T) -> OwnedObject<T> {
    own::<I, T>(
        value,
        OwnUnknown {
            query: |value, iid| {
                let result = value.head().query_interface(iid);
                if result.is_failure() {
                    Err(result)
                } else {
                    Ok(iid.and_then(|iid| value.face(iid)))
                }
            },
            add_reference: |value| value.head().add_reference(),
            release: |value| value.head().release(),
        },
    )
}

impl<T: Headed> Kept for OwnedObject<T> {
    fn leak(&self) -> Option<Finding> {
        self.value().head().leak()
    }

    fn buried(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}
