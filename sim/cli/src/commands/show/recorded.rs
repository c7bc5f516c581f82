//! The drawing of a recorded walk's stack: managed frames, explicit Frames and the words read.

use crate::commands::explain::recorded::ReplayedWalk;
use crate::commands::explain::write_verdict;
use crate::render::console::{BAD, DIM, GOOD, HEAD};
use crate::render::style::Style;
use clr_runtime::FrameKind;
use clr_runtime::explain::{ChainFrame, DropReason, Event, FrameDestination, NamedAddress};
use clr_runtime::frame::FrameShape;
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_unwind::{CONTEXT_SIZE, Memory as _};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Size of a word of the stack in bytes.
const WORD: u64 = 8;

/// Effect of a resumable Frame on a walk that has suspended the target.
const ENDED: &str = "resumable, so the walk ended";

/// An object that begins at an address of the stack.
enum Item {
    /// A managed frame.
    Managed(ManagedFrame),
    /// The native code that a marker stands for.
    Marker { callback: u32, ip: u64 },
    /// An explicit Frame.
    Frame { frame: ChainFrame, fate: String },
    /// A slot with a return address that was hijacked.
    Hijacked { address: u64 },
}

struct ManagedFrame {
    ip: u64,
    caller_sp: u64,
    /// The callback that reports the frame, or the reason why there is none.
    fate: Fate,
}

enum Fate {
    Reported(u32),
    Hidden,
    Silent,
    Unknown,
}

/// The stack of a walk.
struct Drawing<'d, 'w> {
    replayed: &'d ReplayedWalk<'w>,
    /// Objects by the address of their first byte (VA).
    items: BTreeMap<u64, Vec<Item>>,
    /// Number of reads of a word, by its address (VA).
    reads: BTreeMap<u64, u32>,
}

/// Draws a walk.
pub(crate) fn draw(replayed: &ReplayedWalk<'_>, out: &mut dyn Write) -> io::Result<()> {
    replayed.write_header(out)?;
    writeln!(out, "\n{HEAD}Stack{HEAD:#}, from low to high addresses")?;
    Drawing::new(replayed).write(out)?;
    writeln!(out)?;
    write_verdict(replayed, out)
}

impl<'d, 'w> Drawing<'d, 'w> {
    fn new(replayed: &'d ReplayedWalk<'w>) -> Self {
        let mut drawing = Self { replayed, items: BTreeMap::new(), reads: BTreeMap::new() };
        drawing.place_managed_frames();
        drawing.place_frames();
        drawing.count_reads();
        drawing
    }

    fn place(&mut self, address: u64, item: Item) {
        self.items.entry(address).or_default().push(item);
    }

    /// Places managed frames, markers and hijacked slots by the events of the outer call.
    fn place_managed_frames(&mut self) {
        let mut callbacks = 0;
        let mut depth = 0;
        let mut met: Option<(u64, ManagedFrame)> = None;
        let mut found = Vec::new();
        for event in &self.replayed.events {
            match event {
                Event::Called { .. } => depth += 1,
                Event::Ended(_) => depth -= 1,
                _ if depth != 1 => {}
                Event::Managed { ip, rsp, caller_sp, .. } => {
                    let frame =
                        ManagedFrame { ip: *ip, caller_sp: *caller_sp, fate: Fate::Unknown };
                    found.extend(met.replace((*rsp, frame)));
                }
                Event::ReportedManaged { .. } => {
                    if let Some((_, frame)) = &mut met {
                        frame.fate = Fate::Reported(callbacks);
                    }
                    callbacks += 1;
                }
                Event::ReportedMarker { ip, rsp, .. } => {
                    self.items
                        .entry(*rsp)
                        .or_default()
                        .push(Item::Marker { callback: callbacks, ip: *ip });
                    callbacks += 1;
                }
                Event::Hidden { ip, .. } | Event::NotReported { at: ip, .. } => {
                    if let Some((_, frame)) = &mut met
                        && frame.ip == *ip
                    {
                        let hidden = matches!(event, Event::Hidden { .. });
                        frame.fate = if hidden { Fate::Hidden } else { Fate::Silent };
                    }
                }
                Event::Unhijacked { slot, address } => {
                    self.items.entry(*slot).or_default().push(Item::Hijacked { address: *address });
                }
                _ => {}
            }
        }
        found.extend(met);
        for (rsp, frame) in found {
            self.place(rsp, Item::Managed(frame));
        }
    }

