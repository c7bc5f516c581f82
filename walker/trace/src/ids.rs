//! Ids of the runtime as names.

use std::collections::HashMap;

/// A kind of id that has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdKind {
    /// An AppDomainID.
    AppDomain,
    /// An AssemblyID.
    Assembly,
    /// A ClassID.
    Class,
    /// A FunctionID.
    Function,
    /// A ModuleID.
    Module,
    /// A ThreadID.
    Thread,
    /// The number of a thread in the system. Its name is the text of its ThreadID, if the runtime knows the thread.
    OsThread,
}

impl IdKind {
    /// Returns the word before the number: `function`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AppDomain => "app-domain",
            Self::Assembly => "assembly",
            Self::Class => "class",
            Self::Function => "function",
            Self::Module => "module",
            Self::Thread => "thread",
            Self::OsThread => "os-thread",
        }
    }

    /// Returns the kind with this word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        let all = [
            Self::AppDomain,
            Self::Assembly,
            Self::Class,
            Self::Function,
            Self::Module,
            Self::Thread,
            Self::OsThread,
        ];
        all.into_iter().find(|kind| kind.word() == word)
    }

    /// Returns the kind of an argument by its declared type, `*mut ModuleId`.
    pub(crate) fn of_type(declared: &str) -> Option<Self> {
        Some(match declared.rsplit(' ').next()? {
            "AppDomainId" => Self::AppDomain,
            "AssemblyId" => Self::Assembly,
            "ClassId" => Self::Class,
            "FunctionId" => Self::Function,
            "ModuleId" => Self::Module,
            "ThreadId" => Self::Thread,
            _ => return None,
        })
    }
}

/// The names that a runtime knows.
pub trait Names {
    /// Returns the name of an id, if it can be known already: `Type.Method` of a function, the name of a class with its
    /// namespace, the file name of a module, the name of an assembly, an AppDomain or a thread.
    fn name(&mut self, kind: IdKind, id: u64) -> Option<String>;

    /// Returns the file name of the module of a function or class, which has a name.
    fn module_of(&mut self, kind: IdKind, id: u64) -> Option<String>;
}

/// The ids of a trace: each has a number by its first appearance.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    known: HashMap<(IdKind, u64), Known>,
    counts: HashMap<IdKind, u32>,
}

/// The state of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The id had this name before.
    Known,
    /// The id had no name, and has this one now.
    New,
    /// The id has another name.
    Other,
}

#[derive(Debug)]
struct Known {
    number: u32,
    name: Option<String>,
}

impl Ids {
    /// Returns the text of an id, and its name if that is new.
    pub(crate) fn text(
        &mut self,
        kind: IdKind,
        id: u64,
        names: &mut dyn Names,
    ) -> (String, Option<String>) {
        let known = self.known.entry((kind, id)).or_insert_with(|| {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            Known { number: *count, name: None }
        });
        let is_named = known.name.is_some();
        if !is_named {
            known.name = names.name(kind, id);
        }
        let text = format!("{}#{}", kind.word(), known.number);
        (text, known.name.clone().filter(|_| !is_named))
    }

    /// Names an id that has a text.
    pub(crate) fn set_name(&mut self, kind: IdKind, id: u64, name: &str) -> Naming {
        let Some(known) = self.known.get_mut(&(kind, id)) else { return Naming::Known };
        match &known.name {
            Some(before) if before == name => Naming::Known,
            Some(_) => Naming::Other,
            None => {
                known.name = Some(name.to_owned());
                Naming::New
            }
        }
    }

    /// Forgets an id whose object is gone: a later one is another.
    pub(crate) fn forget(&mut self, kind: IdKind, id: u64) {
        self.known.remove(&(kind, id));
    }
}
