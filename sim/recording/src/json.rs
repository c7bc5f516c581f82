//! Data structures for the lines of a recording.
#![expect(missing_docs, reason = "the page of the format describes the fields")]

use super::RecordingProblem;
use clr_runtime::generation::Generation;
use data_encoding::{BASE64, HEXLOWER};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;

/// A number written as `"0x…"`, in a few places as a plain JSON number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hex(pub u64);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        let text = match Either::deserialize(deserializer)? {
            Either::Number(number) => return Ok(Self(number)),
            Either::Text(text) => text,
        };
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.map(Self).ok_or_else(|| de::Error::custom(format_args!("`{text}`: not a 0x number")))
    }
}

/// Bytes written as hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        HEXLOWER.decode(text.as_bytes()).map(Self).map_err(de::Error::custom)
    }
}

/// Bytes written in base 64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base64Bytes(pub Vec<u8>);

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map(Self).map_err(de::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub(super) enum Line {
    Recording(HeaderLine),
    Image(ImageLine),
    Function(FunctionLine),
    Code(CodeLine),
    Bytes(BytesLine),
    Walk(Box<WalkLine>),
}

#[derive(Deserialize)]
pub(super) struct HeaderLine {
    pub format: u32,
    generation: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    legacy_exception_handling: bool,
}

impl HeaderLine {
    pub(super) fn generation(&self) -> Result<Generation, RecordingProblem> {
        let generation = Generation::from_name(&self.generation);
        match (generation.ok_or(RecordingProblem::Generation)?, self.legacy_exception_handling) {
            (generation, false) => Ok(generation),
            (Generation::Net9Unix, true) => Ok(Generation::Net9UnixLegacyExceptions),
            (generation, true) => Err(RecordingProblem::LegacyExceptions(generation)),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct ImageLine {
    pub id: u32,
    pub name: String,
    pub base: Hex,
    pub size: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FunctionLine {
    pub id: u32,
    pub function_id: Hex,
    pub name: String,
    pub dynamic: bool,
    #[serde(default)]
    pub exception_handling: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CodeLine {
    pub id: u32,
    pub function: Option<u32>,
    pub kind: String,
    pub image: Option<u32>,
    pub ranges: Vec<(Hex, u64)>,
    pub unwind_base: Hex,
    pub entries: Vec<EntryLine>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct EntryLine {
    pub begin: u32,
    pub end: u32,
    pub unwind_info: HexBytes,
    pub funclet: Option<String>,
    #[serde(default)]
    pub chain: Vec<ParentLine>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ParentLine {
    pub begin: u32,
    pub end: u32,
    pub unwind_info: HexBytes,
}

#[derive(Deserialize)]
pub(super) struct BytesLine {
    pub at: Hex,
    pub hex: HexBytes,
}

#[derive(Clone, Debug, Deserialize)]
pub struct WalkLine {
    pub n: u32,
    pub situation: String,
    pub variant: String,
    #[serde(default)]
    pub workload: String,
    pub relation: String,
    pub walker: String,
    pub thread: u32,
    pub nested_in: Option<u32>,
    pub call: CallLine,
    pub state: StateLine,
    pub frames: Vec<FrameLine>,
    pub leaf: Option<[Hex; 17]>,
    pub stack: Option<StackLine>,
    pub result: ResultLine,
    pub replayable: bool,
    pub why: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CallLine {
    pub thread: String,
    pub flags: Hex,
    pub context_size: u32,
    pub seed: Option<SeedLine>,
    pub callback: Option<String>,
    pub policy: Option<PolicyLine>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct SeedLine {
    pub made: String,
    pub registers: [Hex; 17],
    pub context_flags: Hex,
    pub readable: Option<u32>,
    pub xstate_features: Option<Hex>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct PolicyLine {
    pub stop_at: Option<u32>,
    pub returns: Option<Hex>,
    pub nested_at: Option<u32>,
    #[serde(default)]
    pub nested: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct StateLine {
    pub ee_started: Option<bool>,
    pub snapshot_enabled: Option<bool>,
    pub target: Option<String>,
    pub hijack_lock_held: bool,
    pub runtime_suspending: bool,
    pub forbid_suspend: bool,
    pub runtime_suspended_by_profiler: bool,
    pub mode: Option<String>,
    pub in_system_call: bool,
    pub exception: ExceptionLine,
    pub inferred: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExceptionLine {
    pub second_pass_native: bool,
    pub tracker_gone: bool,
    pub unwound: Vec<(Hex, Hex)>,
    pub funclets: Vec<FuncletLine>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FuncletLine {
    pub caller_sp: Hex,
    pub parent_caller_sp: Option<Hex>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FrameLine {
    pub at: Hex,
    pub kind: String,
    pub returns: Option<BTreeMap<String, Hex>>,
    #[serde(default)]
    pub returns_inferred: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct StackLine {
    pub low: Option<Hex>,
    pub base: Hex,
    pub limit: Option<Hex>,
    #[serde(default)]
    pub parts: Vec<(Hex, Base64Bytes)>,
    #[serde(default)]
    pub regions: Vec<(Hex, u64, String)>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ResultLine {
    pub hr: Option<Hex>,
    pub killed: Option<String>,
    #[serde(default)]
    pub callbacks: Vec<CallbackLine>,
    pub callback_count: Option<u32>,
    pub nested: Option<NestedLine>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct NestedLine {
    pub hr: Option<Hex>,
    pub callback_count: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CallbackLine {
    pub function: Option<u32>,
    pub ip: Hex,
    pub frame_info: bool,
    pub context_size: u32,
    pub registers: Option<[Hex; 17]>,
    pub context_flags: Option<Hex>,
    pub native: Option<String>,
}
