//! Enter, leave and tailcall hooks: `EEToProfInterfaceImpl` (src/vm/eetoprofinterfaceimpl.cpp of CoreCLR
//! 3.1), `ProfileEnter` and its siblings (src/vm/proftoeeinterfaceimpl.cpp).
//!
//! | set by | called | with |
//! |---|---|---|
//! | `SetEnterLeaveFunctionHooks` | by the runtime, with a Frame | the client's id |
//! | `…Hooks2` | by the runtime, with a Frame | FunctionID, the client's id, frame, arguments |
//! | `…Hooks3` | by the method itself | the client's id |
//! | `…Hooks3WithInfo` | by the runtime, with a Frame | the client's id, a handle |
//!
//! The mapper makes the client's id of a FunctionID. It is called before the first hook of a method; a CLR
//! calls it when the method is compiled.

use crate::inner::Inner;
use crate::process::Process;
use crate::profiler_hooks::{Hook, Mapper, SetBy};
use crate::report::Finding;
use clr_com::{ArgumentRange, Bool, FunctionArguments, FunctionHook};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_unwind::Gpr;
use clr_walker::profiling::{FunctionId, HResult};
use clr_world::HookKind;
use std::ffi::c_void;

/// Calls the function of a type at an address.
macro_rules! call {
    ($address:ident as $type:ident, $($argument:expr),*) => {
        std::mem::transmute::<*const c_void, $type>($address)($($argument),*)
    };
}

/// The `COR_PRF_ELT_INFO` of all hooks: a handle, which nothing can be read from.
pub(crate) const ELT_INFO: u64 = 0xE17;
/// A value for the registers of a return value.
#[cfg(all(target_arch = "x86_64", any(unix, windows)))]
const RETURNED: u64 = 0x5EED_1DEA;

/// Returns the client's id of a function, and true if it is to be hooked.
unsafe fn map(mapper: Mapper, function: FunctionId) -> (u64, bool) {
    type One = unsafe extern "system" fn(FunctionId, *mut Bool) -> u64;
    type Two = unsafe extern "system" fn(FunctionId, *mut c_void, *mut Bool) -> u64;
    let mut is_hooked: Bool = 1;
    // SAFETY: the profiler's function, which is not NULL, with the documented arguments.
    let client = unsafe {
        match mapper {
            Mapper::One(mapper) => call!(mapper as One, function, &raw mut is_hooked),
            Mapper::Two(mapper, data) => call!(mapper as Two, function, data, &raw mut is_hooked),
        }
    };
    (client, is_hooked != 0)
}

impl Inner {
    /// Returns the client's id of a function, or `None` if it has no hooks.
    fn client(&self, stage: &Process, function: FunctionId) -> Option<u64> {
        let Some(mapper) = self.hooks.mapper.get() else { return Some(function.0) };
        if let Some(known) = self.hooks.clients.borrow().get(&function) {
            return *known;
        }
        let mut client = None;
        // Methods may be called in it as in a callback of the compilation.
        stage.runtime().on(self.caller()).in_callback(Kind::JITCompilationStarted, |_| {
            self.enter("FunctionIDMapper", || {
                // SAFETY: the profiler's function.
                let (id, is_hooked) = unsafe { map(mapper, function) };
                client = is_hooked.then_some(id);
                HResult::OK
            });
        });
        self.hooks.clients.borrow_mut().insert(function, client);
        client
    }

    /// Calls the hook that a thread of the program has come to.
    pub(crate) fn call_hook(&self, stage: &Process, thread: usize) {
        let Some(world) = stage.world() else { return };
        let (hook, rsp) = {
            let world = world.borrow();
            let top = world.shadow_stack(thread).and_then(|stack| stack.callers().last());
            (world.hook(thread), top.map_or(0, |caller| caller.registers.get(Gpr::Rsp)))
        };
        let Some((kind, function)) = hook else { return };
        let [enter, leave, tailcall] = self.hooks.addresses.get();
        let (Hook(address), name) = match kind {
            HookKind::Enter => (enter, "FunctionEnter"),
            HookKind::Leave => (leave, "FunctionLeave"),
            HookKind::Tailcall => (tailcall, "FunctionTailcall"),
        };
        if address.is_null() {
            return;
        }
        let Some(client) = self.client(stage, function) else { return };
        let set_by = self.hooks.set_by.get();
        let mut kept = true;
        self.enter(name, || {
            // SAFETY: the profiler's function, which is not NULL, as the method that has set it demands.
            unsafe {
                match set_by {
                    SetBy::None => {}
                    SetBy::One => call!(address as One, client),
                    SetBy::Two => call_two(address, kind, function, client),
                    SetBy::Three => kept = registers::call(address, kind, client, rsp),
                    SetBy::ThreeWithInfo => call!(address as WithInfo, client, ELT_INFO),
                }
            }
            HResult::OK
        });
        if !kept && kind != HookKind::Enter {
            self.shared.find(Finding::ChangedReturnValue { hook: name });
        }
    }
}

