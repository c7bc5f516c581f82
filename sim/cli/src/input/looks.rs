//! Contents that are none of ours, by their first bytes.

/// Returns what a content looks like that is no text of ours, if its first bytes say it.
pub(super) fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    // Letters of ASCII have a zero beside each.
    let is_utf16 = |first: usize| {
        let units: Vec<_> = bytes.iter().copied().skip(first).take(64).collect();
        let is_letter = |unit: &&[u8]| matches!(unit, [1..=0x7F, 0]);
        units.len() > 6 && units.chunks_exact(2).filter(is_letter).count() * 8 >= units.len() * 3
    };
    let begin =
        String::from_utf8_lossy(bytes.get(..64).unwrap_or(bytes)).trim_start().to_ascii_lowercase();
    let starts = |with: &[&str]| with.iter().any(|with| begin.starts_with(with));
    Some(match bytes {
        _ if starts(&["<!doctype html", "<html", "<head"]) => {
            "HTML: a page was saved in place of the file"
        }
        _ if starts(&["<?xml", "<!doctype"]) => "XML",
        _ if starts(&["using ", "namespace ", "public class ", "internal class "]) => {
            "C#: a scenario has the functions of a program as nodes, and clrsim new writes one"
        }
        _ if starts(&["#include", "#pragma"]) => {
            "C or C++: clrsim host loads a profiler that is compiled"
        }
        [b'{', ..] => "JSON",
        [0x7F, b'E', b'L', b'F', ..] => "an ELF image",
        [b'M', b'Z', ..] => "a PE image",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive",
        [b'%', b'P', b'D', b'F', ..] => "a PDF",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => UTF16,
        _ if is_utf16(0) || is_utf16(1) => UTF16,
        _ => return None,
    })
}

/// The words for a text of 16-bit units.
const UTF16: &str = "UTF-16: save it as UTF-8";
