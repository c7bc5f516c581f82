//! Arguments made from bytes.

use arbitrary::{Result, Unstructured};
use clrsim::probe::{
    ArgumentKind, ArgumentSignature, METADATA_IDS, MethodSignature, Value, interface_ids,
};

/// Maximum number of numbers that are remembered.
const KNOWN: usize = 64;
/// Names that metadata has, and one that it has not.
const NAMES: [&str; 6] = ["Prog", "Inner", "Pool`1", "Acme.Traced", "App", "None"];
/// Arguments that are event masks.
const EVENTS: [&str; 2] = ["events", "events_low"];
/// Events that programs raise, and what else methods need: loads, compilations and their search,
/// exceptions, threads; hooks, with arguments, return values and frames; snapshots.
const MASKS: [u32; 8] =
    [0x1C, 0x820, 0x40, 0x0101_0200, 0x1000, 0x0600_1000, 0x0800_1000, 0x1000_0000];
/// Tables of metadata with rows, and one without.
const TABLES: [u32; 8] = [0, 1, 2, 4, 6, 0x20, 0x23, 0x2A];

/// The bytes of an input, and what the runtime has given away so far.
pub(super) struct Source<'d> {
    pub(super) bytes: Unstructured<'d>,
    known: Vec<u64>,
    context: Vec<u8>,
}

impl<'d> Source<'d> {
    pub(super) fn new(bytes: &'d [u8]) -> Self {
        Self { bytes: Unstructured::new(bytes), known: Vec::new(), context: Vec::new() }
    }

    /// Remembers a number.
    pub(super) fn learn(&mut self, number: u64) {
        if number != 0 && !self.known.contains(&number) {
            if self.known.len() == KNOWN {
                self.known.remove(0);
            }
            self.known.push(number);
        }
    }

    /// Remembers the number that a method has written.
    pub(super) fn learn_bytes(&mut self, bytes: &[u8]) {
        match bytes.first_chunk::<8>() {
            Some(first) => self.learn(u64::from_le_bytes(*first)),
            None => {
                if let Some(first) = bytes.first_chunk::<4>() {
                    self.learn(u32::from_le_bytes(*first).into());
                }
            }
        }
    }

    /// Remembers a CONTEXT.
    pub(super) fn keep_context(&mut self, context: &[u8]) {
        if !context.is_empty() {
            self.context = context.to_vec();
        }
    }

    /// Draws the arguments of a call.
    pub(super) fn values(&mut self, method: &MethodSignature) -> Result<Vec<Value>> {
        method.arguments.iter().map(|argument| self.value(argument)).collect()
    }

    fn value(&mut self, argument: &ArgumentSignature) -> Result<Value> {
        let is_capacity = argument.name.ends_with("capacity") || argument.name.ends_with("_size");
        match argument.kind {
            ArgumentKind::Number { size: 4 } if is_capacity => self.room(),
            ArgumentKind::Number { size: 4 } if EVENTS.contains(&argument.name) => self.events(),
            ArgumentKind::Number { .. } => self.number().map(Value::Number),
            _ if self.bytes.ratio(1_u8, 6_u8)? => Ok(Value::Number(0)),
            ArgumentKind::Out { size: 1 } => self.number().map(Value::Number),
            ArgumentKind::In { size: 1 } if argument.name == "ip" => {
                self.number().map(Value::Number)
            }
            ArgumentKind::In { size: 1 } if argument.name == "context" => self.seed(),
            ArgumentKind::In { size: 2 } => self.name(),
            ArgumentKind::In { size: 32 } => self.provider(),
            ArgumentKind::In { size: 16 } => self.iid(),
            ArgumentKind::Out { size: 8 } if argument.name == "enumerator" => {
                let known = self.bytes.ratio(1_u8, 2_u8)?;
                let handle = if known { self.number()? } else { 0 };
                Ok(Value::Block(handle.to_le_bytes().to_vec()))
            }
            ArgumentKind::Out { size: 4 } if argument.name == "argument_info_size" => {
                let room = u32::from(self.bytes.arbitrary::<u8>()? & 0x3F);
                Ok(Value::Block(room.to_le_bytes().to_vec()))
            }
            ArgumentKind::Out { .. } if argument.name == "metadata" => {
                Ok(Value::Block(vec![self.bytes.arbitrary()?]))
            }
            ArgumentKind::In { .. } | ArgumentKind::Out { .. } | ArgumentKind::Function => {
                Ok(Value::Block(Vec::new()))
            }
        }
    }

