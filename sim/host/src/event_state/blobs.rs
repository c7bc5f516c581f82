//! Bytes of events: metadata (`ep_metadata_generator_generate_event_metadata`) and data.

use crate::out::wide;
use crate::process::OBJECT_SIZE;
use clr_com::{ClassId, ObjectId};

/// `EP_PARAMETER_TYPE_STRING`, `EP_PARAMETER_TYPE_ARRAY`.
const STRING: u32 = 18;
pub(crate) const ARRAY: u32 = 19;
/// `EP_METADATA_TAG_OPCODE`, `EP_METADATA_TAG_PARAMETER_PAYLOAD`.
const OPCODE: u8 = 1;
const PARAMETERS: u8 = 2;
/// Amount of an AllocationTick in bytes: about 100 KiB.
const AMOUNT: u32 = 0x1_9190;

/// A parameter of an event.
pub(crate) struct Parameter {
    /// `COR_PRF_EVENTPIPE_PARAM_TYPE`.
    pub(crate) kind: u32,
    /// The type of the elements of an array.
    pub(crate) element: u32,
    /// Name, with its final 0.
    pub(crate) name: Vec<u16>,
}

/// The head of an event's metadata.
pub(crate) struct Head<'n> {
    /// Number.
    pub(crate) id: u32,
    /// Name, with its final 0.
    pub(crate) name: &'n [u16],
    /// Keywords.
    pub(crate) keywords: u64,
    /// Version.
    pub(crate) version: u32,
    /// Level.
    pub(crate) level: u32,
    /// Opcode, or 0.
    pub(crate) opcode: u8,
}

fn text(units: &[u16]) -> impl Iterator<Item = u8> {
    units.iter().flat_map(|unit| unit.to_le_bytes())
}

/// Returns the metadata of an event.
pub(crate) fn metadata(head: &Head<'_>, parameters: &[Parameter]) -> Vec<u8> {
    let mut bytes = head.id.to_le_bytes().to_vec();
    bytes.extend(text(head.name));
    bytes.extend(head.keywords.to_le_bytes());
    bytes.extend(head.version.to_le_bytes());
    bytes.extend(head.level.to_le_bytes());
    // Arrays need the second form of parameters.
    let is_second = parameters.iter().any(|one| one.kind == ARRAY);
    let count = parameters.len() as u32;
    bytes.extend(if is_second { 0 } else { count }.to_le_bytes());
    if !is_second {
        for parameter in parameters {
            bytes.extend(parameter.kind.to_le_bytes());
            bytes.extend(text(&parameter.name));
        }
    }
    if head.opcode != 0 {
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([OPCODE, head.opcode]);
    }
    if is_second {
        let mut payload = count.to_le_bytes().to_vec();
        for parameter in parameters {
            let kinds = [parameter.kind, parameter.element];
            let kinds = kinds.iter().take(if parameter.kind == ARRAY { 2 } else { 1 });
            let kinds: Vec<u8> = kinds.flat_map(|kind| kind.to_le_bytes()).collect();
            let size = 4 + 2 * parameter.name.len() + kinds.len();
            payload.extend((size as u32).to_le_bytes());
            payload.extend(text(&parameter.name));
            payload.extend(kinds);
        }
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.push(PARAMETERS);
        bytes.extend(payload);
    }
    bytes
}

/// Returns the metadata of an event of the runtime, which has no name and no parameters there
/// (`ep_event_build_minimum_metadata`).
pub(super) fn minimal(id: u32, keywords: u64, version: u32, level: u32) -> Vec<u8> {
    metadata(&Head { id, name: &[0], keywords, version, level, opcode: 0 }, &[])
}

/// Returns the metadata of ProcessInfo, whose version is 1 there.
pub(super) fn of_process_info() -> Vec<u8> {
    let names = ["CommandLine", "OSInformation", "ArchInformation"];
    let parameter = |name: &str| Parameter { kind: STRING, element: 0, name: wide(name) };
    let name = wide("ProcessInfo");
    let head = Head { id: 1, name: &name, keywords: 0, version: 1, level: 0, opcode: 0 };
    metadata(&head, &names.map(parameter))
}

/// Returns the data of ProcessInfo. The command line is always the same.
pub(crate) fn process_info(is_unix: bool) -> Vec<u8> {
    let system = if is_unix { "Linux" } else { "Windows" };
    ["App", system, "x64"].iter().flat_map(|part| text(&wide(part)).collect::<Vec<_>>()).collect()
}

/// Returns the data of AllocationTick, version 4 (`GCAllocationTick_V4` of ClrEtwAll.man): amount, kind (0:
/// small objects), the runtime's number, amount, class, its name, heap, address and size of the object.
pub(crate) fn allocation_tick(object: ObjectId, class: ClassId, name: &str) -> Vec<u8> {
    let mut bytes = AMOUNT.to_le_bytes().to_vec();
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(u64::from(AMOUNT).to_le_bytes());
    bytes.extend(class.0.to_le_bytes());
    bytes.extend(text(&wide(name)));
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(object.0.to_le_bytes());
    bytes.extend(OBJECT_SIZE.to_le_bytes());
    bytes
}
