//! A hang as a scenario: threads and locks, in which a search finds the same circle again.

use crate::error::ImportError;
use crate::note::Note;
use clr_dump::StoppedProcess;
use clr_inspect::{Diagnosis, Edge, Evidence, Runtime, StackWalker, is_in_call};
use clr_runtime::generation::Generation;
use clr_scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Seeds of the search that are tried: an interleaving may end in a part of the circle before.
const SEEDS: u32 = 32;

/// A hang as a scenario.
#[derive(Clone, Debug)]
pub struct HangScenario {
    /// The scenario, whose search ends in the circle.
    pub scenario: Scenario,
    /// Facts that the dump lacks.
    pub notes: Vec<Note>,
}

/// A thread of the circle.
#[derive(Clone, Debug)]
struct Member {
    id: u32,
    name: String,
    /// Why the thread before waits for this one.
    holds: Evidence,
    /// What this one waits for.
    wants: Edge,
    /// The thread runs managed code: the runtime stops it, or waits for it.
    is_program: bool,
    /// The thread has called the runtime, which has called native code.
    is_in_call: bool,
}

impl HangScenario {
    /// Makes a scenario of the first circle of a diagnosis, for the simulated runtime of the process. `walker` walks the stacks of
    /// the same process.
    ///
    /// # Errors
    /// [`ImportError::NoCircle`] if there is no circle; [`ImportError::Monitors`] if it is one of monitors; [`ImportError::Circle`] if no
    /// scenario can say how its threads wait, or if no search ends in it.
    pub fn new<P: StoppedProcess + ?Sized>(
        process: &P,
        runtime: Option<&Runtime>,
        found: &Diagnosis,
        walker: &mut StackWalker<'_, '_, P>,
        on: Generation,
    ) -> Result<Self, ImportError> {
        let circle = found.circles.first().ok_or(ImportError::NoCircle)?;
        let is_monitor = |edge: &Edge| matches!(edge.evidence, Evidence::Monitor { .. });
        if circle.edges.iter().any(is_monitor) {
            return Err(ImportError::Monitors);
        }
        let members = members(process, runtime, &circle.edges, walker);
        let program = Program::new(process, &members)?;
        let mut notes = vec![Note::Callbacks];
        notes.extend(circle.edges.iter().any(|edge| edge.doubt.is_some()).then_some(Note::Doubt));
        notes.extend((found.circles.len() > 1).then_some(Note::OtherCircles));
        for seed in 0..SEEDS {
            let text = program.text(on, seed, None);
            let scenario = Scenario::parse(&text).map_err(|_| ImportError::Circle)?;
            let explored = scenario.explore_on(on).map_err(ImportError::SetUp)?;
            let Some(ended) = explored.first().filter(|it| it.is_right()) else { continue };
            let text = program.text(on, seed, ended.hazard.map(|hazard| hazard.to_string()));
            let scenario = Scenario::parse(&text).map_err(|_| ImportError::Circle)?;
            return Ok(Self { scenario, notes });
        }
        Err(ImportError::Circle)
    }

    /// Returns the text of the scenario. `source` says how it was made.
    pub fn text(&self, source: &str) -> String {
        let mut text = format!("// {source}\n");
        for note in &self.notes {
            let _ = writeln!(text, "// Not in the source: {note}.");
        }
        text + &self.scenario.to_string()
    }
}

/// Returns the threads of a circle.
fn members<P: StoppedProcess + ?Sized>(
    process: &P,
    runtime: Option<&Runtime>,
    circle: &[Edge],
    walker: &mut StackWalker<'_, '_, P>,
) -> Vec<Member> {
    let list = runtime.and_then(|runtime| runtime.threads(process).ok());
    let managed = list.map(|list| list.threads).unwrap_or_default();
    let mut natives = 0;
    let before = circle.iter().cycle().skip(circle.len().saturating_sub(1));
    let mut members = Vec::new();
    for (wants, before) in circle.iter().zip(before) {
        let id = managed.iter().find(|thread| thread.os_id == wants.from).map(|thread| thread.id);
        let name = id.map_or_else(
            || {
                natives += 1;
                format!("native-{natives}")
            },
            |id| format!("thread-{id}"),
        );
        let holds = before.evidence;
        let is_stopped = wants.evidence.is_of_suspension();
        let is_collecting = id.is_some()
            && (holds.is_of_suspension() || matches!(holds, Evidence::ThreadStoreLock { .. }))
            && matches!(wants.evidence, Evidence::CooperativeMode { .. });
        members.push(Member {
            id: wants.from,
            name,
            holds,
            wants: *wants,
            is_program: is_stopped
                || is_collecting
                || matches!(holds, Evidence::CooperativeMode { .. }),
            is_in_call: process
                .thread(wants.from)
                .is_some_and(|thread| is_in_call(process, runtime, walker, thread)),
        });
    }
    members
}

/// The parts of a scenario's text.
#[derive(Debug, Default)]
struct Program {
    functions: String,
    threads: String,
    locks: BTreeSet<String>,
    callbacks: BTreeMap<&'static str, String>,
    scripts: String,
    waits: String,
}

