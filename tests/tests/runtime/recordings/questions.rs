//! Questions to all recordings that no replay asks: each answer is a rule that holds for every recorded
//! call, and a table of what was counted.
//!
//! The questions about callbacks are also put to the programs of `gallery/situations`, which the
//! simulator executes: a difference from the recordings would be a mistake of the simulator.

use super::*;
use crate::gallery::gallery;
use clr_recording::FrameLine;
use clr_runtime::FrameKind;
use clr_scenario::SnapshotCall;

/// The integer registers and rip, as recorded.
type Values = [u64; 17];

/// Index of rsp in [`Values`].
const RSP: usize = 4;
/// Index of rip in [`Values`].
const RIP: usize = 16;

/// A callback, recorded or simulated.
#[derive(Clone, Copy, Debug)]
struct Callback {
    is_marker: bool,
    ip: u64,
    frame_info: bool,
    context_size: u32,
    /// Registers and ContextFlags of the delivered CONTEXT.
    context: Option<(Values, u32)>,
}

impl From<&CallbackLine> for Callback {
    fn from(line: &CallbackLine) -> Self {
        let flags = line.context_flags.map_or(0, |flags| flags.0 as u32);
        Self {
            is_marker: line.function.is_none(),
            ip: line.ip.0,
            frame_info: line.frame_info,
            context_size: line.context_size,
            context: line.registers.map(|values| (values.map(|Hex(value)| value), flags)),
        }
    }
}

fn values(registers: &Registers) -> Values {
    let mut values = [registers.rip; 17];
    for (value, register) in values.iter_mut().zip(Gpr::ALL) {
        *value = registers.get(register);
    }
    values
}

/// The callbacks of a call, with what was passed.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a call")]
struct Call {
    generation: Generation,
    /// Name for messages.
    name: String,
    /// The seed was not wrong on purpose, nor outdated.
    is_plain: bool,
    is_seeded: bool,
    /// The walk started from the target's own context.
    has_leaf: bool,
    /// Some Frame of the chain has a whole CONTEXT.
    has_context_frame: bool,
    callbacks: Vec<Callback>,
}

impl Call {
    fn recorded(name: &str, recording: &Recording, walk: &WalkLine) -> Self {
        let wrong = ["bad-seed", "wrong", "stale", "resumed", "-deeper", "earlier", "unmanaged"];
        let shapes = walk.frames.iter().filter_map(|frame| FrameKind::from_name(&frame.kind));
        Self {
            generation: recording.generation,
            name: format!("{name}, walk {}", walk.n),
            is_plain: !wrong.iter().any(|word| walk.variant.contains(word)),
            is_seeded: walk.call.seed.is_some(),
            has_leaf: walk.leaf.is_some(),
            has_context_frame: shapes.map(FrameKind::shape).any(has_context),
            callbacks: walk.result.callbacks.iter().map(Callback::from).collect(),
        }
    }
}

const fn has_context(shape: FrameShape) -> bool {
    matches!(shape, FrameShape::Resumable | FrameShape::Faulting)
}

fn recorded_calls() -> Vec<Call> {
    let mut calls = Vec::new();
    for (name, recording) in recordings() {
        let walks = recording.walks.iter().filter(|walk| walk.replayable);
        calls.extend(walks.map(|walk| Call::recorded(name, recording, walk)));
    }
    calls
}

/// Returns the calls of the programs in `gallery/situations`, executed on every generation.
fn simulated_calls() -> Vec<Call> {
    let mut calls = Vec::new();
    let situations = gallery().filter(|(name, ..)| name.starts_with("situations/"));
    for (name, _, scenario) in situations {
        for generation in Generation::ALL {
            for report in crate::gallery::calls(name, generation).as_ref().unwrap() {
                let call = scenario.call(report.stop, report.snapshot).unwrap();
                let callbacks = report.found.frame_reports.iter().map(|report| {
                    let report = &report.frame_report;
                    Callback {
                        is_marker: report.function.is_none(),
                        ip: report.ip,
                        frame_info: true,
                        context_size: report.context_size,
                        context: report
                            .context
                            .map(|context| (values(&context.registers), context.flags)),
                    }
                });
                calls.push(Call {
                    generation,
                    name: format!("{name}, {generation}, {}", title(call)),
                    is_plain: !title(call).contains("seed"),
                    is_seeded: title(call).contains("seed") && !title(call).contains("no seed"),
                    has_leaf: title(call).contains("another thread"),
                    has_context_frame: true,
                    callbacks: callbacks.collect(),
                });
            }
        }
    }
    assert!(calls.len() > 1000, "{}", calls.len());
    calls
}

