//! Loads and first compilations that have begun: what a profiler cannot know yet.

use super::World;
use super::step::{ASSEMBLY_LOAD, About};
use clr_codegen::Service;
use clr_runtime::profiling::CallbackKind as Kind;

impl World<'_> {
    /// Notes what a callback tells about loads and first compilations, whether the profiler has asked for it or not.
    pub(super) fn note_unfinished(&mut self, thread: usize, kind: Kind, about: Option<About>) {
        let is_load = ASSEMBLY_LOAD.contains(&kind);
        if !is_load && !matches!(kind, Kind::JITCompilationStarted | Kind::JITCompilationFinished) {
            return;
        }
        let named = || self.function_of_callback(thread, kind);
        let function = about.map_or_else(named, |about| about.function);
        let module = about.map(|about| about.module).filter(|module| *module != 0);
        let module = module.unwrap_or_else(|| self.module_of(function));
        let served = self.threads.get(thread).and_then(|executed| executed.served);
        let is_first = served == Some(Service::Compile) && !self.is_serving_tiers(thread);
        if kind == Kind::ModuleLoadStarted {
            self.note_module(module);
        }
        let mut unfinished = self.runtime.unfinished.borrow_mut();
        match kind {
            Kind::JITCompilationStarted if is_first => unfinished.compiles(function),
            Kind::JITCompilationStarted => {}
            Kind::JITCompilationFinished => unfinished.compiled(function),
            _ => {
                unfinished.note_load(kind, module);
                if !self.wants(kind) {
                    unfinished.note_end(kind, module);
                }
            }
        }
    }
}
