//! Printing of profilers and of searches of histories.

use super::snapshot::hresult;
use super::{Line, Printer, quoted, size};
use crate::Scenario;
use crate::histories::{
    Action, DEPTH, ExpectedEnd, ExpectedHistory, Exploration, ProfilerScript, SCHEDULES, ThreadName,
};
use crate::keywords::Keyword as _;
use clr_explore::{LockName, Strategy};

/// Prints the `expect` node of a search of histories as it appears at a depth of nested blocks,
/// without the indentation of its first line and the line break after its last one.
pub(crate) fn expected_history_text(
    scenario: &Scenario,
    expected: &ExpectedHistory,
    depth: usize,
) -> String {
    let mut printer = Printer { scenario, out: String::new(), depth };
    printer.expected_history(expected);
    printer.out.trim().to_owned()
}

impl Printer<'_> {
    fn actor(&self, who: ThreadName) -> String {
        quoted(self.scenario.name_of(who))
    }

    fn lock(&self, lock: u32) -> String {
        quoted(self.scenario.name_of_lock(LockName::Profiler(lock)))
    }

    fn event(&self, event: u32) -> String {
        let profiler = self.scenario.profiler.as_ref();
        let name = profiler.and_then(|profiler| profiler.events.get(event as usize));
        quoted(name.map_or("", String::as_str))
    }

    pub(super) fn profiler(&mut self, profiler: &ProfilerScript) {
        self.whole_block(&Line::new("profiler"), |printer| {
            for (node, names) in [("lock", &profiler.locks), ("event", &profiler.events)] {
                if !names.is_empty() {
                    let line = names.iter().fold(Line::new(node), |line, name| line.text(name));
                    printer.line(&line);
                }
            }
            for thread in &profiler.threads {
                let mut line = Line::new("thread").text(&thread.name);
                if thread.managed {
                    line = line.property("managed", "#true");
                }
                printer.acts(&line, &thread.actions);
            }
            for (kind, actions) in &profiler.callbacks {
                printer.whole_acts(&Line::new("on").text(kind.word()), actions);
            }
            if let Some(actions) = &profiler.hook {
                printer.whole_acts(&Line::new("on-hook"), actions);
            }
            if let Some(actions) = &profiler.signal {
                printer.whole_acts(&Line::new("on-signal"), actions);
            }
            if let Some(actions) = &profiler.crash {
                printer.whole_acts(&Line::new("on-crash"), actions);
            }
        });
    }

    fn acts(&mut self, line: &Line, actions: &[Action]) {
        self.block(line, |printer| actions.iter().for_each(|action| printer.action(action)));
    }

    fn whole_acts(&mut self, line: &Line, actions: &[Action]) {
        self.whole_block(line, |printer| actions.iter().for_each(|action| printer.action(action)));
    }

    fn otherwise(&mut self, actions: &[Action]) {
        if !actions.is_empty() {
            self.acts(&Line::new("else"), actions);
        }
    }

    fn action(&mut self, action: &Action) {
        let new = Line::new;
        let returns = |line: Line, returns: &Option<_>| {
            returns.map(hresult).iter().fold(line, |line, it| line.property("returns", it))
        };
        let line = match action {
            Action::Suspend(of) => new("suspend").arg(self.actor(*of)),
            Action::Suspended(of, actions) => {
                return self.whole_acts(&new("suspend").arg(self.actor(*of)), actions);
            }
            Action::Resume(of) => new("resume").arg(self.actor(*of)),
            Action::Context(of) => new("context").arg(self.actor(*of)),
            Action::SetContext(of) => new("set-context").arg(self.actor(*of)),
            Action::Snapshot { of, seed, returns: wanted, care, callback } => {
                let line = new("snapshot").arg(self.actor(*of)).term_unless_default("seed", *seed);
                let flags =
                    [("again", care.again), ("listed", care.listed), ("checked", care.checked)];
                let flags = flags.into_iter().filter(|(_, set)| *set);
                let line = flags.fold(line, |line, (name, _)| line.property(name, "#true"));
                return self.acts(&returns(line, wanted), callback);
            }
            Action::Walk { of, policy, root, checked } => {
                let policy = quoted(policy.word());
                let line = new("walk").arg(self.actor(*of)).property("policy", policy);
                let line = root.iter().fold(line, |line, root| line.property("root", size(*root)));
                if *checked { line.property("checked", "#true") } else { line }
            }
            Action::Lock(lock, actions) => {
                return self.acts(&new("lock").arg(self.lock(*lock)), actions);
            }
            Action::Acquire(lock) => new("acquire").arg(self.lock(*lock)),
            Action::Release(lock) => new("release").arg(self.lock(*lock)),
            Action::TryLock { lock, micros, then, otherwise } => {
                let mut line = new("try-lock").arg(self.lock(*lock));
                if *micros != 0 {
                    line = line.property("micros", micros);
                }
                self.acts(&line, then);
                return self.otherwise(otherwise);
            }
            Action::Escape => new("escape"),
            Action::Detach => new("detach"),
            Action::Since { event, micros, then } => {
                let line = new("since").arg(self.event(*event)).property("micros", micros);
                return self.acts(&line, then);
            }
            Action::Set(event) => new("set").arg(self.event(*event)),
            Action::Reset(event) => new("reset").arg(self.event(*event)),
            Action::Wait { event, micros, then, otherwise } => {
                let line = new("wait").arg(self.event(*event));
                let line = micros.iter().fold(line, |line, it| line.property("micros", it));
                self.acts(&line, then);
                return self.otherwise(otherwise);
            }
            Action::Sleep(micros) => new("sleep").arg(micros),
            Action::Allocate => new("allocate"),
            Action::Log => new("log"),
            Action::LoadLibrary => new("load-library"),
            Action::LookUpFunctionEntry => new("look-up-function-entry"),
            Action::Unwind => new("unwind"),
            Action::Call { method, of, returns: wanted } => {
                let mut line = new("call").term(*method);
                if *of != ThreadName::Own {
                    line = line.property("of", self.actor(*of));
                }
                returns(line, wanted)
            }
            Action::SuspendRuntime => new("suspend-runtime"),
            Action::RuntimeSuspended(actions) => {
                return self.whole_acts(&new("suspend-runtime"), actions);
            }
            Action::ResumeRuntime => new("resume-runtime"),
            Action::Prepare => new("prepare"),
            Action::Signal(of) => new("signal").arg(self.actor(*of)),
            Action::Repeat(times, actions) => {
                return self.acts(&new("repeat").arg(times), actions);
            }
            Action::Join(of) => new("join").arg(self.actor(*of)),
            Action::Bark => new("bark"),
            Action::Fail(words) => new("fail").text(words),
        };
        self.line(&line);
    }

    pub(super) fn explore(&mut self, explore: &Exploration) {
        let mut line = Line::new("explore");
        line = match explore.by {
            Strategy::Random => line,
            Strategy::Guided => line.property("by", quoted("guided")),
            Strategy::Pct { depth } => {
                let line = line.property("by", quoted("pct"));
                if depth == DEPTH { line } else { line.property("depth", depth) }
            }
            Strategy::Exhaustive { preemptions } => {
                let line = line.property("by", quoted("exhaustive"));
                preemptions.iter().fold(line, |line, it| line.property("preemptions", it))
            }
        };
        if explore.schedules != SCHEDULES {
            line = line.property("schedules", explore.schedules);
        }
        if explore.seed != 0 {
            line = line.property("seed", size(explore.seed));
        }
        if explore.instructions {
            line = line.property("instructions", "#true");
        }
        if explore.rules {
            line = line.property("rules", "#true");
        }
        self.block(&line, |printer| {
            for expected in &explore.expect {
                printer.expected_history(expected);
            }
        });
    }

    pub(super) fn expected_history(&mut self, expected: &ExpectedHistory) {
        let line = Line::new("expect").on(expected.on).from(expected.from);
        self.block(&line, |printer| {
            let end = Line::new(expected.ends.word());
            printer.line(&match expected.ends {
                ExpectedEnd::Survives { everything: true } => end.property("everything", "#true"),
                ExpectedEnd::Rule(rule) => end.term(rule),
                _ => end,
            });
            for wait in &expected.waits {
                let (who, whom) = (printer.actor(wait.waits), printer.actor(wait.for_whom));
                let mut line = Line::new("waits").arg(who).property("for", whom);
                if let Some(why) = wait.why {
                    line = line.property("why", quoted(why.word()));
                }
                if let Some(lock) = wait.lock {
                    let name = printer.scenario.name_of_lock(lock);
                    line = line.property("lock", quoted(name));
                }
                printer.line(&line);
            }
            if let Some(hazard) = expected.hazard {
                printer.line(&Line::new("hazard").text(&hazard.to_string()));
            }
            printer.clauses(&expected.clauses);
            if let Some(schedule) = &expected.replay {
                printer.line(&Line::new("replay").text(&schedule.to_string()));
            }
        });
    }
}
