//! Throwing and handling of exceptions: by native code, or in newer runtimes by managed code that
//! calls native helpers.

use super::details::Detail;
use super::frames::{
    Frames, call, call_computed, enable_preemptive_gc, reserve_frame, service, set, with_frame,
};
use super::{Plan, RETURN, Service, Shared, method_id, native, saving};
use crate::ExceptionClass;
use clr_codegen::{
    CodeKind, EntryForm, Function, FunctionIndex, FunctionShape, Primitive, RuntimeCallKind,
    Statement, Value, Word,
};
use clr_runtime::FrameKind;
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_runtime::thread::offset;
use clr_unwind::Gpr;
use clr_walker::profiling::FunctionId;

/// Bytes of locals for a Frame with a CONTEXT in it.
const WITH_CONTEXT: u32 = 0x600;
/// Offset of that Frame in the locals.
const BEHIND_COOKIE: u32 = 0x10;
/// `FRAME_ATTR_EXCEPTION`.
const ATTRIBUTE_EXCEPTION: u32 = 1;

/// Repeats a body forever: a statement in the body leaves the loop.
fn forever(mut body: Vec<Statement>) -> Statement {
    body.push(set(Word::Register(Gpr::Rax), Value::Number(1)));
    Statement::Primitive(Primitive::Repeat(body))
}

impl Plan {
    /// Calls the constructor of an exception, and throws it.
    pub(super) fn raise(&self, constructor: Option<FunctionIndex>) -> Vec<Statement> {
        let place = constructor.map(|constructor| self.place(constructor));
        let mut body: Vec<_> = place.into_iter().map(call).collect();
        body.extend(self.throw(place.map_or(ExceptionClass::Unknown, |place| {
            ExceptionClass::Of(FunctionId(method_id(place)))
        })));
        body
    }

    /// Faults: reads from address 0, where nothing is mapped. A division faults in the same way, but for the class of the
    /// exception.
    pub(super) fn fault(&self, class: ExceptionClass) -> Vec<Statement> {
        let rax = Word::Register(Gpr::Rax);
        let noted = set(Word::Thread(offset::LAST_THROWN as u32), Value::Number(class.number()));
        let noted = self.if_said(Detail::Exception, noted);
        let reads = [set(rax, Value::Number(0)), set(rax, Value::At(Gpr::Rax, 0))];
        noted.into_iter().chain(reads).collect()
    }

    /// Fails a check.
    pub(super) fn fail_check(&self, kind: RuntimeCallKind) -> Vec<Statement> {
        let checks = match kind {
            RuntimeCallKind::FailCast => [Shared::FailCast, Shared::CheckCast],
            _ => [Shared::FailRangeCheck, Shared::ThrowIndexOutOfRange],
        };
        let found = checks.into_iter().find(|shared| shared.exists_in(self.generation));
        found.map(|found| call(self.helper(found))).into_iter().collect()
    }

    /// Creates a method of the class library that throws because a check has failed.
    pub(super) fn failed_check(&self, shared: Shared) -> Function {
        let body = match shared {
            Shared::CheckCast if Shared::CheckCastAny.exists_in(self.generation) => {
                vec![call(self.helper(Shared::CheckCastAny))]
            }
            Shared::CheckCast | Shared::CheckCastAny => self.throw(ExceptionClass::InvalidCast),
            _ => self.throw(ExceptionClass::IndexOutOfRange),
        };
        let (name, shape) = (shared.name().to_owned(), saving(&[], 0x28));
        Function { name, kind: CodeKind::ReadyToRun, shape, body, end: Some(RETURN) }
    }

    /// Throws an exception of a class.
    pub(super) fn throw(&self, class: ExceptionClass) -> Vec<Statement> {
        let argument = Word::Register(self.frames.first_argument());
        let class = set(argument, Value::Number(class.number()));
        let class = self.if_said(Detail::Exception, class);
        class.into_iter().chain([call(self.helper(Shared::Throw))]).collect()
    }

    /// Throws the exception that was thrown last.
    pub(super) fn raise_again(&self) -> Vec<Statement> {
        self.throw(ExceptionClass::Last)
    }

