//! Compilation of methods, and the loading of their classes.
//!
//! A method is compiled by the first call through its precode, again where a profiler has requested a ReJIT, on the
//! stack where a loop runs long, and by threads of tiered compilation. Observed on 3.1.3, 8.0.34, 9.0.23, 10.0.15 and
//! 11.0.0. That first calls of one method by two threads do not wait for each other is assumed: no recording has two such calls.

use super::arrangement::Awaited;
use super::step::{ASSEMBLY_LOAD, About, Inlining, Step};
use super::{StepEvent, World};
use crate::stubs::{Identity, method_id, method_of, words};
use clr_codegen::{CodeKind, FunctionIndex, Service};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{Lock, MethodKind};
use clr_unwind::Gpr;
use clr_walker::profiling::FunctionId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// `COR_PRF_DISABLE_INLINING`, `COR_PRF_DISABLE_OPTIMIZATIONS`: no method is inlined.
const DISABLES_INLINING: u32 = 0x20_0000 | 0x40_0000;

/// The compilations that the runtime has made, and those that wait. Methods and classes are named by their ids.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Compilations {
    /// Number of looks and changes.
    pub changes: u64,
    /// Methods that a first call has compiled.
    compiled: BTreeSet<u64>,
    /// Classes that were loaded.
    loaded: BTreeSet<u64>,
    /// The method whose class a thread loads before it begins with the method.
    first: Option<FunctionIndex>,
    /// Modules that the JIT has loaded.
    modules: BTreeSet<u64>,
    /// Methods that the threads of tiered compilation have to compile.
    queued: VecDeque<u64>,
    /// The modules that were loaded, and whether the profiler's events refused to inline anything into their methods then.
    refusing: BTreeMap<u64, bool>,
    /// Number of methods that these threads have taken.
    taken: u64,
}

