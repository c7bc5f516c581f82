//! Tests that the dictionaries of the fuzz targets have what inputs of their formats are made of: they
//! are generated, and `CLR_BLESS=1` writes them.

use super::*;
use object::{elf, macho, pe};

/// Compares a dictionary of libFuzzer with the words that it must have.
fn check_dictionary<W: AsRef<[u8]>>(target: &str, words: &BTreeSet<W>) {
    let file = format!("fuzz/dictionaries/{target}.dict");
    let quote = |word: &W| {
        let word = word.as_ref();
        assert!((1..=64).contains(&word.len()), "{word:?}");
        let bytes = word.iter().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02X}"),
        });
        format!("\"{}\"\n", bytes.collect::<String>())
    };
    let text: String = words.iter().map(quote).collect();
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(path(&file), &text).unwrap();
    }
    let found = read(&file);
    let words = |text: &str| text.lines().map(ToOwned::to_owned).collect::<BTreeSet<_>>();
    let (found_words, wanted) = (words(&found), words(&text));
    let missing: Vec<_> = wanted.difference(&found_words).collect();
    let surplus: Vec<_> = found_words.difference(&wanted).collect();
    assert_eq!((missing, surplus), (vec![], vec![]), "CLR_BLESS=1 rewrites the dictionary");
    assert_eq!(found, text, "CLR_BLESS=1 rewrites the dictionary");
}

/// The dictionary of texts must have all nodes, arguments and properties in the grammar's tables.
#[test]
fn the_dictionary_of_texts_has_all_words() {
    let grammar = read("sim/scenario/src/text/grammar.md");
    let rows = grammar.lines().filter_map(|line| line.strip_prefix("| "));
    // The last column is prose.
    let cells = rows.flat_map(|row| row.split(" | ").take(3));
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let words: BTreeSet<_> = quoted.filter(|word| *word != "{ }").map(ToOwned::to_owned).collect();
    for word in ["function", "kind=", "ready-to-run", "policy=", "#true"] {
        assert!(words.contains(word), "{word}");
    }
    check_dictionary("fixture_text", &words);
}

/// The dictionary of recordings must have the keys of all objects in the seeds, and the kinds of
/// lines.
#[test]
fn the_dictionary_of_recordings_has_all_keys() {
    let mut words = BTreeSet::new();
    for seed in std::fs::read_dir(path("fuzz/seeds/recording")).unwrap() {
        let text = std::fs::read_to_string(seed.unwrap().path()).unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            words.insert(format!("\"t\":{}", line["t"]));
            keys(&line, &mut words);
        }
    }
    assert!(words.contains("\"t\":\"walk\"") && words.contains("\"ranges\":"), "{words:?}");
    check_dictionary("recording", &words);
}

fn keys(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                words.insert(format!("\"{key}\":"));
                keys(value, words);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, words)),
        _ => {}
    }
}

/// Returns the names of sections and segments that a reader of images looks for: the strings of
/// its source that begin like one.
fn section_names(reader: &str) -> BTreeSet<Vec<u8>> {
    let source = read(&format!("walker/unwind/src/image/{reader}.rs"));
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let strings = code.flat_map(|line| line.split('"').skip(1).step_by(2).map(ToOwned::to_owned));
    let is_name = |name: &String| {
        let rest = name.strip_prefix("__").or_else(|| name.strip_prefix('.'));
        rest.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_alphabetic())
                && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    strings.filter(is_name).map(String::into_bytes).collect()
}

/// Adds numbers as an image stores them: little endian.
fn add_numbers(words: &mut BTreeSet<Vec<u8>>, short: &[u16], long: &[u32]) {
    words.extend(short.iter().map(|number| number.to_le_bytes().to_vec()));
    words.extend(long.iter().map(|number| number.to_le_bytes().to_vec()));
}

/// Names of sections, signatures and machines of PE files. On systems other than Windows the machine of
/// ready-to-run images is changed by a number of the system.
#[test]
fn the_dictionary_of_pe_images_has_their_numbers() {
    let sections = [b".text\0\0\0", b".pdata\0\0", b".xdata\0\0", b".rdata\0\0"];
    let mut words: BTreeSet<_> = sections.map(|name| name.to_vec()).into();
    let machine = pe::IMAGE_FILE_MACHINE_AMD64;
    let systems = [0, 0x7B79, 0x4644, 0xADC4, 0x1993].map(|system| machine.0 ^ system);
    add_numbers(&mut words, &systems, &[pe::IMAGE_NT_SIGNATURE]);
    let more = [pe::IMAGE_DOS_SIGNATURE, pe::IMAGE_NT_OPTIONAL_HDR64_MAGIC];
    add_numbers(&mut words, &more, &[pe::IMAGE_SCN_MEM_EXECUTE.0, pe::IMAGE_SCN_CNT_CODE.0]);
    check_dictionary("pe_image", &words);
}

/// Signatures, types and commands of ELF and Mach-O files, which one target reads.
#[test]
fn the_dictionary_of_native_images_has_their_numbers() {
    let mut words = section_names("elf");
    words.append(&mut section_names("macho"));
    for name in [".eh_frame", "__unwind_info", "__TEXT"] {
        assert!(words.contains(name.as_bytes()), "{name}");
    }
    let ident = [elf::ELFCLASS64.0, elf::ELFDATA2LSB.0, elf::EV_CURRENT.0];
    words.insert([&elf::ELFMAG[..], &ident].concat());
    let short = [elf::EM_X86_64.0, elf::ET_DYN.0, elf::ET_EXEC.0];
    let long = [elf::PT_LOAD.0, elf::PT_GNU_EH_FRAME.0, elf::SHT_SYMTAB.0, elf::SHT_PROGBITS.0];
    add_numbers(&mut words, &short, &long);
    let commands = [macho::LC_SEGMENT_64.0, macho::LC_SYMTAB.0, macho::CPU_TYPE_X86_64.0];
    add_numbers(&mut words, &[], &commands);
    add_numbers(&mut words, &[], &[macho::MH_MAGIC_64, macho::MH_DYLIB.0, macho::MH_EXECUTE.0]);
    check_dictionary("elf_image", &words);
}

/// The signatures of both formats and of their compression, as the seeds have them.
#[test]
fn the_dictionary_of_vectors_has_the_signatures() {
    let start = |seed: &str, len: usize| {
        let bytes = std::fs::read(path(&format!("fuzz/seeds/vector_file/{seed}"))).unwrap();
        bytes[..len].to_vec()
    };
    let words = [("empty_vectors", 8), ("empty_records", 8), ("compressed", 3)];
    let words: BTreeSet<_> = words.map(|(seed, len)| start(seed, len)).into();
    assert!(words.contains(&b"W64UVEC1"[..]) && words.contains(&[0x1F, 0x8B, 8][..]), "{words:?}");
    check_dictionary("vector_file", &words);
}
