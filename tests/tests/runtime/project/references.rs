//! Ids of rules that sources, texts and pages cite are defined: clauses (C-014), hazards (H-08),
//! errors of the documentation (D-15), worked stacks (E-6), field bugs (G17), and sections and rows
//! of the contract.

use super::*;
use clr_sim::book::references;

/// Ids that exist nowhere on purpose: inputs of tests of unknown ids, by file.
const UNKNOWN: &[(&str, &str)] = &[
    ("sim/runtime/src/clause/tests.rs", "C-000"),
    ("sim/runtime/src/clause/tests.rs", "C-999"),
    ("sim/runtime/src/clause/tests.rs", "C-99999"),
    ("sim/scenario/src/tests/errors.rs", "H-99"),
    ("sim/cli/src/tests/rules.rs", "C-999"),
    ("sim/cli/src/tests/rules.rs", "H-99"),
    ("sim/cli/src/tests/begin.rs", "C-999"),
    ("sim/cli/src/tests/begin.rs", "H-0"),
    ("sim/cli/src/tests/people.rs", "C-900"),
    ("sim/cli/src/tests/people.rs", "C-9999"),
    ("sim/cli/src/tests/people.rs", "H-99"),
    ("tests/tests/runtime/project/book.rs", "C-000"),
    ("sim/src/book/references.rs", "E-22"),
    ("tests/tests/runtime/project/book.rs", "H-99"),
];

/// A citation: the byte at which it begins, and the id.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Citation {
    at: usize,
    id: String,
}

/// Returns the text with line breaks and the marks of comments replaced by spaces, so that a
/// citation may be wrapped. All offsets stay.
fn unwrapped(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        let mark = ["///", "//!", "//"].into_iter().find(|mark| body.starts_with(mark));
        let skipped = line.len() - body.len() + mark.map_or(0, str::len);
        joined.extend(core::iter::repeat_n(' ', skipped));
        joined.push_str(&line[skipped..].replace('\n', " "));
    }
    joined
}

