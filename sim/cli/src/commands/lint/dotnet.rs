//! The .NET that made an image of NativeAOT or ready-to-run code.

use clr_unwind::{PeImage, Sections};

/// The mark of a header of ready-to-run code ("RTR").
const SIGNATURE: [u8; 4] = *b"RTR\0";

/// Number of the directory with the header of the CLI.
const CLI_HEADER: usize = 14;

/// Offset of `ManagedNativeHeader` in the header of the CLI.
const NATIVE_HEADER: usize = 64;

/// Type of the section that names the compiler (`READYTORUN_SECTION_COMPILER_IDENTIFIER`).
const COMPILER: u32 = 100;

/// Returns the version of the code's format and of the compiler, for an assembly with ready-to-run code.
pub(super) fn ready_to_run(image: &PeImage<'_>) -> Option<String> {
    let sections = image.sections();
    let cli = sections.bytes_from(image.directory(CLI_HEADER)?.start)?;
    let header = sections.bytes_from(word(cli, NATIVE_HEADER)?)?;
    let (major, minor) = version(header)?;
    let count = word(header, 12)? as usize;
    let entries = header.get(16..)?.as_chunks::<12>().0.iter().take(count);
    let compiler = entries.filter(|entry| word(*entry, 0) == Some(COMPILER)).find_map(|entry| {
        let bytes = sections.bytes_from(word(entry, 4)?)?.get(..word(entry, 8)? as usize)?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        core::str::from_utf8(text).ok().filter(|text| !text.is_empty()).map(str::to_owned)
    });
    let by = compiler.map_or_else(String::new, |compiler| format!(" by {compiler}"));
    Some(format!("ready-to-run {major}.{minor}{by}"))
}

/// Returns the .NET of a program or library that NativeAOT has made: by the version in an assembly's
/// attributes, where these were kept, and by the version of its header.
pub(super) fn native_aot(sections: &Sections<'_>) -> Option<String> {
    let header = sections.as_slice().iter().find_map(|section| {
        let places = section.bytes.windows(16).enumerate();
        let mut headers = places.filter(|(at, bytes)| at % 4 == 0 && is_of_native_aot(bytes));
        headers.next().map(|(_, bytes)| bytes)
    })?;
    let (major, minor) = version(header)?;
    let build = sections.as_slice().iter().find_map(|section| build(section.bytes));
    // .NET 10.0.13 (PyPI acadsharp-native 0.1.0) has 16.0.
    let by_header = (major == 16).then_some(".NET 10");
    let made = match (&build, by_header) {
        (Some(build), _) => format!("NativeAOT of .NET {build}"),
        (None, Some(name)) => format!("NativeAOT of {name}"),
        (None, None) => "NativeAOT".to_owned(),
    };
    Some(format!("{made}, header {major}.{minor}"))
}

/// Returns true if a header is one of NativeAOT: no flags, some sections, of 24 bytes each and relative to
/// nothing. The mark alone is also what instructions may be.
fn is_of_native_aot(header: &[u8]) -> bool {
    header.starts_with(&SIGNATURE) && matches!(header, [.., 1..=99, 0, 24, 1])
}

fn version(header: &[u8]) -> Option<(u16, u16)> {
    let number = |at: usize| Some(u16::from_le_bytes(*header.get(at..)?.first_chunk()?));
    header.starts_with(&SIGNATURE).then_some((number(4)?, number(6)?))
}

/// Returns the version of the runtime's build, such as 10.0.13-servicing.26504.104, which is in front of a
/// plus sign and the commit.
fn build(bytes: &[u8]) -> Option<String> {
    const KINDS: [&str; 4] = ["-servicing.", "-rtm.", "-rc.", "-preview."];
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase();
    let is_of_version = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'.' | b'-');
    let mut from = 0;
    while let Some(at) = bytes.get(from..)?.iter().position(|byte| *byte == b'+') {
        let plus = from + at;
        from = plus + 1;
        let commit = bytes.get(from..from + 40).unwrap_or_default();
        if commit.len() < 40 || !commit.iter().all(is_digit) {
            continue;
        }
        let before = bytes.get(..plus)?;
        let len = before.iter().rev().take_while(|byte| is_of_version(byte)).count();
        let text = core::str::from_utf8(before.get(plus - len..)?).ok()?;
        if KINDS.iter().any(|kind| text.contains(kind)) {
            return Some(text.to_owned());
        }
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