    /// Draws an event mask.
    fn events(&mut self) -> Result<Value> {
        let mut events = 0;
        if self.bytes.ratio(3_u8, 4_u8)? {
            for _ in 0..self.bytes.int_in_range(0..=4_u8)? {
                events |= self.bytes.choose(&MASKS)?;
            }
        } else {
            events = self.number()? as u32;
        }
        Ok(Value::Number(events.into()))
    }

    fn room(&mut self) -> Result<Value> {
        let byte: u8 = self.bytes.arbitrary()?;
        Ok(Value::Number(match byte {
            0..0x80 => u64::from(byte & 15),
            0x80..0xC0 => u64::from(byte - 0x60),
            0xC0..0xF0 => 0x400,
            0xF0..0xF8 => 0x4D0,
            _ => self.bytes.arbitrary::<u32>()?.into(),
        }))
    }

    fn number(&mut self) -> Result<u64> {
        let byte: u8 = self.bytes.arbitrary()?;
        Ok(match byte {
            // The newest numbers come first.
            0..0xA0 if !self.known.is_empty() => {
                let back = usize::from(byte) % self.known.len();
                self.known[self.known.len() - 1 - back]
            }
            0..0xB0 => 0,
            0xB0..0xD0 => u64::from(byte & 0x1F),
            0xD0..0xE8 => {
                let table = *self.bytes.choose(&TABLES)?;
                u64::from(table << 24 | u32::from(self.bytes.arbitrary::<u8>()? & 15))
            }
            0xE8..0xF0 => 0x1000_0000 | u64::from(self.bytes.arbitrary::<u32>()?),
            0xF0..0xF4 => u64::from(u32::MAX),
            0xF4..0xF8 if !self.known.is_empty() => {
                let one = *self.bytes.choose(&self.known)?;
                one.wrapping_add(u64::from(self.bytes.arbitrary::<u8>()?))
            }
            _ => self.bytes.arbitrary()?,
        })
    }

    fn seed(&mut self) -> Result<Value> {
        let mut seed = self.context.clone();
        if seed.is_empty() || self.bytes.ratio(1_u8, 4_u8)? {
            let len = *self.bytes.choose(&[0, 8, 0x30, 0x4D0, 0x4D0, 0xC20])?;
            seed = vec![0; len];
        }
        // Another register now and then.
        if self.bytes.ratio(1_u8, 4_u8)? {
            let at = 8 * usize::from(self.bytes.arbitrary::<u8>()?);
            let number = self.number()?.to_le_bytes();
            if let Some(word) = seed.get_mut(at..at + 8) {
                word.copy_from_slice(&number);
            }
        }
        Ok(Value::Block(seed))
    }

    fn name(&mut self) -> Result<Value> {
        let units: Vec<u16> = if self.bytes.ratio(7_u8, 8_u8)? {
            self.bytes.choose(&NAMES)?.encode_utf16().collect()
        } else {
            let len = self.bytes.int_in_range(0..=8_usize)?;
            (0..len).map(|_| self.bytes.arbitrary()).collect::<Result<_>>()?
        };
        Ok(Value::Block(units.into_iter().flat_map(u16::to_le_bytes).collect()))
    }

    /// Draws the name of a provider of events.
    fn provider(&mut self) -> Result<Value> {
        if self.bytes.ratio(1_u8, 2_u8)? {
            return self.name();
        }
        let name = "Microsoft-Windows-DotNETRuntime";
        Ok(Value::Block(name.encode_utf16().flat_map(u16::to_le_bytes).collect()))
    }

    /// Draws an id of an interface.
    pub(super) fn iid(&mut self) -> Result<Value> {
        let ids = interface_ids();
        // Those of metadata are asked for more often.
        let few = self.bytes.ratio(1_u8, 2_u8)?;
        let mut iid =
            *self.bytes.choose(ids.get(..METADATA_IDS).filter(|_| few).unwrap_or(&ids))?;
        if self.bytes.ratio(1_u8, 16_u8)? {
            iid[0] ^= 1;
        }
        Ok(Value::Block(iid.to_vec()))
    }
}
