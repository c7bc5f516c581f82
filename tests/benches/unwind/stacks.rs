//! The stacks to unwind: recorded ones, and deep ones laid out by the unwind codes of real
//! functions.

use crate::images::{Image, Images, fixture};
use clr_recording::vectors::win64::{Vector, VectorFile};
use clr_recording::vectors::{DECOMPRESSED_LIMIT, decompress};
use clr_unwind::win64::{Operation, UnwindInfo};
use clr_unwind::{Gpr, Registers, SIZE_OF_RUNTIME_FUNCTION, Segment};
use iced_x86::{Decoder, DecoderOptions};

/// The registers that all contenders must find, and those that a profiler takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) rip: u64,
    pub(crate) rsp: u64,
}

/// A stack and its frames.
pub(crate) struct Stack {
    /// The registers with which the thread was stopped.
    pub(crate) start: Registers,
    /// The callers, innermost first; the last is outside the images.
    pub(crate) callers: Vec<Frame>,
    /// The entries that a binary search has to find in order to unwind the frames.
    pub(crate) lookups: Vec<Lookup>,
    address: u64,
    bytes: Vec<u8>,
}

/// An address in a function table.
#[derive(Clone, Copy)]
pub(crate) struct Lookup {
    pub(crate) entries: &'static [[u8; SIZE_OF_RUNTIME_FUNCTION]],
    pub(crate) rva: u32,
}

impl Stack {
    fn new(
        images: &Images,
        start: &Registers,
        callers: Vec<Frame>,
        address: u64,
        bytes: Vec<u8>,
    ) -> Self {
        let inside = callers.split_last().map_or(&callers[..], |(_, inside)| inside);
        let addresses = inside.iter().map(|caller| caller.rip - 1);
        let lookups = std::iter::once(start.rip)
            .chain(addresses)
            .map(|address| {
                let (image, rva) = images.find(address).expect("all frames are in images");
                Lookup { entries: image.sections.pdata.as_chunks().0, rva }
            })
            .collect();
        Self { start: *start, callers, lookups, address, bytes }
    }

    /// Returns the stack's memory, the same for all contenders.
    pub(crate) fn memory(&self) -> Segment<'_> {
        Segment::new(self.address, &self.bytes)
    }
}

/// Returns the stacks of all gold vectors that have a chain.
pub(crate) fn recorded(images: &Images) -> Vec<Stack> {
    images.all.iter().flat_map(|image| recorded_in(images, image)).collect()
}

fn recorded_in(images: &Images, image: &Image) -> Vec<Stack> {
    let gz = fixture(&format!("win64/vec/{}.vec.gz", image.name));
    let content = decompress(gz, DECOMPRESSED_LIMIT).expect("a fixture is whole");
    let vectors = VectorFile::parse(&content).expect("a fixture is well-formed");
    assert_eq!(vectors.image_base(), image.base);
    vectors
        .iter()
        .map(|vector| vector.expect("a fixture is well-formed"))
        .filter(|vector| vector.flags.is_gold() && vector.flags.has_chain())
        .map(|vector| from_vector(images, &vector))
        .collect()
}

fn from_vector(images: &Images, vector: &Vector<'_>) -> Stack {
    let caller = vector.truth.apply(&vector.registers);
    let callers = std::iter::once(Frame { rip: caller.rip, rsp: caller.rsp() })
        .chain(vector.chain.iter().map(|caller| Frame { rip: caller.rip, rsp: caller.rsp }))
        .collect();
    let (address, bytes) = flattened(vector);
    Stack::new(images, &vector.registers, callers, address, bytes)
}

/// Joins the segments of a vector into one, with zeroes where nothing was recorded.
fn flattened(vector: &Vector<'_>) -> (u64, Vec<u8>) {
    let address = vector.segments().next().map_or(0, |segment| segment.address());
    let mut bytes = Vec::new();
    for segment in vector.segments() {
        let at = usize::try_from(segment.address() - address).expect("a stack fits into memory");
        bytes.resize(at, 0);
        bytes.extend_from_slice(segment.bytes());
    }
    (address, bytes)
}

/// A place in a function that a call returns to, and the operations of the function's prologue.
pub(crate) struct CallSite {
    return_address: u64,
    /// In the order of execution.
    prologue: Vec<Operation>,
    frame_register: Gpr,
    frame_offset: u64,
}

/// Larger frames are rare, and would turn this into a benchmark of memory.
const LARGEST_FRAME: u32 = 1024;

/// Returns all call sites of all images that every contender can unwind.
pub(crate) fn call_sites(images: &Images) -> Vec<CallSite> {
    images.all.iter().flat_map(|image| call_sites_in(images, image)).collect()
}

