//! Fuzz target of libclrsim: any calls of a profiler, in any order, with any arguments.

mod arguments;
mod hresults;
mod judge;
mod metadata;
mod recorded;

use arbitrary::{Result, Unstructured};
use arguments::Source;
use clr_runtime::generation::Generation;
use clr_scenario::Scenario;
use clr_walker::profiling::HResult;
use clrsim::probe::{Called, Event, MethodSignature, Probe, Receiver, Table, Value};
use clrsim::{Role, Session};
use judge::{Expectation, Model};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Texts of our own, and names of texts of the gallery.
const OWN: [&str; 2] = [include_str!("host/names.kdl"), include_str!("host/threads.kdl")];
const GALLERY: [&str; 10] = [
    "checks/c-001-detaching.kdl",
    "checks/c-002-not-started.kdl",
    "checks/c-003-no-profiler.kdl",
    "checks/c-011-gc-thread.kdl",
    "checks/c-012-no-gc.kdl",
    "checks/c-017-suspension-in-progress.kdl",
    "checks/c-018-forbidden.kdl",
    "checks/c-036-writer.kdl",
    "checks/c-159-wild-thread.kdl",
    "clauses/c-018-who-unloads-writes-to-the-code-manager.kdl",
];

/// Maximum number of actions, those in callbacks included.
const ACTIONS: u32 = 96;
/// Maximum number of processes, which take longest.
const PROCESSES: u32 = 6;
/// Maximum depth of calls in callbacks.
const DEPTH: u32 = 3;

/// Opens a text on a runtime, and makes the calls that the bytes say: of all methods of all objects
/// that the runtime gives away, with ids that it has given and others, NULL, and buffers without
/// room; in callbacks, on other threads, after the last reference, and after the session.
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0 | the runtime |
/// | 1 | the text; bit 7: everything is done twice, which must give the same |
/// | then | actions and arguments |
///
/// # Panics
/// If a method writes beyond what a call announces, or at all where a CLR writes nothing; if it
/// returns an HRESULT that it never returns in a CLR; if a reference is counted wrongly, or a mistake
/// of the profiler is not found; or if the same calls have other answers.
pub fn host_calls(data: &[u8]) {
    if data.get(1).is_some_and(|byte| byte & 0x80 != 0) {
        let first = story_of_host_calls(data);
        assert_eq!(story_of_host_calls(data), first, "assertion failed: not the same answers");
    } else if let Err(wrong) = play(data, false) {
        // The same again, with all calls.
        let _ = story_of_host_calls(data);
        panic!("assertion failed: {wrong}, and then not");
    }
}

/// Returns all calls of [`host_calls`] with their answers, a line each, and the report.
///
/// # Panics
/// As [`host_calls`] does.
#[must_use]
pub fn story_of_host_calls(data: &[u8]) -> String {
    play(data, true).unwrap_or_else(|wrong| panic!("assertion failed: {wrong}"))
}

/// Returns all texts, parsed.
fn texts() -> &'static [Scenario] {
    static TEXTS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
        let gallery = GALLERY.map(|name| {
            let bytes = clr_fixtures::get(&format!("gallery/{name}"));
            core::str::from_utf8(bytes.expect("the text exists")).expect("a text is UTF-8")
        });
        let texts = OWN.into_iter().chain(gallery);
        texts.map(|text| Scenario::parse(text).expect("it is a scenario")).collect()
    });
    &TEXTS
}

/// Makes the calls, and tells of them. The error is the first wrong answer.
fn play(data: &[u8], tells: bool) -> core::result::Result<String, String> {
    let Some(([runtime, text], rest)) = data.split_first_chunk() else { return Ok(String::new()) };
    let generation = Generation::ALL[usize::from(*runtime) % Generation::ALL.len()];
    let scenario = texts()[usize::from(*text & 0x7F) % texts().len()].clone();
    // A few texts are not for every runtime.
    let Ok(session) = Session::of(scenario, generation) else { return Ok(String::new()) };
    let play = Play {
        probe: Probe::new(session),
        source: RefCell::new(Source::new(rest)),
        model: RefCell::new(Model::new(generation)),
        actions: Cell::new(0),
        processes: Cell::new(0),
        depth: Cell::new(0),
        starts: Cell::new(false),
        tells,
        story: RefCell::default(),
        wrong: RefCell::default(),
    };
    while play.act().is_ok_and(|goes_on| goes_on) {}
    play.end();
    match play.wrong.into_inner() {
        None => Ok(play.story.into_inner()),
        Some(wrong) => Err(wrong),
    }
}

