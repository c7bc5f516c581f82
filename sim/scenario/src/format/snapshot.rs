//! Printing of snapshots and their expectations.

use super::{Line, Printer, quoted, size};
use crate::keywords::Keyword as _;
use crate::parse::OWN_FLAGS;
use crate::snapshot::{
    ExpectedFlags, ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, Provenance, SeedAddress,
    SeedSource, SnapshotCall, SnapshotCaller, SnapshotSeed, SnapshotThread, Stale,
};
use clr_runtime::clause::Clause;
use clr_runtime::profiling::HResult;
use clr_walker::profiling::SnapshotFlags;
use clr_walker::registers::Gpr;

fn source(seed: &SnapshotSeed) -> &str {
    match &seed.from {
        SeedSource::Function(function) => function,
        SeedSource::Leaf => "leaf",
        SeedSource::TopManaged => "top-managed",
        SeedSource::Stale => "stale",
        SeedSource::Bytes(_) => "bytes",
    }
}

pub(super) fn hresult(result: HResult) -> String {
    result.name().map_or_else(|| format!("{:#x}", result.0), quoted)
}

impl Line {
    fn context_flags(self, flags: Option<ExpectedFlags>) -> Self {
        match flags {
            None => self,
            Some(ExpectedFlags::Own) => self.property("context-flags", quoted(OWN_FLAGS)),
            Some(ExpectedFlags::Value(flags)) => self.address("context-flags", flags.into()),
        }
    }

    pub(super) fn outcome(self, outcome: ExpectedOutcome) -> Self {
        match outcome {
            ExpectedOutcome::Returned(result) => self.arg(hresult(result)),
            ExpectedOutcome::Killed { code } => {
                let line = self.text("killed");
                code.map(hresult).iter().fold(line, |line, code| line.property("code", code))
            }
            ExpectedOutcome::AccessViolation { at } => {
                let line = self.text("access-violation");
                at.iter().fold(line, |line, at| line.address("at", *at))
            }
            ExpectedOutcome::Blocked => self.text("blocked"),
            ExpectedOutcome::Endless => self.text("endless"),
        }
    }

    pub(super) fn from(self, from: Provenance) -> Self {
        match from {
            Provenance::Rules => self,
            Provenance::Source => self.property("from", quoted("source")),
            Provenance::Reported => self.property("from", quoted("reported")),
            Provenance::Documentation => self.property("from", quoted("documentation")),
            Provenance::Observed(count) => {
                let line = self.property("from", quoted("observed"));
                count.iter().fold(line, |line, count| line.property("count", count))
            }
        }
    }

    fn values(self, registers: &[(Gpr, u64)]) -> Self {
        let values = registers.iter();
        values.fold(self, |line, (register, value)| line.address(register.name(), *value))
    }
}

