//! Sections of call frame information, code, stack and registers made by hand.

use super::*;
use std::fmt::Write as _;

/// The image's load address and its preferred base (VAs).
pub(crate) const BASE: u64 = 0x7F00_0000_0000;
pub(crate) const PREFERRED: u64 = 0x40_0000;

/// The start of the code, and of `.eh_frame` (RVAs).
pub(crate) const CODE: u32 = 0x1000;
pub(crate) const CODE_SIZE: u32 = 0x1000;
pub(crate) const EH_FRAME: u32 = 0x3000;

/// The start of `.eh_frame_hdr` (RVA), in one of the forms that linkers have chosen.
pub(crate) const EH_FRAME_HDR: u32 = 0x2800;

/// Returns an `.eh_frame_hdr` of these functions (RVAs) and offsets of entries.
fn header(listed: &[(u32, usize)]) -> Vec<u8> {
    let distance = |rva: u32| rva.wrapping_sub(EH_FRAME_HDR).to_le_bytes();
    let mut listed = listed.to_vec();
    listed.sort_by_key(|(begin, _)| *begin);
    // Version 1; pcrel, udata4, datarel; the first pointer counts from its own place.
    let mut bytes = vec![1, 0x1B, 0x03, 0x3B];
    bytes.extend((EH_FRAME - EH_FRAME_HDR - 4).to_le_bytes());
    bytes.extend((listed.len() as u32).to_le_bytes());
    for (begin, offset) in listed {
        bytes.extend(distance(begin));
        bytes.extend(distance(EH_FRAME + offset as u32));
    }
    bytes
}

const STACK: u64 = 0x7FFE_0000_0000;
const SLOTS: std::ops::Range<i64> = -64..0x1000;

/// Returns the address of stack slot `n`; rsp is at slot 0 unless the case says otherwise.
pub(crate) fn slot(n: i64) -> u64 {
    STACK.wrapping_add_signed(8 * n)
}

/// Returns the word in stack slot `n`, which encodes `n`.
pub(crate) fn word(n: i64) -> u64 {
    0x5107_0000_0000_0000_u64.wrapping_add_signed(n)
}

/// Returns the value of a register before a step, rsp apart.
pub(crate) fn held(register: Gpr) -> u64 {
    0x4E60_0000 + u64::from(register.number())
}

/// The stack, with or without a window on its bytes.
pub(crate) struct Stack {
    bytes: Vec<u8>,
    /// The first slot that can be read.
    first: i64,
    shown: bool,
}

impl Stack {
    fn new(changes: &[(i64, u64)], first: i64, shown: bool) -> Self {
        let mut words: Vec<_> = SLOTS.map(word).collect();
        for (n, value) in changes {
            words[usize::try_from(n - SLOTS.start).unwrap()] = *value;
        }
        Self { bytes: words.into_iter().flat_map(u64::to_le_bytes).collect(), first, shown }
    }

    fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        if address < slot(self.first) {
            return None;
        }
        let at = usize::try_from(address.wrapping_sub(slot(SLOTS.start))).ok()?;
        self.bytes.get(at..)?.get(..len)
    }
}

impl Memory for Stack {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        buffer.copy_from_slice(self.bytes(address, buffer.len()).ok_or(unreadable)?);
        Ok(())
    }

    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        if self.shown { self.bytes(address, len) } else { None }
    }
}

