//! Expectations are rewritten in place.

use super::parse;
use crate::generation::Generation;
use crate::scenario::{SnapshotReport, bless};

/// Blesses what the scenario itself gives.
fn blessed(text: &str) -> String {
    let scenario = parse(text);
    let reports = Generation::ALL.map(|it| (it, scenario.run_on(it).unwrap()));
    let new = bless(text, &reports).unwrap();
    // Nothing is left to bless.
    let scenario = parse(&new);
    let reports = Generation::ALL.map(|it| (it, scenario.run_on(it).unwrap()));
    assert!(reports.iter().flat_map(|(_, reports)| reports).all(SnapshotReport::is_right), "{new}");
    assert_eq!(bless(&new, &reports).unwrap(), new);
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
fn what_is_right_stays_byte_for_byte() {
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
fn only_what_is_wrong_is_rewritten() {
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
    expect on=windows {{ result S_OK }}
    expect on=windows {{ result S_OK }}
}}
"
    );
    assert_eq!(
        blessed(&text),
        format!(
            "{STACK}snapshot by=native-walker {{
    // Seen.
    expect on=\"net9\" from=\"observed\" count=3 {{
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
fn snapshots_of_each_stop_are_told_apart() {
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

/// Stale registers and ContextFlags are told, too.
#[test]
fn what_contexts_have_is_told() {
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