/// The calls of one input.
struct Play<'d> {
    probe: Probe,
    source: RefCell<Source<'d>>,
    model: RefCell<Model>,
    actions: Cell<u32>,
    /// Number of processes that were begun or executed.
    processes: Cell<u32>,
    depth: Cell<u32>,
    /// In `Initialize`, and not in a callback there.
    starts: Cell<bool>,
    tells: bool,
    story: RefCell<String>,
    wrong: RefCell<Option<String>>,
}

/// Arguments in which methods write addresses.
const ADDRESSES: [&str; 9] = [
    "object",
    "enumerator",
    "out",
    "import",
    "signature",
    "data",
    "public_key",
    "hash",
    "metadata",
];

impl Play<'_> {
    fn draw<T>(&self, draw: impl FnOnce(&mut Unstructured<'_>) -> Result<T>) -> Result<T> {
        draw(&mut self.source.borrow_mut().bytes)
    }

    fn tell(&self, words: impl FnOnce() -> String) {
        if !self.tells {
            return;
        }
        let words = words();
        let mut story = self.story.borrow_mut();
        let depth = 2 * self.depth.get() as usize;
        let _ = writeln!(story, "{:depth$}{words}", "");
    }

    /// Notes the first thing that is wrong. A panic in a callback would end the process at once.
    fn fail(&self, wrong: &str) {
        let mut first = self.wrong.borrow_mut();
        if first.is_none() {
            *first = Some(format!("{wrong}\n{}", self.story.borrow()));
        }
    }

    /// Performs the next action. Returns false after the last one.
    fn act(&self) -> Result<bool> {
        if self.wrong.borrow().is_some()
            || self.actions.get() >= ACTIONS
            || self.source.borrow().bytes.is_empty()
        {
            return Ok(false);
        }
        self.actions.set(self.actions.get() + 1);
        let which: u8 = self.draw(|bytes| bytes.int_in_range(0..=0xFF))?;
        if matches!(which, 0..=3 | 11..=25) {
            if self.processes.get() == PROCESSES {
                return Ok(true);
            }
            self.processes.set(self.processes.get() + 1);
        }
        match which {
            0..=3 => {
                let stop = self.draw(|bytes| bytes.int_in_range(0..=3_usize))?;
                let reached = self.probe.with_session(|session| session.run_to_stop(stop).is_ok());
                if reached == Some(true) {
                    self.model.borrow_mut().begin_again();
                }
                self.tell(|| format!("run to stop {stop}: {reached:?}"));
            }
            4..=10 => {
                let roles = [Role::Native, Role::Managed, Role::Stopped];
                let role = self.draw(|bytes| bytes.choose(&roles).copied())?;
                self.probe.with_session(|session| session.act_as(role));
                if let Some(Some(thread)) = self.probe.with_session(Session::stopped_thread) {
                    self.source.borrow_mut().learn(thread.0);
                }
                self.tell(|| format!("act as {role:?}"));
            }
            11..=17 => {
                let result = self.probe.initialize(self);
                self.tell(|| format!("Initialize: {result:?}"));
            }
            18..=25 => {
                let ended = self.probe.run(self);
                self.tell(|| format!("run: {ended}"));
            }
            26 => {
                self.end();
                self.tell(|| "close".to_owned());
            }
            27..=29 => {
                self.probe.set_elsewhere(true);
                let called = self.call();
                self.probe.set_elsewhere(false);
                called?;
            }
            30..=37 => self.ask_for_metadata()?,
            _ => self.call()?,
        }
        Ok(true)
    }

    /// Makes a call.
    fn call(&self) -> Result<()> {
        let tables = self.probe.tables();
        let starts = self.starts.get();
        let (pointer, slot) = self.draw(|bytes| {
            // What profilers do in Initialize.
            if starts && bytes.ratio(1_u8, 2_u8)? {
                return Ok((0, *bytes.choose(judge::starting_slots())?));
            }
            // The runtime's object, or one of the others.
            let last = tables.len() - 1;
            let others = last > 0 && bytes.ratio(1_u8, 2_u8)?;
            let pointer = if others { 1 + bytes.choose_index(last)? } else { 0 };
            // Methods that are simulated are called more often.
            let slots = judge::slots(tables[pointer], bytes.ratio(7_u8, 8_u8)?);
            Ok((pointer, *bytes.choose(slots)?))
        })?;
        self.call_slot(pointer, tables[pointer], slot)
    }

    fn call_slot(&self, pointer: usize, table: Table, slot: u32) -> Result<()> {
        let Some(method) = table.method(slot) else { return Ok(()) };
        let values = self.source.borrow_mut().values(&method)?;
        self.call_with(pointer, (table, slot, &method), &values);
        Ok(())
    }

    /// Asks for an interface of the metadata of a module.
    fn ask_for_metadata(&self) -> Result<()> {
        let room = || Value::Block(Vec::new());
        let modules = self.call_named(0, "EnumModules", &[room()]);
        let Some(modules) = modules.and_then(|called| called.given) else { return Ok(()) };
        let next = self.call_named(modules, "Next", &[Value::Number(1), room(), room()]);
        let module = next.and_then(|called| {
            let written = called.written.into_iter().find(|written| written.argument == "to")?;
            Some(u64::from_le_bytes(written.bytes.first_chunk().copied()?))
        });
        let iid = self.source.borrow_mut().iid()?;
        let module = Value::Number(module.unwrap_or_default());
        self.call_named(0, "GetModuleMetaData", &[module, Value::Number(0), iid, room()]);
        Ok(())
    }

    fn call_named(&self, pointer: usize, name: &str, values: &[Value]) -> Option<Called> {
        let table = *self.probe.tables().get(pointer)?;
        let slot = (0..table.slots()).find(|slot| table.method(*slot).unwrap().name == name)?;
        self.call_with(pointer, (table, slot, &table.method(slot)?), values)
    }

    fn call_with(
        &self,
        pointer: usize,
        (table, slot, method): (Table, u32, &MethodSignature),
        values: &[Value],
    ) -> Option<Called> {
        let elsewhere = self.probe.is_elsewhere();
        let object = self.probe.number_of_object(pointer).unwrap_or_default();
        let expected = self.model.borrow().expect(object, table, (slot, method), elsewhere);
        let called = self.probe.call(pointer, slot, values, self)?;
        self.tell(|| format!("{}({values:?}) on {pointer}: {:#x}", called.method, called.result));
        self.check(table, &called, &expected);
        Some(called)
    }

    fn check(&self, table: Table, called: &Called, expected: &Expectation) {
        let object = |pointer| self.probe.number_of_object(pointer);
        let object_of = (object(called.pointer).unwrap_or_default(), called.given.and_then(object));
        if let Err(wrong) = self.model.borrow_mut().judge(table, called, object_of, expected) {
            self.fail(&format!("{}: {wrong}\n{called:?}", called.method));
        }
        for written in &called.written {
            let is_address = ADDRESSES.contains(&written.argument);
            // Addresses are not the same next time, except handles of enumerations.
            if !is_address {
                let bytes: Vec<_> = written.bytes.iter().take(0x20).collect();
                self.tell(|| format!("  {}: {bytes:02x?}", written.argument));
            }
            if !is_address || called.method.starts_with("Enum") && called.given.is_none() {
                self.source.borrow_mut().learn_bytes(&written.bytes);
            }
        }
    }

    /// Judges the report, and closes the session.
    fn end(&self) {
        let report = self.probe.with_session(Session::final_report);
        let Some(report) = report else { return };
        if let Err(wrong) = self.model.borrow().judge_report(&report) {
            self.fail(&format!("{wrong}\n{report}"));
        }
        self.tell(|| report.to_string());
        self.probe.close();
        self.model.borrow_mut().close();
    }
}

