//! Calls as lines.

use crate::ids::{IdKind, Ids, Names, Naming};
use crate::line::{Arguments, Line};
use clr_com::{Callee, Captured, CapturedCall, Guid, Moment};
use clr_walker::profiling::{HResult, ThreadId};
use std::collections::HashSet;

/// The last callbacks about an id.
const LAST: [&str; 4] =
    ["ThreadDestroyed", "FunctionUnloadStarted", "ModuleUnloadFinished", "ClassUnloadFinished"];
/// The first ones: about another object, if the last one was before.
const FIRST: [&str; 4] =
    ["ThreadCreated", "JITCompilationStarted", "ModuleLoadStarted", "ClassLoadStarted"];

macro_rules! interfaces {
    ($($interface:ident)*) => {
        /// Interfaces whose ids have a name.
        const INTERFACES: &[(Guid, &str)] =
            &[$((<clr_com::$interface as clr_com::Interface>::IID, stringify!($interface))),*];
    };
}

interfaces! {
    IUnknown IClassFactory
    ICorProfilerCallback ICorProfilerCallback2 ICorProfilerCallback3 ICorProfilerCallback4
    ICorProfilerCallback5 ICorProfilerCallback6 ICorProfilerCallback7 ICorProfilerCallback8
    ICorProfilerCallback9 ICorProfilerCallback10 ICorProfilerCallback11
    ICorProfilerInfo ICorProfilerInfo2 ICorProfilerInfo3 ICorProfilerInfo4 ICorProfilerInfo5
    ICorProfilerInfo6 ICorProfilerInfo7 ICorProfilerInfo8 ICorProfilerInfo9 ICorProfilerInfo10
    ICorProfilerInfo11 ICorProfilerInfo12 ICorProfilerInfo13 ICorProfilerInfo14 ICorProfilerInfo15
    IMetaDataImport IMetaDataImport2 IMetaDataAssemblyImport IMetaDataEmit IMetaDataEmit2
    IMetaDataAssemblyEmit IMetaDataTables IMetaDataTables2 IMetaDataInfo
}

/// A writer of calls as lines.
#[derive(Debug)]
pub struct Writer<N> {
    names: N,
    ids: Ids,
    /// The ids whose last callback was made.
    gone: HashSet<(IdKind, u64)>,
}

impl<N: Names> Writer<N> {
    /// Makes a writer for a runtime with these names.
    pub fn new(names: N) -> Self {
        Self { names, ids: Ids::default(), gone: HashSet::new() }
    }

    /// Returns the lines of a moment on a thread: its ThreadID if the runtime knows it, and its number in the system.
    pub fn lines(&mut self, thread: ThreadId, os_thread: u64, moment: &Moment) -> Vec<Line> {
        let mut lines = Vec::new();
        self.look(moment);
        let thread = self.thread(thread, os_thread, &mut lines);
        let line = match moment {
            Moment::Begins(call) => {
                let (name, arguments) = (call.method.name.into(), self.arguments(call, &mut lines));
                match call.callee {
                    Callee::Profiler => Line::Enters { thread, callback: name, arguments },
                    Callee::Runtime => Line::Calls { thread, method: name, arguments },
                }
            }
            Moment::Ends(call, result) => {
                let (name, arguments) = (call.method.name.into(), self.arguments(call, &mut lines));
                let result = HResult(*result as u32).to_string();
                match call.callee {
                    Callee::Profiler => Line::Leaves { thread, callback: name, result, arguments },
                    Callee::Runtime => Line::Returns { thread, method: name, result, arguments },
                }
            }
            Moment::Frame(function, answer) => {
                let function = self.id(IdKind::Function, function.0, &mut lines);
                Line::Frame { thread, function, answer: answer.to_string() }
            }
        };
        lines.push(line);
        lines
    }

    /// Forgets an id that another object has now.
    fn look(&mut self, moment: &Moment) {
        let Moment::Begins(call) = moment else { return };
        let Some((argument, Captured::Number(id))) = call.arguments().next() else { return };
        let Some(kind) = IdKind::of_type(argument.declared) else { return };
        if LAST.contains(&call.method.name) {
            self.gone.insert((kind, id));
        } else if FIRST.contains(&call.method.name) && self.gone.remove(&(kind, id)) {
            self.ids.forget(kind, id);
        }
    }

    /// Returns the text of a thread. One of the system has that of its ThreadID as its name; with another ThreadID it is
    /// another thread.
    fn thread(&mut self, thread: ThreadId, os_thread: u64, lines: &mut Vec<Line>) -> String {
        let id = self.id(IdKind::OsThread, os_thread, lines);
        if thread.0 == 0 {
            return id;
        }
        let name = self.id(IdKind::Thread, thread.0, lines);
        match self.ids.set_name(IdKind::OsThread, os_thread, &name) {
            Naming::Known => id,
            Naming::New => {
                lines.push(Line::Name { id: id.clone(), name, module: None });
                id
            }
            Naming::Other => {
                self.ids.forget(IdKind::OsThread, os_thread);
                self.thread(thread, os_thread, lines)
            }
        }
    }

    /// Returns the text of an id. A new name is a line before.
    fn id(&mut self, kind: IdKind, id: u64, lines: &mut Vec<Line>) -> String {
        if id == 0 {
            return "null".to_owned();
        }
        let (text, name) = self.ids.text(kind, id, &mut self.names);
        if let Some(name) = name {
            let module = match kind {
                IdKind::Function | IdKind::Class => self.names.module_of(kind, id),
                _ => None,
            };
            lines.push(Line::Name { id: text.clone(), name, module });
        }
        text
    }

    fn arguments(&mut self, call: &CapturedCall, lines: &mut Vec<Line>) -> Arguments {
        let mut all = Vec::new();
        for (argument, value) in call.arguments() {
            let text = match value {
                Captured::Nothing => continue,
                Captured::Null => "null".to_owned(),
                Captured::Pointer => "pointer".to_owned(),
                Captured::Guid(guid) => interface(&guid),
                Captured::Text(start, end) => quoted(&call.text(start, end)),
                Captured::Number(number) | Captured::Points(number) => {
                    match IdKind::of_type(argument.declared) {
                        Some(kind) => self.id(kind, number, lines),
                        None => number_text(argument.declared, number),
                    }
                }
            };
            all.push((argument.name.to_owned(), text));
        }
        Arguments(all)
    }
}

/// Returns a text in quotes.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// Returns the name of an interface, or its id.
fn interface(iid: &Guid) -> String {
    let named = INTERFACES.iter().find(|(known, _)| known == iid);
    named.map_or_else(|| iid.to_string(), |(_, name)| (*name).to_owned())
}

/// Returns a number as its declared type demands.
fn number_text(declared: &str, number: u64) -> String {
    match declared.rsplit(' ').next().unwrap_or_default() {
        "Token" => format!("{:#010x}", number as u32),
        "Bool" => if number as u32 == 0 { "false" } else { "true" }.to_owned(),
        "HResult" => HResult(number as u32).to_string(),
        "ObjectId" | "GcHandleId" | "ObjectHandleId" | "FrameHandle" | "EltInfo" | "ContextId"
        | "Handle" | "EnumHandle" => if number == 0 { "null" } else { "pointer" }.to_owned(),
        _ => number.to_string(),
    }
}
