//! Tests of blessing: expectations are rewritten in place.

use super::*;
use crate::bless;

/// Blesses the results of the scenario itself.
fn blessed(text: &str) -> String {
    let scenario = parse(text);
    let reports = Generation::ALL.map(|it| (it, scenario.run_on(it).unwrap()));
    let new = bless(text, Results::Snapshots(&reports)).unwrap();
    // The new text needs no blessing.
    let scenario = parse(&new);
    let reports = Generation::ALL.map(|it| (it, scenario.run_on(it).unwrap()));
    assert!(reports.iter().flat_map(|(_, reports)| reports).all(SnapshotReport::is_right), "{new}");
    assert_eq!(bless(&new, Results::Snapshots(&reports)).unwrap(), new);
    new
}

const STACK: &str = "// Kept.
stack {
    mode   cooperative /* kept */
    leaf \"Barrier+0x8\" rsp=0x1fdff8
    jit \"App.Foo+0x55\" rsp=0x1fe000 { saves rbx }
    native \"Root+0x7c\" rsp=0x1fe050
}
";

#[test]
fn right_expectations_stay_byte_for_byte() {
    let text = format!(
        "{STACK}snapshot seed=App.Foo {{ expect   from=observed {{ frame App.Foo
  marker; /- frame X
  result S_OK }} }} // kept\n"
    );
    assert_eq!(blessed(&text), text);
}

#[test]
fn a_snapshot_without_expectations_gets_them() {
    let text = format!("{STACK}snapshot by=native-walker // kept\n\nsnapshot seed=App.Foo {{ }}\n");
    assert_eq!(
        blessed(&text),
        format!(
            "{STACK}snapshot by=native-walker {{
    expect on=\"windows\" {{
        result \"CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX\"
    }}
    expect on=\"unix\" {{
        result \"E_NOTIMPL\"
    }}
}} // kept

snapshot seed=App.Foo {{
    expect {{
        frame \"App.Foo+0x55\" rsp=0x1fe000
        marker \"Root+0x7c\" rsp=0x1fe050
        result \"S_OK\"
    }}
}}
"
        )
    );
}

#[test]
fn only_wrong_expectations_are_rewritten() {
    let text = format!(
        "{STACK}snapshot by=native-walker {{
    // Seen.
    expect on=\"net9 windows\" from=observed count=3 {{ result E_NOTIMPL; clause C-019 }}
    expect {{
        result E_NOTIMPL // why not
        clause C-019
    }}
    // Behind.
}}
snapshot callback=none {{
    expect on=unix {{ result E_FAIL }}
    // Between.
    expect on=net8-windows {{ result S_OK }}
    expect on=windows {{ result S_OK }}
}}
"
    );
    assert_eq!(
        blessed(&text),
        format!(
            "{STACK}snapshot by=native-walker {{
    // Seen.
    expect on=\"net9-unix net9-unix-legacy-exceptions\" from=\"observed\" count=3 {{
        result \"E_NOTIMPL\"
        clause \"C-019\"
    }}
    expect on=\"unix\" {{
        result \"E_NOTIMPL\"
        clause \"C-019\"
    }}
    expect on=\"windows\" {{
        result \"CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX\"
    }}
    // Behind.
}}
snapshot callback=none {{
    expect {{
        result \"E_FAIL\"
    }}
    // Between.
}}
"
        )
    );
}

#[test]
fn snapshots_of_each_stop_are_distinguished() {
    let program = "function \"App.Main\" kind=\"jit\" { body { new; p-invoke \"Lib.Sleep\" } }
function \"Lib.Sleep\" { body { work 3 } }
";
    let text = format!(
        "{program}stop callback=\"ObjectAllocated\" {{
    snapshot by=\"native-walker\" {{
        expect on=\"windows\" {{ result \"S_OK\" }} // wrong
    }}
}}
stop at=\"Lib.Sleep\" {{
    snapshot by=\"native-walker\" flags=0 {{
        expect on=\"coreclr-3.1-windows net10-windows\" {{ result \"E_FAIL\" }}
    }}
}}
"
    );
    let new = blessed(&text);
    let (first, second) = new.split_once("at=").unwrap();
    assert!(first.contains("{\n            result \"CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX\"\n"));
    assert!(first.contains("// wrong"), "{first}");
    assert!(second.contains("            frame \"App.Main+0x"), "{second}");
}

/// Stale registers and ContextFlags are also written.
#[test]
fn stale_registers_and_flags_are_written() {
    let text = format!(
        "{}\nsnapshot by=native-walker\nsnapshot {{ seed App.Foo {{ rip \"App.Main+0x3d0\"; rsp 0x1fe048 }} }}\nsnapshot seed=App.Foo flags=0",
        "stack {
    mode cooperative
    jit \"App.Foo+0x40\" rsp=0x1fe000 { saves rbx }
    jit \"App.Main+0x20\" rsp=0x1fe050
    native \"Root+0x7c\" rsp=0x1fe090
}"
    );
    insta::assert_snapshot!(blessed(&text));
}

/// A program whose first expectation is met, and whose others are not.
const WALKS: &str = "function main { body { call middle } }
function middle { locals 0x28; body { call leaf } }
function leaf { unwind none }
stop at=leaf {
    expect   { frame leaf; frame middle
        frame main } // kept
    expect { frame leaf trust=body rsp=0x10 /* gone */; frame main trust=body }
    expect rules=coreclr ends=any { frame middle }
    /- expect { frame main }
    expect ends=stack { frame leaf; frame middle; frame main }
}
stop at=middle { expect { frame leaf }; snapshot }
stop end
";

/// Functions are written with the properties that the old text had. The end of the walk is the base
/// unless the old text has `ends="any"`.
#[test]
fn walks_at_stops_are_blessed() {
    let walk = |text: &str| parse(text).run().unwrap();
    let new = bless(WALKS, Results::Walks(&walk(WALKS))).unwrap();
    let rsp = parse(WALKS).run().unwrap()[0].reached.as_ref().unwrap().walks[1].found.frames[0]
        .registers
        .rsp();
    let (head, _) = WALKS.split_once("    expect { frame leaf trust").unwrap();
    let wanted = format!(
        "{head}    expect {{
        frame \"leaf\" trust=\"leaf\" rsp={rsp}
        frame \"middle\" trust=\"body\"
        frame \"main\" trust=\"body\"
    }}
    expect rules=\"coreclr\" ends=\"any\" {{
        frame \"leaf\"
    }}
    /- expect {{ frame main }}
    expect {{
        frame \"leaf\"
        frame \"middle\"
        frame \"main\"
    }}
}}
stop at=middle {{ expect {{
    frame \"middle\"
    frame \"main\"
}}; snapshot }}
stop end
"
    );
    assert_eq!(new.replace(&format!("rsp={rsp:#x}"), &format!("rsp={rsp}")), wanted);
    let reports = walk(&new);
    let all = reports.iter().filter_map(|report| report.reached.as_ref().ok());
    assert!(all.flat_map(|reached| &reached.walks).all(WalkReport::is_right), "{new}");
    assert_eq!(bless(&new, Results::Walks(&reports)).unwrap(), new);
    assert!(bless("stick", Results::Walks(&reports)).is_err());
}
