//! Callbacks of the program with their arguments, made as src/vm/eetoprofinterfaceimpl.cpp of CoreCLR 3.1.23
//! makes them: `EEToProfInterfaceImpl` has a function of the name of each callback. A callback of a newer
//! interface is not made into an object that does not have it.

mod gc;
mod rejit;

use crate::inner::Inner;
use crate::process::Process;
use crate::target::Target;
use clr_com::{AppDomainId, AssemblyId, Bool, ClassId, GcHandleId, ModuleId};
use clr_runtime::OsThreadId;
use clr_runtime::profiling::{CallbackKind as Kind, SuspensionReason};
use clr_walker::profiling::{HResult, ThreadId};
use clr_world::CallbackArguments;

/// `COR_PRF_CACHED_FUNCTION_FOUND`.
const CACHED_FUNCTION_FOUND: u32 = 0;
/// `COR_PRF_SUSPEND_FOR_GC`, `COR_PRF_SUSPEND_FOR_APPDOMAIN_SHUTDOWN`, `COR_PRF_SUSPEND_FOR_PROFILER`.
const SUSPEND_FOR_GC: u32 = 1;
const SUSPEND_FOR_APP_DOMAIN_SHUTDOWN: u32 = 2;
const SUSPEND_FOR_PROFILER: u32 = 9;
/// `COR_PRF_TRANSITION_CALL`, `COR_PRF_TRANSITION_RETURN`.
const TRANSITION_CALL: u32 = 0;
const TRANSITION_RETURN: u32 = 1;
/// The system's id of the program's first thread.
pub(crate) const FIRST_THREAD: OsThreadId = OsThreadId(1);
/// The name that `name-thread` gives: `worker`.
const NAME: [u16; 6] = [0x77, 0x6F, 0x72, 0x6B, 0x65, 0x72];
/// The code of a dynamic method: `ret`. A CLR passes the code of a dynamic method without its header, never NULL
/// (`LCGMethodResolver::GetCodeInfo` of src/vm/dynamicmethod.cpp, `ILStubResolver::GetCodeInfo` of
/// src/vm/ilstubresolver.cpp of CoreCLR 3.1.23); that it is this is assumed.
const CODE: [u8; 1] = [0x2A];
/// Id of the first handle, which nothing is at either (assumed), and the distance to the next one.
const HANDLES: u64 = 0x7100_0000_1000;
const HANDLE_SIZE: u64 = 8;

/// Returns the id of a handle, given its number from 1.
const fn handle_id(number: u64) -> GcHandleId {
    GcHandleId(HANDLES + number.saturating_sub(1) * HANDLE_SIZE)
}

/// A callback of a thread of the program.
pub(crate) struct Raised<'r> {
    pub(crate) kind: Kind,
    /// The thread that the callback is about.
    pub(crate) thread: ThreadId,
    pub(crate) os: OsThreadId,
    pub(crate) arguments: &'r CallbackArguments,
}

/// The class, module and assembly of a method.
#[derive(Clone, Copy)]
struct Home {
    class: ClassId,
    module: ModuleId,
    assembly: AssemblyId,
}

impl Raised<'_> {
    /// Calls the profiler.
    fn call(&self, inner: &Inner, act: &mut dyn FnMut() -> HResult) {
        inner.enter(self.kind.name(), act);
    }

    /// Returns the class, if it names one, the module and the assembly that the callback is about.
    fn home(&self, stage: &Process) -> Option<Home> {
        let runtime = stage.runtime();
        let method = runtime.code.method(self.arguments.function).map(|(_, method)| method);
        let class = method.map_or(0, |method| method.class);
        let module = runtime.metadata.module(self.arguments.module)?;
        let (module, assembly) = (ModuleId(module.id), AssemblyId(module.assembly));
        Some(Home { class: ClassId(class), module, assembly })
    }
}

