use super::*;

#[test]
fn a_whole_image() {
    insta::assert_snapshot!("gcc_O2", printed("show", &["win64/img/gcc_O2.dll"]));
    insta::assert_snapshot!("gcc_O2_json", printed("show", &["win64/img/gcc_O2.dll", "--json"]));
}

#[test]
fn every_form_of_unwind_data() {
    let image = "win64/img/asm_raw.dll";
    let all = printed("show", &[image]);
    for words in [
        "push r15",
        "allocate 0x",
        "set rbp to rsp + ",
        "save r12 at frame base + ",
        "save xmm6 at frame base + ",
        "machine frame pushed by the processor",
        "machine frame and error code pushed by the processor",
        "epilogues of ",
        "chained to ",
        "  handler 0x",
        "version 2",
    ] {
        assert!(all.contains(words), "{words}");
    }
    assert!(!all.contains("error:"));
    let blocks = all.split("\n\n").count() - 1;
    assert!(all.starts_with(&format!(
        "{image}: preferred base 0x1a7000000, size 0x1a000, {blocks} function entries\n"
    )));
    assert_eq!(printed("show", &[image, "--json"]).lines().count(), blocks);
}

#[test]
fn one_function_by_name_or_rva() {
    let image = "win64/img/asm_raw.dll";
    let by_name = printed("show", &[image, "--function", "t_push_rsi"]);
    insta::assert_snapshot!("by_name", by_name);
    for rva in ["0x1040", "0x1056"] {
        assert_eq!(printed("show", &[image, "--function", rva]), by_name);
    }
    let json = printed("show", &[image, "--function", "t_push_rsi", "--json"]);
    insta::assert_snapshot!("by_name_json", json);
}

/// The Machine field of a ready-to-run image names the system that its code was compiled for.
#[test]
fn the_system_of_a_ready_to_run_image_is_named() {
    let mut bytes = fixture("win64/img/gcc_O2.dll").to_vec();
    let header = u32::from_le_bytes(*bytes[0x3C..].first_chunk().unwrap()) as usize;
    let folder = Folder::new();
    for (mask, end) in [(0, " function entries"), (0x7B79, " function entries, code for Linux")] {
        let machine = 0x8664_u16 ^ mask;
        bytes[header + 4..header + 6].copy_from_slice(&machine.to_le_bytes());
        let path = folder.write("image.dll", &bytes);
        let answer = folder.clrsim(&["show", &path]);
        let first = answer.out.lines().next().unwrap();
        assert!(answer.code == 0 && first.ends_with(end), "{first}");
    }
}

