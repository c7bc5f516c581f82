//! Code, unwind data, stack and registers made by hand.

use super::*;
use clr_unwind::Gpr;
use std::fmt::Write as _;

/// Address of the code (VA).
pub(crate) const BASE: u64 = 0x1_4000_0000;

/// End of the code (RVA).
pub(crate) const SIZE: u32 = 0x2000;

/// Stack slot 0 (VA).
const STACK: u64 = 0x7FFE_0000_0000;

/// The slots that can be read.
const SLOTS: std::ops::Range<i64> = -64..0x4_0000;

/// Returns the address of stack slot `n`.
pub(crate) fn slot(n: i64) -> u64 {
    STACK.wrapping_add_signed(8 * n)
}

/// Returns the word in stack slot `n`, unless a case sets another.
pub(crate) fn word(n: i64) -> u64 {
    0x5107_8000_0000_0000_u64.wrapping_add_signed(n)
}

/// A prologue operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Push(Gpr),
    /// ALLOC_SMALL of 8 to 128 bytes.
    Small(u8),
    /// ALLOC_LARGE of up to 512 KiB − 8.
    Large(u32),
    LargeFar(u32),
    SetFrame,
    Save(Gpr, u32),
    SaveFar(Gpr, u32),
    Xmm(u8, u32),
    XmmFar(u8, u32),
    MachineFrame,
    MachineFrameWithError,
    /// EPILOG with this OpInfo.
    Epilog(u8),
    /// Operation, OpInfo, and slots that follow.
    Raw(u8, u8, &'static [u16]),
}

impl Op {
    /// Returns the operation, OpInfo, and the slots that follow.
    fn encode(self) -> (u8, u8, Vec<u16>) {
        let far = |n: u32| vec![n as u16, (n >> 16) as u16];
        match self {
            Self::Push(register) => (0, register.number(), vec![]),
            Self::Large(bytes) => (1, 0, vec![u16::try_from(bytes / 8).unwrap()]),
            Self::LargeFar(bytes) => (1, 1, far(bytes)),
            Self::Small(bytes) => (2, (bytes - 8) / 8, vec![]),
            Self::SetFrame => (3, 0, vec![]),
            Self::Save(register, at) => {
                (4, register.number(), vec![u16::try_from(at / 8).unwrap()])
            }
            Self::SaveFar(register, at) => (5, register.number(), far(at)),
            Self::Epilog(info) => (6, info, vec![]),
            Self::Xmm(n, at) => (8, n, vec![u16::try_from(at / 16).unwrap()]),
            Self::XmmFar(n, at) => (9, n, far(at)),
            Self::MachineFrame => (10, 0, vec![]),
            Self::MachineFrameWithError => (10, 1, vec![]),
            Self::Raw(op, info, operands) => (op, info, operands.to_vec()),
        }
    }
}

/// An UNWIND_INFO.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    version: u8,
    flags: u8,
    prologue: u8,
    frame: u8,
    slots: Vec<u8>,
    trailer: Vec<u8>,
}

impl Info {
    /// Creates an info of version 1, with a prologue of N bytes, and codes of (CodeOffset,
    /// operation): the last operation first.
    pub(crate) fn new(prologue: u8, codes: &[(u8, Op)]) -> Self {
        let mut slots = Vec::new();
        for (offset, op) in codes {
            let (op, info, operands) = op.encode();
            slots.extend([*offset, op | info << 4]);
            slots.extend(operands.into_iter().flat_map(u16::to_le_bytes));
        }
        Self { version: 1, flags: 0, prologue, frame: 0, slots, trailer: Vec::new() }
    }

    pub(crate) fn version(self, version: u8) -> Self {
        Self { version, ..self }
    }

    /// Sets the frame register, `offset` (0 to 240) bytes above rsp.
    pub(crate) fn frame(self, register: Gpr, offset: u8) -> Self {
        Self { frame: offset | register.number(), ..self }
    }

    /// Sets the flags for handlers, and the handler's RVA.
    pub(crate) fn handler(self, flags: u8, rva: u32) -> Self {
        Self { flags, trailer: rva.to_le_bytes().to_vec(), ..self }
    }

    /// Chains to a parent {begin, end, unwind info}.
    pub(crate) fn parent(self, parent: [u32; 3]) -> Self {
        Self { flags: 4, trailer: bytes_of(&parent), ..self }
    }

    /// Claims another CountOfCodes than there are slots.
    pub(crate) fn bytes_with_count(&self, count: u8) -> Vec<u8> {
        let mut bytes = vec![self.version | self.flags << 3, self.prologue, count, self.frame];
        bytes.extend(&self.slots);
        if !self.slots.len().is_multiple_of(4) {
            bytes.extend([0xEE; 2]);
        }
        bytes.extend(&self.trailer);
        bytes
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes_with_count((self.slots.len() / 2) as u8)
    }
}

