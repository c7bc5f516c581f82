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
