//! Values of answers, and their words.

use crate::frame::layout::DATUM_MARKS;
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

/// Result of a walk that starts outside of managed code and has no stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmptyWalk {
    /// `E_FAIL` without an internal stop (C-106).
    FailsWithoutStop,
    /// `E_FAIL` only if there is no Frame at all (C-107).
    FailsWithoutFrame,
}

/// The lowest bits of the datum of an InlinedCallFrame around a call that managed exception handling makes (the enumeration
/// `InlinedCallFrameMarker` of .NET 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExceptionHelper {
    /// `None` if the runtime has no such calls.
    calls: Option<u64>,
    /// Those around a catch or finally handler. `None` if the runtime unlinks the Frame before it calls a handler.
    handlers: Option<u64>,
}

impl ExceptionHelper {
    /// The runtime dispatches exceptions in unmanaged code.
    pub(super) const NONE: Self = Self { calls: None, handlers: None };

    /// The lowest three bits have this value, and no Frame is linked around handlers.
    pub(super) const fn low_bits(calls: u64) -> Self {
        Self { calls: Some(calls), handlers: None }
    }

    /// The lowest three bits have these values, around calls and around handlers.
    pub(super) const fn low_bits_and_of_handlers(calls: u64, handlers: u64) -> Self {
        Self { calls: Some(calls), handlers: Some(handlers) }
    }

    /// Returns true if a Frame with this datum is one.
    pub(crate) fn has(self, datum: u64) -> bool {
        self.calls == Some(datum & DATUM_MARKS)
    }

    /// Returns the datum of such a Frame.
    pub const fn datum(self) -> Option<u64> {
        self.calls
    }

    /// Returns the datum of such a Frame around a catch or finally handler, if it stays linked.
    pub const fn datum_of_handlers(self) -> Option<u64> {
        self.handlers
    }
}

/// Check that an unwound frame is on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackCheck {
    /// rsp must lie within the thread's stack (C-109).
    Bounds,
    /// The slot of the return address, and what it points to, must be readable (C-110).
    Readable,
}

/// Result of an access violation within the walk (C-111).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WalkFault {
    /// `E_UNEXPECTED`.
    Unexpected,
    /// The process is killed.
    Kills,
}

/// The way of a call by reflection, from the second call of the method on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvokePath {
    /// `MethodBase.Invoke` and `RuntimeMethodInfo.Invoke` call native code, which wraps exceptions.
    Native,
    /// `MethodBaseInvoker` calls emitted code, and wraps exceptions.
    Invoker,
    /// `RuntimeMethodInfo.Invoke` calls `MethodBaseInvoker`.
    MethodInfo,
    /// `MethodBase.Invoke` calls `RuntimeMethodInfo.Invoke`, and that `MethodBaseInvoker`.
    MethodBase,
}

/// The code that throws when the check of an index or a cast fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckFailures {
    /// Native helpers.
    Native,
    /// A native helper for an index, a method for a cast.
    ManagedCasts,
    /// A method for each.
    Managed,
    /// A method for an index, two methods for a cast.
    ManagedDeep,
}

/// The methods between native code and the first method of a thread that a program has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartPath {
    /// `ThreadHelper.ThreadStart`, with the execution context in between, which throws exceptions again.
    ThreadStart,
    /// None.
    None,
    /// `Thread.StartCallback`, whose filter asks for a handler of unhandled exceptions.
    StartCallback,
}

/// Order in which SuspendRuntime marks the suspension as the profiler's (contract §5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProfilerSuspension {
    /// The runtime has no SuspendRuntime.
    None,
    /// The mark is set before threads are stopped.
    MarkedBefore,
    /// The mark is set after the threads have been stopped (C-168).
    MarkedAfter,
}

/// Identification of a Frame's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameIdentity {
    /// The address of its vtable.
    Vtable,
    /// A number.
    Number,
}

/// Offsets within an InlinedCallFrame, in bytes (contract §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCallFrameLayout {
    /// `m_pCallSiteSP`.
    pub call_site_sp: u64,
    /// `m_pCallerReturnAddress`: 0 unless the call is active.
    pub return_address: u64,
    /// `m_pCalleeSavedFP`.
    pub frame_pointer: u64,
}

impl InlinedCallFrameLayout {
    /// Returns the layout with this offset of `m_pCallSiteSP`; the other fields follow it.
    pub(super) const fn after(call_site_sp: u64) -> Self {
        Self { call_site_sp, return_address: call_site_sp + 8, frame_pointer: call_site_sp + 16 }
    }
}

/// Offsets within HijackArgs, in bytes (contract §3.5). The registers of return values come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HijackArgsLayout {
    /// The callee-saved registers.
    pub registers: u64,
    /// The caller's rsp, if it is stored: otherwise it is the address after the return address.
    pub rsp: Option<u64>,
    /// The return address.
    pub return_address: u64,
}