/// Makes the callback of a kind with these arguments, if it is one of the list; or does what follows the list.
macro_rules! raise {
    ($raised:ident, $inner:ident { $($to:ident: $($name:ident($($argument:expr),*))+;)* } $($rest:tt)*) => {
        match $raised.kind {
            $($(Kind::$name => $raised.call($inner, &mut || $to.$name($($argument),*)),)+)*
            $($rest)*
        }
    };
}

impl Target {
    /// Makes a callback of a thread of the program, if its arguments are known. Returns true if it
    /// was made, or a CLR would not make it into this object.
    pub(crate) fn raise(&self, inner: &Inner, raised: &Raised<'_>) -> bool {
        self.raise_of_thread(inner, raised)
            || self.raise_of_code(inner, raised)
            || self.raise_of_exception(inner, raised)
            || self.raise_of_home(inner, raised)
            || self.raise_of_gc(inner, raised)
            || inner.stage().is_some_and(|stage| self.raise_of_rejit(inner, raised, &stage))
    }

    /// Makes a callback of threads, transitions, suspensions or the process.
    fn raise_of_thread(&self, inner: &Inner, raised: &Raised<'_>) -> bool {
        let (to, thread, arguments) = (&self.first, raised.thread, raised.arguments);
        let call = |act: &mut dyn FnMut() -> HResult| raised.call(inner, act);
        let (function, domain) = (arguments.function, AppDomainId(arguments.domain));
        let reason = if arguments.returns { TRANSITION_RETURN } else { TRANSITION_CALL };
        // SAFETY: the profiler's object, which there is a reference to; pointers are to locals.
        unsafe {
            // Those of the first thread come before the runtime's start.
            if raised.kind == Kind::ThreadCreated && raised.os != FIRST_THREAD {
                self.thread_handles(inner, raised.os);
            }
            raise!(raised, inner {
                to: ThreadCreated(thread) ThreadDestroyed(thread)
                    ThreadAssignedToOSThread(thread, raised.os.0)
                    ManagedToUnmanagedTransition(function, reason)
                    UnmanagedToManagedTransition(function, reason) RuntimeSuspendFinished()
                    RuntimeSuspendAborted() RuntimeResumeStarted() RuntimeResumeFinished()
                    RuntimeThreadSuspended(thread) RuntimeThreadResumed(thread) Shutdown()
                    AppDomainCreationStarted(domain) AppDomainCreationFinished(domain, HResult::OK);
            }
                Kind::ThreadNameChanged => {
                    let Some(to) = &self.second else { return false };
                    let name = NAME;
                    let len = name.len() as u32;
                    call(&mut || to.ThreadNameChanged(thread, len, name.as_ptr()));
                }
                Kind::RuntimeSuspendStarted => {
                    let reason = match arguments.suspension {
                        SuspensionReason::Profiler => SUSPEND_FOR_PROFILER,
                        SuspensionReason::Gc => SUSPEND_FOR_GC,
                        SuspensionReason::Unload => SUSPEND_FOR_APP_DOMAIN_SHUTDOWN,
                    };
                    call(&mut || to.RuntimeSuspendStarted(reason));
                }
                Kind::EventPipeEventDelivered => {
                    inner.write_allocation_tick(inner.object_id(arguments.object));
                }
                _ => return false,
            );
        }
        true
    }

