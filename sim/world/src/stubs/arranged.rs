//! Calls by which a program arranges something with the runtime, and the code that runs what it has arranged.

use super::details::Detail;
use super::frames::{Frames, call, call_computed, enable_preemptive_gc, service, set, with_frame};
use super::helpers::plain;
use super::{Plan, RETURN, Service, Shared, method_id, native, saving};
use crate::ExceptionClass;
use clr_codegen::{
    CodeKind, EhClause, EhClauseKind, FrameRegister, FrameSet, Function, FunctionIndex,
    FunctionShape, Primitive, Program, RuntimeCall, RuntimeCallKind as Kind, Statement, Value,
    Word,
};
use clr_runtime::FrameKind;
use clr_runtime::generation::StartPath;
use clr_runtime::thread::offset;
use clr_unwind::Gpr;

/// Returns true if a program has a call of the runtime that meets a condition.
pub(super) fn calls(source: &Program, wanted: &impl Fn(&RuntimeCall) -> bool) -> bool {
    let is_it = |statement: &Statement| match statement {
        Statement::Runtime(call) => wanted(call),
        _ => false,
    };
    let in_body = |statement: &Statement| statement.contains(&is_it);
    source.functions.iter().any(|function| function.body.iter().any(in_body))
}

/// Returns the helpers that worlds continue with because a program arranges something.
pub(super) fn roots(source: &Program, path: StartPath) -> Vec<Shared> {
    let has = |wanted: &[Kind]| calls(source, &|call| wanted.contains(&call.kind));
    let mut roots = Vec::new();
    if has(&[Kind::StartThread]) {
        roots.extend(first_of(path));
    }
    if has(&[Kind::HandleFirstChance]) {
        roots.push(Shared::CallHandler);
    }
    if has(&[Kind::HandleUnhandled]) {
        roots.push(Shared::CallUnhandledHandler);
    }
    if has(&[Kind::TierUp]) {
        roots.push(Shared::TieringThread);
    }
    if has(&[Kind::HandleProcessExit, Kind::NewFinalizable]) {
        roots.extend([Shared::FinalizerThread, Shared::RunFinalizers, Shared::OnProcessExit]);
    }
    roots
}

/// Returns the first method of the class library on a thread that the program has started.
pub(crate) const fn first_of(path: StartPath) -> Option<Shared> {
    match path {
        StartPath::ThreadStart => Some(Shared::ThreadStart),
        StartPath::None => None,
        StartPath::StartCallback => Some(Shared::StartCallback),
    }
}

impl Plan {
    /// Calls a helper that arranges something for a method.
    pub(super) fn arrange(&self, kind: Kind, target: FunctionIndex) -> Vec<Statement> {
        let helper = match kind {
            Kind::StartThread => Shared::StartThread,
            Kind::CallOnce => Shared::CallOnce,
            Kind::TierUp => Shared::TierUp,
            Kind::HandleFirstChance => Shared::HandleFirstChance,
            Kind::HandleUnhandled => Shared::HandleUnhandled,
            Kind::HandleProcessExit => Shared::HandleProcessExit,
            Kind::NewFinalizable => Shared::MakeFinalizable,
            _ => Shared::FailFast,
        };
        if kind == Kind::Exit {
            return vec![self.call_library(Shared::ExitMethod, Shared::Exit)];
        }
        let mut body =
            if kind == Kind::NewFinalizable { self.allocation(false, None) } else { Vec::new() };
        body.push(self.naming(target));
        body.push(call(self.helper(helper)));
        if kind == Kind::CallOnce {
            body.push(Statement::Primitive(Primitive::When(vec![call(self.place(target))])));
        }
        body
    }

    /// Waits for the end of a thread, or for the finalizers.
    pub(super) fn join(&self, target: Option<FunctionIndex>) -> Vec<Statement> {
        let (method, helper) = match target {
            Some(_) => (Shared::Join, Shared::ThreadJoin),
            None => (Shared::WaitForFinalizers, Shared::FinalizerWait),
        };
        let named = target.map(|target| self.naming(target));
        named.into_iter().chain([self.call_library(method, helper)]).collect()
    }

    /// Allocates an object, and calls its constructor.
    pub(super) fn new_object(&self, constructor: Option<FunctionIndex>) -> Vec<Statement> {
        let call = constructor.map(|constructor| call(self.place(constructor)));
        self.allocation(false, constructor).into_iter().chain(call).collect()
    }

    /// Names a thread.
    pub(super) fn name_thread(&self, target: Option<FunctionIndex>) -> Vec<Statement> {
        let named = target.map(|target| self.naming(target));
        named.into_iter().chain([call(self.helper(Shared::NameThread))]).collect()
    }

    /// Loads an assembly or a class of a method, by a call of the runtime. Without a method nothing is named.
    pub(super) fn loading(
        &self,
        target: Option<FunctionIndex>,
        load: Vec<Statement>,
    ) -> Vec<Statement> {
        let method = target.map_or(0, |target| method_id(self.place(target)));
        let named = set(Word::Register(Gpr::R10), Value::Number(method));
        self.if_said(Detail::Load, named).into_iter().chain(load).collect()
    }

    fn naming(&self, target: FunctionIndex) -> Statement {
        set(Word::Register(Gpr::R10), Value::Number(method_id(self.place(target))))
    }

