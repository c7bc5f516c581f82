use super::Parts;
use crate::{InspectError, MethodNames, Runtime};
use clr_metadata::{Metadata, Method, NestedClass, Table, TypeDef, row_of, write};

const DESCRIPTOR: u64 = 0x1000;
const CHUNK: u64 = 0x3000;
const DESC: u64 = CHUNK + 24 + 2 * 8;
const IMAGE: u64 = 0x5_0000;
/// Offset of the metadata in the file, and its RVA.
const METADATA: [u64; 2] = [0x400, 0x2200];

fn text() -> String {
    let thread = r#""Thread":{"Id":0,"OSId":0,"State":0,"PreemptiveGCDisabled":0,"Frame":0,"LinkNext":0},
        "ThreadStore":{"FirstThreadLink":0,"ThreadCount":0,"UnstartedCount":0,"BackgroundCount":0,
        "PendingCount":0,"DeadCount":0}"#;
    format!(
        r#"{{"version":0,"baseline":"empty","types":{{{thread},
        "MethodDesc":{{"ChunkIndex":2,"Flags":6,"Flags3AndTokenRemainder":0}},
        "DynamicMethodDesc":{{"MethodName":32}},
        "MethodDescChunk":{{"!":24,"MethodTable":0,"FlagsAndTokenRange":18}},
        "MethodTable":{{"Module":24}},"Module":{{"Path":0,"PEAssembly":8}},
        "PEAssembly":{{"PEImage":8}},"PEImage":{{"LoadedImageLayout":8}},
        "PEImageLayout":{{"Base":8,"Flags":16}}}},
        "globals":{{"ThreadStore":1,"MethodDescAlignment":8,"MethodDescTokenRemainderBitCount":12}},
        "contracts":{{"Thread":1,"RuntimeTypeSystem":1,"Loader":1,"EcmaMetadata":1}}}}"#
    )
}

/// Returns metadata with the method `Acme.Shop+Order.Pay`, whose token is 0x06001102.
fn metadata() -> Vec<u8> {
    let mut metadata = Metadata::default();
    let shop = metadata.add(Table::TypeDef);
    metadata.set_string(shop, TypeDef::Name, "Shop");
    metadata.set_string(shop, TypeDef::Namespace, "Acme");
    metadata.begin_list(shop, Table::Method);
    let order = metadata.add(Table::TypeDef);
    metadata.set_string(order, TypeDef::Name, "Order");
    metadata.begin_list(order, Table::Method);
    for row in 1..=0x1102 {
        let method = metadata.add_child(order, Table::Method).unwrap();
        metadata.set_string(method, Method::Name, if row == 0x1102 { "Pay" } else { "Other" });
    }
    let nested = metadata.add(Table::NestedClass);
    metadata.set(nested, NestedClass::NestedClass, row_of(order));
    metadata.set(nested, NestedClass::EnclosingClass, row_of(shop));
    write(&metadata)
}

/// Returns a PE32 file, as an assembly without native code is, with the metadata.
fn file(metadata: &[u8]) -> Vec<u8> {
    let mut file = vec![0; METADATA[0] as usize];
    let mut place = |at: usize, words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file[at..at + bytes.len()].copy_from_slice(&bytes);
    };
    place(0x3C, &[0x40]);
    // Signature; machine and one section; then the size of the optional header, and its magic.
    place(0x40, &[u32::from_le_bytes(*b"PE\0\0"), 0x14C | 1 << 16]);
    place(0x54, &[96 + 16 * 8, 0x10B]);
    place(0x58 + 96 + 14 * 8, &[0x2000, 72]);
    place(0x58 + 96 + 16 * 8 + 8, &[0, 0x2000, 0x10_0000, 0x200]);
    // The CLI header, at RVA 0x2000.
    place(0x208, &[METADATA[1] as u32, metadata.len() as u32]);
    file.extend(metadata);
    file
}

