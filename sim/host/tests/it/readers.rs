//! Readers of somebody else's read a module's image as the text says it.

use crate::metadata::{image, session};
use clr_runtime::generation::Generation;
use std::path::Path;
use std::process::Command;

/// Prints types with their methods, RVAs and signatures, and references, by dnfile.
const BY_DNFILE: &str = r"
import sys, dnfile
tables = dnfile.dnPE(sys.argv[1]).net.mdtables
for one in tables.TypeDef:
    print('type', one.TypeNamespace, one.TypeName)
    for item in one.MethodList:
        method = item.row
        signature = method.Signature.value if hasattr(method.Signature, 'value') else method.Signature
        print('method', method.Name, hex(method.Rva), bytes(signature).hex())
for one in tables.MemberRef: print('member', one.Name)
for one in tables.AssemblyRef: print('assembly', one.Name)
for one in tables.GenericParam: print('parameter', one.Name)
for one in tables.NestedClass: print('nested', one.NestedClass.row.TypeName, one.EnclosingClass.row.TypeName)
";

const EXPECTED: &str = "\
type  <Module>
type Acme.Web Handler`2
method Run 0x2050 10010001
type  Inner
method Go 0x2058 000001
type  Prog
method Tail 0x2064 000001
member .ctor
member Run
member Write
assembly System.Private.CoreLib
parameter U
parameter T
parameter K
nested Inner Handler`2
";

fn output(command: &mut Command) -> String {
    let output = command.output().expect("the program is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n")
}

fn monodis(arguments: &[&str], file: &Path) -> String {
    output(Command::new("monodis").args(arguments).arg(file))
}

#[test]
#[ignore = "nightly: needs monodis, and python3 with dnfile"]
fn monodis_and_dnfile_read_an_image_alike() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Acme.Web.dll");
    std::fs::write(&file, image(&session(Generation::Net10Unix))).unwrap();
    let read = output(Command::new("python3").args(["-c", BY_DNFILE]).arg(&file));
    assert_eq!(read, EXPECTED);
    let types = monodis(&["--typedef"], &file);
    for one in ["Acme.Web.Handler`2 (", "Acme.Web.Handler`2/Inner (", "Prog ("] {
        assert!(types.contains(one), "{types}");
    }
    let methods = monodis(&["--method"], &file);
    for one in ["void Run<U> ()", "void Go ()", "void Tail ()"] {
        assert!(methods.contains(one), "{methods}");
    }
    let code = monodis(&[], &file);
    for one in [
        "Method begins at RVA 0x2058",
        "Code size 11 (0xb)",
        "call void [System.Private.CoreLib]System.Console::Write()",
        ".custom instance void [System.Private.CoreLib]System.ObsoleteAttribute::.ctor()",
        ".publickeytoken = (7C EC 85 D7 BE A7 79 8E )",
    ] {
        assert!(code.contains(one), "{code}");
    }
}