/// Returns true for an id in quotes or as the first argument of `clrsim rules`.
fn is_argument(text: &str, at: usize) -> bool {
    ["\"", "clrsim rules "].iter().any(|before| text[..at].ends_with(before))
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns the length of the digits at the start.
fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Returns the ids of a letter and a number: with a hyphen, or `G` and two digits.
fn lettered(text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (at, letter) in text.match_indices(['C', 'D', 'E', 'G', 'H']) {
        let rest = &text[at + 1..];
        let number = rest.strip_prefix('-').unwrap_or(rest);
        let length = digits(number);
        let is_hyphenated = number.len() < rest.len() && length > 0;
        let is_id = is_hyphenated || letter == "G" && length == 2;
        let after = &number[length..];
        if is_id && !text[..at].ends_with(is_part) && !after.starts_with(is_part) {
            let end = text.len() - after.len();
            found.push(Citation { at, id: text[at..end].to_owned() });
        }
    }
    found
}

/// Returns the clauses that are constants in code.
fn constants(text: &str) -> Vec<Citation> {
    let constant = "Clause::new(";
    let found = text.match_indices(constant).filter_map(|(at, _)| {
        let rest = &text[at + constant.len()..];
        let number = rest[..digits(rest)].parse().ok()?;
        Some(Citation { at, id: Clause::new(number).to_string() })
    });
    found.collect()
}

/// Returns the number at the start of a section's citation: `2.6` of `2.6, C-036)`.
fn section_number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Other documents that have sections.
const OTHERS: &[&str] = &["DWARF 5", "DWARF 5,"];

/// Returns cited sections. `Err` is one that does not name its document: `contract §2.6`, or
/// another one that has it in a list.
fn sections(text: &str) -> Vec<Result<Citation, Citation>> {
    let mut found = Vec::new();
    let mut ours_until = 0;
    for (at, mark) in text.match_indices('§') {
        let number = section_number(&text[at + mark.len()..]);
        let before = text[..at].trim_end();
        if OTHERS.iter().any(|other| before.ends_with(other)) {
            continue;
        }
        let between = text.get(ours_until..at).unwrap_or_default();
        let between = between.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_listed = ours_until > 0 && [",", "and", ", and", "or", "to"].contains(&&*between);
        let citation = Citation { at, id: format!("§{number}") };
        if is_listed || is_argument(text, at) || before.to_lowercase().ends_with("contract") {
            ours_until = at + mark.len() + number.len();
            found.push(Ok(citation));
        } else {
            found.push(Err(citation));
        }
    }
    found
}

/// Returns cited rows: `row 18 of contract §2.2`, `rows 13a to 13d of contract §2.2`. `Err` is one
/// that does not name its table.
fn rows(text: &str) -> Vec<Result<Citation, Citation>> {
    let mut found = Vec::new();
    for (start, word) in text.match_indices("ow").filter(|(at, _)| {
        let before = &text[..*at];
        before.ends_with(['r', 'R']) && !before[..before.len() - 1].ends_with(is_part)
    }) {
        let mut at = start + word.len();
        at += usize::from(text[at..].starts_with('s'));
        let mut cited = Vec::new();
        while let Some(rest) = text[at..].strip_prefix(' ').map(str::trim_start) {
            let rest = rest.strip_prefix("to ").or(rest.strip_prefix("and ")).unwrap_or(rest);
            let mut length = digits(rest);
            if length == 0 {
                break;
            }
            length += usize::from(rest[length..].starts_with(|c: char| c.is_ascii_lowercase()));
            let from = text.len() - rest.len();
            cited.push(Citation { at: from, id: format!("Row {}", &rest[..length]) });
            at = from + length;
            at += usize::from(text[at..].starts_with(", "));
        }
        let words = text[at..].split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        let is_ours = is_argument(text, start - 1)
            || words.starts_with("of contract §2.2")
            || words.starts_with("of §2.2");
        found.extend(cited.into_iter().map(|row| if is_ours { Ok(row) } else { Err(row) }));
    }
    found
}

#[test]
fn citations_are_found() {
    let ids = |found: Vec<Citation>| found.into_iter().map(|it| it.id).collect::<Vec<_>>();
    let text = "(C-014 to C-017, H-08) G17, G-18 UTC-021 SGX-1 xC-1 E9 E-6. D-15's \"G03\" G1 G123";
    assert_eq!(
        ids(lettered(text)),
        ["C-014", "C-017", "H-08", "G17", "G-18", "E-6", "D-15", "G03"]
    );
    assert_eq!(ids(constants("Clause::new(3), Clause::new(n)")), ["C-003"]);
    let shown = |found: Vec<Result<Citation, Citation>>| {
        let shown = found.into_iter().map(|it| match it {
            Ok(it) => it.id,
            Err(it) => format!("!{}", it.id),
        });
        shown.collect::<Vec<_>>()
    };
    let text = unwrapped(
        "/// (contract\n    /// §2.6, §8.4, C-036). See §3. DWARF 5 §6.4; contract §3.3 to §3.9",
    );
    assert_eq!(shown(sections(&text)), ["§2.6", "§8.4", "!§3", "§3.3", "§3.9"]);
    let text = unwrapped(
        "rows 13a to 13d of contract\n// §2.2; row 18 is; Rows 1 and 2 of §2.2; arrow 3, row by row",
    );
    assert_eq!(shown(rows(&text)), ["Row 13a", "Row 13d", "!Row 18", "Row 1", "Row 2"]);
}

#[test]
fn every_cited_id_is_defined() {
    let mut problems = Vec::new();
    let mut known = BTreeMap::new();
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut unknown = UNKNOWN.to_vec();
    for (file, text) in files("", &[".rs", ".md", ".kdl"]) {
        let joined = unwrapped(&text);
        // The contract's own pages say §2.6 of themselves, and its tables have rows.
        let is_contract = file.starts_with("sim/src/book/contract/");
        let is_test = [
            "tests/tests/runtime/project/book.rs",
            "tests/tests/runtime/project/references.rs",
            "sim/src/book/references.rs",
        ]
        .contains(&&*file);
        let mut cited: Vec<_> =
            lettered(&joined).into_iter().chain(constants(&joined)).map(Ok).collect();
        let extension = Path::new(&file).extension();
        if is_contract || extension.is_some_and(|extension| extension == "rs" || extension == "md")
        {
            cited.extend(sections(&joined));
            cited.extend(rows(&joined));
        }
        for citation in cited {
            let (Ok(found) | Err(found)) = &citation;
            let line = 1 + text[..found.at].matches('\n').count();
            if UNKNOWN.contains(&(&file, &found.id)) {
                unknown.retain(|of| *of != (&*file, &*found.id));
                continue;
            }
            if is_test {
                continue;
            }
            if citation.is_err() && !is_contract {
                problems.push(format!(
                    "{file}:{line}: {}: of which document? (contract §2.6, row 18 of contract §2.2)",
                    found.id
                ));
                continue;
            }
            match known.entry(found.id.clone()).or_insert_with_key(|id| references::find(id)) {
                Ok(reference) => *counts.entry(reference.kind).or_default() += 1,
                Err(error) => problems.push(format!("{file}:{line}: {error}")),
            }
        }
    }
    assert!(problems.is_empty(), "{} citations:\n{}", problems.len(), problems.join("\n"));
    assert!(unknown.is_empty(), "no longer cited: {unknown:?}");
    for kind in Kind::ALL {
        assert!(counts.get(&kind).is_some_and(|count| *count > 5), "{kind}: {counts:?}");
    }
}

/// The names of the gallery's files cite, too: `e-06-….kdl`, `g17-….kdl`, `section-3.3-….kdl`.
#[test]
fn names_of_texts_cite_what_is_defined() {
    let mut count = 0;
    for (file, _) in files("fixtures/gallery", &[".kdl"]) {
        let name = file.rsplit('/').next().unwrap();
        let id = match name.strip_prefix("section-") {
            Some(rest) => format!("§{}", section_number(rest)),
            None if name.starts_with('g') && digits(&name[1..]) == 2 => name[..3].to_owned(),
            None if name[1..].starts_with('-') && digits(&name[2..]) > 0 => {
                name[..2 + digits(&name[2..])].to_owned()
            }
            None => continue,
        };
        count += 1;
        assert!(references::find(&id).is_ok(), "{file}: {id} is not defined");
    }
    assert!(count > 300, "{count}");
}