pub(crate) fn uleb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (value & 0x7F) as u8;
        value >>= 7;
        bytes.push(if value == 0 { byte } else { byte | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

pub(crate) fn sleb(mut value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (value & 0x7F).cast_unsigned() as u8;
        value >>= 7;
        let done = (value == 0 && byte < 0x40) || (value == -1 && byte >= 0x40);
        bytes.push(if done { byte } else { byte | 0x80 });
        if done {
            return bytes;
        }
    }
}

/// Returns the DWARF number of a register.
pub(crate) fn number(register: Gpr) -> u8 {
    Column::from(register).0 as u8
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) enum Cfi {
    Advance(u8),
    Advance1(u8),
    Advance2(u16),
    Advance4(u32),
    DefCfa(Gpr, u64),
    DefCfaRegister(Gpr),
    DefCfaOffset(u64),
    DefCfaExpression(Vec<u8>),
    /// Saved N units of 8 bytes below the CFA.
    Offset(Gpr, u64),
    Restore(Gpr),
    Undefined(u8),
    SameValue(Gpr),
    Register(u8, u8),
    ValOffset(Gpr, u64),
    Expression(u8, Vec<u8>),
    ValExpression(u8, Vec<u8>),
    Remember,
    RestoreState,
    ArgsSize(u64),
    Raw(Vec<u8>),
}

impl Cfi {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let block = |code: &[u8]| [uleb(code.len() as u64), code.to_vec()].concat();
        match self {
            Self::Advance(delta) => vec![0x40 | delta],
            Self::Advance1(delta) => vec![2, *delta],
            Self::Advance2(delta) => [vec![3], delta.to_le_bytes().to_vec()].concat(),
            Self::Advance4(delta) => [vec![4], delta.to_le_bytes().to_vec()].concat(),
            Self::DefCfa(register, offset) => {
                [vec![0x0C, number(*register)], uleb(*offset)].concat()
            }
            Self::DefCfaRegister(register) => vec![0x0D, number(*register)],
            Self::DefCfaOffset(offset) => [vec![0x0E], uleb(*offset)].concat(),
            Self::DefCfaExpression(code) => [vec![0x0F], block(code)].concat(),
            Self::Offset(register, units) => {
                [vec![0x80 | number(*register)], uleb(*units)].concat()
            }
            Self::Restore(register) => vec![0xC0 | number(*register)],
            Self::Undefined(column) => vec![7, *column],
            Self::SameValue(register) => vec![8, number(*register)],
            Self::Register(column, source) => vec![9, *column, *source],
            Self::ValOffset(register, units) => {
                [vec![0x14, number(*register)], uleb(*units)].concat()
            }
            Self::Expression(column, code) => [vec![0x10, *column], block(code)].concat(),
            Self::ValExpression(column, code) => [vec![0x16, *column], block(code)].concat(),
            Self::Remember => vec![0x0A],
            Self::RestoreState => vec![0x0B],
            Self::ArgsSize(size) => [vec![0x2E], uleb(*size)].concat(),
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}

/// Returns the initial instructions of gcc's CIEs: the CFA is rsp + 8, and the return address right
/// below it.
pub(crate) fn usual() -> Vec<Cfi> {
    vec![Cfi::DefCfa(Gpr::Rsp, 8), Cfi::Raw(vec![0x80 | 16, 1])]
}

/// A CIE.
#[derive(Clone, Debug)]
pub(crate) struct Cie {
    pub(crate) version: u8,
    pub(crate) augmentation: &'static str,
    pub(crate) code_alignment: u64,
    pub(crate) data_alignment: i64,
    pub(crate) return_address: u8,
    /// The augmentation data.
    pub(crate) data: Vec<u8>,
    pub(crate) instructions: Vec<Cfi>,
}

impl Default for Cie {
    fn default() -> Self {
        Self {
            version: 1,
            augmentation: "zR",
            code_alignment: 1,
            data_alignment: -8,
            return_address: 16,
            // pcrel, sdata4.
            data: vec![0x1B],
            instructions: usual(),
        }
    }
}

/// An `.eh_frame` or `.debug_frame` under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    pub(crate) bytes: Vec<u8>,
    pub(crate) debug: bool,
    /// The functions (RVAs) and the offsets of their entries that an `.eh_frame_hdr` lists; `None` if there is
    /// no header.
    pub(crate) listed: Option<Vec<(u32, usize)>>,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self { listed: Some(Vec::new()), ..Self::default() }
    }

    pub(crate) fn debug() -> Self {
        Self { debug: true, ..Self::default() }
    }

    /// Adds an entry with this content after its id, and returns its offset.
    fn entry(&mut self, id: u32, content: &[u8]) -> usize {
        let at = self.bytes.len();
        let padding = (4 + content.len()).next_multiple_of(8) - 4 - content.len();
        let len = 4 + content.len() + padding;
        self.bytes.extend((len as u32).to_le_bytes());
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(content);
        self.bytes.extend(vec![0; padding]);
        at
    }

    pub(crate) fn cie(&mut self, cie: &Cie) -> usize {
        let mut content = vec![cie.version];
        content.extend(cie.augmentation.as_bytes());
        content.push(0);
        if self.debug && cie.version >= 4 {
            content.extend([8, 0]);
        }
        content.extend(uleb(cie.code_alignment));
        content.extend(sleb(cie.data_alignment));
        content.push(cie.return_address);
        if cie.augmentation.starts_with('z') {
            content.extend(uleb(cie.data.len() as u64));
            content.extend(&cie.data);
        }
        content.extend(cie.instructions.iter().flat_map(Cfi::encode));
        self.entry(if self.debug { u32::MAX } else { 0 }, &content)
    }

    /// Adds an FDE for `len` bytes of code at `begin` (RVA), in the encoding of [`Cie::default`] or
    /// that of `.debug_frame`.
    pub(crate) fn fde(&mut self, cie: usize, begin: u32, len: u32, instructions: &[Cfi]) -> usize {
        let at = self.bytes.len();
        if let Some(listed) = &mut self.listed {
            listed.push((begin, at));
        }
        let mut content = Vec::new();
        if self.debug {
            content.extend((PREFERRED + u64::from(begin)).to_le_bytes());
            content.extend(u64::from(len).to_le_bytes());
        } else {
            let here = EH_FRAME + at as u32 + 8;
            content.extend(begin.wrapping_sub(here).to_le_bytes());
            content.extend(len.to_le_bytes());
            content.push(0);
        }
        content.extend(instructions.iter().flat_map(Cfi::encode));
        let id = if self.debug { cie } else { at + 4 - cie };
        self.entry(id as u32, &content)
    }

    /// Adds an FDE as bytes.
    pub(crate) fn raw_fde(&mut self, cie: usize, content: &[u8]) -> usize {
        self.listed = None;
        let id = if self.debug { cie } else { self.bytes.len() + 4 - cie };
        self.entry(id as u32, content)
    }
}