/// Returns RUNTIME_FUNCTIONs as bytes.
pub(crate) fn bytes_of(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

/// Returns registers whose values encode their names.
pub(crate) fn registers() -> Registers {
    let mut registers = Registers::default();
    for register in Gpr::ALL {
        registers.set(register, 0x1217_0000_0000_0000 | u64::from(register.number()));
    }
    registers.set(Gpr::Rsp, slot(0));
    registers.xmm = std::array::from_fn(|i| 0x1217_0000_0000_0100 | (6 + i as u128));
    registers
}

/// A stack in which every slot holds its own name, except those that a case sets.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) set: Vec<(i64, u64)>,
    /// Number of further reads that succeed.
    pub(crate) reads_left: Cell<u32>,
}

impl Stack {
    fn word(&self, n: i64) -> u64 {
        let set = self.set.iter().find(|(slot, _)| *slot == n);
        set.map_or(word(n), |(_, word)| *word)
    }
}

impl Memory for Stack {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        let left = self.reads_left.get().checked_sub(1).ok_or(unreadable)?;
        for (byte, at) in buffer.iter_mut().zip(0..) {
            let offset = address.wrapping_sub(STACK).wrapping_add(at).cast_signed();
            let n = offset.div_euclid(8);
            if !SLOTS.contains(&n) {
                return Err(unreadable);
            }
            *byte = self.word(n).to_le_bytes()[offset.rem_euclid(8) as usize];
        }
        self.reads_left.set(left);
        Ok(())
    }
}

/// A stack whose first slots can be seen as a slice.
struct Windows<'s> {
    stack: &'s Stack,
    bytes: Vec<u8>,
}

impl<'s> Windows<'s> {
    const SLOTS: std::ops::Range<i64> = SLOTS.start..256;

    fn new(stack: &'s Stack) -> Self {
        let bytes = Self::SLOTS.flat_map(|n| stack.word(n).to_le_bytes()).collect();
        Self { stack, bytes }
    }
}

impl Memory for Windows<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.stack.read(address, buffer)
    }

    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        let at = address.wrapping_sub(slot(Self::SLOTS.start)) as usize;
        self.bytes.get(at..at.checked_add(len)?)
    }
}

/// The result of a step.
pub(crate) type Answer = Result<(Registers, Step), UnwindError>;

/// Everything a step depends on.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    bytes: Vec<u8>,
    functions: Vec<[u32; 3]>,
    /// Addresses of the code, with its functions (VA): BASE is the first.
    bases: Vec<u64>,
    pub(crate) registers: Registers,
    pub(crate) stack: Stack,
    rules: Rules,
    convention: Convention,
    position: Position,
}