fn title(call: &SnapshotCall) -> &str {
    call.title.as_deref().unwrap_or_default()
}

static RECORDED: LazyLock<Vec<Call>> = LazyLock::new(recorded_calls);
static SIMULATED: LazyLock<Vec<Call>> = LazyLock::new(simulated_calls);

/// Puts a question to all recorded calls and to all simulated ones. Returns the counts of the
/// recorded ones.
fn ask(question: impl Fn(&Call, &mut Counts)) -> Counts {
    let mut counts = Counts::default();
    RECORDED.iter().for_each(|call| question(call, &mut counts));
    let mut simulated = Counts::default();
    SIMULATED.iter().for_each(|call| question(call, &mut simulated));
    counts
}

/// Do stack pointers ascend from callback to callback? Always, if the seed is right: also from a
/// managed frame to the marker behind it.
#[test]
fn stack_pointers_ascend_from_callback_to_callback() {
    check!(ask(|call, counts| {
        let at = |callback: &Callback| Some((callback.is_marker, callback.context?.0[RSP]));
        let places: Vec<_> = call.callbacks.iter().filter_map(at).collect();
        for pair in places.windows(2) {
            let ascends = pair[0].1 < pair[1].1;
            assert!(ascends || !call.is_plain, "{}: {pair:x?}", call.name);
            let seed = if call.is_plain { "" } else { ", wrong seed" };
            let ascends = if ascends { "ascends" } else { "descends" };
            counts.add(format!("{}{seed}: {ascends}", call.generation));
        }
    }));
}

/// Does the CONTEXT of a callback have its ip as rip? Always.
#[test]
fn contexts_have_the_ip_as_rip() {
    check!(ask(|call, counts| {
        for callback in &call.callbacks {
            let Some((values, _)) = callback.context else { continue };
            assert_eq!(values[RIP], callback.ip, "{}", call.name);
            counts.add(format!("{}: rip is ip", call.generation));
        }
    }));
}

/// Which contextSize do callbacks get? That of the generation, or 0 if no contexts were wanted;
/// and no callback ever gets a null frameInfo.
#[test]
fn context_sizes_are_those_of_the_generation() {
    check!(ask(|call, counts| {
        for callback in &call.callbacks {
            let size = callback.context_size;
            assert!([0, call.generation.context_size()].contains(&size), "{}", call.name);
            assert!(callback.frame_info, "{}", call.name);
            counts.add(format!("{}: {size:#x}", call.generation));
        }
    }));
}

/// Which ContextFlags do callbacks get without a seed? 0 as long as no Frame has led to a whole
/// CONTEXT, then those of this CONTEXT.
#[test]
fn flags_without_a_seed_come_from_frames() {
    check!(ask(|call, counts| {
        if call.is_seeded || call.has_leaf {
            return;
        }
        let mut before = 0;
        for callback in &call.callbacks {
            let Some((_, flags)) = callback.context else { continue };
            // They never return to 0.
            assert!(before == 0 || flags != 0, "{}", call.name);
            assert!(flags == 0 || call.has_context_frame, "{}", call.name);
            before = flags;
            counts.add(format!("{}: {flags:#x}", call.generation));
        }
    }));
}

/// Which values do the volatile registers have without a seed? 0, until a Frame with a whole CONTEXT
/// has been followed (C-158).
#[test]
fn volatile_registers_are_zero_without_a_seed() {
    check!(ask(|call, counts| {
        if call.is_seeded || call.has_leaf {
            return;
        }
        let windows = [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11];
        let unix = [Gpr::Rsi, Gpr::Rdi];
        let volatile =
            windows.iter().chain(if call.generation.is_unix() { &unix[..] } else { &[] });
        let volatile: Vec<_> = volatile.map(|register| usize::from(register.number())).collect();
        for callback in &call.callbacks {
            let Some((values, flags)) = callback.context else { continue };
            let zero = volatile.iter().all(|register| values[*register] == 0);
            assert!(zero || flags != 0, "{}", call.name);
            let zero = if zero { "zero" } else { "of a CONTEXT" };
            counts.add(format!("{}: {zero}", call.generation));
        }
    }));
}

