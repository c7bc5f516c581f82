//! The hook that a thread is in.

use crate::World;
use clr_walker::profiling::FunctionId;

/// A reason to call a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookKind {
    /// A function was entered.
    Enter,
    /// A function is left.
    Leave,
    /// A function is left by a tail call.
    Tailcall,
}

impl HookKind {
    /// Returns the kind of the hooks that a function of the runtime is for.
    fn of_function(name: &str) -> Option<Self> {
        Some(match name {
            "ProfileEnterNaked" | "ProfilerHook" => Self::Enter,
            "ProfileLeaveNaked" | "ProfilerLeaveHook" => Self::Leave,
            "ProfileTailcallNaked" | "ProfilerTailcallHook" => Self::Tailcall,
            _ => return None,
        })
    }
}

impl World<'_> {
    /// Returns the hook that a thread is in, and the method that has called it.
    pub fn hook(&self, thread: usize) -> Option<(HookKind, FunctionId)> {
        let callers = self.shadow_stack(thread)?.callers().iter().rev();
        let mut kind = None;
        for rip in [self.rip(thread)?].into_iter().chain(callers.map(|one| one.registers.rip)) {
            if let Some(managed) = self.runtime.code.find(rip) {
                return Some((kind?, managed.method.id));
            }
            let native = self.runtime.native.function(rip);
            kind = kind.or(native.and_then(|function| HookKind::of_function(&function.name)));
        }
        None
    }
}
