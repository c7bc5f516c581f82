//! `ICorProfilerInfo` to 15 of a session. Checks of arguments are those of
//! src/vm/proftoeeinterfaceimpl.cpp of CoreCLR 3.1, in the functions of the same names.

mod code;
mod detach;
mod environment;
mod events;
mod fields;
mod handles;
mod heap;
mod hooks;
mod il;
mod layouts;
mod lists;
mod maps;
mod methods;
mod modules;
mod names;
mod objects;
mod rejit;
mod state;
mod statics;
mod tokens;
mod walk;

pub(crate) use state::HIGH_IMMUTABLE;

use crate::inner::Inner;
use crate::object::{Head, Headed, Kind, make};
use crate::out::Answer;
use crate::process::Process;
use crate::receiver::Receiver;
use clr_com::{ICorProfilerInfo15, IUnknownMethods, OwnedObject};
use clr_machine::Machine;
use clr_runtime::metadata::{Module, TypeDef};
use clr_runtime::profiling::{Accepts, Caller, callers_of};
use clr_runtime::{Outcome, Runtime};
use clr_walker::profiling::{CallError, FunctionId, HResult, ThreadId};
use std::rc::Rc;

/// Methods that a CLR answers with `E_NOTIMPL` (src/coreclr/vm/proftoeeinterfaceimpl.cpp of dotnet/runtime).
const OBSOLETE: [&str; 6] = [
    "GetContextStaticAddress",
    "GetInprocInspectionInterface",
    "GetInprocInspectionIThisThread",
    "BeginInprocDebugging",
    "EndInprocDebugging",
    "SetFunctionReJIT",
];

/// The runtime's object.
pub(crate) struct Info(Head);

impl Info {
    pub(crate) fn make(session: &Inner, kind: Kind) -> OwnedObject<Self> {
        make::<ICorProfilerInfo15, _>(Self(Head::new(session, 0, kind)))
    }

    /// Answers a call on the calling thread.
    fn on(&self, method: &'static str, act: impl FnOnce(&Call<'_>) -> Answer) -> HResult {
        if self.0.lacks(method) {
            return HResult::NOT_IMPLEMENTED;
        }
        self.0.call(method, |session| {
            let Some(stage) = session.stage() else { return Ok(HResult::UNEXPECTED) };
            act(&Call { method, session, stage: &stage, receiver: Receiver(session) })
        })
    }
}

impl Headed for Info {
    fn head(&self) -> &Head {
        &self.0
    }
}

impl IUnknownMethods for Info {
    fn unimplemented(&self, method: &'static str) {
        if OBSOLETE.contains(&method) {
            self.0.call(method, |_| Ok(HResult::NOT_IMPLEMENTED));
        } else if !self.0.lacks(method) {
            self.0.not_simulated(method);
        }
    }
}

/// A call of a method.
pub(crate) struct Call<'c> {
    method: &'static str,
    pub(crate) session: &'c Rc<Inner>,
    stage: &'c Rc<Process>,
    receiver: Receiver<'c>,
}

impl Call<'_> {
    pub(crate) fn runtime(&self) -> &Runtime<'static, Machine> {
        self.stage.runtime()
    }

    /// Returns the methods of the calling thread.
    pub(crate) fn caller(&self) -> Caller<'_, 'static, Machine> {
        self.runtime().on(self.session.caller()).with_profiler(&self.receiver)
    }

    /// Returns the id of the calling thread, if it is one of the runtime.
    fn own_thread(&self) -> Option<ThreadId> {
        self.runtime().object_of(self.session.caller())
    }

    /// Refuses a caller that is no thread of the runtime.
    fn check_managed(&self) -> Result<(), CallError<Outcome>> {
        self.own_thread().map(|_| ()).ok_or_else(|| HResult::NOT_MANAGED_THREAD.into())
    }

    /// Makes the checks of the caller that every method begins with.
    fn begin(&self) -> Result<(), CallError<Outcome>> {
        self.caller().begin(callers_of(self.method).unwrap_or(Accepts::All))
    }

    /// Refuses an id that the runtime has not given. A CLR takes it for an address.
    fn unknown<T>(&self, id: u64) -> Result<T, CallError<Outcome>> {
        self.session.shared.find_unknown(self.method, id);
        Err(HResult::INVALID_ARGUMENT.into())
    }

    /// Refuses what changes the program to a profiler that is loaded for notifications only (recorded on 8.0.34, 9.0.23,
    /// 10.0.15 and 11.0.0).
    fn check_may_change(&self) -> Result<(), CallError<Outcome>> {
        let is_refused = self.runtime().process.get().notification_only;
        if is_refused { Err(HResult::INVALID_ARGUMENT.into()) } else { Ok(()) }
    }

    /// Refuses NULL where a CLR does not check.
    fn null<T>(&self, argument: &'static str) -> Result<T, CallError<Outcome>> {
        self.session.shared.find_null(self.method, argument);
        Err(HResult::INVALID_ARGUMENT.into())
    }

    /// Answers what is not simulated for the arguments of the call.
    fn not_simulated<T>(&self) -> Result<T, CallError<Outcome>> {
        self.session.shared.not_simulated(self.method);
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    fn module_of(&self, id: u64) -> Result<&Module, CallError<Outcome>> {
        self.runtime().metadata.module(id).map_or_else(|| self.unknown(id), Ok)
    }

    fn class_of(&self, id: u64) -> Result<(&Module, &TypeDef), CallError<Outcome>> {
        self.runtime().metadata.class(id).map_or_else(|| self.unknown(id), Ok)
    }

    /// Notes an id that is no FunctionID.
    fn check_function(&self, function: FunctionId) {
        if self.runtime().code.method(function).is_none() {
            self.session.shared.find_unknown(self.method, function.0);
        }
    }
}
