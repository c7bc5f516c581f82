//! The arguments of the callback that a thread is in.
//!
//! Read in CoreCLR 3.1.23, in src/vm: exceptions in eetoprofinterfacewrapper.inl and exceptionhandling.cpp
//! (`ProcessManagedCallFrame`, `MakeCallbacksRelatedToHandler`: the method of the frame, and the thrown
//! object); transitions in stubhelpers.cpp (`ProfilerBeginTransitionCallback`: the method that was called, NULL
//! for calli), and comtoclrcall.cpp (`ProfilerTransitionCallbackHelper`); compilation in prestub.cpp
//! (`JitCompileCodeLockedEventWrapper`); unloading in class.cpp (`EEClass::Destruct`), ceeload.cpp and
//! assembly.cpp; suspensions in loaderallocator.cpp (`GCLoaderAllocators`) and threadsuspend.cpp
//! (`GCSuspendReasonToProfSuspendReason`); handles in gchandleutilities.cpp; the GC in
//! proftoeeinterfaceimpl.cpp (`GarbageCollectionStartedCallback`).

use super::arrangement::Arranged;
use super::compilation::Compilations;
use super::mortal::Mortal;
use super::thread::Activation;
use super::{Collection, ExceptionClass, World};
use crate::stubs::{EMPTY_HANDLE, Shared, Stub, method_id};
use clr_codegen::{FunctionIndex, Service};
use clr_runtime::Object;
use clr_runtime::profiling::{CallbackKind as Kind, ProfilerCallback, SuspensionReason};
use clr_unwind::{Gpr, Memory as _, Position};
use clr_walker::profiling::{FunctionId, ThreadId};

/// `call [rip + disp]`: its opcode and ModRM.
const CALL_MEMORY: (u8, u8) = (0xFF, 0x15);
/// `call rel32`.
const CALL_NEAR: u8 = 0xE8;
/// Size of the longer one in bytes.
const CALL: usize = 6;

/// The arguments of a callback, as far as the program decides them. Objects and handles are numbered from 1 in
/// the order in which the program makes them; 0 is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallbackArguments {
    /// The method that the callback is about, or a method of the class, module or assembly that it is about;
    /// 0 if the program names none.
    pub function: FunctionId,
    /// The method that it is inlined into, in `JITInlining`.
    pub caller: FunctionId,
    /// `ModuleID` of that method's module, or of the module that the callback is about; 0 if the program names none.
    pub module: u64,
    /// `AppDomainID` of the domain that the callback is about, if it is about one; else 0.
    pub domain: u64,
    /// The object that the callback is about.
    pub object: u64,
    /// The class of that object, if it is an exception, or was allocated now.
    pub class: ExceptionClass,
    /// The handle that the callback is about.
    pub handle: u64,
    /// Number of objects that the program has made.
    pub objects: u64,
    /// Number of objects that the program has made since the last GC, in its callbacks.
    pub allocated: u64,
    /// The extent of the GC.
    pub collection: Collection,
    /// Objects wait for the finalizer's thread.
    pub finalizing: bool,
    /// The handles that have an object, with it, in the callback of the roots.
    pub roots: Vec<(u64, u64)>,
    /// The thread that the callback is about, if that is not the calling one; else 0.
    pub thread: ThreadId,
    /// Control returns from the other side, in a callback of a transition.
    pub returns: bool,
    /// The program has asked for the GC.
    pub induced: bool,
    /// The reason for a suspension of the runtime.
    pub suspension: SuspensionReason,
}

/// The objects and handles that a program has made.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Made {
    objects: u64,
    handles: u64,
    /// The handles that exist, with their objects.
    live: Vec<(u64, u64)>,
    /// The GC that the server GC's thread has been asked for was induced by the program.
    pub induced: bool,
    /// Arrangements of the program.
    pub arranged: Arranged,
    /// The start of the runtime, which the first thread begins with, is not over.
    pub is_starting: bool,
    /// The compilations of its methods.
    pub compilations: Compilations,
    /// Number of objects that there were at the last GC, and that were made between it and the one before.
    at_gc: u64,
    allocated: u64,
    /// The objects that live as long as the method that made them.
    pub mortal: Mortal,
}

impl Made {
    /// Notes a GC. Returns true if objects were made since the last one. What other threads make before it counts, so
    /// that the GC depends on it.
    pub(super) const fn note_gc(&mut self) -> bool {
        self.allocated = self.objects - self.at_gc;
        self.at_gc = self.objects;
        self.arranged.changes += 1;
        self.allocated > 0
    }

    /// Returns the number of objects that there were at the last GC.
    pub(super) const fn at_last_gc(&self) -> u64 {
        self.at_gc
    }

