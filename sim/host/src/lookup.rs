//! Ids of a session's process as names, for traces: as a profiler gets them from the metadata.

use crate::inner::{Inner, find};
use crate::process::Process;
use clr_runtime::OsThreadId;
use clr_runtime::metadata::{Module, TypeDef};
use clr_walker::profiling::{FunctionId, ThreadId};
use std::rc::Rc;

/// Ids of a session's process as names, on the session's own thread.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    session: u64,
}

impl Lookup {
    pub(crate) const fn new(session: u64) -> Self {
        Self { session }
    }

    fn process(self) -> Option<(Rc<Inner>, Rc<Process>)> {
        let session = find(self.session)?;
        let process = session.stage()?;
        Some((session, process))
    }

    /// Returns the number and the ThreadID of the thread that acts; `None` on another thread of the system. The ThreadID
    /// of a thread that the runtime does not know is 0.
    #[must_use]
    pub fn acting(self) -> Option<(u64, ThreadId)> {
        let (session, process) = self.process()?;
        // `Initialize` is executed by the thread that later executes the program.
        let is_starting = session.within.get() == Some("Initialize");
        let os = if is_starting { process.stopped() } else { session.caller() };
        Some((
            os.0.into(),
            process.runtime().object_of(os).filter(|_| !is_starting).unwrap_or_default(),
        ))
    }

    /// Returns `Type.Method` of a function.
    #[must_use]
    pub fn function(self, id: FunctionId) -> Option<String> {
        let (_, process) = self.process()?;
        let runtime = process.runtime();
        let (_, method) = runtime.code.method(id)?;
        let declared = runtime.metadata.class(method.class).and_then(|(module, class)| {
            let found = module.methods().iter().find(|one| one.token == method.token)?;
            Some(format!("{}.{}", class_name(class), found.name))
        });
        Some(declared.unwrap_or_else(|| method.name.clone()))
    }

    /// Returns the name of a class with its namespace, without the types around it.
    #[must_use]
    pub fn class(self, id: u64) -> Option<String> {
        let (_, process) = self.process()?;
        process.runtime().metadata.class(id).map(|(_, class)| class_name(class))
    }

    /// Returns the file name of the module of a class, or of a function.
    #[must_use]
    pub fn module_of(self, is_class: bool, id: u64) -> Option<String> {
        let (_, process) = self.process()?;
        let runtime = process.runtime();
        let class = if is_class { id } else { runtime.code.method(FunctionId(id))?.1.class };
        runtime.metadata.class(class).map(|(module, _)| module.name().to_owned())
    }

    /// Returns the file name of a module.
    #[must_use]
    pub fn module(self, id: u64) -> Option<String> {
        let (_, process) = self.process()?;
        process.runtime().metadata.module(id).map(|module| module.name().to_owned())
    }

    /// Returns the name of an assembly.
    #[must_use]
    pub fn assembly(self, id: u64) -> Option<String> {
        let (_, process) = self.process()?;
        process.runtime().metadata.assembly(id).map(|module| module.assembly_name.clone())
    }

    /// Returns the name of a thread in the text.
    #[must_use]
    pub fn thread(self, id: ThreadId) -> Option<String> {
        let (session, process) = self.process()?;
        let OsThreadId(os) = process.runtime().thread_of(id, |thread| thread.os)?;
        let name = session.thread_name(os.wrapping_sub(1)).to_owned();
        (!name.is_empty()).then_some(name)
    }

    /// Returns the names of functions and classes outside of the core library, and of all modules and assemblies of the
    /// process, by these four.
    #[must_use]
    pub fn all(self) -> [Vec<String>; 4] {
        let Some((_, process)) = self.process() else { return Default::default() };
        let runtime = process.runtime();
        let modules = runtime.metadata.modules();
        let is_own = |module: &&Module| !runtime.metadata.is_precompiled(module.id);
        let own: Vec<_> = modules.iter().filter(is_own).collect();
        let functions = runtime
            .code
            .methods()
            .filter(|(_, method)| own.iter().any(|module| module.id == method.module));
        let functions = functions.filter_map(|(_, method)| self.function(method.id));
        let classes = own.iter().flat_map(|module| module.types()).map(class_name);
        [
            functions.collect(),
            classes.collect(),
            modules.iter().map(|module| module.name().to_owned()).collect(),
            modules.iter().map(|module| module.assembly_name.clone()).collect(),
        ]
    }
}

fn class_name(class: &TypeDef) -> String {
    match class.namespace.as_str() {
        "" => class.name.clone(),
        namespace => format!("{namespace}.{}", class.name),
    }
}