    fn place_frames(&mut self) {
        for frame in &self.replayed.chain {
            let fate = self.fate(frame.at);
            self.place(frame.at, Item::Frame { frame: *frame, fate });
        }
    }

    /// Returns the walk's actions on the Frame at this address.
    fn fate(&self, frame: u64) -> String {
        let events = self.replayed.events.iter();
        let fates = events.filter_map(|event| match event {
            Event::FrameFollowed { at, .. } if *at == frame => Some("followed"),
            Event::ResumableFrame { at } if *at == frame => Some(ENDED),
            Event::FrameDropped { at, why, .. } if *at == frame => Some(match why {
                DropReason::BelowCallerSp(_) => "dropped unseen",
                DropReason::LeadsNowhere | DropReason::LeadsToUnmanagedCode(_) => "left behind",
            }),
            _ => None,
        });
        let fates: Vec<_> = fates.collect();
        if fates.is_empty() { "not looked at".to_owned() } else { fates.join(", ") }
    }

    fn count_reads(&mut self) {
        for (address, size) in &self.replayed.reads {
            let first = address / WORD;
            let last = address.saturating_add(u64::from(*size).saturating_sub(1)) / WORD;
            for word in first..=last {
                *self.reads.entry(word * WORD).or_default() += 1;
            }
        }
        // Words elsewhere, such as those of the Thread object, are not on the stack.
        let (low, high) = self.bounds();
        self.reads.retain(|address, _| (low..high).contains(address));
    }

    /// Returns the lowest address of the recorded stack and the address after its highest (VA).
    fn bounds(&self) -> (u64, u64) {
        let Some(stack) = &self.replayed.walk.stack else { return (0, 0) };
        let base = stack.base.0;
        let first = self.items.keys().chain(stack.parts.iter().map(|(at, _)| &at.0)).min();
        let low = stack.limit.or(stack.low).map_or(0, |low| low.0);
        (first.map_or(low, |first| low.min(*first)), base)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.items.is_empty() {
            return writeln!(out, "  the walk met no frame");
        }
        writeln!(out, "  {DIM}{:>18}  {:>18}  reads{DIM:#}", "address", "value")?;
        let mut addresses: Vec<u64> = self.items.keys().chain(self.reads.keys()).copied().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut drawn = None;
        for address in addresses {
            if let Some(behind) = drawn
                && behind < address
            {
                writeln!(
                    out,
                    "  {DIM}{:>18}  {:#x} bytes, not read{DIM:#}",
                    "…",
                    address - behind
                )?;
            }
            for item in self.items.get(&address).into_iter().flatten() {
                self.write_item(address, item, out)?;
            }
            drawn = Some(address);
            if let Some(count) = self.reads.get(&address) {
                self.write_word(address, *count, out)?;
                drawn = Some(address.saturating_add(WORD));
            }
        }
        Ok(())
    }

    fn write_item(&self, address: u64, item: &Item, out: &mut dyn Write) -> io::Result<()> {
        let name = |ip: u64| self.replayed.names.place(ip);
        match item {
            Item::Managed(ManagedFrame { ip, caller_sp, fate }) => {
                let (style, fate) = match fate {
                    Fate::Reported(n) => (GOOD, format!("callback {n}")),
                    Fate::Hidden => (DIM, "hidden".to_owned()),
                    Fate::Silent => (DIM, "not reported".to_owned()),
                    Fate::Unknown => (BAD, "the walk ended here".to_owned()),
                };
                writeln!(
                    out,
                    "{HEAD}{address:#x}{HEAD:#}  managed frame {HEAD}{}{HEAD:#}, to caller SP \
                     {caller_sp:#x}: {style}{fate}{style:#}",
                    name(*ip)
                )
            }
            Item::Marker { callback, ip } => writeln!(
                out,
                "{HEAD}{address:#x}{HEAD:#}  native code, {}: {GOOD}callback {callback}{GOOD:#}, \
                 marker",
                name(*ip)
            ),
            Item::Frame { frame, fate } => {
                let kind = match frame.kind {
                    Some(kind) => format!("Frame {HEAD}{kind}{HEAD:#}"),
                    None => format!("{BAD}no Frame{BAD:#}, but on the chain"),
                };
                let leads = match frame.leads_to {
                    // The target is not always recorded in this case.
                    FrameDestination::Managed(_) if fate.ends_with(ENDED) => {
                        "to managed code".to_owned()
                    }
                    FrameDestination::Managed(ip) | FrameDestination::Unmanaged(ip) => {
                        format!("to {}", name(ip))
                    }
                    FrameDestination::Nowhere => "to nowhere".to_owned(),
                    FrameDestination::Unknown => "to an unknown address".to_owned(),
                };
                let style = if fate.starts_with("followed") { GOOD } else { DIM };
                writeln!(out, "{HEAD}{address:#x}{HEAD:#}  {kind}, {leads}: {style}{fate}{style:#}")
            }
            Item::Hijacked { address: original } => writeln!(
                out,
                "{HEAD}{address:#x}{HEAD:#}  {BAD}hijacked return address{BAD:#}, in truth to {}",
                name(*original)
            ),
        }
    }