/// Are stack pointers aligned? At return addresses to 16 bytes, except in callees of 3.1's and .NET 8's
/// code that an exception or a hook interrupted.
#[test]
fn stack_pointers_are_aligned_at_return_addresses() {
    check!(ask(|call, counts| {
        if !call.is_plain || call.is_seeded {
            return;
        }
        for (index, callback) in call.callbacks.iter().enumerate() {
            let Some((values, _)) = callback.context else { continue };
            let kind = if callback.is_marker { "marker" } else { "managed" };
            let first = if index == 0 { ", first" } else { "" };
            counts.add(format!("{}, {kind}{first}: {}", call.generation, values[RSP] % 16));
        }
    }));
}

/// Can two markers follow each other? On Windows never, if the seed is right.
#[test]
fn two_markers_in_a_row_are_seen_on_unix_alone() {
    check!(ask(|call, counts| {
        for pair in call.callbacks.windows(2).filter(|_| call.is_plain) {
            let two = pair[0].is_marker && pair[1].is_marker;
            assert!(!two || call.generation.is_unix(), "{}", call.name);
            let kinds = if two { "two markers" } else { "others" };
            counts.add(format!("{}: {kinds}", call.generation));
        }
    }));
}

/// The recorded stack of a walk, as words.
struct Stack<'w>(&'w WalkLine);

impl Stack<'_> {
    /// Returns the word at `address` (VA), if it was recorded.
    fn word(&self, address: u64) -> Option<u64> {
        self.0.stack.as_ref()?.parts.iter().find_map(|(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(start.0)?).ok()?;
            bytes.0.get(offset..)?.first_chunk().copied().map(u64::from_le_bytes)
        })
    }
}

/// Puts a question to the stack of every replayable walk.
fn ask_stacks(mut question: impl FnMut(&str, &Recording, &WalkLine, &Stack<'_>)) {
    for (name, recording) in recordings() {
        for walk in recording.walks.iter().filter(|walk| walk.replayable) {
            question(&format!("{name}, walk {}", walk.n), recording, walk, &Stack(walk));
        }
    }
}

/// Which word lies below a Frame? One in all of a process up to .NET 9: the GS cookie. In .NET 10
/// anything.
#[test]
fn the_word_below_a_frame_is_the_process_s_cookie() {
    let mut words: BTreeMap<(Generation, String), BTreeMap<u64, u64>> = BTreeMap::new();
    ask_stacks(|_, recording, walk, stack| {
        for frame in &walk.frames {
            if let Some(word) = stack.word(frame.at.0.wrapping_sub(8)) {
                let of = words.entry((recording.generation, recording.name.clone())).or_default();
                *of.entry(word).or_default() += 1;
            }
        }
    });
    let mut counts = Counts::default();
    for ((generation, _), words) in words {
        let (most, all) = (words.values().max().copied().unwrap(), words.values().sum::<u64>());
        counts.add_many(format!("{generation}: the most frequent word"), most);
        counts.add_many(format!("{generation}: another word"), all - most);
    }
    for generation in Generation::ALL {
        let count = |what: &str| counts.counts.get(&format!("{generation}: {what}")).copied();
        let Some(most) = count("the most frequent word") else { continue };
        let others = count("another word").unwrap_or(0);
        // Five Frames of .NET 9 were not complete yet.
        let is_constant = others * 50 < most;
        assert_eq!(is_constant, generation.frames_have_cookies(), "{generation}");
        let question = Question::from_name("frames_have_cookies").unwrap();
        assert_eq!((question.known)(generation), Known::Observed, "{generation}");
    }
    check!(counts);
}

/// Do the Frames of a chain ascend? Always; and they lie on the thread's stack.
#[test]
fn frames_ascend_on_the_stack() {
    let mut counts = Counts::default();
    ask_stacks(|name, recording, walk, _| {
        let places: Vec<_> = walk.frames.iter().map(|frame| frame.at.0).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{name}");
        let base = walk.stack.as_ref().map_or(u64::MAX, |stack| stack.base.0);
        assert!(places.iter().all(|at| *at < base && at.is_multiple_of(8)), "{name}");
        counts.add_many(format!("{}: Frames", recording.generation), places.len() as u64);
    });
    check!(counts);
}

/// Is the word below the stack pointer of a callback its ip? Yes, wherever a call pushed it: not for
/// the first callback, nor for code that a fault or a redirection interrupted.
#[test]
fn return_addresses_lie_below_the_stack_pointer() {
    let mut counts = Counts::default();
    ask_stacks(|_, recording, walk, stack| {
        for callback in walk.result.callbacks.iter().skip(1) {
            let Some(registers) = callback.registers else { continue };
            let Some(word) = stack.word(registers[RSP].0.wrapping_sub(8)) else { continue };
            let is = if word == callback.ip.0 { "ip" } else { "another word" };
            counts.add(format!("{}: {is}", recording.generation));
        }
    });
    check!(counts);
}

/// Returns the kind of a Frame's call-site fields, if they were recorded.
fn call_site(
    recording: &Recording,
    walk: &WalkLine,
    frame: &FrameLine,
    stack: &Stack<'_>,
) -> Option<&'static str> {
    let layout = recording.generation.inlined_call_frame();
    let field = |offset: u64| stack.word(frame.at.0.wrapping_add(offset));
    let (sp, ip) = (field(layout.call_site_sp)?, field(layout.return_address)?);
    field(layout.frame_pointer)?;
    let managed = recording.codes.iter().flat_map(|code| &code.ranges);
    let mut managed = managed.map(|(start, size)| start.0..start.0.saturating_add(*size));
    let base = walk.stack.as_ref()?.base.0;
    Some(match ip {
        0 if sp == 0 => "inactive, no call site",
        0 => "inactive",
        ip if !managed.any(|range| range.contains(&ip)) => "active, from code not recorded",
        // The call site is in the frame that contains the Frame, or below it.
        _ if sp <= frame.at.0 && frame.at.0 < base => "active, call site below the Frame",
        _ => "active, call site above the Frame",
    })
}

