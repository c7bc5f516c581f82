//! Blocks of memory behind the arguments of a call.

use super::{ArgumentKind, ArgumentSignature, MethodSignature, ROOM, Value};
use clr_com::{AssemblyMetadata, EventData, EventParameter, EventProviderConfig};
use std::cell::Cell;
use std::mem::offset_of;

/// Number of bytes before and behind each block that nothing may write to.
const FENCE: usize = 0x40;
/// Bytes of a block that a method writes.
const PATTERN: u8 = 0xA5;
const FENCED: u8 = 0x5A;
/// Number of bytes that a method may read if it is not known how many it reads.
const READABLE: usize = 0x200;

/// Limit of the room for a locale in UTF-16 units.
const MOST_LOCALE: u8 = 16;

/// Memory between two fences.
pub(super) struct Block {
    /// Cells, because methods write here.
    words: Vec<Cell<u64>>,
    before: Vec<u8>,
    /// The block that this one points to.
    inner: Option<Box<Block>>,
}

impl Block {
    /// Makes a block of a size that begins with some bytes.
    fn new(size: usize, start: &[u8], rest: u8) -> Self {
        let mut before: Vec<u8> = start.iter().copied().take(size).collect();
        before.resize(size, rest);
        let fence = || std::iter::repeat_n(FENCED, FENCE);
        let all: Vec<u8> = fence().chain(before.iter().copied()).chain(fence()).collect();
        let words = all.chunks(8).map(|chunk| {
            let mut word = [FENCED; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            Cell::new(u64::from_ne_bytes(word))
        });
        Self { words: words.collect(), before, inner: None }
    }

    /// Makes an `ASSEMBLYMETADATA` with room for a number of units of the locale.
    fn metadata(room: u8) -> Self {
        let locale = (room > 0).then(|| Box::new(Self::new(2 * usize::from(room), &[], PATTERN)));
        let address = locale.as_ref().map_or(0, |locale| locale.address());
        let mut start = [0; size_of::<AssemblyMetadata>()];
        let fields = [
            (offset_of!(AssemblyMetadata, locale), &address.to_ne_bytes()[..]),
            (offset_of!(AssemblyMetadata, locale_len), &u32::from(room).to_ne_bytes()),
        ];
        for (at, field) in fields {
            start.iter_mut().skip(at).zip(field).for_each(|(to, from)| *to = *from);
        }
        Self { inner: locale, ..Self::new(start.len(), &start, 0) }
    }

    /// Makes an array of structures of EventPipe, if it is one: each points to a text or to data that begins
    /// with some bytes.
    fn events(name: &str, count: usize, start: &[u8]) -> Option<Self> {
        let first = u32::from(start.first().copied().unwrap_or_default());
        let text = || {
            let mut text: Vec<u8> = start.iter().copied().take(2 * ROOM as usize).collect();
            text.truncate(text.len() & !1);
            text.extend([0, 0]);
            Box::new(Self::new(text.len(), &text, 0))
        };
        let (inner, size, pointer, fields) = match name {
            "provider_configs" | "provider_config" => (
                text(),
                size_of::<EventProviderConfig>(),
                offset_of!(EventProviderConfig, name),
                [
                    (offset_of!(EventProviderConfig, keywords), u32::MAX),
                    (offset_of!(EventProviderConfig, level), first & 7),
                ],
            ),
            "parameters" => (
                text(),
                size_of::<EventParameter>(),
                offset_of!(EventParameter, name),
                [
                    (offset_of!(EventParameter, kind), first & 0x1F),
                    (offset_of!(EventParameter, element), 6),
                ],
            ),
            "data" => (
                Box::new(Self::new(start.len(), start, 0)),
                size_of::<EventData>(),
                offset_of!(EventData, data),
                [
                    (offset_of!(EventData, size), start.len() as u32),
                    (offset_of!(EventData, reserved), 0),
                ],
            ),
            _ => return None,
        };
        let mut element = vec![0; size];
        let mut set = |at: usize, bytes: &[u8]| {
            element.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
        };
        set(pointer, &inner.address().to_ne_bytes());
        for (at, field) in fields {
            set(at, &field.to_ne_bytes());
        }
        let array = element.repeat(count);
        Some(Self { inner: Some(inner), ..Self::new(array.len(), &array, 0) })
    }

    pub(super) fn address(&self) -> u64 {
        (self.words.as_ptr() as usize + FENCE) as u64
    }

    fn now(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.get().to_ne_bytes()).collect()
    }

