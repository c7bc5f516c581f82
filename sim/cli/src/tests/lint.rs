use super::*;

#[test]
fn an_image_with_findings() {
    let image = "win64/img/gcc_O2.dll";
    insta::assert_snapshot!("findings", clrsim(&["lint", image]).text());
    insta::assert_snapshot!("findings_json", clrsim(&["lint", image, "--json"]).text());
    insta::assert_snapshot!("summary", clrsim(&["lint", image, "--summary"]).text());
}

#[test]
fn few_findings_of_each_kind_are_printed_unless_all_are_wanted() {
    let image = "win64/img/asm_raw.dll";
    let few = clrsim(&["lint", image]);
    assert_eq!(few.code, 1);
    assert!(few.out.contains("more; --limit all prints them"), "{}", few.out);
    let count =
        |args: &[&str]| clrsim(&[&["lint", image], args].concat()).out.matches("in force").count();
    let all = clrsim(&["lint", image, "--json"]).out.lines().count() - 1;
    assert_eq!(count(&["--limit", "all"]), all);
    assert!(count(&[]) < all && count(&["--limit", "1"]) < count(&[]));
    assert_eq!(count(&["--summary"]), 0);
}

#[test]
fn one_function_by_name_or_rva() {
    let image = "win64/img/asm_raw.dll";
    let by_name = clrsim(&["lint", image, "--function", "t_ffpush"]);
    insta::assert_snapshot!("by_name", by_name.text());
    assert_eq!(clrsim(&["lint", image, "--function", "0x1633"]), by_name);
    let sound = clrsim(&["lint", image, "--function", "t_push_rsi"]);
    assert_eq!(sound.code, 0, "{}", sound.out);
}

/// What a run over one function prints is what the run over all prints of it.
#[test]
fn one_function_has_the_findings_that_it_has_in_the_whole_run() {
    let image = "win64/img/asm_raw.dll";
    let whole = clrsim(&["lint", image, "--json"]);
    let mut count = 0;
    for line in whole.out.lines() {
        let finding: serde_json::Value = serde_json::from_str(line).unwrap();
        if finding["kind"] == "finding" {
            let begin = finding["begin"].as_str().unwrap();
            let one = clrsim(&["lint", image, "--json", "--function", begin]);
            assert!(one.out.lines().any(|own| own == line), "{line}\n{}", one.text());
            assert_eq!(one.code, 1);
            count += 1;
        }
    }
    assert!(count > 10, "{count} findings");
}

#[test]
fn a_table_that_is_not_aligned_is_a_finding() {
    let folder = Folder::new();
    let mut bytes = fixture("win64/img/gcc_O2.dll").to_vec();
    let image = clr_unwind::PeImage::parse(&bytes).unwrap();
    let table: Vec<u8> = image.functions().iter().flat_map(|it| it.to_bytes()).collect();
    let at = bytes.windows(table.len()).position(|part| part == table).unwrap();
    // The last entry makes room.
    let len = table.len() - 12;
    bytes.copy_within(at..at + len, at + 2);
    let headers = u32::from_le_bytes(*bytes[0x3C..].first_chunk().unwrap()) as usize;
    // The exception directory is the fourth, after 24 bytes of headers and 112 of the optional one.
    let directory = headers + 24 + 112 + 3 * 8;
    bytes[directory] += 2;
    bytes[directory + 4..directory + 8].copy_from_slice(&(len as u32).to_le_bytes());
    let moved = folder.clrsim(&["lint", &folder.write("moved.dll", &bytes)]);
    assert_eq!(moved.code, 1, "{}", moved.text());
    assert!(moved.out.contains("(data, misaligned)"), "{}", moved.out);
    assert!(!clrsim(&["lint", "win64/img/gcc_O2.dll"]).out.contains("misaligned"));
}

