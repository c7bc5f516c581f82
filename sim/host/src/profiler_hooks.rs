//! The enter, leave and tailcall hooks that a profiler has set, and its mapper of functions.

use clr_com::{FunctionHook, FunctionIdMapper};
use clr_walker::profiling::{EventMask, FunctionId, HResult};
use clr_world::stubs::Hooks as InCode;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null;

/// `COR_PRF_MONITOR_ENTERLEAVE`.
const MONITOR_ENTER_LEAVE: EventMask = EventMask(0x1000);
/// `COR_PRF_ENABLE_FUNCTION_ARGS`, `_RETVAL`, `_FRAME_INFO`.
pub(crate) const INFO_FLAGS: [EventMask; 3] =
    [EventMask(0x200_0000), EventMask(0x400_0000), EventMask(0x800_0000)];
/// The method that has set hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SetBy {
    /// None.
    #[default]
    None,
    /// `SetEnterLeaveFunctionHooks`.
    One,
    /// `SetEnterLeaveFunctionHooks2`.
    Two,
    /// `SetEnterLeaveFunctionHooks3`.
    Three,
    /// `SetEnterLeaveFunctionHooks3WithInfo`.
    ThreeWithInfo,
}

/// The hooks of a profiler.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) set_by: Cell<SetBy>,
    /// Enter, leave, tailcall.
    pub(crate) addresses: Cell<[Hook; 3]>,
    pub(crate) mapper: Cell<Option<Mapper>>,
    /// The client's ids, or `None` for methods without hooks.
    pub(crate) clients: RefCell<BTreeMap<FunctionId, Option<u64>>>,
}

/// A hook, or NULL.
#[derive(Clone, Copy)]
pub(crate) struct Hook(pub(crate) FunctionHook);

impl Default for Hook {
    fn default() -> Self {
        Self(null())
    }
}

/// A `FunctionIDMapper`, or a `FunctionIDMapper2` with its data.
#[derive(Clone, Copy)]
pub(crate) enum Mapper {
    One(FunctionIdMapper),
    Two(FunctionIdMapper, *mut c_void),
}

impl Hooks {
    /// Forgets the hooks of a profiler that was here before.
    pub(crate) fn clear(&self) {
        self.set_by.take();
        self.addresses.take();
        self.mapper.take();
        self.clients.take();
    }

    /// Sets hooks, with the CLR's order of precedence: those of a newer method stay.
    pub(crate) fn set(&self, by: SetBy, hooks: [FunctionHook; 3], events: EventMask) -> HResult {
        if hooks.iter().all(|hook| hook.is_null()) {
            return HResult::INVALID_ARGUMENT;
        }
        let has_info = INFO_FLAGS.iter().any(|flag| events.contains(*flag));
        match by {
            SetBy::Three if has_info => return HResult::INCONSISTENT_WITH_FLAGS,
            SetBy::ThreeWithInfo if !has_info => return HResult::INCONSISTENT_WITH_FLAGS,
            SetBy::One | SetBy::Two if self.set_by.get() > by => return HResult::OK,
            _ => {}
        }
        self.set_by.set(by);
        self.addresses.set(hooks.map(Hook));
        HResult::OK
    }

    /// Sets the mapper; NULL is none.
    pub(crate) fn set_mapper(&self, address: FunctionIdMapper, data: Option<*mut c_void>) {
        let mapper = match data {
            Some(data) => Mapper::Two(address, data),
            None => Mapper::One(address),
        };
        let mapper = (!address.is_null()).then_some(mapper);
        self.mapper.set(mapper);
    }

    /// Returns true if any hooks are set.
    pub(crate) fn are_set(&self) -> bool {
        self.set_by.get() != SetBy::None
    }

    /// Returns the hooks that the code of methods has with this event mask.
    pub(crate) fn in_code(&self, events: EventMask) -> InCode {
        match self.set_by.get() {
            _ if !events.contains(MONITOR_ENTER_LEAVE) => InCode::None,
            SetBy::None => InCode::None,
            SetBy::Three => InCode::Fast,
            SetBy::One | SetBy::Two | SetBy::ThreeWithInfo => InCode::Slow,
        }
    }
}