fn call_sites_in(images: &Images, image: &Image) -> Vec<CallSite> {
    let region = images.region(image);
    let mut sites = Vec::new();
    for function in region.functions().iter() {
        let info = UnwindInfo::read(region, function.unwind_info).expect("its data is there");
        let Some(prologue) = prologue(&info) else { continue };
        let code = region.bytes_from(function.begin).unwrap_or_default();
        let code = &code[..(function.end - function.begin) as usize];
        let begin = image.base + u64::from(function.begin);
        let end = image.base + u64::from(function.end);
        let return_addresses = Decoder::with_ip(64, code, begin, DecoderOptions::NONE)
            .into_iter()
            .filter(|instruction| instruction.is_call_near() || instruction.is_call_near_indirect())
            .map(|call| call.next_ip())
            .filter(|&address| address >= begin + u64::from(info.prologue_size()) && address < end);
        sites.extend(return_addresses.map(|return_address| CallSite {
            return_address,
            prologue: prologue.clone(),
            frame_register: Gpr::from_number(info.frame_register()),
            frame_offset: u64::from(info.frame_offset()),
        }));
    }
    sites
}

/// Returns the operations of a prologue in the order of execution, if they can be laid out.
fn prologue(info: &UnwindInfo<'_>) -> Option<Vec<Operation>> {
    if info.is_chained() {
        return None;
    }
    let mut operations = Vec::new();
    let mut size = 0;
    for code in info.codes() {
        let operation = code.expect("compilers write valid codes").operation;
        match operation {
            Operation::PushNonvol(_) => size += 8,
            Operation::Alloc(bytes) => size += bytes,
            Operation::SetFpreg | Operation::SaveNonvol(..) | Operation::SaveXmm128(..) => {}
            _ => return None,
        }
        operations.push(operation);
    }
    operations.reverse();
    (size <= LARGEST_FRAME).then_some(operations)
}

/// End of the memory of deep stacks (VA).
const STACK_END: u64 = 0x7_FFFF_0000;
/// Return address of the outermost frame: in no image, but not 0, which framehop takes for an end.
const OUTSIDE: u64 = 0x7FF0_0000_1234;

/// Builds a stack with a frame for each call site, the outermost first.
pub(crate) fn deep(images: &Images, sites: &[&CallSite], random: &mut Random) -> Stack {
    let mut execution = Execution::new(sites.len(), random);
    let mut callers: Vec<_> = sites.iter().map(|site| execution.enter(site, random)).collect();
    callers.reverse();
    let Execution { mut bytes, registers } = execution;
    let address = registers.rsp();
    let bytes = bytes.split_off(bytes.len() - (STACK_END - address) as usize);
    Stack::new(images, &registers, callers, address, bytes)
}

/// A thread that executes prologues and calls.
struct Execution {
    registers: Registers,
    /// The memory below [`STACK_END`].
    bytes: Vec<u8>,
}

impl Execution {
    fn new(depth: usize, random: &mut Random) -> Self {
        let mut registers = Registers { rip: OUTSIDE, ..Registers::default() };
        for register in Gpr::NONVOLATILE {
            registers.set(register, random.next());
        }
        // Home space for the parameters, as every caller leaves.
        registers.set(Gpr::Rsp, STACK_END - 64);
        Self { registers, bytes: vec![0; 64 + depth * (LARGEST_FRAME as usize + 8)] }
    }

    fn write(&mut self, address: u64, value: u64) {
        let at = self.bytes.len() - (STACK_END - address) as usize;
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn push(&mut self, value: u64) {
        let rsp = self.registers.rsp() - 8;
        self.registers.set(Gpr::Rsp, rsp);
        self.write(rsp, value);
    }

    /// Calls the function of `site`, runs it up to its call there, and returns the caller's frame.
    fn enter(&mut self, site: &CallSite, random: &mut Random) -> Frame {
        let caller = self.registers;
        self.push(caller.rip);
        for operation in &site.prologue {
            match *operation {
                Operation::PushNonvol(register) => self.push(caller.get(register)),
                Operation::Alloc(bytes) => {
                    self.registers.set(Gpr::Rsp, self.registers.rsp() - u64::from(bytes));
                }
                Operation::SetFpreg => {
                    let frame = self.registers.rsp() + site.frame_offset;
                    self.registers.set(site.frame_register, frame);
                }
                // Relative to rsp at the end of the prologue.
                _ => {}
            }
        }
        let has_frame_register = site.prologue.contains(&Operation::SetFpreg);
        let base = if has_frame_register {
            self.registers.get(site.frame_register) - site.frame_offset
        } else {
            self.registers.rsp()
        };
        for operation in &site.prologue {
            if let Operation::SaveNonvol(register, at) = *operation {
                self.write(base + u64::from(at), caller.get(register));
            }
        }
        // A saved register is free for use.
        for operation in &site.prologue {
            if let Operation::PushNonvol(register) | Operation::SaveNonvol(register, _) = *operation
                && !(has_frame_register && register == site.frame_register)
            {
                self.registers.set(register, random.next());
            }
        }
        self.registers.rip = site.return_address;
        Frame { rip: caller.rip, rsp: caller.rsp() }
    }
}

/// Knuth's linear congruential generator: every run makes the same stacks.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new() -> Self {
        Self(1)
    }

    fn next(&mut self) -> u64 {
        let factor = 6_364_136_223_846_793_005;
        self.0 = self.0.wrapping_mul(factor).wrapping_add(1_442_695_040_888_963_407);
        // The low bits of such a generator have short periods.
        self.0 >> 32
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.next() as usize % (last + 1);
            items.swap(last, other);
        }
    }
}