/// Returns a process with a method whose image is flat, or mapped by its sections.
fn process(is_mapped: bool) -> Parts {
    let metadata = metadata();
    let file = file(&metadata);
    let mut parts = Parts::default();
    parts.put_descriptor(DESCRIPTOR, &text(), 0x1800).part(0x1800, 24).part(CHUNK, 0x80);
    // The chunk's MethodTable and range of tokens; the third MethodDesc with the rest of its token.
    parts.put(CHUNK, 0x4000).put_bytes(CHUNK + 18, &0x1001_u16.to_le_bytes());
    parts.put_bytes(DESC, &[2, 0xF1, 2, 0, 0, 0, 0, 0]);
    parts.part(0x4000, 32).put(0x4000 + 24, 0x4100).part(0x4100, 16).put(0x4100, 0x4200);
    let path: Vec<u8> = "/a/Acme.dll\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    parts.part(0x4200, 32).put_bytes(0x4200, &path).put(0x4108, 0x4300);
    parts.part(0x4300, 16).put(0x4308, 0x4400).part(0x4400, 16).put(0x4408, 0x4500);
    parts.part(0x4500, 24).put(0x4508, IMAGE).put(0x4510, u64::from(is_mapped));
    if is_mapped {
        parts.part(IMAGE, 0x200).put_bytes(IMAGE, &file[..0x200]);
        parts.part(IMAGE + 0x2000, file.len() - 0x200).put_bytes(IMAGE + 0x2000, &file[0x200..]);
    } else {
        parts.part(IMAGE, file.len()).put_bytes(IMAGE, &file);
    }
    parts
}

#[test]
fn a_method_has_the_name_of_its_row_in_each_layout_of_an_image() {
    for is_mapped in [false, true] {
        let parts = process(is_mapped);
        let memory = parts.memory();
        let runtime = Runtime::read(&memory, "", DESCRIPTOR).unwrap();
        let name = MethodNames::new(&memory, &runtime).unwrap().name(DESC).unwrap();
        assert_eq!(name.to_string(), "Acme.Shop+Order.Pay");
        assert_eq!((name.token, name.module.as_str()), (0x0600_1102, "/a/Acme.dll"));
    }
}

#[test]
fn a_dynamic_method_has_a_name_of_its_own() {
    let mut parts = process(false);
    parts.put_bytes(DESC + 6, &[7, 0]).put(DESC + 32, 0x4600).part(0x4600, 8);
    parts.put_bytes(0x4600, b"Emit\0");
    let memory = parts.memory();
    let runtime = Runtime::read(&memory, "", DESCRIPTOR).unwrap();
    let name = MethodNames::new(&memory, &runtime).unwrap().name(DESC).unwrap();
    assert_eq!((name.to_string().as_str(), name.token, name.module.as_str()), ("Emit", 0, ""));
}

#[test]
fn a_method_that_metadata_does_not_have_is_an_error() {
    let mut parts = process(false);
    parts.put_bytes(DESC, &[3]);
    let memory = parts.memory();
    let runtime = Runtime::read(&memory, "", DESCRIPTOR).unwrap();
    let mut names = MethodNames::new(&memory, &runtime).unwrap();
    let error = InspectError::NoSuchMethod { desc: DESC, token: 0x0600_1103 };
    assert_eq!(names.name(DESC), Err(error));
}

#[test]
fn an_image_without_metadata_is_an_error() {
    for (at, byte) in [(0x40, b'X'), (0x58, 0), (0x58 + 96 + 14 * 8 + 1, 0x90), (0x20F, 0xFF)] {
        let mut parts = process(false);
        parts.put_bytes(IMAGE + at, &[byte]);
        let memory = parts.memory();
        let runtime = Runtime::read(&memory, "", DESCRIPTOR).unwrap();
        let error = MethodNames::new(&memory, &runtime).unwrap().name(DESC);
        assert_eq!(error, Err(InspectError::NoMetadata { base: IMAGE }), "{at:#x}");
    }
}
