//! Hooks that functions call when they are entered and left (contract §6).

use super::frames::{Frames, call, service, with_frame};
use super::{Plan, RETURN, Service, Shared, native, saving};
use clr_codegen::{CodeKind, Exit, Function, Statement, UnwindData};
use clr_runtime::frame::layout;
use clr_unwind::Gpr;

/// The hooks that managed functions of a program call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hooks {
    /// No hooks.
    #[default]
    None,
    /// Hooks of the runtime, which call the profiler's with a Frame.
    Slow,
    /// Hooks of the profiler, which are called directly.
    Fast,
}

impl Hooks {
    /// Returns the hooks for entering, leaving, and leaving by a tail call.
    const fn targets(self) -> Option<[Shared; 3]> {
        match self {
            Self::None => None,
            Self::Slow => Some([
                Shared::ProfileEnterNaked,
                Shared::ProfileLeaveNaked,
                Shared::ProfileTailcallNaked,
            ]),
            Self::Fast => Some([
                Shared::ProfilerHook,
                Shared::ProfilerLeaveHook,
                Shared::ProfilerTailcallHook,
            ]),
        }
    }
}

impl Plan {
    /// Adds calls of hooks to a function, if it is a method that has hooks.
    pub(super) fn add_hooks(&self, function: &mut Function) {
        let Some([enter, leave, tail_call]) = self.hooks.targets() else { return };
        if function.kind == CodeKind::Native || function.shape.unwind == UnwindData::None {
            return;
        }
        let (leave, tail_call) = (call(self.helper(leave)), call(self.helper(tail_call)));
        let hook_of = |exit: &Exit| match exit {
            Exit::Return(_) | Exit::Computed => leave.clone(),
            Exit::TailCall(..) => tail_call.clone(),
        };
        surround(function, call(self.helper(enter)), &hook_of);
    }

    /// Creates `ProfileEnterNaked` and similar code: assembled code that saves what hooks may want
    /// to see.
    pub(super) fn profile_naked(&self, shared: Shared, worker: Shared) -> Function {
        let shape = saving(&[Gpr::Rbx], 0x60);
        native(shared, shape, vec![call(self.helper(worker))], RETURN)
    }

    /// Creates `ProfileEnter` and similar code: the hook is called with a Frame that leads to the
    /// managed code.
    pub(super) fn profile_worker(&self, shared: Shared) -> Function {
        let (shape, at) = with_frame();
        let hook = service(Service::SlowHook);
        if !self.generation.has_helper_method_frames() {
            return native(shared, shape, vec![hook], RETURN);
        }
        let mut body = self.frames.helper_method_frame(at, layout::CAPTURE_DEPTH_2, None);
        body.push(hook);
        body.push(Frames::unlink(at));
        native(shared, shape, body, RETURN)
    }
}

/// Puts a statement before all others of a function, and one before each way out.
pub(super) fn surround(
    function: &mut Function,
    enter: Statement,
    leave: &impl Fn(&Exit) -> Statement,
) {
    let mut body = vec![enter];
    body.extend(before_exits(core::mem::take(&mut function.body), leave));
    body.extend(function.end.as_ref().map(leave));
    function.body = body;
}

/// Returns a body with a hook before each statement that leaves the function.
fn before_exits(body: Vec<Statement>, hook_of: &impl Fn(&Exit) -> Statement) -> Vec<Statement> {
    let mut with = Vec::with_capacity(body.len());
    for mut statement in body {
        if let Statement::Exit(exit) = &statement {
            with.push(hook_of(exit));
        }
        for inner in statement.bodies_mut() {
            *inner = before_exits(core::mem::take(inner), hook_of);
        }
        with.push(statement);
    }
    with
}