    /// Returns true if nothing was written around the block, and the one that it points to.
    pub(super) fn is_fenced(&self) -> bool {
        if self.inner.as_ref().is_some_and(|inner| !inner.is_fenced()) {
            return false;
        }
        let now = self.now();
        let (front, rest) = now.split_at(FENCE.min(now.len()));
        let behind = rest.iter().skip(self.before.len());
        front.iter().chain(behind).all(|byte| *byte == FENCED)
    }

    /// Returns the bytes, if they are not those from before.
    pub(super) fn changed(&self) -> Option<Vec<u8>> {
        let now: Vec<u8> = self.now().into_iter().skip(FENCE).take(self.before.len()).collect();
        (now != self.before).then_some(now)
    }
}

/// Returns the argument with the number of elements that there is room for.
fn room_of(method: &MethodSignature, index: usize) -> Option<usize> {
    let name = method.arguments.get(index)?.name;
    let named = |suffix: &str| {
        let wanted = format!("{name}{suffix}");
        method.arguments.iter().position(|one| one.name == wanted)
    };
    let is_capacity =
        |at: &usize| method.arguments.get(*at).is_some_and(|one| one.name == "capacity");
    let beside = || {
        let is_count = name.ends_with("_len") || name == "fetched" || name == "enumerator";
        [Some(index + 1), index.checked_sub(1)]
            .into_iter()
            .flatten()
            .find(is_capacity)
            .filter(|_| !is_count)
    };
    let reads = matches!(method.arguments.get(index)?.kind, ArgumentKind::In { .. });
    let sized = || if reads { named("_size").or_else(|| named("_len")) } else { None };
    // Requests name methods by arrays that share their length.
    let shared = || {
        let is_shared = matches!(name, "modules" | "methods" | "status");
        let len = || method.arguments.iter().position(|one| one.name == "functions_len");
        is_shared.then(len).flatten()
    };
    named("_capacity").or_else(beside).or_else(sized).or_else(shared)
}

fn number(values: &[Value], index: usize) -> u64 {
    match values.get(index) {
        Some(Value::Number(number)) => *number,
        _ => 0,
    }
}

/// Returns true for a pointer that is a number to the method: an address in the simulated process, a
/// handle, or what a callback gets back.
fn is_number(argument: &ArgumentSignature) -> bool {
    match argument.kind {
        ArgumentKind::Number { .. } => true,
        ArgumentKind::In { size } => size == 1 && argument.name == "ip",
        ArgumentKind::Out { size } => {
            size == 1 && matches!(argument.name, "client_data" | "enumerator")
        }
        ArgumentKind::Function => false,
    }
}

/// Returns true for an argument that takes the bytes of a test as they are. In others there may be
/// pointers, which only zeros are sure not to be.
fn takes_bytes(argument: &ArgumentSignature) -> bool {
    match argument.kind {
        ArgumentKind::In { size: 2 } => true,
        ArgumentKind::In { .. } => matches!(argument.name, "riid" | "context"),
        ArgumentKind::Out { size: 8 } => argument.name == "enumerator",
        // The method reads how much there is room for.
        ArgumentKind::Out { size: 4 } => argument.name == "argument_info_size",
        _ => false,
    }
}