    fn write_word(&self, address: u64, count: u32, out: &mut dyn Write) -> io::Result<()> {
        let memory = self.replayed.runtime.memory.borrow();
        let value = memory.read_u64(address).ok();
        let text = value.map_or_else(|| "?".to_owned(), |value| format!("{value:#x}"));
        let role = self.role(address, value);
        let style = if role.starts_with("return address") { HEAD } else { Style::new() };
        writeln!(out, "  {address:#18x}  {text:>18}  {count:>5}  {style}{role}{style:#}")
    }

    /// Returns the role of a word that was read.
    fn role(&self, address: u64, value: Option<u64>) -> String {
        let below = self.items.range(..=address).rev();
        let mut items = below.flat_map(|(at, items)| items.iter().map(move |item| (*at, item)));
        let frame = items.clone().find_map(|(at, item)| match item {
            Item::Frame { frame, .. } => Some((at, frame)),
            _ => None,
        });
        let managed = items.find_map(|(at, item)| match item {
            Item::Managed(frame) if address < frame.caller_sp => Some((at, frame)),
            _ => None,
        });
        let returns = |to: u64| match self.replayed.names.place(to) {
            place @ NamedAddress::Unknown { .. } => format!("return address, {place}"),
            place => format!("return address into {place}"),
        };
        match (managed, frame, value) {
            (Some((_, managed)), _, Some(value))
                if managed.caller_sp.wrapping_sub(WORD) == address =>
            {
                returns(value)
            }
            (managed, Some((at, frame)), _)
                if managed.is_none_or(|(start, _)| start <= at)
                    && address - at < self.size(frame.kind) =>
            {
                let kind = frame.kind.map_or("Frame", |kind| kind.name());
                match address - at {
                    0 => format!("{kind}: what kind it is"),
                    layout::NEXT => format!("{kind}: the next Frame"),
                    offset => format!("{kind}: field at +{offset:#x}"),
                }
            }
            (Some(_), ..) => "saved register".to_owned(),
            (None, Some(_), _) => "read through a Frame".to_owned(),
            (None, None, _) => String::new(),
        }
    }

    /// Returns the size of the part of a Frame that walks read, in bytes.
    fn size(&self, kind: Option<FrameKind>) -> u64 {
        let generation = self.replayed.recording.generation;
        let convention = FrameConvention::of(generation);
        match kind.map(FrameKind::shape) {
            None => WORD,
            Some(FrameShape::Mark) => layout::NEXT + WORD,
            Some(FrameShape::InlinedCall) => generation.inlined_call_frame().frame_pointer + WORD,
            Some(FrameShape::HelperMethod) => convention.machine_state.captured_rsp + WORD,
            Some(FrameShape::Hijack) => layout::HIJACK_ARGS + WORD,
            Some(FrameShape::Faulting) => layout::FAULTING_CONTEXT + CONTEXT_SIZE as u64,
            Some(FrameShape::Software) => layout::SOFTWARE_CONTEXT + CONTEXT_SIZE as u64,
            Some(FrameShape::TailCall) => {
                layout::TAIL_CALL_REGISTERS + convention.saved_size() + WORD
            }
            Some(
                FrameShape::FramedMethod
                | FrameShape::Transition
                | FrameShape::Resumable
                | FrameShape::FuncEval
                | FrameShape::UnmanagedToManaged,
            ) => layout::METHOD + WORD,
        }
    }
}
