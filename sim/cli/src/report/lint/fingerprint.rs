//! What stays of a finding when its image is built anew.

use crate::render::code::Code;
use clr_lint::{Cause, Finding};
use clr_unwind::CodeRegion;
use iced_x86::{Decoder, DecoderOptions, OpKind};
use serde::{Serialize, Serializer};
use std::ops::Range;

/// A number that two findings of a kind in one function have in common, though the function is at another
/// address: it is made of the function's name or, without one, of its code less the addresses in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn new<'a>(code: &Code<'_, 'a>, region: &CodeRegion<'a>, finding: &Finding) -> Self {
        let mut sum = Fnv::new();
        sum.add(finding.blame.name().as_bytes());
        sum.add(finding.cause.name().as_bytes());
        let function = code.locate(region, finding.function.start);
        match function.name() {
            // A fault of the image as a whole is in no function.
            _ if matches!(finding.cause, Cause::NoUnwindData | Cause::NothingJudged) => {}
            Some(name) => sum.add(name.as_bytes()),
            None => add_code(&mut sum, region, finding.function.clone()),
        }
        Self(sum.0)
    }

    /// Reads the number as it is printed.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().map(Self)
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "pages")]
impl schemars::JsonSchema for Fingerprint {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fingerprint".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
    }
}

/// The sum of bytes by Fowler, Noll and Vo (FNV-1a), which is the same on every host.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        }
    }
}

/// Adds the instructions in a range, without the addresses that a linker fills in.
fn add_code(sum: &mut Fnv, region: &CodeRegion<'_>, range: Range<u32>) {
    let bytes = region.bytes_from(range.start).unwrap_or_default();
    let bytes = bytes.get(..range.len()).unwrap_or(bytes);
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    while decoder.can_decode() {
        let at = decoder.position();
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        let mut text = bytes.get(at..decoder.position()).unwrap_or_default().to_vec();
        let mut clear = |offset: usize, len: usize| {
            if let Some(bytes) = text.get_mut(offset..offset + len) {
                bytes.fill(0);
            }
        };
        if instruction.is_ip_rel_memory_operand() {
            clear(offsets.displacement_offset(), offsets.displacement_size());
        }
        if instruction.op0_kind() == OpKind::NearBranch64 {
            clear(offsets.immediate_offset(), offsets.immediate_size());
        }
        sum.add(&text);
    }
}