/// A step to make.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) eh_frame: Vec<u8>,
    pub(crate) eh_frame_hdr: Option<Vec<u8>>,
    pub(crate) debug_frame: Vec<u8>,
    pub(crate) code: Vec<u8>,
    pub(crate) registers: Registers,
    pub(crate) position: Position,
    pub(crate) words: Vec<(i64, u64)>,
    /// The first slot that can be read.
    pub(crate) first: i64,
    pub(crate) guesses: Guesses,
    pub(crate) rules: Rules,
}

/// The results of a step: the caller's registers, and the [`Step`].
pub(crate) type Found = Result<(Registers, Step), UnwindError>;

impl Case {
    /// Creates a case of a thread interrupted `offset` bytes into the code.
    pub(crate) fn new(frames: &Frames, offset: u32) -> Self {
        let mut registers = Registers { rip: at(offset), ..Registers::default() };
        for register in Gpr::ALL {
            registers.set(register, held(register));
        }
        registers.set(Gpr::Rsp, slot(0));
        let (eh_frame, debug_frame) = if frames.debug {
            (Vec::new(), frames.bytes.clone())
        } else {
            (frames.bytes.clone(), Vec::new())
        };
        Self {
            eh_frame,
            eh_frame_hdr: frames.listed.as_deref().map(header),
            debug_frame,
            code: vec![0x90; CODE_SIZE as usize],
            registers,
            position: Position::Interrupted,
            words: Vec::new(),
            first: SLOTS.start,
            guesses: Guesses::None,
            rules: Rules::Precise,
        }
    }

    /// Returns frames with one function of 0x100 bytes at the start of the code, with the usual
    /// CIE.
    pub(crate) fn function(instructions: &[Cfi], offset: u32) -> Self {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        frames.fde(cie, CODE, 0x100, instructions);
        Self::new(&frames, offset)
    }

    pub(crate) fn returned_to(mut self) -> Self {
        self.position = Position::ReturnAddress;
        self
    }

    pub(crate) fn register(mut self, register: Gpr, value: u64) -> Self {
        self.registers.set(register, value);
        self
    }

    pub(crate) fn word(mut self, n: i64, value: u64) -> Self {
        self.words.push((n, value));
        self
    }

    /// Returns the case with a stack of which only the slots from `first` on can be read.
    pub(crate) fn readable_from(mut self, first: i64) -> Self {
        self.first = first;
        self
    }