impl World<'_> {
    /// Requests a ReJIT of a method of the source, as `RequestReJIT` does: its next call compiles it again.
    pub fn request_rejit(&mut self, function: FunctionIndex) {
        let Some(placed) = self.expanded.placed.get(function.index()) else { return };
        self.made.compilations.changes += 1;
        self.runtime.code.il_versions.borrow_mut().request(FunctionId(method_id(*placed)));
    }

    /// Sets the method whose class a thread loads before it begins with the method.
    pub(super) const fn begin_with_class_of(&mut self, function: Option<FunctionIndex>) {
        self.made.compilations.first = function;
    }

    /// Returns the steps by which a thread loads the class of its first method, if a world [begins with
    /// it](Self::begin_with_class_of). That the class comes before the program was recorded on 3.1 to 11; that it comes after
    /// the thread's creation is assumed.
    pub(super) fn first_class_load(&mut self, thread: usize) -> Vec<Step> {
        let begins = self.threads.get(thread).map(|executed| executed.start);
        let first = self.made.compilations.first.filter(|first| Some(*first) == begins);
        let placed = first.and_then(|first| self.expanded.placed.get(first.index()).copied());
        placed.map_or_else(Vec::new, |placed| self.class_load_of(method_id(placed)))
    }

    /// Returns the callbacks about the load of the class of a method that no register names, unless it was loaded before.
    fn class_load_of(&mut self, method: u64) -> Vec<Step> {
        if !self.notes_class(method) {
            return Vec::new();
        }
        let about = About { function: FunctionId(method), ..About::default() };
        [Kind::ClassLoadStarted, Kind::ClassLoadFinished]
            .map(|kind| Step::CallbackAbout(kind, about))
            .to_vec()
    }

    /// Lets the JIT inline methods of the source into others, as it compiles them.
    pub(super) fn inline(&mut self, inlines: &BTreeMap<FunctionIndex, Vec<FunctionIndex>>) {
        let placed = &self.expanded.placed;
        let id = |function: FunctionIndex| placed.get(function.index()).copied().map(method_id);
        let mut all = BTreeMap::<u64, Vec<_>>::new();
        for (caller, inlined, word) in words(inlines) {
            if let (Some(caller), Some(inlined)) = (id(caller), id(inlined)) {
                all.entry(caller).or_default().push((inlined, word));
            }
        }
        self.inlines = all;
    }

    /// Leaves the modules of these methods out of the start, but for the one that the program begins in.
    pub(super) fn load_late<'f>(&mut self, methods: impl Iterator<Item = &'f FunctionIndex>) {
        let begins = self.first_module();
        let late = methods.filter_map(|method| self.module_with(*method));
        self.late = late.filter(|module| Some(*module) != begins).collect();
    }

    /// Returns the module of the method that the first thread begins with.
    pub(super) fn first_module(&self) -> Option<u64> {
        self.module_with(self.threads.get(self.first_managed()?)?.start)
    }

    /// Returns the module of a method of the source, if it has one.
    fn module_with(&self, function: FunctionIndex) -> Option<u64> {
        let placed = self.expanded.placed.get(function.index())?;
        Some(self.module_of(FunctionId(method_id(*placed)))).filter(|module| *module != 0)
    }

    /// Returns the method that the current thread names in r10.
    pub(super) fn method(&self) -> u64 {
        self.runtime.memory.borrow().cpu().get(Gpr::R10)
    }

    /// Returns the steps of a service that compiles a method or loads a class.
    pub(super) fn compile(&mut self, thread: usize, service: Service) -> Vec<Step> {
        let method = self.method();
        self.made.compilations.changes += 1;
        match service {
            Service::Compile if self.is_serving_tiers(thread) => self.compilation(method),
            Service::Compile => self.compile_first(method),
            Service::ReplaceOnStack => self.compile_on_stack(thread),
            Service::TierUp => {
                for _ in 0..self.runtime.generation.later_tiers() {
                    self.made.compilations.queued.push_back(method);
                }
                vec![Step::Return(0)]
            }
            Service::ServeTiers => vec![Step::AwaitProgram(Awaited::Tiers), Step::TakeTier],
            Service::LoadClass => {
                let mut steps = self.class_load(method);
                steps.push(Step::Return(0));
                steps
            }
            Service::Compiled => {
                let has_metadata = self.has_metadata(method_of(method));
                vec![Step::Callback(finished(has_metadata)), Step::Return(0)]
            }
            _ => vec![
                Step::Callback(started(false)),
                Step::Callback(finished(false)),
                Step::Return(0),
            ],
        }
    }

    /// Compiles a method that is called through its precode: at the first call, and at the first one after a request.
    fn compile_first(&mut self, method: u64) -> Vec<Step> {
        let compilations = &mut self.made.compilations;
        let is_first = compilations.compiled.insert(method);
        if self.runtime.code.il_versions.borrow_mut().compile(FunctionId(method)) {
            return vec![
                Step::Callback(Kind::GetReJITParameters),
                Step::Callback(Kind::ReJITCompilationStarted),
                Step::Acquire(Lock::LoaderHeap),
                Step::Release(Lock::LoaderHeap),
                Step::Callback(Kind::ReJITCompilationFinished),
                Step::Return(0),
            ];
        }
        if !is_first {
            return vec![Step::Return(0)];
        }
        // Code of an image is only searched for.
        if self.kind_of(method) == Some(CodeKind::ReadyToRun) {
            return vec![
                Step::Callback(Kind::JITCachedFunctionSearchStarted),
                Step::Callback(Kind::JITCachedFunctionSearchFinished),
                Step::Return(0),
            ];
        }
        let has_metadata = self.has_metadata(method_of(method));
        let mut steps = if has_metadata { self.class_load(method) } else { Vec::new() };
        steps.extend(self.compilation(method));
        steps
    }

    /// Compiles the method of the innermost frame of the program again, if the runtime replaces code on the stack.
    fn compile_on_stack(&mut self, thread: usize) -> Vec<Step> {
        let functions = self.activations(thread).into_iter().filter_map(|one| one.function);
        let mut methods = functions.filter(|function| self.expanded.placed.contains(function));
        let Some(method) = methods.next() else { return vec![Step::Return(0)] };
        if !self.runtime.generation.replaces_code_on_stack() {
            return vec![Step::Return(0)];
        }
        let method = method_id(method);
        self.name_method(method);
        self.compilation(method)
    }

    /// Names a method in r10, where the callbacks about it look.
    fn name_method(&self, method: u64) {
        self.runtime.memory.borrow_mut().cpu_mut().set(Gpr::R10, method);
    }

    /// Returns the steps of a compilation, which finishes when the code manager knows the code.
    fn compilation(&mut self, method: u64) -> Vec<Step> {
        let mut steps = vec![Step::Callback(started(self.has_metadata(method_of(method))))];
        let inlined = self.inlines.get(&method).cloned().unwrap_or_default();
        let is_refused = self.refuses_inlining(method);
        for (callee, word) in inlined {
            let (caller, function) = (FunctionId(method), FunctionId(callee));
            if !is_refused {
                steps.extend(self.inlining(method, callee));
            }
            steps.push(Step::Inline(Inlining { caller, function, word, is_refused }));
        }
        steps.extend([
            Step::Acquire(Lock::LoaderHeap),
            Step::Release(Lock::LoaderHeap),
            Step::Return(1),
        ]);
        steps
    }

    /// Returns the steps by which the JIT inlines a method into another one: it loads the assembly and the class that are not
    /// loaded yet, then the profiler is asked. Recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
    fn inlining(&mut self, into: u64, inlined: u64) -> Vec<Step> {
        let (caller, function) = (FunctionId(into), FunctionId(inlined));
        let module = self.module_of(function);
        let about = |kind| Step::CallbackAbout(kind, About { function, ..About::default() });
        let is_elsewhere = module != self.module_of(caller);
        let mut steps = Vec::new();
        if is_elsewhere && self.made.compilations.modules.insert(module) {
            steps.extend(ASSEMBLY_LOAD.map(about));
        }
        steps.extend(self.class_load_of(inlined));
        let inlining = About { function, caller, ..About::default() };
        self.runtime.code.il_versions.borrow_mut().note_inlining(caller, function);
        steps.push(Step::CallbackAbout(Kind::JITInlining, inlining));
        steps
    }

    /// Returns true if the profiler's events refused to inline anything into the methods of a module when it was loaded. So .NET 10 and 11
    /// do (the CLR's own test of it passes there); other runtimes do not let these events change.
    fn refuses_inlining(&self, method: u64) -> bool {
        let module = self.module_of(FunctionId(method));
        let known = self.made.compilations.refusing.get(&module);
        known.copied().unwrap_or_else(|| self.events_refuse_inlining())
    }

    fn events_refuse_inlining(&self) -> bool {
        self.runtime.process.get().event_mask.0 & DISABLES_INLINING != 0
    }

    /// Notes that a module is loaded now.
    pub(super) fn note_module(&mut self, module: u64) {
        let refuses = self.events_refuse_inlining();
        let compilations = &mut self.made.compilations;
        if module != 0 && compilations.refusing.insert(module, refuses) != Some(refuses) {
            compilations.changes += 1;
        }
    }

    /// Makes an inlining, or a call instead if it was refused.
    pub(super) fn inline_or_call(&self, inlining: Inlining) -> StepEvent {
        let Inlining { caller, function, word, is_refused } = inlining;
        let versions = self.runtime.code.il_versions.borrow();
        let is_refused = is_refused || !versions.is_inlined(caller, function);
        let content = u64::from(is_refused).to_le_bytes();
        // The page of the words is always mapped.
        let _ = self.runtime.memory.borrow_mut().write(word, &content);
        StepEvent::Stepped
    }

    /// Notes that the class of a method is loaded. Returns true if it was not.
    fn notes_class(&mut self, method: u64) -> bool {
        let class = self.class_of(method);
        class.is_none_or(|class| self.made.compilations.loaded.insert(class))
    }

    /// Loads the class of a method, unless it was loaded before: its data is allocated from a loader heap in any mode
    /// (G14).
    fn class_load(&mut self, method: u64) -> Vec<Step> {
        if !self.notes_class(method) {
            return Vec::new();
        }
        vec![
            Step::Callback(Kind::ClassLoadStarted),
            Step::Acquire(Lock::LoaderHeap),
            Step::Release(Lock::LoaderHeap),
            Step::Callback(Kind::ClassLoadFinished),
        ]
    }

    /// Forgets that a method was compiled and its class loaded, as its code is unloaded: a call or a load after that begins
    /// anew (assumed).
    pub(super) fn forget_compilation(&mut self, method: u64) {
        let class = self.class_of(method);
        let compilations = &mut self.made.compilations;
        compilations.changes += 1;
        compilations.compiled.remove(&method);
        if let Some(class) = class {
            compilations.loaded.remove(&class);
        }
    }

    fn class_of(&self, method: u64) -> Option<u64> {
        self.runtime.code.method(FunctionId(method)).map(|(_, method)| method.class)
    }

    fn kind_of(&self, method: u64) -> Option<CodeKind> {
        let function = self.expanded.program.functions.get(method_of(method)?.index())?;
        Some(function.kind)
    }

    /// Returns true if a method is not dynamic: the callbacks of its compilation are other ones
    /// (`JitCompileCodeLockedEventWrapper` of src/vm/prestub.cpp of CoreCLR 3.1.23).
    fn has_metadata(&self, function: Option<FunctionIndex>) -> bool {
        let identity = function.and_then(|id| self.expanded.identities.get(id.index()));
        let dynamic = [MethodKind::Dynamic, MethodKind::IlStub].map(Identity::Method);
        identity.is_none_or(|identity| !dynamic.contains(identity))
    }

    pub(super) fn is_serving_tiers(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|executed| executed.serves_tiers)
    }

    /// Returns true if a thread of tiered compilation has a method to compile now: the threads take them in turn, unless one
    /// thread takes all.
    pub(super) fn has_tier_for(&self, thread: usize) -> bool {
        let mut servers = (0..self.threads.len()).filter(|index| self.is_serving_tiers(*index));
        let count = servers.clone().count().max(1) as u64;
        let all_by_one = self.runtime.generation.reuses_thread_objects();
        let turn = if all_by_one { 0 } else { self.made.compilations.taken % count };
        !self.made.compilations.queued.is_empty() && servers.nth(turn as usize) == Some(thread)
    }

    /// Takes the next method for a thread of tiered compilation; returns false if there is none.
    pub(super) fn take_tier(&mut self) -> bool {
        let compilations = &mut self.made.compilations;
        compilations.changes += 1;
        let Some(method) = compilations.queued.pop_front() else { return false };
        compilations.taken += 1;
        self.name_method(method);
        true
    }
}

const fn started(has_metadata: bool) -> Kind {
    if has_metadata {
        Kind::JITCompilationStarted
    } else {
        Kind::DynamicMethodJITCompilationStarted
    }
}

const fn finished(has_metadata: bool) -> Kind {
    if has_metadata {
        Kind::JITCompilationFinished
    } else {
        Kind::DynamicMethodJITCompilationFinished
    }
}
