//! The roles of the stack slots of a frame, by its unwind codes.
//!
//! The codes are replayed forwards from the caller's rsp down, as the prologue ran: this holds in a
//! prologue and an epilogue as well, where only a part of the frame is below the return address.

use crate::render::code::{Code, Link};
use crate::render::console::{DIM, HEAD};
use clr_unwind::win64::{Operation, UnwindCode};
use clr_unwind::{Gpr, Memory, Registers};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;

/// Size of a slot in bytes.
const SLOT: u64 = 8;

/// Size in bytes of the area above the return address that a caller keeps for its callee's register
/// arguments.
const HOME_SPACE: u64 = 4 * SLOT;

/// Largest number of slots of a frame that is drawn in full.
const MOST_SLOTS: u64 = 128;

/// Number of slots that are drawn at either end of a large frame.
const END_SLOTS: u64 = 16;

/// Distance from rsp within which a machine frame is searched, in slots.
const MACHINE_FRAME_REACH: u64 = 1 << 12;

/// Number of bytes that are drawn if the caller's rsp is not above rsp.
const UNKNOWN_FRAME: u64 = 16 * SLOT;

/// The slots of a frame.
pub(crate) struct Layout {
    /// Roles of slots, by address (VA).
    roles: BTreeMap<u64, String>,
    /// Address ranges that the prologue allocated (VA).
    allocated: Vec<Range<u64>>,
    /// rsp after the prologue.
    bottom: Option<u64>,
    /// Address after the last slot to draw (VA).
    end: u64,
}

/// A frame and its caller.
pub(crate) struct Frame<'f, 'a> {
    /// The function entry and its chain parents.
    pub(crate) chain: &'f [Link<'a>],
    /// RVA of the instruction.
    pub(crate) rva: u32,
    /// True if only codes whose instructions lie before rip have run. False in an epilogue.
    pub(crate) by_codes: bool,
    /// The frame's registers.
    pub(crate) registers: &'f Registers,
    /// The caller's registers, as far as they are known.
    pub(crate) caller: &'f Registers,
}

impl Layout {
    /// Finds the roles of a frame's slots.
    pub(crate) fn new(frame: &Frame<'_, '_>, memory: &dyn Memory) -> Self {
        let (rsp, top) = (frame.registers.rsp(), frame.caller.rsp());
        let mut layout = Self {
            roles: BTreeMap::new(),
            allocated: Vec::new(),
            bottom: None,
            end: if top > rsp {
                top.saturating_add(HOME_SPACE)
            } else {
                rsp.saturating_add(UNKNOWN_FRAME)
            },
        };
        let codes = frame.executed_codes();
        let machine_frame = codes.iter().find_map(|(code, _)| match code.operation {
            Operation::PushMachframe(error_code) => Some(error_code),
            _ => None,
        });
        let start = match machine_frame {
            Some(error_code) => layout.machine_frame(frame, error_code, memory),
            None => layout.return_address(frame, memory),
        };
        if let Some(start) = start {
            layout.replay(&codes, start);
        }
        layout
    }

    fn role(&mut self, address: u64, role: impl Into<String>) {
        self.roles.insert(address, role.into());
    }

    /// Places the return address and returns its address, if it is on the stack.
    fn return_address(&mut self, frame: &Frame<'_, '_>, memory: &dyn Memory) -> Option<u64> {
        let top = frame.caller.rsp();
        let at = top.wrapping_sub(SLOT);
        if memory.read_u64(at) != Ok(frame.caller.rip) {
            return None;
        }
        for (n, register) in ["rcx", "rdx", "r8", "r9"].into_iter().enumerate() {
            self.role(top.wrapping_add(SLOT * n as u64), format!("home of {register}"));
        }
        self.role(at, "return address");
        Some(at)
    }

    /// Places the machine frame with the caller's rip and rsp, and returns its lowest address.
    fn machine_frame(
        &mut self,
        frame: &Frame<'_, '_>,
        error_code: bool,
        memory: &dyn Memory,
    ) -> Option<u64> {
        let Registers { rip, .. } = *frame.caller;
        let at = (0..MACHINE_FRAME_REACH)
            .map(|n| frame.registers.rsp().wrapping_add(SLOT * n))
            .find(|at| {
                memory.read_u64(*at) == Ok(rip)
                    && memory.read_u64(at.wrapping_add(3 * SLOT)) == Ok(frame.caller.rsp())
            })?;
        let mut next = at;
        for name in ["rip", "cs", "rflags", "rsp", "ss"] {
            self.role(next, format!("machine frame: {name}"));
            next = next.wrapping_add(SLOT);
        }
        self.end = next;
        if error_code {
            self.role(at.wrapping_sub(SLOT), "error code");
            Some(at.wrapping_sub(SLOT))
        } else {
            Some(at)
        }
    }