impl HijackArgsLayout {
    /// Returns the layout on Unix, after `returned` bytes of return values.
    pub(super) const fn unix(returned: u64) -> Self {
        Self { registers: returned, rsp: None, return_address: returned + 6 * 8 }
    }

    /// Returns the layout on Windows, after `returned` bytes of return values.
    pub(super) const fn windows(returned: u64) -> Self {
        Self { registers: returned, rsp: None, return_address: returned + 8 * 8 }
    }

    /// Returns the layout on Windows with rsp before the return address.
    pub(super) const fn windows_with_rsp(returned: u64) -> Self {
        let rsp = returned + 8 * 8;
        Self { registers: returned, rsp: Some(rsp), return_address: rsp + 8 }
    }
}

/// Number of bytes that are read of a seed (C-053, C-162). It depends on the CONTEXT's size, and on
/// Unix on ContextFlags and XStateFeaturesMask, since the CONTEXT has space for AVX-512.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedSize {
    /// Without `CONTEXT_XSTATE`.
    pub plain: u32,
    /// With `CONTEXT_XSTATE`.
    pub extended: u32,
    /// With `CONTEXT_XSTATE` and features of AVX-512 (0xE0).
    pub avx512: u32,
    /// With `CONTEXT_XSTATE` and the feature of APX (bit 19); `None` if the runtime does not know APX.
    pub apx: Option<u32>,
}

impl SeedSize {
    /// `CONTEXT_XSTATE`.
    const XSTATE: u32 = 0x10_0040;
    /// The bits of AVX-512 in XStateFeaturesMask.
    const AVX512: u64 = 0xE0;
    /// The bit of APX in XStateFeaturesMask.
    const APX: u64 = 1 << 19;

    /// Returns the size of runtimes that read the same number of bytes of every seed.
    pub(super) const fn whole(size: u32) -> Self {
        Self { plain: size, extended: size, avx512: size, apx: None }
    }

    /// Returns true if the number depends on the seed.
    pub const fn depends_on_flags(self) -> bool {
        self.plain != self.extended
    }

    /// Returns the number of bytes read of a seed with these ContextFlags and this
    /// XStateFeaturesMask.
    pub const fn of(self, flags: u32, features: u64) -> u32 {
        match self.apx {
            _ if flags & Self::XSTATE != Self::XSTATE => self.plain,
            Some(apx) if features & Self::APX != 0 => apx,
            _ if features & Self::AVX512 != 0 => self.avx512,
            _ => self.extended,
        }
    }
}

/// Formats an answer for the table.
pub(super) trait InWords {
    fn in_words(&self) -> String;
}

impl InWords for bool {
    fn in_words(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl InWords for [u16; 4] {
    fn in_words(&self) -> String {
        self.map(|part| part.to_string()).join(".")
    }
}

impl InWords for &'static str {
    fn in_words(&self) -> String {
        (*self).to_owned()
    }
}

impl InWords for u8 {
    fn in_words(&self) -> String {
        self.to_string()
    }
}

impl InWords for u32 {
    fn in_words(&self) -> String {
        format!("{self:#x}")
    }
}

macro_rules! debug_in_words {
    ($($type:ty,)*) => {
        $(impl InWords for $type {
            fn in_words(&self) -> String {
                format!("{self:?}")
            }
        })*
    };
}

debug_in_words! { CallbackMode, Rules, HResult, EmptyWalk, StackCheck, WalkFault, ProfilerSuspension, FrameIdentity, CheckFailures, InvokePath, StartPath, }

impl InWords for InlinedCallFrameLayout {
    fn in_words(&self) -> String {
        let Self { call_site_sp, return_address, frame_pointer } = self;
        format!("SP {call_site_sp:#x}, return address {return_address:#x}, FP {frame_pointer:#x}")
    }
}

impl InWords for HijackArgsLayout {
    fn in_words(&self) -> String {
        let Self { registers, rsp, return_address } = self;
        let rsp = rsp.map_or_else(String::new, |rsp| format!("SP {rsp:#x}, "));
        format!("registers {registers:#x}, {rsp}return address {return_address:#x}")
    }
}

impl InWords for SeedSize {
    fn in_words(&self) -> String {
        let Self { plain, extended, avx512, apx } = self;
        if !self.depends_on_flags() {
            return format!("{plain:#x}");
        }
        let apx = apx.map_or_else(String::new, |apx| format!(", {apx:#x}"));
        format!("{plain:#x}, {extended:#x}, {avx512:#x}{apx}")
    }
}

impl InWords for ExceptionHelper {
    fn in_words(&self) -> String {
        let Self { calls: Some(calls), handlers } = self else { return "none".to_owned() };
        let handlers = handlers.map_or_else(String::new, |it| format!(", {it} around handlers"));
        format!("datum & {DATUM_MARKS} = {calls}{handlers}")
    }
}
