//! Runtimes side by side.

use super::*;

fn matrix(text: &str, args: &[&str]) -> super::super::Answer {
    let folder = Folder::new();
    let path = folder.write("helpers/it.kdl", text.as_bytes());
    folder.clrsim(&[&["matrix", &path][..], args].concat())
}

/// A walk that is refused without a seed succeeds with one. The table fits a small terminal.
#[test]
fn a_helper_on_top_unseeded_and_seeded() {
    let answer = matrix(BARRIER, &[]);
    insta::assert_snapshot!("barrier", answer.text());
    assert!(answer.out.lines().all(|line| line.chars().count() <= 80), "{}", answer.out);
    assert!(answer.out.lines().count() <= 40);
}

#[test]
fn programs_are_the_same_where_their_functions_are() {
    let shown = matrix(ALLOCATION, &[]).text();
    insta::assert_snapshot!("allocation", without_layout(&shown));
}

#[test]
fn unmet_expectations_and_impossible_calls_are_printed() {
    let wrong = BARRIER.replace(
        "on=\"unix\" {\n        result \"E_NOTIMPL\"",
        "on=\"net9\" {\n        result \"S_OK\"",
    );
    let text = matrix(&wrong, &["--snapshot", "1"]).text();
    assert!(
        text.contains("C net9-unix, net9-unix-legacy-exceptions: E_NOTIMPL (not as expected)\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "B net11-unix, net10-unix, net8-unix, coreclr-3.1-unix: E_NOTIMPL (nothing is expected)\n"
        ),
        "{text}"
    );
    let unreached =
        ALLOCATION.replace("callback=\"ObjectAllocated\"", "callback=\"ObjectAllocated\" visit=2");
    let text = matrix(&unreached, &["--snapshot", "1", "--on", "net10-windows"]).text();
    assert!(text.contains("A net10-windows: stop 0 is not reached: thread 0 did "), "{text}");
}

#[test]
fn snapshots_are_picked_by_number_and_title() {
    let number = matrix(BARRIER, &["--snapshot", "2"]);
    assert_eq!(number.text(), matrix(BARRIER, &["--snapshot", "seeded"]).text());
    assert_eq!(number.out.matches("\nsnapshot ").count(), 1);
    let unknown = matrix(BARRIER, &["--snapshot", "3"]);
    assert_eq!(unknown.code, 2);
    let wanted =
        "error: DIR/helpers/it.kdl: has no such snapshot; they are 1 to 2: unseeded; seeded\n";
    assert_eq!(unknown.err, wanted);
    assert!(matrix("function \"a\"", &[]).err.contains("has no snapshots"));
}

#[test]
fn objects_have_columns_and_rows() {
    let answer = matrix(BARRIER, &["--json", "--on", "windows,net9-unix"]);
    let lines: Vec<Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let seeded = &lines[1];
    assert_eq!([&seeded["snapshot"], &seeded["title"]], [&json!(2), &json!("seeded")]);
    let columns = seeded["columns"].as_array().unwrap();
    let results: Vec<_> = columns.iter().map(|column| &column["result"]).collect();
    assert_eq!(results, ["S_OK", "E_NOTIMPL"]);
    assert_eq!(columns[1]["runtimes"], json!(["net9-unix"]));
    assert_eq!(columns[1]["why"]["clauses"], json!(["C-019"]));
    let row = &seeded["rows"][1];
    assert_eq!(row["place"], "App.Main+0x30");
    assert_eq!(row["callbacks"], json!([2, null]));
}

/// A callback that only some runtimes make stands between those of all.
#[test]
fn rows_are_merged_in_order() {
    let text = "stack {
    mode \"cooperative\"
    jit \"App.Leaf+0x20\" rsp=0x1fe000
    jit \"App.Unix+0x30\" rsp=0x1fe040 on=\"unix\"
    jit \"App.Windows+0x30\" rsp=0x1fe040 on=\"windows\"
    jit \"App.Main+0x30\" rsp=0x1fe0c0
    native \"Root+0x7c\" rsp=0x1fe100
}
snapshot seed=\"App.Leaf\"
";
    let answer = matrix(text, &["--on", "coreclr-3.1"]);
    insta::assert_snapshot!("merged", answer.text());
}

