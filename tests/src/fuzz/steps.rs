//! Steps of the walker that the fuzz targets of unwind data compare: in all positions and memories, with and without a
//! cache.

use clr_recording::vectors::fuzz::{FuzzMemory, IMAGE_BASE, STACK, stack_word};
use clr_unwind::compat::Rules;
use clr_unwind::{
    Cache, CodeMap, Gpr, Memory, Position, Registers, Segment, Segments, Step, UnwindError,
    Unwinder,
};
use std::sync::LazyLock;

/// The precise rules, and those of the unwinders of Windows and of the runtimes.
pub(super) const ALL_RULES: [Rules; 4] =
    [Rules::Precise, Rules::CoreClr, Rules::CoreClrUnix, Rules::Ntdll];
/// Both relations of rip to the instruction that a thread executes.
pub(super) const POSITIONS: [Position; 2] = [Position::Interrupted, Position::ReturnAddress];

/// Maximum number of frames in a walk; large enough to expose a loop in the unwind data.
const FRAME_LIMIT: u32 = 40;

/// True in a fuzzer, which examines an input at few places, since other inputs take the others. A test examines seeds at all.
pub(super) const FUZZES: bool = cfg!(fuzzing);

/// Maximum number of frames in succession whose code is unknown.
const UNKNOWN_LIMIT: u32 = 6;

/// The computed stack of the fuzz records as bytes: the same content as another kind of memory.
static STACK_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    STACK.step_by(8).flat_map(|address| stack_word(address).to_le_bytes()).collect()
});

/// One memory in two forms, between which results must not differ.
pub(super) struct Memories<'a> {
    pub(super) computed: FuzzMemory<'a>,
    pub(super) copied: Segments<'a>,
}

impl<'a> Memories<'a> {
    pub(super) fn new(image: &'a [u8]) -> Self {
        let stack = Segment::new(STACK.start, &STACK_BYTES);
        let copied = Segments::new([Segment::new(IMAGE_BASE, image), stack]);
        Self {
            computed: FuzzMemory::new(image),
            copied: copied.expect("the image is too small to reach the stack"),
        }
    }
}

/// Returns at most `limit` of the places: the seed chooses them.
pub(super) fn some(mut places: Vec<u32>, limit: usize, seed: u32) -> Vec<u32> {
    let count = places.len();
    if count > limit {
        places.rotate_left(seed as usize % count);
        places.truncate(limit);
    }
    places
}

/// Returns the precise rules, and those of one of the unwinders of Windows and of the runtimes.
pub(super) const fn some_rules(seed: u32) -> &'static [Rules] {
    match seed % 3 {
        0 => &[Rules::Precise, Rules::CoreClr],
        1 => &[Rules::Precise, Rules::CoreClrUnix],
        _ => &[Rules::Precise, Rules::Ntdll],
    }
}

/// Returns registers that mostly point into the stack, so that unwinding succeeds for some frames.
pub(super) fn make_registers(kind: u8, stack: u8, seed: u32) -> Registers {
    let mut registers = Registers::default();
    for register in Gpr::ALL {
        let random = stack_word(u64::from(seed) << 8 | u64::from(register.number()));
        let value = match kind {
            // Aligned, and with room above.
            0..8 => STACK.start + (random & 0xF_FFF8),
            8..12 => STACK.start + (random & 0x1F_FFFF),
            _ => random,
        };
        registers.set(register, value);
    }
    let rsp = match u64::from(stack) {
        // Close enough to the stack's end that unwinding reaches it.
        slots @ 0..64 => STACK.end - 8 * slots,
        bytes @ 64..96 => STACK.end - bytes,
        slots => STACK.start + 0x8_0000 + 8 * slots,
    };
    registers.set(Gpr::Rsp, rsp);
    for (n, value) in (0..).zip(&mut registers.xmm) {
        *value = u128::from(stack_word(u64::from(seed) << 8 | 0x80 | n)) << 32 | 0xF;
    }
    registers
}

/// Steps from `registers` with these rules, in all positions and memories, with and without the cache, and
/// walks.
pub(super) fn unwind(
    map: &CodeMap<'_>,
    cache: &mut Cache,
    registers: &Registers,
    memories: &Memories<'_>,
    rules: &[Rules],
) {
    // Registers take hundreds of bytes: each result is compared where it was made.
    let (mut first, mut other) = (*registers, *registers);
    for &rules in rules {
        let unwinder = Unwinder::new(map).with_rules(rules);
        for position in POSITIONS {
            let found = step_to(unwinder, registers, &mut first, position, &memories.computed);
            // The other memory repeats the step, too.
            if rules == Rules::Precise || !FUZZES {
                let again = step_to(unwinder, registers, &mut other, position, &memories.computed);
                assert!(again == found && other == first, "{rules:?} {position:?}: repeated");
            }
            let again = step_to(unwinder, registers, &mut other, position, &memories.copied);
            assert!(again == found && other == first, "{rules:?} {position:?}: other memory");
            // The cache learns the step the first time, and applies it the second time. One memory exposes its bytes as
            // slices, the other does not. With the rules of Windows nothing is learned that the precise ones have not
            // learned before: each form once shows whether that is left alone.
            let forms: [&dyn Memory; 2] = [&memories.computed, &memories.copied];
            let times = if rules == Rules::Precise { 2 } else { 1 };
            for (time, memory) in (0..times).flat_map(|time| forms.map(|memory| (time, memory))) {
                other = *registers;
                let step = unwinder.step_cached(cache, &mut other, position, memory);
                // After an error these are the registers from before.
                let same = step == found && other == first;
                assert!(same, "{rules:?} {position:?}: cached, time {time}: {step:?}");
            }
        }
        walk(map, unwinder, registers, &memories.computed);
    }
}

/// Walks. With the rules of Windows, unknown code is a leaf: the walk would go on through the words of the stack, none
/// of which leads back into the map. It is left after some of these steps, which are all the same.
fn walk<M: Memory>(
    map: &CodeMap<'_>,
    unwinder: Unwinder<'_, '_>,
    registers: &Registers,
    memory: &M,
) {
    let rules = unwinder.rules();
    let mut walk = unwinder.walk(registers, memory).with_limit(FRAME_LIMIT);
    let (mut frames, mut unknown) = (0, 0);
    for frame in walk.by_ref() {
        let Ok(frame) = frame else { break };
        frames += 1;
        unknown = if map.find(frame.registers.rip).is_some() { 0 } else { unknown + 1 };
        if unknown > UNKNOWN_LIMIT {
            return;
        }
    }
    assert!(frames <= FRAME_LIMIT, "{rules:?}: {frames} frames");
    assert!(walk.next().is_none(), "{rules:?}: an error ends the walk");
}

/// Makes one step, which must not change the registers if it fails.
pub(super) fn step<M: Memory>(
    unwinder: Unwinder<'_, '_>,
    before: &Registers,
    position: Position,
    memory: &M,
) -> Result<(Registers, Step), UnwindError> {
    let mut registers = *before;
    let step = step_to(unwinder, before, &mut registers, position, memory);
    step.map(|step| (registers, step))
}

/// Makes the step of [`step`], and leaves its registers in `after`.
pub(super) fn step_to<M: Memory>(
    unwinder: Unwinder<'_, '_>,
    before: &Registers,
    after: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    *after = *before;
    let step = unwinder.step(after, position, memory);
    if step.is_err() {
        assert_eq!(*after, *before, "{step:?} changed the registers");
    }
    step
}