impl Receiver for Play<'_> {
    fn receive(&self, _: &Probe, event: &mut Event<'_>) -> HResult {
        match event {
            Event::Frame(frame) => {
                self.tell(|| format!("frame {:#x} at {:#x}", frame.function, frame.ip));
                let mut source = self.source.borrow_mut();
                for number in [frame.function, frame.ip, frame.frame_info] {
                    source.learn(number);
                }
                source.keep_context(frame.context);
                if source.bytes.ratio(1_u8, 8_u8).unwrap_or_default() {
                    frame.context.fill(0x11);
                }
            }
            Event::Callback(name, id) => {
                self.tell(|| format!("callback {name} {id:#x}"));
                self.source.borrow_mut().learn(*id);
            }
            Event::Hook(hook) => {
                self.tell(|| format!("hook {} {:#x} {:#x}", hook.name, hook.client, hook.info));
                let mut source = self.source.borrow_mut();
                source.learn(hook.info);
                source.learn(hook.client);
            }
        }
        let (depth, before) = (self.depth.get(), self.probe.is_elsewhere());
        self.depth.set(depth + 1);
        let started = self.starts.replace(matches!(event, Event::Callback("Initialize", _)));
        self.probe.set_elsewhere(false);
        if depth < DEPTH {
            while self.draw(|bytes| bytes.ratio(1_u8, 3_u8)).unwrap_or_default()
                && self.act().unwrap_or_default()
            {}
        }
        self.depth.set(depth);
        self.starts.set(started);
        self.probe.set_elsewhere(before);
        let fails = self.draw(|bytes| bytes.ratio(1_u8, 16_u8)).unwrap_or_default();
        if fails { HResult::FAIL } else { HResult::OK }
    }
}
