//! Compressed numbers and signatures (ECMA-335, II.23.2).

/// ELEMENT_TYPE_VOID.
const VOID: u8 = 1;
/// IMAGE_CEE_CS_CALLCONV_GENERIC.
const GENERIC: u8 = 0x10;
/// IMAGE_CEE_CS_CALLCONV_HASTHIS.
const HAS_THIS: u8 = 0x20;

/// Returns a number in one, two or four bytes.
pub fn compress(value: u32) -> Vec<u8> {
    match value {
        0..0x80 => vec![value as u8],
        0x80..0x4000 => ((value | 0x8000) as u16).to_be_bytes().to_vec(),
        _ => (value & 0x1FFF_FFFF | 0xC000_0000).to_be_bytes().to_vec(),
    }
}

/// Returns the compressed number at the start of `bytes`, and how many bytes it takes.
pub fn decompress(bytes: &[u8]) -> Option<(u32, usize)> {
    match bytes {
        [one, ..] if one & 0x80 == 0 => Some((u32::from(*one), 1)),
        [one, two, ..] if one & 0xC0 == 0x80 => {
            Some((u32::from(u16::from_be_bytes([*one & 0x3F, *two])), 2))
        }
        [one, two, three, four, ..] if one & 0xE0 == 0xC0 => {
            Some((u32::from_be_bytes([*one & 0x1F, *two, *three, *four]), 4))
        }
        _ => None,
    }
}

/// Returns the signature of a method with this number of type parameters, without parameters and result.
pub fn method_signature(has_this: bool, type_parameters: u32) -> Vec<u8> {
    let has_this = if has_this { HAS_THIS } else { 0 };
    if type_parameters == 0 {
        return vec![has_this, 0, VOID];
    }
    [&[has_this | GENERIC], &compress(type_parameters)[..], &[0, VOID]].concat()
}
