//! The rules of the methods that look code up, and of EnumThreads, as a list of questions.

use crate::runtimes::is_framework_2;
use clr_runtime::generation::{Generation, Product};
use clr_runtime::profiling::HResult;
use clr_runtime::{
    CallbackState, Lock, OsThreadId, Outcome, Process, ProfilerStatus, Suspension, Wait,
};
use clr_walker::profiling::CallError;
#[cfg(doc)]
use clr_world::synthetic::MANAGED_WALKER;
use clr_world::synthetic::{NATIVE_WALKER, SELF};

/// A wrong reading of the contract. A runtime with the same mistake differs from the model on the
/// same calls as the model with it differs from the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mistake {
    /// GetCodeInfo and its family know their code without the code manager's lock (C-125).
    CodeInfoTakesNoLock,
    /// The methods that look code up since CLR 4 need a callback with triggers on every runtime
    /// (C-119).
    TriggersEverywhere,
    /// The methods that look code up since CLR 4 wait for the end of a suspension.
    LookupWaitsForGc,
    /// All methods that look code up check the caller's forbid-suspend region (C-116).
    AllCheckForbidRegion,
}

impl Mistake {
    /// All mistakes.
    pub const ALL: [Self; 4] = [
        Self::CodeInfoTakesNoLock,
        Self::TriggersEverywhere,
        Self::LookupWaitsForGc,
        Self::AllCheckForbidRegion,
    ];
}

/// A method of the profiling interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GetFunctionFromIP`.
    FunctionFromIp,
    /// `GetFunctionFromIP2`.
    FunctionFromIp2,
    /// `GetFunctionFromIP3`.
    FunctionFromIp3,
    /// `GetCodeInfo`.
    CodeInfo,
    /// `GetCodeInfo2`.
    CodeInfo2,
    /// `GetCodeInfo3`.
    CodeInfo3,
    /// `GetCodeInfo4`.
    CodeInfo4,
    /// `EnumThreads`.
    EnumThreads,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 8] = [
        Self::FunctionFromIp,
        Self::FunctionFromIp2,
        Self::FunctionFromIp3,
        Self::CodeInfo,
        Self::CodeInfo2,
        Self::CodeInfo3,
        Self::CodeInfo4,
        Self::EnumThreads,
    ];
}

/// The code that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A jitted method.
    Jitted,
    /// A method compiled ahead of time.
    ReadyToRun,
    /// An IL stub.
    IlStub,
    /// A dynamic method.
    Dynamic,
    /// A native function, which has no FunctionID.
    Native,
}

impl Asked {
    /// All kinds of code.
    pub const ALL: [Self; 5] =
        [Self::Jitted, Self::ReadyToRun, Self::IlStub, Self::Dynamic, Self::Native];
}

/// A call of a method, with the state that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The runtime.
    pub generation: Generation,
    /// The method.
    pub method: Method,
    /// The code that it asks for.
    pub asked: Asked,
    /// The calling thread: [`SELF`], [`MANAGED_WALKER`] or [`NATIVE_WALKER`].
    pub caller: OsThreadId,
    /// [`SELF`] is in cooperative mode; the walkers are preemptive.
    pub cooperative: bool,
    /// Callback-state bits of the caller.
    pub state: CallbackState,
    /// Number of times that [`SELF`] has forbidden its suspension.
    pub forbids: u32,
    /// State of the process.
    pub process: Process,
}

/// The observed or expected result of a call: the function found, if one was asked for, and the
/// waits that the call begins, none of which ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Function found; `None` for methods that return none.
    pub result: Result<Option<Asked>, CallError<Outcome>>,
    /// Waits, in order.
    pub waits: Vec<Wait>,
}

/// A caller as the rules see it: a thread that the runtime does not know passes nearly all checks.
#[expect(clippy::struct_excessive_bools, reason = "the rules ask for one condition each")]
struct Facts {
    known: bool,
    cooperative: bool,
    in_callback: bool,
    with_triggers: bool,
    forbids: bool,
    /// Another thread writes to the code manager's tables.
    busy: bool,
    /// The caller itself has the runtime suspended, or is suspending it.
    suspends: bool,
}

impl Facts {
    fn of(lookup: &Lookup) -> Self {
        let known = lookup.caller != NATIVE_WALKER;
        let bits = lookup.state.0;
        // FORCEGC_WAS_CALLED and REJIT_WAS_CALLED switch the checks off.
        let any = bits & 0b1100 != 0;
        Self {
            known,
            cooperative: lookup.caller == SELF && lookup.cooperative,
            in_callback: any || bits & 1 != 0,
            with_triggers: any || bits & 3 == 3,
            forbids: lookup.caller == SELF && lookup.forbids > 0,
            busy: lookup.process.code_manager_writer.is_some_and(|writer| writer != lookup.caller),
            suspends: match lookup.process.suspension {
                Suspension::Suspending(by) | Suspension::Suspended(by) => by == lookup.caller,
                Suspension::None => false,
            },
        }
    }
}