    /// Returns true if a handle of the program holds an object.
    pub(super) fn is_held(&self, object: u64) -> bool {
        self.live.iter().any(|(_, held)| *held == object)
    }

    /// Returns the object of a handle that exists, or 0.
    fn object_of(&self, handle: u64) -> u64 {
        let live = self.live.iter().find(|(live, _)| *live == handle);
        live.map_or(0, |(_, object)| *object)
    }

    /// Returns the numbers of objects and handles that were made, of handles that are left, and of what was arranged or
    /// `requested`.
    pub(super) const fn numbers(&self, requested: u64) -> [u64; 4] {
        let changes = self.arranged.changes + self.compilations.changes + requested;
        [self.objects, self.handles, self.live.len() as u64, changes]
    }
}

impl World<'_> {
    /// Returns the arguments of the callback that a thread is in.
    pub fn callback_arguments(&self, thread: usize) -> CallbackArguments {
        let (Some(executed), Some(kind)) = (self.threads.get(thread), self.callback(thread)) else {
            return CallbackArguments::default();
        };
        let served = executed.served;
        let function = match executed.about {
            Some(about) => about.function,
            None => self.function_of_callback(thread, kind),
        };
        let module = executed.about.map_or(0, |about| about.module);
        CallbackArguments {
            function,
            caller: executed.about.map_or(FunctionId(0), |about| about.caller),
            module: if module == 0 { self.module_of(function) } else { module },
            domain: executed.about.unwrap_or_default().domain,
            object: match kind {
                Kind::ObjectAllocated | Kind::EventPipeEventDelivered => executed.object,
                Kind::HandleCreated => self.made.object_of(executed.handle),
                Kind::ExceptionThrown | Kind::ExceptionCatcherEnter => {
                    executed.dispatches.last().map_or(0, |dispatch| dispatch.object)
                }
                _ => 0,
            },
            class: match kind {
                Kind::ExceptionThrown | Kind::ExceptionCatcherEnter => {
                    executed.dispatches.last().map_or_else(Default::default, |one| one.class)
                }
                Kind::ObjectAllocated => self.class_allocated(thread),
                Kind::HandleCreated if self.made.object_of(executed.handle) != 0 => {
                    self.class_allocated(thread)
                }
                _ => ExceptionClass::Unknown,
            },
            handle: match kind {
                Kind::HandleCreated | Kind::HandleDestroyed => executed.handle,
                _ => 0,
            },
            objects: self.made.objects,
            roots: self.roots(kind),
            allocated: self.made.allocated,
            collection: executed.collection.unwrap_or_default(),
            finalizing: self.made.arranged.is_queued(),
            thread: match kind {
                Kind::ThreadNameChanged => {
                    let named = self.named_thread(thread).filter(|named| *named != thread);
                    named.and_then(|named| self.object(named)).unwrap_or_default()
                }
                _ => executed.about.unwrap_or_default().thread,
            },
            returns: executed.about.map_or_else(
                || {
                    matches!(
                        served,
                        Some(Service::ManagedToUnmanagedReturn | Service::UnmanagedToManagedReturn)
                    )
                },
                |about| about.returns,
            ),
            induced: executed.induced,
            suspension: match served {
                Some(Service::Unload) => SuspensionReason::Unload,
                _ => SuspensionReason::Gc,
            },
        }
    }

    /// Returns the arguments of a callback that the runtime makes in the middle of a call of the profiler.
    pub fn arguments_in_call(&self, callback: ProfilerCallback) -> CallbackArguments {
        CallbackArguments {
            objects: self.made.objects,
            roots: self.roots(callback.into()),
            // Of GCs only forced ones are made in a call.
            induced: true,
            suspension: match callback {
                ProfilerCallback::RuntimeSuspendStarted(reason) => reason,
                _ => SuspensionReason::default(),
            },
            ..CallbackArguments::default()
        }
    }

    /// Returns the `ModuleID` of a method's module, or 0.
    pub(super) fn module_of(&self, function: FunctionId) -> u64 {
        self.runtime.code.method(function).map_or(0, |(_, method)| method.module)
    }

    /// Returns the handles that have an object, with it, for the callback of the roots.
    fn roots(&self, kind: Kind) -> Vec<(u64, u64)> {
        match kind {
            Kind::RootReferences => {
                self.made.live.iter().copied().filter(|(_, object)| *object != 0).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the method that a callback is about, or 0.
    pub(super) fn function_of_callback(&self, thread: usize, kind: Kind) -> FunctionId {
        let named_in = |register| {
            FunctionId(self.registers_of(thread).map_or(0, |registers| registers.get(register)))
        };
        let function = match kind {
            Kind::JITCompilationStarted
            | Kind::JITCompilationFinished
            | Kind::JITCachedFunctionSearchStarted
            | Kind::JITCachedFunctionSearchFinished
            | Kind::DynamicMethodJITCompilationStarted
            | Kind::DynamicMethodJITCompilationFinished
            | Kind::GetReJITParameters
            | Kind::ReJITCompilationStarted
            | Kind::ReJITCompilationFinished
            | Kind::ModuleLoadStarted
            | Kind::ModuleLoadFinished
            | Kind::ModuleAttachedToAssembly
            | Kind::AssemblyLoadStarted
            | Kind::AssemblyLoadFinished
            | Kind::ClassLoadStarted
            | Kind::ClassLoadFinished => named_in(Gpr::R10),
            Kind::RootReferences => {
                let mut functions =
                    self.activations(thread).into_iter().filter_map(|one| one.function);
                let placed = |function: &FunctionIndex| self.expanded.placed.contains(function);
                FunctionId(functions.find(placed).map_or(0, method_id))
            }
            Kind::FinalizeableObjectQueued => FunctionId(self.made.arranged.last_queued()),
            Kind::DynamicMethodUnloaded
            | Kind::FunctionUnloadStarted
            | Kind::ClassUnloadStarted
            | Kind::ClassUnloadFinished
            | Kind::ModuleUnloadStarted
            | Kind::ModuleUnloadFinished
            | Kind::AssemblyUnloadStarted
            | Kind::AssemblyUnloadFinished => named_in(Gpr::Rbx),
            Kind::ManagedToUnmanagedTransition | Kind::UnmanagedToManagedTransition => {
                FunctionId(self.called_across(thread).map_or(0, method_id))
            }
            Kind::ExceptionSearchFunctionEnter
            | Kind::ExceptionSearchFilterEnter
            | Kind::ExceptionSearchCatcherFound
            | Kind::ExceptionUnwindFunctionEnter
            | Kind::ExceptionUnwindFinallyEnter
            | Kind::ExceptionCatcherEnter => {
                let dispatch = self.threads.get(thread).and_then(|one| one.dispatches.last());
                dispatch.map_or(FunctionId(0), |dispatch| dispatch.at.method)
            }
            _ => FunctionId(0),
        };
        if self.runtime.code.method(function).is_some() { function } else { FunctionId(0) }
    }

    /// Returns the function that is called from managed code to unmanaged, or the other way, through the
    /// innermost stub. A call by function pointer (calli) names none.
    fn called_across(&self, thread: usize) -> Option<FunctionIndex> {
        let activations = self.activations(thread);
        let mut callers = activations.iter().skip(1);
        for activation in &activations {
            let caller = callers.next();
            let Some(function) = activation.function else { continue };
            let target = |stub| {
                let (target, stub) = self.target_of(stub)?;
                let is_calli = stub == Stub::PInvoke && self.calls_by_pointer(caller);
                (!is_calli).then(|| self.expanded.placed.get(target.index()).copied()).flatten()
            };
            if self.target_of(function).is_some() {
                return target(function);
            }
            if self.is_entry_of_library(function) {
                return Some(function);
            }
            if self.expanded.shared.get(&Shared::GenericComCallStub) == Some(&function) {
                let stub = self.registers_of(thread)?.get(Gpr::Rbx);
                return target(self.linked.function_of(stub, Position::Interrupted)?);
            }
        }
        None
    }

    /// Returns true for a method of the class library that unmanaged code calls without a stub.
    pub(super) fn is_entry_of_library(&self, function: FunctionIndex) -> bool {
        let entries = [
            Shared::CallEntryPoint,
            Shared::FirstChanceEntry,
            Shared::UnhandledEntry,
            Shared::CallClassConstructor,
        ];
        entries.iter().any(|entry| self.expanded.shared.get(entry) == Some(&function))
    }

    /// Returns the target of a stub between managed and unmanaged code, by its place in the source.
    fn target_of(&self, function: FunctionIndex) -> Option<(FunctionIndex, Stub)> {
        let found = self.expanded.stubs.iter().find(|(_, stub)| **stub == function);
        found.map(|(key, _)| *key).filter(|(_, stub)| {
            matches!(
                stub,
                Stub::PInvoke
                    | Stub::PInvokeMethod
                    | Stub::ComCall
                    | Stub::ReversePInvoke
                    | Stub::ComMethod
            )
        })
    }

    /// Returns true if the call that a frame is in leads to the helper of calli.
    fn calls_by_pointer(&self, frame: Option<&Activation>) -> bool {
        let Some(helper) = self.expanded.shared.get(&Shared::GenericPInvokeCalliHelper) else {
            return false;
        };
        let Some(rip) = frame.map(|frame| frame.registers.rip) else { return false };
        let memory = self.runtime.memory.borrow();
        let mut code = [0; CALL];
        if memory.read(rip.wrapping_sub(CALL as u64), &mut code).is_err() {
            return false;
        }
        let [first, second, displacement @ ..] = code;
        let there = rip.wrapping_add_signed(i32::from_le_bytes(displacement).into());
        let callee = match (first, second) {
            CALL_MEMORY => memory.read_u64(there).unwrap_or_default(),
            (_, CALL_NEAR) => there,
            _ => return false,
        };
        self.linked.function_of(callee, Position::Interrupted) == Some(*helper)
    }

    /// Notes the service that a thread calls, with what it makes.
    pub(super) fn note_service(&mut self, thread: usize, service: Service) {
        let is_empty = self.runtime.memory.borrow().cpu().get(Gpr::Rbx) == EMPTY_HANDLE;
        let Some(executed) = self.threads.get_mut(thread) else { return };
        executed.served = Some(service);
        let before = executed.object;
        let made = &mut self.made;
        match service {
            Service::Allocated => {
                made.objects += 1;
                executed.object = made.objects;
            }
            Service::CreateHandle => {
                made.handles += 1;
                executed.handle = made.handles;
                made.live.push((made.handles, if is_empty { 0 } else { executed.object }));
            }
            Service::DestroyHandle => {
                // The newest one (assumed: texts do not say which); a handle that was made unseen, if none is left.
                executed.handle = if let Some((handle, _)) = made.live.pop() {
                    handle
                } else {
                    made.handles += 1;
                    made.handles
                };
            }
            _ => {}
        }
        if service == Service::Allocated {
            self.note_object(thread, before);
        }
    }

    /// Returns the number of the object that a thread throws, and its class: a new one, or that of the exception that it
    /// throws again (`IL_Rethrow` of src/vm/jithelpers.cpp, and `UnwindAndContinueRethrowHelperAfterCatch` of
    /// src/vm/excep.cpp of CoreCLR 3.1.23).
    pub(super) fn thrown_object(&mut self, thread: usize) -> (u64, ExceptionClass) {
        let (thrower, class) = (self.thrower(thread), self.last_thrown(thread));
        let Some(executed) = self.threads.get_mut(thread) else { return Default::default() };
        let again = match (thrower, class) {
            (Some(Shared::Rethrow), _) => {
                executed.dispatches.last().map(|caught| (caught.object, caught.class))
            }
            (Some(Shared::Throw), ExceptionClass::Last) => Some(executed.thrown),
            _ => None,
        };
        if let Some(again) = executed.carried.take().or(again) {
            executed.thrown = again;
            return again;
        }
        let class = match thrower {
            Some(Shared::HardwareFault) if class != ExceptionClass::DivideByZero => {
                ExceptionClass::NullReference
            }
            Some(
                Shared::Throw
                | Shared::FailRangeCheck
                | Shared::FailCast
                | Shared::HardwareFault
                | Shared::RethrowHelper,
            ) => class,
            _ => ExceptionClass::Unknown,
        };
        self.made.objects += 1;
        executed.object = self.made.objects;
        executed.thrown = (executed.object, class);
        let thrown = executed.thrown;
        let class = self.class_id(class);
        self.runtime.objects.borrow_mut().make(Object { class, ..Object::default() });
        thrown
    }

    /// Makes an object, and returns its number.
    pub(super) fn make_object(&mut self) -> u64 {
        self.made.objects += 1;
        self.runtime.objects.borrow_mut().make(Object::default());
        self.made.objects
    }

    /// Returns the helper by which a thread throws.
    pub(super) fn thrower(&self, thread: usize) -> Option<Shared> {
        const THROWERS: [Shared; 6] = [
            Shared::Rethrow,
            Shared::Throw,
            Shared::FailRangeCheck,
            Shared::FailCast,
            Shared::HardwareFault,
            Shared::RethrowHelper,
        ];
        let is = |function, shared| self.expanded.shared.get(&shared) == Some(&function);
        let activations = self.activations(thread);
        let mut functions = activations.iter().filter_map(|activation| activation.function);
        functions.find_map(|function| THROWERS.into_iter().find(|shared| is(function, *shared)))
    }

    /// Returns true if the program has asked for the GC that a thread needs; otherwise an allocation needs it.
    pub(super) fn is_induced(&self, thread: usize) -> bool {
        let is = |function, shared| self.expanded.shared.get(&shared) == Some(&function);
        let activations = self.activations(thread);
        let mut functions = activations.iter().filter_map(|activation| activation.function);
        let found = functions.find(|function| {
            is(*function, Shared::GcInterfaceCollect) || is(*function, Shared::Allocate)
        });
        found.is_some_and(|function| is(function, Shared::GcInterfaceCollect))
    }
}
