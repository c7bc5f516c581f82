//! The program as it is compiled for a profiler, by the event mask.
//!
//! Recorded on .NET Core 3.1.23, .NET 8.0.34, 9.0.23, 10.0.15 and 11.0.0 for Linux, by masks of one bit and the callbacks that come;
//! assumed of other runtimes.

use super::scenario::Scenario;
use clr_codegen::{CodeKind, RuntimeCallKind, Statement};
use clr_walker::profiling::EventMask;
use std::borrow::Cow;

/// `COR_PRF_MONITOR_CODE_TRANSITIONS`: no P/Invoke is inlined, so that each of them is reported.
const TRANSITIONS: u32 = 0x800;
/// The same, `COR_PRF_MONITOR_ENTERLEAVE`, `COR_PRF_USE_PROFILE_IMAGES` and `COR_PRF_DISABLE_ALL_NGEN_IMAGES`: code that was compiled ahead is
/// refused, so that it is compiled by the JIT.
const REFUSES_IMAGES: u32 = TRANSITIONS | 0x1000 | 0x2000_0000 | 0x8000_0000;

impl Scenario {
    /// Returns the scenario with its program as it is compiled for a profiler that has asked for these events when the program begins.
    #[must_use]
    pub fn compiled_for(&self, events: EventMask) -> Cow<'_, Self> {
        let has = |bits: u32| events.0 & bits != 0;
        if !has(REFUSES_IMAGES) {
            return Cow::Borrowed(self);
        }
        let mut compiled = self.clone();
        for function in &mut compiled.program.functions {
            let is_ahead = function.kind == CodeKind::ReadyToRun;
            if is_ahead && has(REFUSES_IMAGES) {
                function.kind = CodeKind::Jit;
            }
            let by_jit = function.kind == CodeKind::Jit;
            let inlined = if has(TRANSITIONS) && by_jit {
                Some(RuntimeCallKind::PInvokeStub)
            } else {
                (is_ahead && by_jit).then_some(RuntimeCallKind::PInvoke)
            };
            if let Some(kind) = inlined {
                set_inlined(&mut function.body, kind);
            }
        }
        if compiled == *self { Cow::Borrowed(self) } else { Cow::Owned(compiled) }
    }
}

/// Makes the P/Invokes in a body that are inlined calls of this kind.
fn set_inlined(body: &mut [Statement], kind: RuntimeCallKind) {
    for statement in body {
        if let Statement::Runtime(call) = statement
            && matches!(call.kind, RuntimeCallKind::PInvoke | RuntimeCallKind::PInvokeByHelper)
        {
            call.kind = kind;
        }
        for inner in statement.bodies_mut() {
            set_inlined(inner, kind);
        }
    }
}
