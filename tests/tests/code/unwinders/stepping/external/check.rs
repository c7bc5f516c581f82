//! Comparison of unwinding with the true callers.

use super::*;
use crate::unwinders::stepping::external::known::is_known;
use crate::unwinders::stepping::external::record::Recorder;
use crate::unwinders::stepping::external::tracee::Tracee;
use crate::unwinders::stepping::vectors::difference;

/// Number of steps between whole walks; a prime, so that it does not coincide with the length of
/// loops.
const WALK: u64 = 997;

/// Counts of a run, and its errors.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// Number of executed instructions.
    pub steps: u64,
    /// Number of compared steps to a caller from where a thread was stopped.
    pub stopped: u64,
    /// Number of compared steps from return addresses.
    pub calls: u64,
    /// Number of steps of [`stopped`](Self::stopped) that need memory below rsp: they fail in a copy of the
    /// stack that begins there.
    pub refused: u64,
    /// Number of frames of whole walks.
    pub walked: u64,
    /// Number of different addresses, by module.
    pub addresses: BTreeMap<String, usize>,
    /// Number of activations, by how they ended.
    pub ended: BTreeMap<Ended, u64>,
    /// Number of delivered signals.
    pub signals: u64,
    /// First error at each place, by module and RVA.
    pub wrong: BTreeMap<(String, u32), String>,
    /// Functions whose tables are known to be wrong and were met, by module and RVA.
    pub known: BTreeSet<(String, u32)>,
}

/// The memory from an address on.
struct AtAndAbove<'m, M> {
    start: u64,
    memory: &'m M,
}

impl<M: Memory> Memory for AtAndAbove<'_, M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if address < self.start {
            return Err(Unreadable { address, len: buffer.len() as u32 });
        }
        self.memory.read(address, buffer)
    }
}

pub(super) struct Check<'a> {
    pub modules: &'a [Module],
    pub map: &'a CodeMap<'a>,
    pub recorder: Recorder<'a>,
    seen: Examined,
    addresses: BTreeSet<u64>,
}

impl<'a> Check<'a> {
    pub(super) fn new(modules: &'a [Module], map: &'a CodeMap<'a>) -> Self {
        let (seen, addresses) = (Examined::default(), BTreeSet::new());
        Self { modules, map, recorder: Recorder::new(modules, map), seen, addresses }
    }

    /// Steps to the second breakpoint.
    pub(super) fn run(mut self, tracee: &Tracee) -> (Examined, Recorder<'a>) {
        let mut shadow = Shadow::default();
        let mut signal: Option<Signal> = None;
        let mut before = tracee.registers();
        loop {
            self.stopped(tracee, &shadow, &before);
            let does = tracee.does(&before);
            let stepped = tracee.step(&before, signal);
            let after = tracee.registers();
            let executed = |shadow: &mut Shadow, ended: &mut BTreeMap<Ended, u64>| {
                let begun = shadow.activations().len();
                shadow.executed(&before, does, &after, |_, how| {
                    *ended.entry(how).or_default() += 1;
                });
                shadow.activations().len() > begun
            };
            match stepped {
                Stepped::Breakpoint => break,
                Stepped::Pending(one) => {
                    // A signal may arrive after an executed instruction, such as a system call.
                    if after.rip != before.rip {
                        executed(&mut shadow, &mut self.seen.ended);
                    }
                    signal = Some(one);
                }
                Stepped::Done if signal.take().is_some() => {
                    let restorer = tracee.memory.read_u64(after.rsp()).unwrap();
                    shadow.delivered(&before, &after, restorer);
                    self.seen.signals += 1;
                    self.seen.steps += 1;
                }
                Stepped::Done => {
                    self.seen.steps += 1;
                    if executed(&mut shadow, &mut self.seen.ended) {
                        self.called(tracee, &shadow);
                    }
                }
            }
            before = after;
        }
        for address in std::mem::take(&mut self.addresses) {
            let name = module(self.modules, address).map_or("?", |module| &module.name);
            *self.seen.addresses.entry(name.to_owned()).or_default() += 1;
        }
        (self.seen, self.recorder)
    }