    /// Creates `IL_Throw` or `IL_Rethrow`: a Frame, then the exception handling.
    pub(super) fn throw_helper(&self, shared: Shared) -> Function {
        let (mut shape, at) = with_frame();
        let mut body = if self.generation.has_software_exception_frames() {
            shape.locals = WITH_CONTEXT;
            self.software_exception_frame(at)
        } else {
            self.frames.helper_method_frame(at, ATTRIBUTE_EXCEPTION, None)
        };
        let own = match shared {
            Shared::FailRangeCheck => Some(ExceptionClass::IndexOutOfRange),
            Shared::FailCast => Some(ExceptionClass::InvalidCast),
            _ => None,
        };
        if let Some(own) = own {
            let class = Value::Number(own.number());
            body.insert(0, set(Word::Thread(offset::LAST_THROWN as u32), class));
        } else if shared == Shared::Throw {
            let thrown = Value::Register(self.frames.first_argument());
            let thrown = set(Word::Thread(offset::LAST_THROWN as u32), thrown);
            body.splice(0..0, self.if_said(Detail::Exception, thrown));
        }
        let handles = if shared == Shared::Rethrow { Shared::RhRethrow } else { Shared::RhThrowEx };
        body.extend(self.handle(handles));
        native(shared, shape, body, RETURN)
    }

    /// Returns the call of the exception handling; it never returns.
    fn handle(&self, managed: Shared) -> Vec<Statement> {
        if !self.generation.hides_exception_handling() {
            return vec![call(self.helper(Shared::RaiseException))];
        }
        let worker = self.helper(Shared::CallDescrWorker);
        vec![
            set(Word::Register(Gpr::Rbx), Value::Function(self.helper(managed))),
            set(Word::Register(Gpr::Rax), Value::Function(worker)),
            call_computed(),
        ]
    }

    /// Writes a SoftwareExceptionFrame with the known registers of its caller's CONTEXT (contract
    /// §3.5).
    fn software_exception_frame(&self, at: u32) -> Vec<Statement> {
        let context = |offset: u64| Word::Local(at + (layout::SOFTWARE_CONTEXT + offset) as u32);
        let register =
            |register: Gpr| context(layout::CONTEXT_RAX + 8 * u64::from(register.number()));
        let mut body = self.frames.begin(at, FrameKind::SoftwareException);
        body.extend([
            set(Word::Local(at + layout::RETURN_ADDRESS as u32), Value::ReturnAddress),
            set(context(layout::CONTEXT_FLAGS), Value::Number(0)),
            set(context(layout::CONTEXT_RIP), Value::ReturnAddress),
            set(register(Gpr::Rsp), Value::CallerSp),
        ]);
        for saved in FrameConvention::of(self.generation).callee_saved {
            body.push(set(register(*saved), Value::Register(*saved)));
        }
        body.push(Frames::link(at));
        body
    }

    /// Creates the code where a thread continues after a hardware fault: the system has left a
    /// machine frame.
    pub(super) fn hardware_fault(&self) -> Function {
        let shape = FunctionShape {
            entry: EntryForm::Interrupt,
            pushes: vec![Gpr::Rbx, Gpr::Rbp],
            locals: WITH_CONTEXT,
            ..FunctionShape::default()
        };
        let at = BEHIND_COOKIE;
        let context = at + layout::FAULTING_CONTEXT as u32;
        let mut body = self.frames.begin(at, FrameKind::FaultingException);
        body.push(set(Word::Register(Gpr::R10), Value::LocalAddress(context)));
        body.push(service(Service::CaptureFault));
        body.push(Frames::link(at));
        body.extend(self.handle(Shared::RhThrowHwEx));
        native(Shared::HardwareFault, shape, body, RETURN)
    }

    pub(super) fn raise_exception(&self) -> Function {
        let shape = saving(&[], 0xB0);
        let body = vec![service(Service::Raise), call(self.helper(Shared::ProcessException))];
        native(Shared::RaiseException, shape, body, RETURN)
    }

    /// Creates `UnwindAndContinueRethrowHelperAfterCatch`: native code of the runtime has caught an
    /// exception, and throws it again, above the frame that has caught it (C-166).
    pub(super) fn rethrow_helper(&self) -> Function {
        let shape = saving(&[Gpr::Rbx, Gpr::Rbp], 0x48);
        native(Shared::RethrowHelper, shape, self.handle(Shared::RhThrowEx), RETURN)
    }

    /// Creates a method of the managed exception handling, with hooks like any method (C-171).
    fn managed(&self, shared: Shared, shape: FunctionShape, body: Vec<Statement>) -> Function {
        let (name, end) = (shared.name().to_owned(), Some(RETURN));
        let mut function = Function { name, kind: CodeKind::ReadyToRun, shape, body, end };
        self.add_hooks(&mut function);
        function
    }