type One = unsafe extern "system" fn(u64);
type WithInfo = unsafe extern "system" fn(u64, u64);

/// Calls a hook of `SetEnterLeaveFunctionHooks2`. Methods have no parameters and return nothing.
unsafe fn call_two(address: FunctionHook, kind: HookKind, function: FunctionId, client: u64) {
    type Enter = unsafe extern "system" fn(FunctionId, u64, u64, *const FunctionArguments);
    type Leave = unsafe extern "system" fn(FunctionId, u64, u64, *const ArgumentRange);
    type Tailcall = unsafe extern "system" fn(FunctionId, u64, u64);
    let range = ArgumentRange { start: 0, size: 0 };
    let arguments = FunctionArguments { ranges_len: 0, size: 0, first: range };
    // SAFETY: the caller's promise; the frame is 0, as DoStackSnapshot takes it.
    unsafe {
        match kind {
            HookKind::Enter => call!(address as Enter, function, client, 0, &raw const arguments),
            HookKind::Leave => call!(address as Leave, function, client, 0, &raw const range),
            HookKind::Tailcall => call!(address as Tailcall, function, client, 0),
        }
    }
}

/// Hooks that jitted code calls itself, with arguments in registers (`REG_PROFILER_ENTER_ARG_0` and
/// `RBM_PROFILER_LEAVE_TRASH` of src/jit/target.h in 3.1, src/vm/amd64/asmhelpers.S).
#[cfg(all(target_arch = "x86_64", unix))]
mod registers {
    use super::{FunctionHook, HookKind, RETURNED};

    /// Calls a hook. A hook for entering gets its arguments in r14 and r15, as rdi and rsi have the
    /// method's own; the others get theirs in rdi and rsi. Returns true if rax and xmm0 were kept.
    ///
    /// # Safety
    /// `address` is such a hook.
    pub(super) unsafe fn call(
        address: FunctionHook,
        kind: HookKind,
        client: u64,
        rsp: u64,
    ) -> bool {
        let (first, second) = if kind == HookKind::Enter { (0, 0) } else { (client, rsp) };
        let (mut rax, mut xmm0) = (RETURNED, f64::from_bits(RETURNED));
        // SAFETY: the block has the stack's alignment at a call; all registers that the C convention does
        // not preserve are outputs.
        unsafe {
            std::arch::asm!(
                "call r11",
                inout("r11") address => _,
                inout("rdi") first => _,
                inout("rsi") second => _,
                in("r14") client,
                in("r15") rsp,
                inout("rax") rax,
                inout("xmm0") xmm0,
                clobber_abi("sysv64"),
            );
        }
        rax == RETURNED && xmm0.to_bits() == RETURNED
    }
}

#[cfg(all(target_arch = "x86_64", windows))]
mod registers {
    use super::{FunctionHook, HookKind, RETURNED};

    /// Calls a hook with its arguments in rcx and rdx. Returns true if rax and xmm0 were kept.
    ///
    /// # Safety
    /// `address` is such a hook.
    pub(super) unsafe fn call(address: FunctionHook, _: HookKind, client: u64, rsp: u64) -> bool {
        let (mut rax, mut xmm0) = (RETURNED, f64::from_bits(RETURNED));
        // SAFETY: the block has the stack's alignment at a call, and makes the home space; all registers
        // that the convention does not preserve are outputs.
        unsafe {
            std::arch::asm!(
                "sub rsp, 32",
                "call r11",
                "add rsp, 32",
                inout("r11") address => _,
                inout("rcx") client => _,
                inout("rdx") rsp => _,
                inout("rax") rax,
                inout("xmm0") xmm0,
                clobber_abi("win64"),
            );
        }
        rax == RETURNED && xmm0.to_bits() == RETURNED
    }
}

/// Other processors: as functions of C (assumed).
#[cfg(not(all(target_arch = "x86_64", any(unix, windows))))]
mod registers {
    use super::{FunctionHook, HookKind};

    /// Calls a hook.
    ///
    /// # Safety
    /// `address` is such a hook.
    pub(super) unsafe fn call(address: FunctionHook, _: HookKind, client: u64, rsp: u64) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            std::mem::transmute::<FunctionHook, super::WithInfo>(address)(client, rsp);
        }
        true
    }
}