/// Returns the block of a pointer, unless it is NULL or a number.
pub(super) fn block_of(method: &MethodSignature, values: &[Value], index: usize) -> Option<Block> {
    let argument = method.arguments.get(index)?;
    let Some(Value::Block(start)) = values.get(index) else { return None };
    if is_number(argument) {
        return None;
    }
    if let (ArgumentKind::Out { .. }, "metadata") = (argument.kind, argument.name) {
        return Some(Block::metadata(start.first().map_or(0, |room| room % MOST_LOCALE)));
    }
    let room = room_of(method, index);
    let start_of_events = start.as_slice();
    let start = if takes_bytes(argument) { start.as_slice() } else { &[] };
    let elements = room.map(|room| number(values, room).min(ROOM.into()) as usize);
    match argument.kind {
        // Code is called: it is a function of the probe, or none.
        ArgumentKind::In { .. } if is_code(argument) => None,
        // A text, which ends with 0.
        ArgumentKind::In { size: 2 } => {
            let mut text: Vec<u8> = start.iter().copied().take(2 * ROOM as usize).collect();
            text.truncate(text.len() & !1);
            text.extend([0, 0]);
            // A text whose length is said has as many units.
            let len = elements.map_or(text.len(), |units| text.len().max(2 * units));
            Some(Block::new(len, &text, 0))
        }
        ArgumentKind::In { size: 16 | 32 } if method.name.starts_with("EventPipe") => {
            Block::events(argument.name, elements.unwrap_or(1), start_of_events)
                .or_else(|| Some(Block::new(16, &[], 0)))
        }
        ArgumentKind::In { size } => {
            let known = (argument.name == "riid").then_some(size);
            // The size of a constant counts characters, and is not that of a number.
            let unit = if argument.name == "value" { 2 * size } else { size };
            let least = if argument.name == "value" { 8 } else { 0 };
            let sized = elements.map(|count| (unit * count).max(least));
            let len = known.or(sized).unwrap_or(READABLE);
            Some(Block::new(len, start, 0))
        }
        ArgumentKind::Out { size } => {
            Some(Block::new(size * elements.unwrap_or(1), start, PATTERN))
        }
        ArgumentKind::Number { .. } | ArgumentKind::Function => None,
    }
}

fn is_code(argument: &ArgumentSignature) -> bool {
    ["hook", "enter", "leave", "tailcall", "func", "mapper", "callback"]
        .iter()
        .any(|part| argument.name.contains(part))
}

/// Returns the word of an argument that has no block.
pub(super) fn word_of(method: &MethodSignature, values: &[Value], index: usize) -> u64 {
    let Some(argument) = method.arguments.get(index) else { return 0 };
    match (argument.kind, values.get(index)) {
        (ArgumentKind::Function, Some(Value::Block(_))) => super::profiler::on_frame(),
        (ArgumentKind::In { .. }, Some(Value::Block(_))) if is_code(argument) => {
            super::hooks::address(method.name, argument.name).unwrap_or_default()
        }
        _ if !is_number(argument) => 0,
        (_, Some(Value::Number(number))) if is_room_of_a_block(method, values, index) => {
            (*number).min(ROOM.into())
        }
        (_, Some(Value::Number(number))) => *number,
        (_, Some(Value::Block(start))) => {
            let mut word = [0; 8];
            word.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(word)
        }
        (_, None) => 0,
    }
}

fn is_room_of_a_block(method: &MethodSignature, values: &[Value], index: usize) -> bool {
    (0..method.arguments.len()).any(|other| {
        room_of(method, other) == Some(index) && matches!(values.get(other), Some(Value::Block(_)))
    })
}

/// Arguments in which methods lend memory, and those for its size.
const LENT: [(&str, &str); 4] = [
    ("signature", "signature_size"),
    ("data", "data_len"),
    ("public_key", "public_key_size"),
    ("hash", "hash_size"),
];

/// Reads what a method lends: a signature, the data of an attribute, or a key.
pub(super) fn read_lent(method: &MethodSignature, blocks: &[(ArgumentSignature, Block)]) {
    let value = |name: &str| {
        let (_, block) = blocks.iter().find(|(argument, _)| argument.name == name)?;
        let bytes = block.changed()?;
        let mut word = [0; 8];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Some(u64::from_le_bytes(word))
    };
    for (pointer, len) in LENT {
        let is_lent = method.arguments.iter().any(|argument| {
            argument.name == pointer && matches!(argument.kind, ArgumentKind::Out { .. })
        });
        if let (true, Some(address), Some(len)) = (is_lent, value(pointer), value(len)) {
            for at in 0..len {
                // SAFETY: the method has said that it lends these bytes.
                let byte = unsafe { std::ptr::read_volatile((address + at) as usize as *const u8) };
                std::hint::black_box(byte);
            }
        }
    }
}