impl Case {
    /// Creates a case with code of int3 only, precise rules, and rip at an interrupted instruction.
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0xCC; SIZE as usize],
            functions: Vec::new(),
            bases: vec![BASE],
            registers: registers(),
            stack: Stack { set: Vec::new(), reads_left: Cell::new(u32::MAX) },
            rules: Rules::Precise,
            convention: Convention::WindowsX64,
            position: Position::Interrupted,
        }
    }

    /// Puts code or data at an RVA.
    pub(crate) fn put(mut self, rva: u32, bytes: &[u8]) -> Self {
        self.bytes[rva as usize..][..bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Ends the code at an RVA.
    pub(crate) fn cut(mut self, rva: u32) -> Self {
        self.bytes.truncate(rva as usize);
        self
    }

    /// Adds a copy of the code and its functions at another place (VA).
    pub(crate) fn also_at(mut self, base: u64) -> Self {
        self.bases.push(base);
        self
    }

    /// Adds a function table entry {begin, end, unwind info}.
    pub(crate) fn entry(mut self, entry: [u32; 3]) -> Self {
        self.functions.push(entry);
        self.functions.sort_unstable();
        self
    }

    /// Adds a function table entry, and its unwind info at `entry[2]`.
    pub(crate) fn function(self, entry: [u32; 3], info: &Info) -> Self {
        self.put(entry[2], &info.bytes()).entry(entry)
    }

    pub(crate) fn with(mut self, register: Gpr, value: u64) -> Self {
        self.registers.set(register, value);
        self
    }

    pub(crate) fn with_slot(mut self, n: i64, value: u64) -> Self {
        self.stack.set.push((n, value));
        self
    }

    pub(crate) fn rules(&self, rules: Rules) -> Self {
        Self { rules, ..self.clone() }
    }

    /// Makes the code that of a process on Unix.
    pub(crate) fn on_unix(&self) -> Self {
        Self { convention: Convention::SystemV, ..self.clone() }
    }

    /// Returns the case under the rules of CoreCLR on Windows.
    pub(crate) fn coreclr(&self) -> Self {
        self.rules(Rules::CoreClr)
    }

    /// Makes rip a return address.
    pub(crate) fn returned_to(&self) -> Self {
        Self { position: Position::ReturnAddress, ..self.clone() }
    }

    /// Calls `use_map` with a map of the code.
    pub(crate) fn with_map<T>(&self, use_map: impl FnOnce(&CodeMap<'_>) -> T) -> T {
        let table = bytes_of(&self.functions.concat());
        let mut map = CodeMap::new();
        for base in &self.bases {
            let region = CodeRegion::heap(*base, &self.bytes, FunctionTable::new(&table));
            map.insert(region.unwrap()).unwrap();
        }
        use_map(&map)
    }

    /// Calls `use_map` with a map of the same code as that of a JIT compiler, whose regions keep no rules.
    fn with_generated_map<T>(&self, use_map: impl FnOnce(&CodeMap<'_>) -> T) -> T {
        let entry =
            |&[begin, end, unwind_info]: &[u32; 3]| RuntimeFunction { begin, end, unwind_info };
        let functions: Vec<_> = self.functions.iter().map(entry).collect();
        let mut map = CodeMap::new();
        for base in &self.bases {
            let code = *base..*base + self.bytes.len() as u64;
            let runs = vec![Run { rva: 0, bytes: self.bytes.clone() }];
            let region = CodeRegion::generated(code, *base, &functions, runs);
            map.insert(region.unwrap()).unwrap();
        }
        use_map(&map)
    }

    /// Makes the step with rip at `rva`. Checks that it is the same whether the unwind data is read,
    /// the region compiles a rule or has it, and a cache learns the rule or knows it; with memory
    /// that is read word by word, and with one that is a slice.
    pub(crate) fn step(&self, rva: u32) -> Answer {
        let reads_left = self.stack.reads_left.get();
        let step = |map: &CodeMap<'_>, cache: Option<&mut Cache>, memory: &dyn Memory| {
            self.stack.reads_left.set(reads_left);
            self.step_in(map, rva, cache, memory)
        };
        let answer = self.with_generated_map(|map| step(map, None, &self.stack));
        self.with_map(|map| {
            let mut cache = Cache::new();
            for round in ["compiled", "kept"] {
                assert_eq!(step(map, None, &self.stack), answer, "{round}");
            }
            for round in ["learning", "knowing"] {
                assert_eq!(step(map, Some(&mut cache), &self.stack), answer, "cached, {round}");
            }
            if reads_left == u32::MAX {
                let windows = Windows::new(&self.stack);
                assert_eq!(step(map, None, &windows), answer, "from a slice");
                let cached = step(map, Some(&mut cache), &windows);
                assert_eq!(cached, answer, "cached, from a slice");
            }
        });
        answer
    }

    fn step_in(
        &self,
        map: &CodeMap<'_>,
        rva: u32,
        cache: Option<&mut Cache>,
        memory: &dyn Memory,
    ) -> Answer {
        let before = Registers { rip: BASE + u64::from(rva), ..self.registers };
        let mut registers = before;
        let unwinder = Unwinder::new(map).with_rules(self.rules).with_convention(self.convention);
        let step = match cache {
            Some(cache) => unwinder.step_cached(cache, &mut registers, self.position, memory),
            None => unwinder.step(&mut registers, self.position, memory),
        };
        if step.is_err() {
            assert_eq!(registers, before, "{step:?}: the registers changed");
        }
        step.map(|step| (registers, step))
    }

    /// Returns the step with rip at `rva` in words: see `main.rs`.
    pub(crate) fn at(&self, rva: u32) -> String {
        let (after, step) = match self.step(rva) {
            Ok(answer) => answer,
            Err(error) => return error.to_string(),
        };
        let mut text = format!("{:?}", step.trust);
        for register in Gpr::ALL {
            let value = after.get(register);
            if register != Gpr::Rsp && value != self.registers.get(register) {
                write!(text, " {}={}", register.name(), name_of(value)).unwrap();
            }
        }
        for (n, (value, before)) in (6..).zip(after.xmm.iter().zip(self.registers.xmm)) {
            if *value != before {
                let [low, high] = [*value as u64, (value >> 64) as u64].map(name_of);
                write!(text, " xmm{n}={low}{high}").unwrap();
            }
        }
        write!(text, " rip={} rsp={}", name_of(after.rip), place_of(after.rsp())).unwrap();
        if step.establisher_frame != self.registers.rsp() {
            write!(text, " frame={}", place_of(step.establisher_frame)).unwrap();
        }
        if let Some(handler) = step.handler {
            write!(text, " handler={:x}/{:x}", handler.rva, handler.data_rva).unwrap();
        }
        if step.caller == Position::Interrupted {
            text += " interrupted";
        }
        text
    }
}

/// Prints a value as the stack slot it comes from.
fn name_of(value: u64) -> String {
    let n = value.wrapping_sub(word(0)).cast_signed();
    if SLOTS.contains(&n) { format!("[{n}]") } else { format!("{value:#x}") }
}

/// Prints an address as a stack slot.
fn place_of(address: u64) -> String {
    let offset = address.wrapping_sub(STACK).cast_signed();
    match (offset.div_euclid(8), offset.rem_euclid(8)) {
        (n, 0) if SLOTS.contains(&n) => n.to_string(),
        (n, rest) if SLOTS.contains(&n) => format!("{n}+{rest}"),
        _ => format!("{address:#x}"),
    }
}