    /// Checks a step, and sometimes a whole walk, from where the thread is stopped.
    fn stopped(&mut self, tracee: &Tracee, shadow: &Shadow, registers: &Registers) {
        let Some(activation) = shadow.innermost() else { return };
        self.seen.stopped += 1;
        self.addresses.insert(registers.rip);
        self.step(tracee, registers, Position::Interrupted, activation);
        self.step_in_copy(tracee, registers, activation);
        if self.seen.steps.is_multiple_of(WALK) {
            self.walk(tracee, shadow, registers);
        }
    }

    /// Checks a step after a new activation: the caller of its caller can be found from the return
    /// address.
    fn called(&mut self, tracee: &Tracee, shadow: &Shadow) {
        if let [.., second, first] = shadow.activations() {
            self.seen.calls += 1;
            self.step(tracee, &first.caller, Position::ReturnAddress, second);
        }
    }

    fn step(
        &mut self,
        tracee: &Tracee,
        from: &Registers,
        position: Position,
        activation: &Activation,
    ) {
        let mut found = *from;
        let _ = tracee.memory.take_read();
        let result = Unwinder::new(self.map).step(&mut found, position, &tracee.memory);
        let wrong = match result {
            Ok(_) => difference(activation.began, &found, &activation.caller),
            Err(error) => Some(error.to_string()),
        };
        match wrong {
            Some(wrong) => self.complain(from.rip, &wrong),
            None => self.recorder.right(from, position, activation, tracee.memory.take_read()),
        }
    }

    /// Checks a step with a copy of the stack that begins at rsp, as perf makes it: it must find the same or fail.
    fn step_in_copy(&mut self, tracee: &Tracee, from: &Registers, activation: &Activation) {
        let memory = AtAndAbove { start: from.rsp(), memory: &tracee.memory };
        let mut found = *from;
        match Unwinder::new(self.map).step(&mut found, Position::Interrupted, &memory) {
            Ok(_) => {
                if let Some(wrong) = difference(activation.began, &found, &activation.caller) {
                    self.complain(from.rip, &format!("in a copy from rsp: {wrong}"));
                }
            }
            Err(UnwindError::Stack(unreadable)) if unreadable.address < from.rsp() => {
                self.seen.refused += 1;
            }
            Err(error) => self.complain(from.rip, &format!("in a copy from rsp: {error}")),
        }
    }

    /// Walks from the innermost activation to the first one.
    fn walk(&mut self, tracee: &Tracee, shadow: &Shadow, registers: &Registers) {
        let unwinder = Unwinder::new(self.map);
        let (mut now, mut position) = (*registers, Position::Interrupted);
        for activation in shadow.activations().iter().rev() {
            let from = now.rip;
            let wrong = match unwinder.step(&mut now, position, &tracee.memory) {
                Ok(step) => {
                    position = step.caller;
                    difference(activation.began, &now, &activation.caller)
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(wrong) = wrong {
                return self.complain(from, &wrong);
            }
            self.seen.walked += 1;
        }
    }

    fn complain(&mut self, rip: u64, wrong: &str) {
        let found = self.map.find(rip).zip(module(self.modules, rip));
        let Some(((region, rva), module)) = found else {
            self.seen.wrong.insert((String::new(), 0), format!("{rip:#x}: {wrong}"));
            return;
        };
        let place = |rva: u32| (module.name.clone(), rva);
        if let Some(function) = region.cfi().and_then(|table| table.function(rva)) {
            let symbol = module.symbols.iter().find(|(start, _)| *start == function.start);
            let code = region.bytes_from(function.start).unwrap_or_default();
            if is_known(&module.name, symbol.map(|(_, name)| name.as_str()), code) {
                self.seen.known.insert(place(function.start));
                return;
            }
        }
        self.seen.wrong.entry(place(rva)).or_insert_with(|| wrong.to_owned());
    }
}

/// Returns the image that contains an address (VA).
pub(super) fn module(modules: &[Module], address: u64) -> Option<&Module> {
    modules.iter().find(|module| (module.base..module.end).contains(&address))
}