/// Which values do the call-site fields of an InlinedCallFrame have? The return address is 0 or in
/// managed code, and the stack pointer of an active call lies below the Frame.
#[test]
fn inlined_call_frames_are_inactive_or_have_a_call_site() {
    let mut counts = Counts::default();
    ask_stacks(|name, recording, walk, stack| {
        for frame in walk.frames.iter().filter(|frame| frame.kind == "InlinedCallFrame") {
            let Some(site) = call_site(recording, walk, frame, stack) else { continue };
            assert_ne!(site, "active, call site above the Frame", "{name}, {:#x}", frame.at.0);
            counts.add(format!("{}: {site}", recording.generation));
        }
    });
    check!(counts);
}

/// Which Frame is the topmost one in each situation of a thread that walks itself? The table shows
/// where generations differ.
#[test]
fn topmost_frames_by_situation() {
    let mut counts = Counts::default();
    ask_stacks(|_, recording, walk, _| {
        if walk.relation == "self" && walk.state.ee_started != Some(false) {
            let top = walk.frames.first().map_or("none", |frame| &frame.kind);
            counts.add(format!("{}, {}: {top}", walk.situation, recording.generation));
        }
    });
    check!(counts);
}

/// Which mode does the target have in each situation?
#[test]
fn modes_by_situation() {
    let mut counts = Counts::default();
    ask_stacks(|_, recording, walk, _| {
        if let Some(mode) = walk.state.mode.as_deref().filter(|_| walk.relation == "self") {
            counts.add(format!("{}, {}: {mode}", walk.situation, recording.generation));
        }
    });
    check!(counts);
}

/// Which instruction precedes the ip of a callback that is not the first? A call, wherever its bytes
/// were recorded and the code was not interrupted.
#[test]
fn calls_precede_return_addresses() {
    let mut counts = Counts::default();
    for (_, recording) in recordings() {
        let mut code = BTreeMap::new();
        for (start, bytes) in &recording.bytes {
            code.extend((*start..).zip(bytes.iter().copied()));
        }
        let byte = |at: u64| code.get(&at).copied();
        let walks = recording.walks.iter().filter(|walk| walk.replayable);
        for callback in walks.flat_map(|walk| walk.result.callbacks.iter().skip(1)) {
            let at = |distance: u64| byte(callback.ip.0.wrapping_sub(distance));
            // FF /2 with the lengths that compilers use, or E8.
            let indirect = |length: u64| {
                at(length) == Some(0xFF) && at(length - 1).is_some_and(|modrm| modrm >> 3 & 7 == 2)
            };
            if callback.function.is_none() || (1..=7).any(|distance| at(distance).is_none()) {
                continue;
            }
            let is_call = at(5) == Some(0xE8) || [2, 3, 4, 6, 7].into_iter().any(indirect);
            let what = if is_call { "a call" } else { "another instruction" };
            counts.add(format!("{}: {what}", recording.generation));
        }
    }
    check!(counts);
}
