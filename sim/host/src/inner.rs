//! The state of a session, and the thread that calls the runtime or is called by it.
//!
//! In an interleaving the state is that of the thread that has the turn. Where other threads may run, it is put back
//! afterwards.

use crate::coverage::CallKind;
use crate::enumeration::TokenEnumeration;
use crate::environment::Environment;
use crate::event_state::Events;
use crate::exports::Exports;
use crate::heap::{Handle, Heap};
use crate::images::MappedImage;
use crate::journal;
use crate::process::Process;
use crate::profiler_hooks::Hooks;
use crate::report::Finding;
use crate::shared::Shared;
use crate::target::Target;
use crate::turns;
use clr_com::OwnedObject;
use clr_explore::CurrentThread;
use clr_metadata::Metadata;
use clr_runtime::OsThreadId;
use clr_runtime::generation::Generation;
use clr_runtime::metadata::ModuleImage;
use clr_runtime::profiling::CallbackKind;
use clr_scenario::Scenario;
use clr_walker::profiling::HResult;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    /// The open sessions of this thread, by key.
    pub(crate) static SESSIONS: RefCell<BTreeMap<u64, Rc<Inner>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns an open session of this thread.
pub(crate) fn find(key: u64) -> Option<Rc<Inner>> {
    SESSIONS.try_with(|sessions| sessions.borrow().get(&key).cloned()).ok().flatten()
}

/// A thread of an interleaving, for as long as its call lasts.
type Caller = &'static CurrentThread<'static, 'static>;

/// The state of a session.
pub(crate) struct Inner {
    pub(crate) key: u64,
    pub(crate) shared: Arc<Shared>,
    pub(crate) scenario: Scenario,
    pub(crate) generation: Generation,
    /// All processes so far, the current one last: what they gave away lives as long as the session.
    pub(crate) stages: RefCell<Vec<Rc<Process>>>,
    pub(crate) caller: Cell<OsThreadId>,
    /// The thread of an interleaving that has the turn.
    pub(crate) current: Cell<Option<Caller>>,
    pub(crate) ended: Cell<bool>,
    pub(crate) high_events: Cell<u32>,
    /// The profiler's object, while callbacks are raised.
    pub(crate) profiler: RefCell<Option<Rc<Target>>>,
    /// The runtime's object, with the pointer to it.
    pub(crate) info: RefCell<Option<(Box<dyn Kept>, *mut c_void)>>,
    pub(crate) objects: RefCell<Vec<Box<dyn Kept>>>,
    /// The metadata of modules that were asked for.
    pub(crate) scopes: RefCell<BTreeMap<ScopeKey, Arc<dyn Any + Send + Sync>>>,
    /// The metadata of modules that was asked for, with what the profiler has changed.
    pub(crate) metadata: RefCell<BTreeMap<ScopeKey, SharedMetadata>>,
    /// The IL that the profiler has set: its address and its size, by number of the process, ModuleID and token.
    pub(crate) bodies: RefCell<BTreeMap<(usize, u64, u32), Body>>,
    /// The allocators of IL by ModuleID.
    pub(crate) allocators: RefCell<BTreeMap<u64, usize>>,
    /// Memory that allocators of IL have given.
    pub(crate) allocated: RefCell<Vec<Box<[u8]>>>,
    /// The static fields that were asked for: addresses by ClassID and token.
    pub(crate) statics: RefCell<BTreeMap<(u64, u32), usize>>,
    /// Bytes of metadata that the profiler has pointers to.
    pub(crate) rows: RefCell<BTreeSet<Box<[u8]>>>,
    /// The images of modules that were asked for, by address.
    pub(crate) images: RefCell<BTreeMap<u64, MappedImage>>,
    pub(crate) enumerations: RefCell<BTreeMap<usize, TokenEnumeration>>,
    /// Nesting of walks.
    pub(crate) walks: Cell<u32>,
    pub(crate) explanations: RefCell<Vec<String>>,
    /// The callback that the profiler is in.
    pub(crate) within: Cell<Option<&'static str>>,
    /// Called after each callback, with its name.
    pub(crate) watcher: RefCell<Option<Box<Watcher>>>,
    pub(crate) hooks: Hooks,
    pub(crate) events: Events,
    /// The exports that the program calls.
    pub(crate) exports: RefCell<Exports>,
    pub(crate) environment: Environment,
    pub(crate) heap: Heap,
    /// The profiler's handles.
    pub(crate) handles: RefCell<BTreeMap<u64, Handle>>,
    /// Called when the profiler has been detached.
    pub(crate) on_detach: RefCell<Option<Box<dyn FnOnce()>>>,
    /// Called in an interleaving when the profiler asks to be detached.
    pub(crate) on_request: RefCell<Option<Rc<OnRequest>>>,
}

