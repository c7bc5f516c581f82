//! Callbacks of snapshots in words.

use crate::render::unwind_data::Hex;
use clr_scenario::{
    ExpectedFrameReport, FoundFrameReport, Scenario, SeedSource, SnapshotAt, SnapshotCaller,
    SnapshotResult, SnapshotThread,
};
use clr_unwind::Gpr;
use clr_walker::profiling::SnapshotFlags;
use serde::Serialize;
use std::fmt::Write as _;

/// An expected or actual callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Callback {
    /// True if the FunctionID is 0.
    pub(crate) marker: bool,
    /// Place of the ip: a function and the offset in bytes from its start. An expectation may lack
    /// parts.
    pub(crate) place: Option<String>,
    /// Registers of the context: those with an expected value, and rsp of an actual callback.
    pub(crate) registers: Vec<Register>,
}

/// A register and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Register {
    pub(crate) register: &'static str,
    pub(crate) value: Hex,
}

impl Register {
    pub(crate) fn new(register: Gpr, value: u64) -> Self {
        Self { register: register.name(), value: value.into() }
    }
}

impl Callback {
    /// Returns an expected callback.
    pub(crate) fn expected(found: &ExpectedFrameReport) -> Self {
        let registers = found.registers.iter();
        Self {
            marker: found.marker,
            place: found.label.clone(),
            registers: registers
                .map(|(register, value)| Register::new(*register, *value))
                .collect(),
        }
    }

    /// Returns an actual callback, with rsp and the registers that have an expected value.
    pub(crate) fn found(found: &FoundFrameReport, expected: Option<&ExpectedFrameReport>) -> Self {
        let given = expected.map_or(&[][..], |expected| &expected.registers);
        let mut wanted: Vec<_> = given.iter().map(|(register, _)| *register).collect();
        if !wanted.contains(&Gpr::Rsp) {
            wanted.push(Gpr::Rsp);
        }
        let value = |context: &clr_runtime::Context| {
            let of = |register: Gpr| Register::new(register, context.registers.get(register));
            wanted.iter().copied().map(of).collect()
        };
        Self {
            marker: found.frame_report.function.is_none(),
            place: Some(found.frame_report.label.clone()),
            registers: found.frame_report.context.as_ref().map_or_else(Vec::new, value),
        }
    }

    /// Returns the function of the ip.
    pub(crate) fn function(&self) -> &str {
        let place = self.place.as_deref().unwrap_or_default();
        place.rsplit_once("+0x").map_or(place, |(function, _)| function)
    }

    /// Returns the common part of two callbacks of the same function.
    pub(crate) fn without_numbers(&self, other: &Self) -> Self {
        let place = if self.place == other.place { self.place.clone() } else { None };
        let registers = self.registers.iter().filter(|own| other.registers.contains(own));
        Self {
            marker: self.marker,
            place: place.or_else(|| Some(self.function().to_owned())),
            registers: registers.cloned().collect(),
        }
    }

    /// Returns the callback in one line.
    pub(crate) fn text(&self) -> String {
        let place = self.place.as_deref().unwrap_or(if self.marker { "" } else { "any function" });
        let mut text = match (self.marker, place) {
            (true, "") => "marker".to_owned(),
            (true, place) => format!("marker: {place}"),
            (false, place) => place.to_owned(),
        };
        for Register { register, value } in &self.registers {
            let _ = write!(text, ", {register} {value}");
        }
        text
    }
}

/// Returns all actual callbacks.
pub(crate) fn found(found: &SnapshotResult) -> Vec<Callback> {
    found.frame_reports.iter().map(|found| Callback::found(found, None)).collect()
}

/// Returns a call in a few words: caller, target thread and seed.
pub(crate) fn call(scenario: &Scenario, at: SnapshotAt<'_>) -> String {
    let call = at.call;
    let name = |thread: u32| {
        let thread = scenario.threads.get(thread as usize);
        thread.map_or("?", |thread| thread.name.as_str()).to_owned()
    };
    let mut text = match call.by {
        SnapshotCaller::Own => "by the thread itself".to_owned(),
        SnapshotCaller::NativeWalker => "by a native thread".to_owned(),
        SnapshotCaller::ManagedWalker => "by a managed thread".to_owned(),
        SnapshotCaller::Thread(thread) => format!("by thread {}", name(thread)),
    };
    if let Some(kind) = call.in_callback {
        let _ = write!(text, " in {}", kind.name());
    }
    match call.thread {
        SnapshotThread::Own => {}
        SnapshotThread::Null => text += ", thread 0",
        SnapshotThread::Value(value) => {
            let _ = write!(text, ", thread {value:#x}");
        }
        SnapshotThread::Thread(thread) => {
            let _ = write!(text, ", of thread {}", name(thread));
        }
    }
    match &call.seed {
        None => text += ", no seed",
        Some(seed) => {
            let of = match &seed.from {
                SeedSource::Function(function) => format!("of {function}"),
                SeedSource::Leaf => "of the leaf".to_owned(),
                SeedSource::TopManaged => "of the top managed frame".to_owned(),
                SeedSource::Stale => "of an earlier stop".to_owned(),
                SeedSource::Bytes(_) => "of bytes".to_owned(),
            };
            let changed = if seed.is_changed() { ", changed" } else { "" };
            let _ = write!(text, ", seed {of}{changed}");
        }
    }
    if call.flags != SnapshotFlags::REGISTER_CONTEXT {
        let _ = write!(text, ", infoFlags {:#x}", call.flags.0);
    }
    if call.null_callback {
        text += ", no callback";
    }
    if let Some(last) = call.stop_at {
        let _ = write!(text, ", stopped in callback {}", last.callback);
    }
    if call.suspended {
        text += ", after SuspendRuntime";
    }
    text
}