#[test]
fn broken_entries_are_printed_among_the_others() {
    let good = fixture("win64/img/gcc_O2.dll");
    let mut bytes = good.to_vec();
    let entry = [0x1010_u32, 0x1039, 0x7004].map(u32::to_le_bytes).concat();
    let place = |bytes: &[u8]| bytes.windows(12).position(|window| window == entry);
    let rva = PeImage::parse(good)
        .unwrap()
        .sections()
        .as_slice()
        .iter()
        .find_map(|section| Some(section.rva + place(section.bytes)? as u32))
        .unwrap();
    let at = place(good).unwrap();
    let indirect = |n: u32| (rva + 12 * n) | 1;
    // No unwind data there; no entry there; an entry that stands for itself; no UNWIND_INFO there.
    // The last is indirect, but well.
    let values = [0xFF_0000, 0xFF_0001, indirect(2), 0, indirect(5)];
    for (n, value) in values.into_iter().enumerate() {
        let at = at + 12 * n + 8;
        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    let folder = Folder::new();
    let path = folder.write("broken.dll", &bytes);
    let mut text = String::new();
    for rva in ["0x1010", "0x1040", "0x1050", "0x10e0", "0x10f0"] {
        let answer = folder.clrsim(&["show", &path, "--function", rva]);
        let json = folder.clrsim(&["show", &path, "--function", rva, "--json"]);
        assert_eq!((answer.code, json.code), (0, 0));
        text += &(answer.out + &json.out);
    }
    insta::assert_snapshot!("broken", text);
    assert_eq!(folder.clrsim(&["show", &path, "--json"]).out.lines().count(), 91);
}

#[test]
fn damage_is_dumped_or_refused() {
    let good = fixture("win64/img/gcc_O2.dll");
    let folder = Folder::new();
    let mut numbers = Numbers(2);
    for _ in 0..300 {
        let mut bytes = good.to_vec();
        for _ in 0..20 {
            let at = numbers.below(bytes.len());
            bytes[at] = numbers.below(256) as u8;
        }
        let at = numbers.below(0x400);
        bytes[at] = numbers.below(256) as u8;
        let path = folder.write("damaged.dll", &bytes);
        assert!([0, 2].contains(&folder.clrsim(&["show", &path]).code));
        assert!([0, 2].contains(&folder.clrsim(&["show", &path, "--json"]).code));
    }
}

/// A text with many forms of call frame information: a linkage table, frames of rbp, pushed
/// arguments, a realigned stack, signals.
pub(super) const UNIX: &str = r#"
convention "system-v"
function "main" {
    push "rbp" "rbx"
    frame "rbp" set="behind-push"
    arguments 2
    body { call "aligned" by="plt"; trap "handler"; if #false { return }; cold { work 1 } }
}
function "aligned" {
    push "rbp" "rbx"
    frame "rbp" set="behind-push"
    realign "to-32"
    body { clobber "rbx" }
}
function "handler" { entry "signal"; locals 8 }
"#;

/// The ELF image of [`UNIX`].
fn unix(folder: &Folder) -> String {
    let path = folder.write("unix.kdl", UNIX.as_bytes());
    assert_eq!(folder.clrsim(&["emit", &path, "-o", &folder.path("out")]).code, 0);
    folder.path("out/libnative.so")
}

#[test]
fn call_frame_information_of_an_elf_image() {
    let folder = Folder::new();
    let image = unix(&folder);
    insta::assert_snapshot!("elf", folder.clrsim(&["show", &image]).text());
    insta::assert_snapshot!("elf_json", folder.clrsim(&["show", &image, "--json"]).text());
    let named = folder.clrsim(&["show", &image, "--function", "aligned"]);
    let by_rva = folder.clrsim(&["show", &image, "--function", "0x2090"]);
    assert_eq!(named, by_rva);
    assert_eq!(named.out.matches("\n\n").count(), 1, "{}", named.out);
    let nothing = folder.clrsim(&["show", &image, "--function", "missing"]);
    assert_eq!(nothing.code, 2);
    insta::assert_snapshot!(nothing.err, @"error: DIR/out/libnative.so: no call frame information for --function missing; without it all is printed");
}

#[test]
fn damaged_call_frame_information_is_dumped_or_refused() {
    let folder = Folder::new();
    let good = std::fs::read(unix(&folder)).unwrap();
    let mut numbers = Numbers(3);
    let mut faulty = 0;
    for _ in 0..400 {
        let mut bytes = good.clone();
        // The description lies after the code.
        for _ in 0..10 {
            let at = 0x3000 + numbers.below(bytes.len() - 0x3000);
            bytes[at] = numbers.below(256) as u8;
        }
        let at = numbers.below(0x200);
        bytes[at] = numbers.below(256) as u8;
        let path = folder.write("damaged.so", &bytes);
        let answer = folder.clrsim(&["show", &path]);
        assert!([0, 2].contains(&answer.code));
        faulty += u32::from(answer.out.contains("error:") || answer.out.contains("cannot be used"));
        assert!([0, 2].contains(&folder.clrsim(&["show", &path, "--json"]).code));
    }
    assert!(faulty > 20, "{faulty} say little");
}

#[test]
fn version_3_is_printed_with_its_epilogues() {
    let good = fixture("win64/img/gcc_O2.dll");
    let entry = [0x1010_u32, 0x1039, 0x7004].map(u32::to_le_bytes).concat();
    let at = good.windows(12).position(|window| window == entry).unwrap();
    let sections = PeImage::parse(good).unwrap().sections().as_slice().to_vec();
    let rva = |at: usize| {
        let inside = |s: &clr_unwind::Section<'_>| {
            let start = s.bytes.as_ptr() as usize - good.as_ptr() as usize;
            (start..start + s.bytes.len()).contains(&at).then(|| s.rva + (at - start) as u32)
        };
        sections.iter().find_map(inside).unwrap()
    };
    // push rbx; push2 r16, r17; sub rsp, 20h at 0, 1 and 6, and two epilogues.
    let info = [
        &[3, 10, 11, 3 | 2 << 5, 6, 1, 0][..],
        &[3 << 3 | 1, 0x10, 0, 0, 0, 9, 0, 4, 8, 0, 8, 0],
        &[0x38, 7 | 16 << 3, 0x1C, 0, 0x10, 0x10, 0, 0, 5, 6, 7, 8],
    ];
    let mut bytes = good.to_vec();
    // Over the entries that follow in the table.
    let place = at + 12;
    for (byte, new) in bytes[place..].iter_mut().zip(info.concat()) {
        *byte = new;
    }
    bytes[at + 8..at + 12].copy_from_slice(&rva(place).to_le_bytes());
    let folder = Folder::new();
    let path = folder.write("version3.dll", &bytes);
    let text = folder.clrsim(&["show", &path, "--function", "0x1010"]).out;
    let json = folder.clrsim(&["show", &path, "--function", "0x1010", "--json"]).out;
    insta::assert_snapshot!("version_3", text);
    insta::assert_snapshot!("version_3_json", json);
}