/// The IL of a method in the profiler's memory: address and size.
pub(crate) type Body = (usize, u32);

/// The metadata of a module, which the profiler may change.
pub(crate) type SharedMetadata = Rc<RefCell<Metadata>>;

/// The metadata of a module of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScopeKey {
    /// Number of the process in the session.
    pub(crate) stage: usize,
    pub(crate) module: u64,
    /// 0 for what the runtime has; others for what was opened from the module's file.
    pub(crate) copy: u32,
}

impl ScopeKey {
    /// Returns the key of what the runtime has.
    pub(crate) const fn own(stage: usize, module: u64) -> Self {
        Self { stage, module, copy: 0 }
    }
}

/// What begins a detach, on the thread that asks for it.
pub(crate) type OnRequest = dyn Fn(&CurrentThread<'_, '_>);

/// A function that looks at the process after a callback.
type Watcher = dyn Fn(&'static str);

/// An object that a session keeps.
pub(crate) trait Kept {
    fn leak(&self) -> Option<Finding>;
    fn buried(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl Inner {
    pub(crate) fn stage(&self) -> Option<Rc<Process>> {
        self.stages.borrow().last().cloned()
    }

    /// Returns the number of the current process, from 0.
    pub(crate) fn stage_number(&self) -> usize {
        self.stages.borrow().len().saturating_sub(1)
    }

    pub(crate) fn stage_of(&self, number: usize) -> Option<Rc<Process>> {
        self.stages.borrow().get(number).cloned()
    }

    /// Returns the metadata of a module of a process, as the image has it until the profiler changes it.
    pub(crate) fn metadata_of(&self, key: ScopeKey) -> Option<SharedMetadata> {
        if let Some(known) = self.metadata.borrow().get(&key) {
            return Some(Rc::clone(known));
        }
        let process = self.stage_of(key.stage)?;
        let image = process.runtime().metadata.image(key.module)?;
        let made = Rc::new(RefCell::new(image.metadata.clone()));
        self.metadata.borrow_mut().insert(key, Rc::clone(&made));
        Some(made)
    }

    /// Allocates memory that lives as long as the session.
    pub(crate) fn allocate(&self, size: usize) -> *mut u8 {
        let mut allocated = self.allocated.borrow_mut();
        allocated.push(vec![0; size.max(1)].into());
        allocated.last_mut().map_or(std::ptr::null_mut(), |memory| memory.as_mut_ptr())
    }

    /// Keeps bytes as long as the session lives, and returns the pointer to them.
    pub(crate) fn keep_row(&self, bytes: &[u8]) -> *const u8 {
        let mut rows = self.rows.borrow_mut();
        if !rows.contains(bytes) {
            rows.insert(bytes.into());
        }
        rows.get(bytes).map_or(std::ptr::null(), |kept| kept.as_ptr())
    }

    /// Maps the image of a module. Returns its address, or `None` if something else is there.
    pub(crate) fn map(&self, image: &ModuleImage) -> Option<u64> {
        let mut images = self.images.borrow_mut();
        if let Entry::Vacant(entry) = images.entry(image.base) {
            entry.insert(MappedImage::new(image.base, &image.bytes())?);
        }
        Some(image.base)
    }

    pub(crate) fn caller(&self) -> OsThreadId {
        self.caller.get()
    }

    pub(crate) fn set_caller(&self, os: OsThreadId) {
        self.caller.set(os);
    }

    /// Calls `act` as a thread.
    pub(crate) fn acting_as<T>(&self, os: OsThreadId, act: impl FnOnce() -> T) -> T {
        let before = self.caller.replace(os);
        let done = act();
        self.caller.set(before);
        done
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    pub(crate) fn end(&self) {
        self.ended.set(true);
    }

    pub(crate) fn set(&self, stage: Process) {
        self.caller.set(stage.native());
        self.ended.set(false);
        self.stages.borrow_mut().push(Rc::new(stage));
    }

    /// Keeps an object, and returns the pointer for the profiler.
    pub(crate) fn keep<T: 'static>(&self, make: impl FnOnce(u32) -> OwnedObject<T>) -> *mut c_void
    where
        OwnedObject<T>: Kept,
    {
        self.keep_all(|number| {
            let object = make(number);
            let pointer = object.as_raw();
            (Box::new(object), pointer)
        })
    }

    /// Keeps an object that may have more than one pointer, and returns what is made with it.
    pub(crate) fn keep_all<T>(&self, make: impl FnOnce(u32) -> (Box<dyn Kept>, T)) -> T {
        let mut objects = self.objects.borrow_mut();
        let (object, with) = make(objects.len() as u32 + 1);
        objects.push(object);
        with
    }

    /// Calls `watcher` after each callback.
    pub(crate) fn watch(&self, watcher: impl Fn(&'static str) + 'static) {
        *self.watcher.borrow_mut() = Some(Box::new(watcher));
    }

    /// Calls the profiler.
    pub(crate) fn enter(&self, callback: &'static str, call: impl FnOnce() -> HResult) -> HResult {
        // In an interleaving the guest's thread of the system executes it.
        let thread = self.thread_number();
        self.shared.write(&journal::Entry::Enters { callback, thread: self.thread_name(thread) });
        let before = self.within.replace(Some(callback));
        let result =
            self.shared.counting(CallKind::Callback, callback, thread, || match self.current() {
                Some(me) => self.switching(|| turns::execute(me, call)),
                None => call(),
            });
        self.within.set(before);
        self.shared.write(&journal::Entry::Leaves { callback, result });
        if before.is_none()
            && let Some(watcher) = &*self.watcher.borrow()
        {
            watcher(callback);
        }
        result
    }

    /// Calls the profiler on the calling thread, in the middle of a call: as `name`, by the rules of `kind`.
    pub(crate) fn call_back(
        &self,
        (kind, name): (CallbackKind, &'static str),
        call: impl FnOnce(&Target) -> HResult,
    ) {
        let target = self.profiler.borrow().clone();
        if let (Some(process), Some(target)) = (self.stage(), target) {
            process.runtime().on(self.caller()).in_callback(kind, |_| {
                self.enter(name, || call(&target));
            });
        }
    }

    /// Returns the number of the calling thread in the interleaving; or that of the text's thread, of which a process has
    /// the first ones.
    pub(crate) fn thread_number(&self) -> u32 {
        let number = || self.caller().0.wrapping_sub(1).min(self.scenario.threads.len() as u32);
        self.current().map_or_else(number, |me| me.index().0)
    }

    /// Returns the name of a thread in the text; empty for others.
    pub(crate) fn thread_name(&self, number: u32) -> &str {
        self.scenario.threads.get(number as usize).map_or("", |thread| &thread.name)
    }

    /// Returns the thread of the interleaving that has the turn.
    pub(crate) fn current(&self) -> Option<Caller> {
        self.current.get()
    }

    /// Calls `act` for a thread of an interleaving.
    ///
    /// # Safety
    /// The session's runtime is that of the interleaving.
    pub(crate) unsafe fn on_behalf_of<T>(
        &self,
        me: &CurrentThread<'_, '_>,
        act: impl FnOnce() -> T,
    ) -> T {
        // SAFETY: the reference is given up below, before the thread's own borrow ends. Of the second
        // lifetime, which is that of the history's process, the session holds the runtime itself.
        let me = unsafe { std::mem::transmute::<&CurrentThread<'_, '_>, Caller>(me) };
        let (before, within) = (self.current.replace(Some(me)), self.within.take());
        let done = self.acting_as(me.os(), act);
        self.current.set(before);
        self.within.set(within);
        done
    }

    /// Calls `act`, in which other threads may run.
    pub(crate) fn switching<T>(&self, act: impl FnOnce() -> T) -> T {
        let (current, caller, within) = (self.current.get(), self.caller(), self.within.get());
        let walks = self.walks.take();
        let done = act();
        self.walks.set(walks);
        self.current.set(current);
        self.set_caller(caller);
        self.within.set(within);
        done
    }
}
