//! Subjects of callbacks: the thread, module, class or method that one names.

use super::names::Names;
use clr_com::{AssemblyId, ClassId, ICorProfilerInfo10, ModuleId, ObjectId};
use clr_walker::profiling::{FunctionId, ThreadId};

/// The argument of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Nothing,
    Function(FunctionId),
    Module(ModuleId),
    /// A module that is not loaded yet: its id is for later.
    Early(ModuleId),
    Assembly(AssemblyId),
    Class(ClassId),
    Thread(ThreadId),
    /// An object that was allocated, and its class.
    Object(ObjectId, ClassId),
    /// An exception.
    Thrown(ObjectId),
}

impl Subject {
    /// Returns true if the subject belongs to the program's module.
    pub(super) fn is_of_program(self, names: &Names, info: &ICorProfilerInfo10) -> bool {
        match self {
            Self::Function(function) => names.function(info, function).is_own,
            Self::Module(module) | Self::Early(module) => {
                names.is_own(&Names::module(info, module))
            }
            Self::Assembly(assembly) => names.is_own_assembly(&Names::assembly(info, assembly).1),
            Self::Class(class) => names.class(info, class).is_own,
            Self::Nothing | Self::Thread(_) | Self::Object(..) | Self::Thrown(_) => false,
        }
    }

    /// Returns its name, for a trace.
    pub(super) fn name(self, names: &Names, info: &ICorProfilerInfo10, own: ThreadId) -> String {
        match self {
            Self::Nothing | Self::Thrown(_) => String::new(),
            Self::Function(function) => names.function(info, function).text,
            Self::Module(module) | Self::Early(module) => Names::module(info, module),
            Self::Assembly(assembly) => Names::assembly(info, assembly).1,
            Self::Class(class) | Self::Object(_, class) => names.class(info, class).text,
            Self::Thread(thread) if thread == own => "own".to_owned(),
            Self::Thread(_) => "other".to_owned(),
        }
    }
}
