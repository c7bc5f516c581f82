//! Loads and compilations in progress. A profiler has the ids of modules, assemblies and methods before the runtime answers for them.
//!
//! Recorded on .NET Core 3.1.23, .NET 8.0.34, 9.0.23, 10.0.15 and 11.0.0 for Linux, by calls in each callback; on the other runtimes it is
//! assumed. Names and metadata of a module are known from the start of its load on; its place, and how it and its assembly belong
//! together, from `ModuleLoadFinished` on. Its methods have FunctionIDs when their class is loaded, at the earliest after
//! `AssemblyLoadFinished`. Code is known from `JITCompilationFinished` on.

use crate::profiling::CallbackKind as Kind;
use clr_walker::profiling::FunctionId;

/// The modules that are being loaded, and the methods that are being compiled for the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unfinished {
    modules: Vec<(u64, ModuleStage)>,
    functions: Vec<FunctionId>,
    changes: u64,
}

/// A stage in the load of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ModuleStage {
    /// The runtime does not know the module.
    Waiting,
    /// Of the module only the names and the metadata are known.
    Started,
    /// No class of the module is loaded.
    Finished,
}

impl Unfinished {
    /// Returns the number of changes so far.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes that the runtime starts: the modules are loaded later.
    pub fn begin(&mut self, modules: impl Iterator<Item = u64>) {
        self.changes += 1;
        self.modules = modules.map(|module| (module, ModuleStage::Waiting)).collect();
    }

    /// Notes that all modules are loaded.
    pub fn end(&mut self) {
        self.changes += 1;
        self.modules.clear();
    }

    /// Notes a step of a load by the callback that reports it, before it is made and whether a profiler hears of it or not.
    pub fn note_load(&mut self, kind: Kind, module: u64) {
        let stage = match kind {
            Kind::AssemblyLoadStarted | Kind::ModuleLoadStarted => ModuleStage::Started,
            Kind::ModuleLoadFinished => ModuleStage::Finished,
            _ => return,
        };
        self.changes += 1;
        match self.modules.iter_mut().find(|(loaded, _)| *loaded == module) {
            Some((_, known)) => *known = stage,
            None => self.modules.push((module, stage)),
        }
    }

    /// Notes that a callback about a module is over.
    pub fn note_end(&mut self, kind: Kind, module: u64) {
        if kind == Kind::AssemblyLoadFinished {
            self.changes += 1;
            self.modules.retain(|(loaded, _)| *loaded != module);
        }
    }

    /// Notes that the first compilation of a method has begun.
    pub fn compiles(&mut self, function: FunctionId) {
        self.changes += 1;
        self.functions.push(function);
    }

    /// Notes that a method was compiled.
    pub fn compiled(&mut self, function: FunctionId) {
        self.changes += u64::from(self.is_compiling(function));
        self.functions.retain(|compiled| *compiled != function);
    }

    /// Returns true if the runtime does not answer for the place of a module yet.
    pub fn is_loading(&self, module: u64) -> bool {
        let early = [ModuleStage::Waiting, ModuleStage::Started];
        early.iter().any(|stage| self.modules.contains(&(module, *stage)))
    }

    /// Returns true if no class of a module is loaded yet.
    pub fn has_no_classes(&self, module: u64) -> bool {
        self.modules.iter().any(|(loaded, _)| *loaded == module)
    }

    /// Returns true if a method is compiled for the first time now: it has no code yet.
    pub fn is_compiling(&self, function: FunctionId) -> bool {
        self.functions.contains(&function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_known_when_its_load_has_finished_and_its_methods_after_that() {
        let mut unfinished = Unfinished::default();
        assert!(!unfinished.is_loading(1) && !unfinished.has_no_classes(1));
        for (kind, is_loading) in [
            (Kind::AssemblyLoadStarted, true),
            (Kind::ModuleLoadStarted, true),
            (Kind::ModuleLoadFinished, false),
            (Kind::ModuleAttachedToAssembly, false),
            (Kind::AssemblyLoadFinished, false),
        ] {
            unfinished.note_load(kind, 1);
            assert_eq!(unfinished.is_loading(1), is_loading, "{}", kind.name());
            assert!(unfinished.has_no_classes(1) && !unfinished.has_no_classes(2));
            unfinished.note_end(kind, 1);
        }
        assert!(!unfinished.has_no_classes(1));
    }

    #[test]
    fn no_module_is_known_before_the_runtime_starts() {
        let mut unfinished = Unfinished::default();
        unfinished.begin([1, 2].into_iter());
        assert!(unfinished.is_loading(1) && unfinished.has_no_classes(2));
        unfinished.note_load(Kind::ModuleLoadFinished, 1);
        unfinished.note_end(Kind::AssemblyLoadFinished, 1);
        assert!(!unfinished.is_loading(1) && !unfinished.has_no_classes(1));
        assert!(unfinished.is_loading(2));
    }

    #[test]
    fn a_method_has_no_code_while_it_is_compiled() {
        let [one, other] = [1, 2].map(FunctionId);
        let mut unfinished = Unfinished::default();
        unfinished.compiles(one);
        unfinished.compiles(other);
        assert!(unfinished.is_compiling(one));
        let before = unfinished.changes();
        unfinished.compiled(one);
        assert!(!unfinished.is_compiling(one) && unfinished.is_compiling(other));
        assert!(unfinished.changes() > before);
    }
}