/// Runtimes with the same result are in one column, and each rule that decides it there is printed.
#[test]
fn a_result_may_have_another_reason_on_another_runtime() {
    let text = "function \"App.Main\" kind=\"jit\" { body { p-invoke-suppressed \"Lib.Wait\"; }; }\n\
        function \"Lib.Wait\" { body { work 10; }; }\n\
        stop at=\"Lib.Wait\" instruction=3 {\n    \
            snapshot by=\"native-walker\" seed=\"top-managed\"\n\
        }\n";
    let answer = matrix(text, &["--on", "windows"]);
    let lines: Vec<_> =
        answer.out.lines().skip_while(|line| !line.starts_with("A windows")).collect();
    let expected = [
        "A windows: S_OK (nothing is expected)",
        "    on net11-windows, net10-windows, net9-windows, net8-windows: the walk starts",
        "    from the seed [C-051, C-052, C-053]",
        "    on framework, coreclr-3.1-windows: the walk starts from the Frame chain with",
        "    all registers 0 [C-045, C-097]",
        "    assumed on framework",
        "",
        "What was recorded of runtimes for Windows was recorded under wine alone.",
    ];
    assert_eq!(lines, expected);
    let answer = matrix(text, &["--on", "windows", "--json"]);
    let found: Value = serde_json::from_str(&answer.out).unwrap();
    let also = &found["columns"][0]["also"][0];
    assert_eq!(also["runtimes"], json!(["coreclr-3.1-windows", "framework-4", "framework-2"]));
    assert_eq!(also["clauses"], json!(["C-045", "C-097"]));
}

/// Returns true if one sentence is another one, but for words in whose place the first has `…`.
fn is_common(common: &str, own: &str) -> bool {
    let (common, own): (Vec<_>, Vec<_>) = (common.split(' ').collect(), own.split(' ').collect());
    let is_word = |(one, other): (&&str, &&str)| match one.split_once('…') {
        Some((begin, end)) => other.starts_with(begin) && other.ends_with(end),
        None => one == other,
    };
    common.len() == own.len() && common.iter().zip(&own).all(is_word)
}

/// Each runtime of a column has the reason that it has alone.
#[test]
fn reasons_are_those_of_each_runtime() {
    let mut reasons = 0;
    for name in [
        "gallery/seeds/c-039-stubs.kdl",
        "gallery/clauses/c-020-unix-and-a-cooperative-thread.kdl",
        "gallery/clauses/c-015-another-target-inside-a-callback.kdl",
        "gallery/field/g01-tail-jump-stub-at-the-leaf.kdl",
    ] {
        for matrix in clrsim(&["matrix", "--json", name]).out.lines() {
            let matrix: Value = serde_json::from_str(matrix).unwrap();
            let number = matrix["snapshot"].to_string();
            for column in matrix["columns"].as_array().unwrap() {
                let also = column["also"].as_array().unwrap();
                for runtime in column["runtimes"].as_array().unwrap() {
                    let is_of =
                        |also: &&Value| also["runtimes"].as_array().unwrap().contains(runtime);
                    let of = also.iter().find(is_of).unwrap_or(&column["why"]);
                    let alone = [
                        "matrix",
                        "--json",
                        name,
                        "--snapshot",
                        &number,
                        "--on",
                        runtime.as_str().unwrap(),
                    ];
                    let alone: Value = serde_json::from_str(&clrsim(&alone).out).unwrap();
                    let own = &alone["columns"][0]["why"];
                    let (Some(of), Some(own)) = (of["text"].as_str(), own["text"].as_str()) else {
                        continue;
                    };
                    assert!(is_common(of, own), "{name} {number} {runtime}: {of} / {own}");
                    reasons += 1;
                }
            }
        }
    }
    assert!(reasons > 20, "{reasons}");
}