impl Program {
    fn new<P: StoppedProcess + ?Sized>(
        process: &P,
        members: &[Member],
    ) -> Result<Self, ImportError> {
        let mut locks = BTreeMap::new();
        for member in members {
            if let Evidence::Mutex { address } = member.wants.evidence {
                let module = process.module_at(address);
                let new = format!("lock {}", locks.len() + 1);
                let name = module.map_or(new, |module| {
                    format!("{}+{:#x}", module.name(), address - module.range.start)
                });
                locks.entry(address).or_insert(name);
            }
        }
        let mut program = Self { locks: locks.values().cloned().collect(), ..Self::default() };
        let names: BTreeMap<u32, &str> =
            members.iter().map(|member| (member.id, member.name.as_str())).collect();
        let lock = |evidence: Evidence| match evidence {
            Evidence::Mutex { address } => locks.get(&address).cloned().unwrap_or_default(),
            _ => String::new(),
        };
        for member in members {
            let to = names.get(&member.wants.to).copied().ok_or(ImportError::Circle)?;
            let (held, wanted) = (lock(member.holds), lock(member.wants.evidence));
            if member.is_program {
                program.add_thread(member, &held, &wanted, to)?;
            } else {
                let target = members.iter().find(|other| other.name == to && other.is_program);
                let target =
                    target.filter(|_| member.is_in_call && member.holds.is_of_suspension());
                let walked = target.map(|target| target.name.as_str());
                program.add_script(member, &held, &wanted, to, walked)?;
            }
            let _ = write!(program.waits, "waits {:?} for={to:?}", member.name);
            let _ = match member.wants.evidence {
                Evidence::Mutex { .. } => {
                    writeln!(program.waits, " why=\"lock\" lock={wanted:?}")
                }
                Evidence::End { .. } => writeln!(program.waits, " why=\"join\""),
                evidence if evidence.is_of_suspension() => {
                    writeln!(program.waits, " why=\"runtime-suspended\"")
                }
                _ => writeln!(program.waits),
            };
        }
        Ok(program)
    }

    /// Adds a thread of the program, with what the profiler does on it.
    fn add_thread(
        &mut self,
        member: &Member,
        held: &str,
        wanted: &str,
        to: &str,
    ) -> Result<(), ImportError> {
        let (body, callbacks) = match (member.holds, member.wants.evidence) {
            // A lock that is held while the thread becomes cooperative: from one callback to another.
            (Evidence::Mutex { .. }, evidence) if evidence.is_of_suspension() => (
                "load-assembly",
                vec![
                    ("AssemblyLoadStarted", format!("acquire {held:?}")),
                    ("AssemblyLoadFinished", format!("release {held:?}")),
                ],
            ),
            // A callback in cooperative mode.
            (Evidence::CooperativeMode { .. }, Evidence::Mutex { .. }) => {
                ("new", vec![("ObjectAllocated", format!("lock {wanted:?}"))])
            }
            (Evidence::CooperativeMode { .. }, Evidence::End { .. }) => {
                ("new", vec![("ObjectAllocated", format!("join {to:?}"))])
            }
            (Evidence::End { .. }, evidence) if evidence.is_of_suspension() => {
                ("work 3", Vec::new())
            }
            (_, Evidence::CooperativeMode { .. }) => ("collect", Vec::new()),
            _ => return Err(ImportError::Circle),
        };
        let function = format!("App.{}", member.name.replace('-', "_"));
        let _ =
            writeln!(self.functions, "function {function:?} kind=\"jit\" {{ body {{ {body} }} }}");
        let _ = writeln!(self.threads, "thread {:?} start={function:?}", member.name);
        for (callback, action) in callbacks {
            // The callbacks of all threads are the same.
            if self.callbacks.insert(callback, action).is_some() {
                return Err(ImportError::Circle);
            }
        }
        Ok(())
    }

    /// Adds a thread of the profiler. `walked` is the thread in whose walk it waits.
    fn add_script(
        &mut self,
        member: &Member,
        held: &str,
        wanted: &str,
        to: &str,
        walked: Option<&str>,
    ) -> Result<(), ImportError> {
        let suspends = member.holds.is_of_suspension()
            || matches!(member.holds, Evidence::ThreadStoreLock { .. });
        let mut waits = match member.wants.evidence {
            Evidence::Mutex { .. } => format!("lock {wanted:?}"),
            Evidence::End { .. } => format!("join {to:?}"),
            Evidence::CooperativeMode { .. } if suspends => String::new(),
            Evidence::CooperativeMode { .. } | Evidence::ThreadStoreLock { .. } => {
                "call \"ForceGC\"".to_owned()
            }
            _ => return Err(ImportError::Circle),
        };
        if let Some(walked) = walked {
            waits = format!("snapshot {walked:?} {{ {waits} }}");
        }
        let script = match member.holds {
            Evidence::Mutex { .. } => format!("lock {held:?} {{ {waits} }}"),
            Evidence::End { .. } => waits,
            _ if suspends => format!("suspend-runtime {{ {waits} }}"),
            _ => return Err(ImportError::Circle),
        };
        let _ = writeln!(self.scripts, "thread {:?} {{ prepare; {script} }}", member.name);
        Ok(())
    }

    /// Returns the text, with a search from a seed.
    fn text(&self, on: Generation, seed: u32, hazard: Option<String>) -> String {
        let mut text = "shows \"The hang of a real process.\"\ntag \"imported\"\n".to_owned();
        let functions = if self.functions.is_empty() {
            "function \"App.Main\" kind=\"jit\"\n"
        } else {
            &self.functions
        };
        text.push_str(functions);
        text.push_str(&self.threads);
        text.push_str("profiler {\n");
        for lock in &self.locks {
            let _ = writeln!(text, "lock {lock:?}");
        }
        for (callback, action) in &self.callbacks {
            let _ = writeln!(text, "on {callback:?} {{ {action} }}");
        }
        let _ = writeln!(text, "{}}}", self.scripts);
        let _ = writeln!(text, "explore schedules=1000 seed={seed} {{");
        let _ = writeln!(text, "expect on=\"{}\" {{\ndeadlock\n{}", on.name(), self.waits);
        if let Some(hazard) = hazard {
            let _ = writeln!(text, "hazard {hazard:?}");
        }
        text + "}\n}\n"
    }
}