    /// Makes a callback of the compilation of a method, or of the end of its code.
    fn raise_of_code(&self, inner: &Inner, raised: &Raised<'_>) -> bool {
        let (to, function) = (&self.first, raised.arguments.function);
        if function.0 == 0 {
            return false;
        }
        let call = |act: &mut dyn FnMut() -> HResult| raised.call(inner, act);
        // SAFETY: the profiler's object, which there is a reference to; pointers are to locals.
        unsafe {
            match (raised.kind, &self.eighth, &self.ninth) {
                (Kind::JITCompilationStarted, ..) => {
                    call(&mut || to.JITCompilationStarted(function, 1));
                }
                (Kind::JITCompilationFinished, ..) => {
                    call(&mut || to.JITCompilationFinished(function, HResult::OK, 1));
                }
                (Kind::JITInlining, ..) => {
                    let mut inlines: Bool = 1;
                    let caller = raised.arguments.caller;
                    call(&mut || to.JITInlining(caller, function, &raw mut inlines));
                    if let Some(stage) = inner.stage().filter(|_| inlines == 0) {
                        let versions = &stage.runtime().code.il_versions;
                        versions.borrow_mut().refuse_inlining(caller, function);
                    }
                }
                (Kind::JITCachedFunctionSearchStarted, ..) => {
                    let mut uses: Bool = 1;
                    call(&mut || to.JITCachedFunctionSearchStarted(function, &raw mut uses));
                }
                (Kind::JITCachedFunctionSearchFinished, ..) => {
                    call(&mut || {
                        to.JITCachedFunctionSearchFinished(function, CACHED_FUNCTION_FOUND)
                    });
                }
                (Kind::DynamicMethodJITCompilationStarted, Some(to), _) => {
                    let code = CODE;
                    let len = code.len() as u32;
                    call(&mut || {
                        to.DynamicMethodJITCompilationStarted(function, 1, code.as_ptr(), len)
                    });
                }
                (Kind::DynamicMethodJITCompilationFinished, Some(to), _) => {
                    call(&mut || to.DynamicMethodJITCompilationFinished(function, HResult::OK, 1));
                }
                (Kind::DynamicMethodUnloaded, _, Some(to)) => {
                    call(&mut || to.DynamicMethodUnloaded(function));
                }
                (
                    Kind::DynamicMethodJITCompilationStarted
                    | Kind::DynamicMethodJITCompilationFinished
                    | Kind::DynamicMethodUnloaded,
                    ..,
                ) => {}
                (Kind::FunctionUnloadStarted, ..) => {
                    call(&mut || to.FunctionUnloadStarted(function));
                }
                _ => return false,
            }
        }
        true
    }

    /// Makes a callback of an exception.
    fn raise_of_exception(&self, inner: &Inner, raised: &Raised<'_>) -> bool {
        let (to, function) = (&self.first, raised.arguments.function);
        let thrown = inner.object_id(raised.arguments.object);
        // SAFETY: the profiler's object, which there is a reference to.
        unsafe {
            raise!(raised, inner {
                to: ExceptionThrown(thrown) ExceptionSearchFunctionEnter(function)
                    ExceptionSearchFunctionLeave() ExceptionSearchFilterEnter(function)
                    ExceptionSearchFilterLeave() ExceptionSearchCatcherFound(function)
                    ExceptionUnwindFunctionEnter(function) ExceptionUnwindFunctionLeave()
                    ExceptionUnwindFinallyEnter(function) ExceptionUnwindFinallyLeave()
                    ExceptionCatcherEnter(function, thrown) ExceptionCatcherLeave();
            } _ => return false,);
        }
        true
    }

    /// Makes a callback of a class, a module or an assembly.
    fn raise_of_home(&self, inner: &Inner, raised: &Raised<'_>) -> bool {
        let to = &self.first;
        let Some(home) = inner.stage().and_then(|stage| raised.home(&stage)) else { return false };
        let Home { class, module, assembly } = home;
        // SAFETY: the profiler's object, which there is a reference to.
        unsafe {
            raise!(raised, inner {
                to: AssemblyLoadStarted(assembly) ModuleLoadStarted(module)
                    ModuleLoadFinished(module, HResult::OK)
                    ModuleAttachedToAssembly(module, assembly)
                    AssemblyLoadFinished(assembly, HResult::OK) ClassUnloadStarted(class)
                    ModuleUnloadStarted(module) ModuleUnloadFinished(module, HResult::OK)
                    AssemblyUnloadStarted(assembly)
                    AssemblyUnloadFinished(assembly, HResult::OK) ClassLoadStarted(class)
                    ClassLoadFinished(class, HResult::OK) ClassUnloadFinished(class, HResult::OK);
            } _ => return false,);
        }
        true
    }
}