/// Returns the answer that the contract gives to a call.
#[must_use]
pub fn expected(lookup: &Lookup, mistake: Option<Mistake>) -> Answer {
    let mut waits = Vec::new();
    let result = answer(lookup, mistake, &mut waits);
    Answer { result, waits }
}

fn answer(
    lookup: &Lookup,
    mistake: Option<Mistake>,
    waits: &mut Vec<Wait>,
) -> Result<Option<Asked>, CallError<Outcome>> {
    use Method::{
        CodeInfo, CodeInfo2, CodeInfo3, CodeInfo4, EnumThreads, FunctionFromIp, FunctionFromIp2,
        FunctionFromIp3,
    };
    let family = lookup.generation.family();
    let facts = Facts::of(lookup);
    let (method, process) = (lookup.method, &lookup.process);
    let fails = |result: HResult| Err(CallError::Failed(result));
    let framework = matches!(family.product, Product::Framework);
    let first = is_framework_2(family);
    let missing = match method {
        CodeInfo4 => framework,
        // ICorProfilerInfo8 is in .NET Framework since 4.7.2.
        FunctionFromIp2 | FunctionFromIp3 | CodeInfo3 | EnumThreads => first,
        FunctionFromIp | CodeInfo | CodeInfo2 => false,
    };
    if missing {
        return fails(HResult::NOT_IMPLEMENTED);
    }
    if process.profiler == ProfilerStatus::Detaching && !first {
        return fails(HResult::PROFILER_DETACHING);
    }
    let later = matches!(method, FunctionFromIp2 | FunctionFromIp3 | CodeInfo3 | CodeInfo4);
    let is_right_place = match method {
        FunctionFromIp | CodeInfo | CodeInfo2 => true,
        EnumThreads => facts.in_callback,
        _ if family.is_core_since(10) && mistake != Some(Mistake::TriggersEverywhere) => {
            facts.in_callback
        }
        _ => facts.with_triggers,
    };
    if facts.known && !is_right_place {
        return fails(HResult::UNSUPPORTED_CALL_SEQUENCE);
    }
    if method == EnumThreads {
        let taken = process.owner(Lock::ThreadStore).is_some_and(|owner| owner != lookup.caller);
        if !taken || process.suspended_by_profiler {
            return Ok(None);
        }
        waits.push(Wait::Lock(Lock::ThreadStore));
        return Err(CallError::Fatal(Outcome::Blocked));
    }
    let by_id = matches!(method, CodeInfo | CodeInfo2 | CodeInfo3);
    // There is no FunctionID of native code: 0 stands for it. Framework 2 looks at it before the region.
    let is_null = by_id && lookup.asked == Asked::Native;
    if is_null && first {
        return fails(HResult::INVALID_ARGUMENT);
    }
    let checks_region = matches!(method, FunctionFromIp | CodeInfo)
        || method == CodeInfo2 && first
        || mistake == Some(Mistake::AllCheckForbidRegion);
    if checks_region && facts.forbids {
        return fails(HResult::ASYNCHRONOUS_UNSAFE);
    }
    if later
        && facts.known
        && !facts.cooperative
        && mistake == Some(Mistake::LookupWaitsForGc)
        && let Some(by) = process.suspension.by().filter(|by| *by != lookup.caller)
    {
        waits.push(Wait::RuntimeRunning(by));
    }
    if is_null {
        return fails(HResult::INVALID_ARGUMENT);
    }
    let of_code = by_id || method == CodeInfo4;
    if of_code && mistake == Some(Mistake::CodeInfoTakesNoLock) {
        return if lookup.asked == Asked::Native {
            fails(HResult::FUNCTION_NOT_COMPILED)
        } else {
            Ok(None)
        };
    }
    let unknown = if of_code { HResult::FUNCTION_NOT_COMPILED } else { HResult::FAIL };
    if !process.gc_initialized {
        return fails(if of_code { unknown } else { HResult::NOT_YET_AVAILABLE });
    }
    let never_waits = !first && !family.is_core_since(9);
    if facts.busy && never_waits && facts.known && !facts.in_callback {
        return fails(HResult::ASYNCHRONOUS_UNSAFE);
    }
    if facts.busy && facts.known && !facts.cooperative && !facts.suspends {
        waits.push(Wait::Lock(Lock::CodeManager));
        return Err(CallError::Fatal(Outcome::Blocked));
    }
    let image = lookup.asked == Asked::ReadyToRun && !framework;
    if image
        && facts.known
        && !facts.cooperative
        && let Some(by) = process.suspension.by().filter(|by| *by != lookup.caller)
    {
        // The table of an image's entry points is read in cooperative mode (C-157).
        waits.push(Wait::RuntimeRunning(by));
    }
    match (lookup.asked, method) {
        (Asked::Native, _) | (Asked::IlStub | Asked::Dynamic, FunctionFromIp | FunctionFromIp2) => {
            fails(unknown)
        }
        (asked, FunctionFromIp | FunctionFromIp2 | FunctionFromIp3) => Ok(Some(asked)),
        _ => Ok(None),
    }
}