impl Printer<'_> {
    fn by(&self, line: Line, by: SnapshotCaller) -> Line {
        match by {
            SnapshotCaller::Own => line,
            by => line.property("by", self.caller_name(by)),
        }
    }

    /// Returns the value of `by=` for a calling thread.
    pub(super) fn caller_name(&self, by: SnapshotCaller) -> String {
        match by {
            SnapshotCaller::Own => quoted("self"),
            SnapshotCaller::NativeWalker => quoted("native-walker"),
            SnapshotCaller::ManagedWalker => quoted("managed-walker"),
            SnapshotCaller::Thread(thread) => self.thread_name(thread),
        }
    }

    fn of(&self, line: Line, thread: SnapshotThread) -> Line {
        match thread {
            SnapshotThread::Own => line,
            SnapshotThread::Null => line.property("thread", quoted("null")),
            SnapshotThread::Value(value) => line.address("thread", value),
            SnapshotThread::Thread(thread) => line.property("thread", self.thread_name(thread)),
        }
    }

    /// Returns the name of a thread in quotes; an empty name if the thread does not exist.
    fn thread_name(&self, thread: u32) -> String {
        let thread = self.scenario.threads.get(thread as usize);
        quoted(thread.map_or("", |thread| &thread.name))
    }

    pub(super) fn snapshot(&mut self, call: &SnapshotCall) {
        let mut line = Line::new("snapshot");
        if let Some(title) = &call.title {
            line = line.text(title);
        }
        line = self.of(self.by(line, call.by), call.thread);
        if let Some(kind) = call.in_callback {
            line = line.property("in-callback", quoted(kind.word()));
        }
        if call.flags != SnapshotFlags::REGISTER_CONTEXT {
            line = line.property("flags", size(call.flags.0.into()));
        }
        let changed = call.seed.as_ref().filter(|seed| seed.is_changed() || has_fill(seed));
        if let Some(seed) = call.seed.as_ref().filter(|_| changed.is_none()) {
            line = line.property("seed", quoted(source(seed)));
        }
        if call.null_callback {
            line = line.property("callback", quoted("none"));
        }
        if let Some(last) = call.stop_at {
            line = line.property("stop-at", last.callback);
            if last.returns != HResult::FALSE {
                line = line.property("returns", hresult(last.returns));
            }
        }
        if call.suspended {
            line = line.property("suspended", "#true");
        }
        self.block(&line, |printer| {
            if let Some(seed) = changed {
                printer.seed(seed);
            }
            for nested in &call.nested {
                let line = printer.by(Line::new("nested"), nested.by);
                let line = printer.of(line, nested.thread);
                printer.line(&line);
            }
            for expected in &call.expect {
                printer.expected(expected);
            }
        });
    }

    fn seed(&mut self, seed: &SnapshotSeed) {
        let line = Line::new("seed").text(source(seed));
        self.block(&line, |printer| {
            let hex = |name: &str, value: u64| Line::new(name).arg(format_args!("{value:#x}"));
            match &seed.rip {
                None => {}
                Some(SeedAddress::Label(label)) => printer.line(&Line::new("rip").text(label)),
                Some(SeedAddress::Address(address)) => printer.line(&hex("rip", *address)),
            }
            for (register, value) in &seed.registers {
                printer.line(&hex(register.name(), *value));
            }
            if let Some(flags) = seed.flags {
                printer.line(&hex("flags", flags.into()));
            }
            if seed.features != 0 {
                printer.line(&hex("features", seed.features));
            }
            if let SeedSource::Bytes(byte @ 1..) = seed.from {
                printer.line(&hex("fill", byte.into()));
            }
            if let Some(cut) = seed.cut {
                printer.line(&hex("cut", cut.into()));
            }
        });
    }

    pub(super) fn expected(&mut self, expected: &ExpectedSnapshot) {
        let mut line = Line::new("expect").on(expected.on).from(expected.from);
        if expected.others {
            line = line.property("others", "#true");
        }
        line = line.context_flags(expected.context_flags);
        self.block(&line, |printer| {
            for frame in &expected.frames {
                printer.frame_report(frame);
            }
            for nested in &expected.nested {
                printer.line(&Line::new("nested").outcome(*nested));
            }
            printer.line(&Line::new("result").outcome(expected.result));
            printer.clauses(&expected.clauses);
        });
    }

    pub(super) fn clauses(&mut self, clauses: &[Clause]) {
        if !clauses.is_empty() {
            let line = Line::new("clause");
            self.line(&clauses.iter().fold(line, |line, clause| line.text(&clause.to_string())));
        }
    }

    fn frame_report(&mut self, frame_report: &ExpectedFrameReport) {
        let mut line = Line::new(if frame_report.marker { "marker" } else { "frame" });
        if let Some(label) = &frame_report.label {
            line = line.text(label);
        }
        line = line.values(&frame_report.registers);
        line = match &frame_report.stale {
            Stale::None => line,
            Stale::All => line.property("stale", "#true"),
            Stale::Only(registers) => {
                let names: Vec<_> = registers.iter().map(|register| register.name()).collect();
                line.property("stale", quoted(&names.join(" ")))
            }
        };
        line = line.context_flags(frame_report.context_flags);
        self.line(&line);
    }
}

/// Returns true if the seed consists of bytes other than 0.
const fn has_fill(seed: &SnapshotSeed) -> bool {
    matches!(seed.from, SeedSource::Bytes(1..))
}