/// An ELF image of 8 bytes of code, without unwind data: push rbx; call rax; pop rbx; ret.
fn without_data(folder: &Folder) -> String {
    let mut bytes = vec![0; 0x1008];
    bytes[..20].copy_from_slice(b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\0");
    let mut set = |at: usize, value: u64, len: usize| {
        bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    };
    // Version; program headers at 40h: one of 38h bytes, PT_LOAD, readable and executable.
    for (at, value, len) in [(20, 1, 4), (32, 0x40, 8), (52, 0x40, 2), (54, 0x38, 2), (56, 1, 2)] {
        set(at, value, len);
    }
    for (at, value, len) in [
        (0x40, 1, 4),
        (0x44, 5, 4),
        (0x48, 0x1000, 8),
        (0x50, 0x1000, 8),
        (0x60, 8, 8),
        (0x68, 8, 8),
    ] {
        set(at, value, len);
    }
    bytes[0x1000..0x1005].copy_from_slice(&[0x53, 0xFF, 0xD0, 0x5B, 0xC3]);
    folder.write("without.so", &bytes)
}

#[test]
fn an_image_without_unwind_data_fails_unless_that_is_allowed() {
    let folder = Folder::new();
    let image = without_data(&folder);
    let answer = folder.clrsim(&["lint", &image]);
    insta::assert_snapshot!("without_data", answer.text());
    let allowed = folder.clrsim(&["lint", &image, "--allow", "no-unwind-data"]);
    assert_eq!(allowed.code, 0, "{}", allowed.text());
    assert!(allowed.out.contains("findings that are allowed or known: 1"), "{}", allowed.out);
    assert_eq!(folder.clrsim(&["lint", &image, "--allow", "misaligned"]).code, 1);
    assert_eq!(folder.clrsim(&["lint", &image, "--allow", "nonsense"]).code, 2);
}

#[test]
fn only_what_a_baseline_does_not_have_fails() {
    let folder = Folder::new();
    let image = "win64/img/asm_raw.dll";
    let whole = folder.clrsim(&["lint", image, "--json"]).out;
    let known = folder.write("known.jsonl", whole.as_bytes());
    let again = folder.clrsim(&["lint", image, "--baseline", &known]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert!(!again.out.contains("in force"), "{}", again.out);
    // One of the findings was not there.
    let (first, rest) = whole.split_once('\n').unwrap();
    let fewer = folder.write("fewer.jsonl", rest.as_bytes());
    let new = folder.clrsim(&["lint", image, "--baseline", &fewer]);
    assert_eq!((new.code, new.out.matches("in force").count()), (1, 1), "{}", new.text());
    let finding: serde_json::Value = serde_json::from_str(first).unwrap();
    assert!(new.out.contains(finding["function"].as_str().unwrap()), "{}", new.out);
    // In JSON all are printed, with what is known of them.
    let json = folder.clrsim(&["lint", image, "--baseline", &fewer, "--json"]).out;
    assert_eq!(json.matches("\"known\":false").count(), 1);
    let text = folder.write("text.jsonl", b"no JSON");
    assert_eq!(folder.clrsim(&["lint", image, "--baseline", &text]).code, 2);
    assert_eq!(folder.clrsim(&["lint", image, "--baseline", &folder.path("none")]).code, 2);
}

#[test]
fn findings_are_printed_as_sarif() {
    let image = "win64/img/gcc_O2.dll";
    let answer = clrsim(&["lint", image, "--format", "sarif", "--allow", "windows-rules"]);
    assert_eq!(answer.code, 2, "a blame is no kind");
    let answer = clrsim(&["lint", image, "--format", "sarif"]);
    assert_eq!(answer.code, 1, "{}", answer.text());
    let document: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(document["version"], "2.1.0");
    let results = document["runs"][0]["results"].as_array().unwrap();
    let findings = clrsim(&["lint", image, "--json"]).out.matches("\"kind\":\"finding\"").count();
    assert_eq!(results.len(), findings);
    let rules = document["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    for result in results {
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{result}");
        assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], image);
    }
    insta::assert_snapshot!("sarif_result", serde_json::to_string_pretty(&results[0]).unwrap());
}

/// Without a finding the exit code is 0, and with an image that cannot be read it is 2: the others are
/// judged.
#[test]
fn exit_codes_are_those_of_the_help() {
    let folder = Folder::new();
    assert_eq!(folder.clrsim(&["lint", "win64/img/gcc_O2.dll", "--function", "t_ack"]).code, 0);
    let text = folder.write("text.so", b"no image");
    let answer = folder.clrsim(&["lint", &text]);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    let answer = folder.clrsim(&["lint", &text, "win64/img/gcc_O2.dll", "--summary"]);
    assert_eq!(answer.code, 2);
    assert!(answer.out.contains("win64/img/gcc_O2.dll") && answer.err.contains("text.so"));
    let nowhere = clrsim(&["lint", "win64/img/gcc_O2.dll", "--function", "missing"]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.err.contains("no unwind data for --function missing"), "{}", nowhere.err);
}

#[test]
fn an_elf_image_with_data_that_is_wrong_on_purpose() {
    let folder = Folder::new();
    let unix = folder.write("unix.kdl", format!("{}thread \"t\"", super::images::UNIX).as_bytes());
    assert_eq!(folder.clrsim(&["emit", &unix, "-o", &folder.path("out")]).code, 0);
    insta::assert_snapshot!(
        "elf",
        folder.clrsim(&["lint", &folder.path("out/libnative.so")]).text()
    );
}

#[test]
fn the_output_does_not_depend_on_the_number_of_threads() {
    let with = |jobs: &str| {
        clrsim(&["lint", "win64/img/asm_raw.dll", "win64/img/gcc_O2.dll", "--json", "--jobs", jobs])
    };
    let one = with("1");
    assert_eq!(one.code, 1);
    for jobs in ["2", "5"] {
        assert_eq!(with(jobs), one, "{jobs} jobs");
    }
    assert_eq!(with("0").code, 2);
}

/// A program of rustc, its standard library and what the C compiler made: this one.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_test_itself_is_judged() {
    let own = std::env::current_exe().unwrap();
    let answer = clrsim(&["lint", own.to_str().unwrap(), "--json", "--summary"]);
    let image: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let figure = |name: &str| image[name].as_u64().unwrap();
    assert!(figure("functions") > 1000 && figure("unusable") == 0, "{image}");
    // Nearly all of it, and nearly all of that is right.
    assert!(figure("executed_bytes") * 10 > figure("bytes") * 7, "{image}");
    assert!(figure("right") > 200 * figure("wrong"), "{image}");
    assert!(figure("right") > 20 * figure("not_judged"), "{image}");
}

/// Damaged images give findings or errors, and never a panic.
#[test]
fn damaged_images_are_judged_or_refused() {
    let folder = Folder::new();
    let mut numbers = super::Numbers(7);
    let good = fixture("win64/img/cpp_gcc_O2.dll");
    for round in 0..20 {
        let mut bytes = good.to_vec();
        for _ in 0..40 {
            let at = numbers.below(bytes.len());
            bytes[at] = numbers.below(256) as u8;
        }
        let path = folder.write("damaged.dll", &bytes);
        let answer = folder.clrsim(&["lint", &path, "--json"]);
        assert!(answer.code <= 2, "round {round}");
    }
}