    pub(super) fn rh_throw(&self, shared: Shared) -> Function {
        let shape = saving(&[Gpr::Rbp], 0x40);
        let body = [Shared::ExInfoInit, Shared::DispatchEx].map(|callee| call(self.helper(callee)));
        self.managed(shared, shape, body.into())
    }

    /// Creates a method of `ExInfo`: it calls nothing.
    pub(super) fn ex_info_method(&self, shared: Shared) -> Function {
        self.managed(shared, FunctionShape::default(), vec![Statement::Work(3)])
    }

    /// Creates `DispatchEx`: a pass in search of a handler, a pass down to the handler, and its
    /// call. The native helpers that it calls are covered by its InlinedCallFrame.
    pub(super) fn dispatch_ex(&self) -> Function {
        let mut shape = FunctionShape::default();
        let at = reserve_frame(&mut shape, self.frames.convention());
        let inlined = |shared: Shared| {
            self.frames.inlined_call(at, self.datum(shared), call(self.helper(shared)))
        };
        let mut body = vec![call(self.helper(Shared::ExInfoThrownException))];
        for at_each_frame in [Shared::FindFirstPassHandler, Shared::InvokeSecondPass] {
            body.extend(inlined(Shared::SfiInit));
            let mut at_frame = vec![call(self.helper(at_each_frame))];
            let (datum, next) = (self.datum(Shared::SfiNext), self.helper(Shared::SfiNext));
            at_frame.extend(self.frames.inlined_call_for_result(at, datum, next));
            body.push(Statement::Primitive(Primitive::Repeat(at_frame)));
        }
        body.extend(inlined(Shared::CallCatchFunclet));
        self.managed(Shared::DispatchEx, shape, body)
    }

    /// Returns the datum of the Frame around a call of a native helper.
    fn datum(&self, helper: Shared) -> u64 {
        let frame = self.generation.exception_helper();
        let of_handlers = frame.datum_of_handlers().filter(|_| calls_handler(helper));
        of_handlers.or(frame.datum()).unwrap_or_default()
    }

    /// Creates `FindFirstPassHandler` or `InvokeSecondPass`: it calls the funclet of each EH clause
    /// that has to run.
    pub(super) fn each_clause(&self, shared: Shared, caller: Shared) -> Function {
        let mut shape = FunctionShape::default();
        let at = reserve_frame(&mut shape, self.frames.convention());
        let (datum, next) = (self.datum(Shared::EhEnumNext), self.helper(Shared::EhEnumNext));
        let mut body = self.frames.inlined_call_for_result(at, datum, next);
        let mut run = self.frames.inlined_call(at, self.datum(caller), call(self.helper(caller)));
        run.push(set(Word::Register(Gpr::Rax), Value::Number(1)));
        body.push(Statement::Primitive(Primitive::When(run)));
        self.managed(shared, shape, vec![Statement::Primitive(Primitive::Repeat(body))])
    }

    /// Creates a helper that calls a funclet in cooperative mode.
    pub(super) fn call_funclet(&self, shared: Shared) -> Function {
        let shape = saving(&[Gpr::Rbx, Gpr::Rbp], 0x28);
        let switches = self.generation.hides_exception_handling();
        let mut body = Vec::new();
        if switches {
            body.extend(self.frames.disable_preemptive_gc());
        }
        if calls_handler(shared) && self.generation.exception_helper().datum_of_handlers().is_none()
        {
            body.extend(Frames::unlink_top());
        }
        body.extend([
            service(Service::EnterFunclet),
            call_computed(),
            set(Word::Register(Gpr::Rbx), Value::Register(Gpr::Rax)),
            service(Service::LeaveFunclet),
        ]);
        if switches {
            body.push(enable_preemptive_gc());
        }
        native(shared, shape, body, RETURN)
    }
}

/// Returns true for a native helper that calls a catch or finally handler for managed exception handling.
const fn calls_handler(helper: Shared) -> bool {
    matches!(helper, Shared::CallCatchFunclet | Shared::CallFinallyFunclet)
}

/// Creates `ProcessCLRException`: each iteration calls a funclet by a helper.
pub(super) fn process_exception() -> Function {
    let shape = saving(&[Gpr::Rbx, Gpr::Rbp], 0x108);
    let body = vec![forever(vec![service(Service::Dispatch), call_computed()])];
    native(Shared::ProcessException, shape, body, RETURN)
}

/// Creates `SfiInit` or `SfiNext`: they walk the stack for managed code.
pub(super) fn stack_walk(shared: Shared, what: Service) -> Function {
    let shape = saving(&[Gpr::Rbx], 0x60);
    native(shared, shape, vec![service(what)], RETURN)
}