    /// Replays the codes of the prologue. `at` is rsp before it.
    fn replay(&mut self, codes: &[(UnwindCode, bool)], mut at: u64) {
        let mut base = None;
        for (code, _) in codes {
            match code.operation {
                Operation::PushNonvol(register) => {
                    at = at.wrapping_sub(SLOT);
                    self.role(at, format!("saved {}", register.name()));
                }
                Operation::Alloc(bytes) => {
                    let end = at;
                    at = at.wrapping_sub(u64::from(bytes));
                    self.allocated.push(at..end);
                }
                Operation::SetFpreg | Operation::SetFpregLarge(_) => base = Some(at),
                _ => {}
            }
        }
        // Without codes, the pushes of the code are unknown.
        self.bottom = (!codes.is_empty()).then_some(at);
        // Without a frame register, saved registers are addressed from the final rsp.
        let base = base.unwrap_or(at);
        for (code, has_run) in codes {
            match code.operation {
                Operation::SaveNonvol(register, offset) if *has_run => {
                    let at = base.wrapping_add(u64::from(offset));
                    self.role(at, format!("saved {}", register.name()));
                }
                Operation::SaveXmm128(n, offset) if *has_run => {
                    let at = base.wrapping_add(u64::from(offset));
                    self.role(at, format!("saved xmm{n}, low half"));
                    self.role(at.wrapping_add(SLOT), format!("saved xmm{n}, high half"));
                }
                _ => {}
            }
        }
    }

    fn role_of(&self, address: u64) -> &str {
        match self.roles.get(&address) {
            Some(role) => role,
            None if self.allocated.iter().any(|range| range.contains(&address)) => "allocated",
            None if self.bottom.is_some_and(|bottom| address < bottom) => {
                "taken after the prologue"
            }
            None => "",
        }
    }

    /// Returns the addresses of the slots to draw.
    fn addresses(&self, rsp: u64) -> BTreeSet<u64> {
        let slots = |from: u64, count: u64| (0..count).map(move |n| from.wrapping_add(SLOT * n));
        let count = self.end.saturating_sub(rsp).div_ceil(SLOT);
        if count <= MOST_SLOTS {
            return slots(rsp, count).collect();
        }
        let last = self.end.wrapping_sub(SLOT * END_SLOTS);
        let with_roles = self.roles.range(rsp..self.end).map(|(address, _)| *address);
        slots(rsp, END_SLOTS).chain(with_roles).chain(slots(last, END_SLOTS)).collect()
    }

    /// Writes the slots from rsp up.
    pub(crate) fn write(
        &self,
        registers: &Registers,
        code: &Code<'_, '_>,
        memory: &dyn Memory,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let rsp = registers.rsp();
        let mut next = rsp;
        let width = format!("{:#x}", self.end.saturating_sub(rsp)).len().max("0x000".len());
        for address in self.addresses(rsp) {
            let role = self.role_of(address);
            let value = memory.read_u64(address).ok();
            // Of large frames only the ends were recorded.
            if value.is_none() && !self.roles.contains_key(&address) {
                continue;
            }
            if let Some(gap @ 1..) = address.checked_sub(next) {
                writeln!(out, "  {DIM}… {gap:#x} bytes{DIM:#}")?;
            }
            next = address.wrapping_add(SLOT);
            let text = match value {
                Some(value) => format!("{value:#018x}"),
                None => "not recorded".to_owned(),
            };
            let pointer = value.and_then(|value| self.pointer(value, rsp, code));
            let notes: Vec<_> = [(!role.is_empty()).then(|| role.to_owned()), pointer]
                .into_iter()
                .flatten()
                .chain(pointing(registers, address))
                .collect();
            let line = format!(
                "  {address:#018x}  rsp+{:#0width$x}  {text:18}  {}",
                address.wrapping_sub(rsp),
                notes.join("  ")
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        if let Some(gap @ 1..) = self.end.checked_sub(next) {
            writeln!(out, "  {DIM}… {gap:#x} bytes{DIM:#}")?;
        }
        Ok(())
    }

    /// Returns the target of a value that is a pointer.
    fn pointer(&self, value: u64, rsp: u64, code: &Code<'_, '_>) -> Option<String> {
        if (rsp..self.end).contains(&value) {
            return Some(format!("-> rsp+{:#x}", value - rsp));
        }
        code.map.find(value).map(|_| format!("-> {HEAD}{}{HEAD:#}", code.name(value)))
    }
}

/// Returns the registers that point to `address`.
fn pointing(registers: &Registers, address: u64) -> Option<String> {
    let names: Vec<_> = Gpr::ALL
        .into_iter()
        .filter(|register| registers.get(*register) == address)
        .map(Gpr::name)
        .collect();
    (!names.is_empty()).then(|| format!("<- {}", names.join(", ")))
}

impl Frame<'_, '_> {
    /// Returns the codes in the order in which the prologues ran, each with true if its instruction
    /// has run. The codes end at the first that cannot be read, or at version 3, of which there is no
    /// recording.
    fn executed_codes(&self) -> Vec<(UnwindCode, bool)> {
        let mut codes = Vec::new();
        for link in self.chain {
            let offset = self.rva.wrapping_sub(link.function.begin);
            let Ok(info) = link.info else {
                break;
            };
            if info.version() == 3 {
                break;
            }
            let readable = info.codes().map_while(Result::ok);
            codes.extend(
                readable.map(|code| (code, !self.by_codes || offset >= u32::from(code.offset))),
            );
        }
        codes.reverse();
        codes
    }
}