    /// Returns the case with these bytes of code `offset` bytes into the code.
    pub(crate) fn code(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.code[offset..][..bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(crate) fn sections(&self) -> Sections<'_> {
        let code = Section { rva: CODE, bytes: &self.code, executable: true };
        let data = Section { rva: EH_FRAME, bytes: &self.eh_frame, executable: false };
        Sections::new(vec![code, data]).unwrap()
    }

    pub(crate) fn cfi(&self) -> CfiSections<'_> {
        let eh_frame = Section { rva: EH_FRAME, bytes: &self.eh_frame, executable: false };
        CfiSections {
            preferred_base: PREFERRED,
            eh_frame: Some(eh_frame),
            debug_frame: Some(&self.debug_frame),
            text: Some(CODE),
            got: Some(0x2000),
            ..CfiSections::default()
        }
    }

    pub(crate) fn table(&self) -> CfiTable<'_> {
        CfiTable::new(&self.cfi(), &self.sections())
    }

    /// Returns the tables that should answer the same: an eager one, a lazy one that made its own
    /// index, and one that goes by the header.
    pub(crate) fn tables(&self) -> Vec<CfiTable<'_>> {
        let mut tables = vec![self.table(), CfiTable::lazy(&self.cfi(), &self.sections())];
        if let Some(header) = &self.eh_frame_hdr {
            let header = Section { rva: EH_FRAME_HDR, bytes: header, executable: false };
            let cfi = CfiSections { eh_frame_hdr: Some(header), debug_frame: None, ..self.cfi() };
            tables.push(CfiTable::lazy(&cfi, &self.sections()));
        }
        tables
    }

    pub(crate) fn map(&self) -> CodeMap<'_> {
        self.map_with(self.table())
    }

    pub(crate) fn map_with<'a>(&'a self, table: CfiTable<'a>) -> CodeMap<'a> {
        let (kind, functions) = (RegionKind::Image, FunctionTable::default());
        let region = CodeRegion::from_sections(BASE, 0x10_0000, kind, self.sections(), functions);
        let mut map = CodeMap::new();
        map.insert(region.unwrap().with_cfi(table)).unwrap();
        map
    }

    /// Makes the step in every way there is, and checks that the results are the same.
    pub(crate) fn step(&self) -> Found {
        let maps: Vec<_> = self.tables().into_iter().map(|table| self.map_with(table)).collect();
        let mut found: Option<Found> = None;
        for (map, shown) in maps.iter().flat_map(|map| [(map, true), (map, false)]) {
            let unwinder = Unwinder::new(map).with_guesses(self.guesses).with_rules(self.rules);
            let mut cache = Cache::new();
            let stack = Stack::new(&self.words, self.first, shown);
            let mut one = |make: &mut dyn FnMut(&mut Registers) -> Result<Step, UnwindError>| {
                let mut registers = self.registers;
                let step = make(&mut registers);
                assert!(step.is_ok() || registers == self.registers, "{step:?}");
                let this = step.map(|step| (registers, step));
                assert_eq!(*found.get_or_insert(this), this, "bytes shown: {shown}");
            };
            one(&mut |registers| unwinder.step(registers, self.position, &stack));
            for _ in 0..2 {
                one(&mut |registers| {
                    unwinder.step_cached(&mut cache, registers, self.position, &stack)
                });
            }
        }
        found.unwrap()
    }

    /// Returns the changes that the step made: `rbx=[-2]` for a register that it took from a slot,
    /// `rbp=0x…` for any other value, rip and rsp last.
    pub(crate) fn changes(&self) -> String {
        let (after, _) = match self.step() {
            Ok(found) => found,
            Err(error) => return error.to_string(),
        };
        let name = |value: u64| {
            let n = value.wrapping_sub(word(0)).cast_signed();
            let slot_of = value.wrapping_sub(slot(0)).cast_signed();
            if SLOTS.contains(&n) {
                format!("[{n}]")
            } else if SLOTS.contains(&(slot_of / 8)) && slot_of % 8 == 0 {
                format!("{}", slot_of / 8)
            } else if let Some(register) = Gpr::ALL.into_iter().find(|it| held(*it) == value) {
                register.name().to_owned()
            } else {
                format!("{value:#x}")
            }
        };
        let mut changes = String::new();
        for register in Gpr::ALL {
            let value = after.get(register);
            if register != Gpr::Rsp && value != self.registers.get(register) {
                write!(changes, "{}={} ", register.name(), name(value)).unwrap();
            }
        }
        write!(changes, "rip={} rsp={}", name(after.rip), name(after.rsp())).unwrap();
        changes
    }
}

/// Returns the address `offset` bytes into the code.
pub(crate) fn at(offset: u32) -> u64 {
    BASE + u64::from(CODE + offset)
}