    /// Creates the native code that calls a handler of first-chance exceptions.
    pub(super) fn call_handler(&self) -> Function {
        let body = self.calling_handler(Shared::FirstChanceEntry, Vec::new());
        native(Shared::CallHandler, plain(), body, RETURN)
    }

    /// Creates the native code that calls a handler of exceptions which nothing catches. Where managed code handles exceptions, it
    /// then returns 0: there is no other frame in the pass.
    pub(super) fn call_unhandled_handler(&self) -> Function {
        let rbx = Word::Register(Gpr::Rbx);
        let mut named = Vec::new();
        if Shared::OnUnhandled.exists_in(self.generation) {
            named.push(set(Word::Thread(offset::START as u32), Value::Register(Gpr::Rbx)));
            named.push(set(rbx, Value::Function(self.helper(Shared::OnUnhandled))));
        }
        let mut body = self.calling_handler(Shared::UnhandledEntry, named);
        body.push(service(Service::UnhandledHandled));
        native(Shared::CallUnhandledHandler, plain(), body, RETURN)
    }

    /// Takes a handler, and calls it, after some statements: by an entry of the class library, if the runtime has that, or else what
    /// is in rbx then.
    fn calling_handler(&self, entry: Shared, named: Vec<Statement>) -> Vec<Statement> {
        let mut body = vec![
            service(Service::TakeHandler),
            set(Word::Register(Gpr::Rbx), Value::Register(Gpr::Rax)),
        ];
        body.extend(named);
        let worker = call(self.helper(Shared::CallDescrWorker));
        if entry.exists_in(self.generation) {
            body.push(call(self.helper(entry)));
            return body;
        }
        if self.generation.hides_exception_handling() {
            body.extend(self.frames.disable_preemptive_gc());
            body.extend([worker, enable_preemptive_gc()]);
        } else {
            body.push(worker);
        }
        body
    }

    /// Creates the first function of the finalizer's thread.
    pub(super) fn finalizer_thread(&self) -> Function {
        let (shape, at) = with_frame();
        let mut run = vec![set(Word::Register(Gpr::Rbx), Value::Register(Gpr::Rax))];
        run.extend(self.frames.disable_preemptive_gc());
        let base = if self.generation.has_gc_frames() {
            FrameKind::Gc
        } else {
            FrameKind::DebuggerU2MCatchHandler
        };
        run.extend(self.frames.mark(at, base));
        run.push(call(self.helper(Shared::CallDescrWorker)));
        run.extend([Frames::unlink(at), enable_preemptive_gc(), service(Service::Finalized)]);
        let serve =
            vec![service(Service::ServeFinalizer), Statement::Primitive(Primitive::When(run))];
        let body = vec![Statement::Primitive(Primitive::Repeat(serve))];
        native(Shared::FinalizerThread, shape, body, RETURN)
    }

    /// Creates a method of the class library at the start of a thread.
    pub(super) fn start_of_thread(&self, shared: Shared) -> Function {
        let target = vec![
            set(Word::Register(Gpr::Rax), Value::Thread(offset::START as u32)),
            call_computed(),
        ];
        let guarded =
            |body, kind, handler| Statement::Guarded(body, vec![EhClause { kind, body: handler }]);
        let body = match shared {
            Shared::ThreadStart => vec![call(self.helper(Shared::RunInternal))],
            // The exception is thrown again after the catch (recorded on 3.1.3).
            Shared::RunInternal => {
                let caught = set(Word::Thread(offset::START as u32), Value::Number(0));
                let inner = vec![call(self.helper(Shared::ThreadStartContext))];
                vec![
                    guarded(inner, EhClauseKind::Catch, vec![caught]),
                    set(Word::Register(Gpr::Rax), Value::Thread(offset::START as u32)),
                    Statement::Primitive(Primitive::Unless(vec![call(
                        self.helper(Shared::DispatchInfoThrow),
                    )])),
                ]
            }
            Shared::DispatchInfoThrow => self.throw(ExceptionClass::Last),
            Shared::OnFirstChance => super::transitions::calling_named(),
            // What leaves the handler is caught (recorded on 10.0.15 and 11.0.0).
            Shared::OnUnhandled => {
                vec![guarded(target, EhClauseKind::Catch, vec![Statement::Work(1)])]
            }
            Shared::StartCallback => vec![asking_for_handler(target)],
            _ => target,
        };
        with_frame_register(shared, body)
    }
}

/// Returns the statements with a filter around them, which asks for a handler of unhandled exceptions and accepts none.
pub(super) fn asking_for_handler(body: Vec<Statement>) -> Statement {
    let filter = vec![Statement::Work(2)];
    let kind = EhClauseKind::Filtered { accepts: false, filter };
    Statement::Guarded(body, vec![EhClause { kind, body: vec![Statement::Work(1)] }])
}

/// Creates a method of the class library that has rbp as frame register, so that it can have EH clauses.
pub(super) fn with_frame_register(shared: Shared, body: Vec<Statement>) -> Function {
    let frame =
        FrameRegister { register: Gpr::Rbp, offset: 0, set: FrameSet::AfterSaves, described: true };
    let shape = FunctionShape { frame: Some(frame), ..saving(&[Gpr::Rbp], 0) };
    let name = shared.name().to_owned();
    Function { name, kind: CodeKind::ReadyToRun, shape, body, end: Some(RETURN) }
}
