//! Calls of the methods that look code up, and of EnumThreads, compared with the reference.
//!
//! A [`Lookup`] is drawn as a whole: runtime, caller, state of the process, method and address. The
//! [reference](clr_reference::lookups) answers from a table of the contract's rules (contract §2.6, contract §5), and shares no code
//! with the implementation.

use clr_generate::Choices;
use clr_machine::Machine;
use clr_reference::lookups::{Answer, Asked, Lookup, Method};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{Caller, ProfilerCallback};
use clr_runtime::{
    CallbackState, Lock, OsThreadId, Outcome, Process, Profiler, ProfilerStatus, Runtime,
    Suspension, Wait,
};
use clr_walker::profiling::{CallError, FunctionId, ProfilerInfo, ReJitId};
use clr_world::synthetic::{
    MANAGED_WALKER, NATIVE_WALKER, SELF, SyntheticProcess, SyntheticThread,
};
use std::cell::RefCell;

/// Returns the label of the code in the process that [`observed`] sets up.
const fn label(asked: Asked) -> &'static str {
    match asked {
        Asked::Jitted => "App.Main",
        Asked::ReadyToRun => "Lib.Run",
        Asked::IlStub => "ILStub.PInvoke",
        Asked::Dynamic => "dynamic",
        Asked::Native => "coreclr.dll!CallDescrWorkerInternal",
    }
}

/// Draws a call.
pub fn lookup(choices: &mut impl Choices) -> Lookup {
    let caller = choices.one([SELF, MANAGED_WALKER, NATIVE_WALKER]);
    let another = OsThreadId(9);
    let suspension = match choices.below(6) {
        0 => Suspension::Suspending(another),
        1 => Suspension::Suspended(another),
        2 => Suspension::Suspended(caller),
        _ => Suspension::None,
    };
    let mut process = Process {
        suspension,
        gc_initialized: !choices.chance(1, 8),
        code_manager_writer: choices.one([None, None, Some(another), Some(another), Some(caller)]),
        ..Process::default()
    };
    if choices.chance(1, 16) {
        process.profiler = ProfilerStatus::Detaching;
    }
    if let Some(by) = suspension.by() {
        // A suspension holds the lock of the thread list from its begin to its end.
        process.try_acquire(Lock::ThreadStore, by);
        process.suspended_by_profiler = choices.chance(1, 4);
    }
    Lookup {
        generation: choices.pick(&Generation::ALL).unwrap_or(Generation::CoreClr31Windows),
        method: choices.one(Method::ALL),
        asked: choices.one(Asked::ALL),
        caller,
        cooperative: choices.chance(1, 2),
        state: CallbackState(choices.one([0, 1, 3, 4, 8])),
        forbids: choices.one([0, 0, 0, 1, 7]),
        process,
    }
}

/// Makes the call. Returns `None` if the process cannot be set up.
#[must_use]
pub fn observed(lookup: &Lookup) -> Option<Answer> {
    let thread = SyntheticThread {
        cooperative: lookup.cooperative,
        forbid_suspend: lookup.forbids,
        process: lookup.process,
        ..SyntheticThread::new(lookup.generation)
    };
    let thread = thread
        .il_stub("ILStub.PInvoke+0x30", 0x1F_E100)
        .dynamic("dynamic+0x30", 0x1F_E180)
        .ready_to_run("Lib.Run+0x30", 0x1F_E200)
        .jit("App.Main+0x30", 0x1F_E280)
        .native("coreclr.dll!CallDescrWorkerInternal+0x30", 0x1F_E300);
    let set = thread.build().ok()?;
    let runtime = set.runtime();
    runtime.change_thread(lookup.caller, |thread| thread.callback_state = lookup.state);
    let waits = Waits(RefCell::default());
    let caller = runtime.on(lookup.caller).with_profiler(&waits);
    let result = call(&set, caller, lookup.method, lookup.asked);
    Some(Answer { result, waits: waits.0.into_inner() })
}

fn call(
    set: &SyntheticProcess,
    caller: Caller<'_, '_, Machine>,
    method: Method,
    asked: Asked,
) -> Result<Option<Asked>, CallError<Outcome>> {
    let name = label(asked);
    let ip = set.address(&format!("{name}+0x30")).unwrap_or_default();
    let id = set.function(name).unwrap_or(FunctionId(0));
    let found =
        |id: FunctionId| Asked::ALL.into_iter().find(|one| set.function(label(*one)) == Some(id));
    match method {
        Method::FunctionFromIp => caller.get_function_from_ip(ip).map(found),
        Method::FunctionFromIp2 => caller.get_function_from_ip2(ip).map(|(id, _)| found(id)),
        Method::FunctionFromIp3 => caller.get_function_from_ip3(ip).map(|(id, _)| found(id)),
        Method::CodeInfo => caller.get_code_info(id).map(|_| None),
        Method::CodeInfo2 => caller.get_code_info2(id, &mut []).map(|_| None),
        Method::CodeInfo3 => caller.get_code_info3(id, ReJitId(0), &mut []).map(|_| None),
        Method::CodeInfo4 => caller.get_code_info4(ip, &mut []).map(|_| None),
        Method::EnumThreads => caller.enum_threads().map(|_| None),
    }
}

/// A profiler that records waits and ends none.
struct Waits(RefCell<Vec<Wait>>);

impl<'a> Profiler<'a, Machine> for Waits {
    fn call_back(&self, _: &Runtime<'a, Machine>, _: OsThreadId, _: ProfilerCallback) {}

    fn wait(&self, _: &Runtime<'a, Machine>, _: OsThreadId, wait: Wait) -> bool {
        self.0.borrow_mut().push(wait);
        false
    }
}
