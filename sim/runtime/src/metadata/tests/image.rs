use super::*;
use crate::Method;
use clr_metadata as md;
use clr_metadata::{Table, token};

fn described(modules: &[ModuleNames], methods: &[&str], calls: &[(&str, &[&str])]) -> Metadata {
    let name = |name: &&str| (*name).to_owned();
    let calls = calls.iter().map(|(from, to)| ((*from).to_owned(), to.iter().map(name).collect()));
    let metadata = Metadata::new(modules, CORE).with_calls(Arc::new(calls.collect()));
    let mut metadata = metadata.with_flat_modules(true);
    let mut code = CodeManager::new();
    for one in methods {
        code.add_method(Method { name: (*one).to_owned(), ..Method::default() });
    }
    metadata.describe(&mut code);
    metadata
}

fn named(path: &str) -> ModuleNames {
    ModuleNames { path: path.to_owned(), ..ModuleNames::default() }
}

/// ECMA-335, II.22.37: the methods of a type have successive rows, in whatever order they are met.
#[test]
fn methods_are_numbered_by_their_types() {
    let metadata = described(&[], &["A.One", "B.Two", "A.Three"], &[]);
    let module = &metadata.modules()[0];
    let tokens: Vec<_> =
        module.methods().iter().map(|one| (one.name.as_str(), one.token)).collect();
    assert_eq!(tokens, [("One", 0x0600_0001), ("Three", 0x0600_0002), ("Two", 0x0600_0003)]);
    let image = metadata.image(module.id).unwrap();
    let own = image.metadata.children(token(Table::TypeDef, 2), Table::Method);
    assert_eq!(own, [0x0600_0001, 0x0600_0002]);
}

#[test]
fn images_have_places_of_their_own_that_depend_on_the_bytes() {
    let modules = [named("a.dll"), named("b.exe")];
    let (one, other) = (described(&modules, &["A.One"], &[]), described(&modules, &["A.One"], &[]));
    let changed = described(&modules, &["A.Two"], &[]);
    let base = |metadata: &Metadata, at: usize| {
        let id = metadata.modules()[at].id;
        metadata.image(id).unwrap().base
    };
    for at in 0..3 {
        assert_eq!(base(&one, at), base(&other, at));
        assert_eq!(base(&one, at) % 0x1_0000, 0, "Windows reserves multiples of 64 KiB");
        assert!((0x7E90_0000_0000..0x7EA0_0000_0000).contains(&base(&one, at)));
    }
    assert_ne!(base(&one, 0), base(&one, 1));
    assert_ne!(base(&one, 0), base(&changed, 0));
    assert_eq!(base(&one, 1), base(&changed, 1));
    assert_eq!(one.image(7), None);
}

#[test]
fn the_core_library_is_precompiled_and_lies_at_its_rvas() {
    let metadata = described(&[], &["A.One"], &[]);
    let [app, core] = [0, 1].map(|at| metadata.modules()[at].id);
    let flat = [app, core].map(|id| metadata.image(id).unwrap().is_flat);
    assert_eq!(flat, [true, false]);
    assert_eq!([app, core].map(|id| metadata.is_precompiled(id)), [false, true]);
    let image = metadata.image(core).unwrap();
    assert_eq!(image.address(0x2050), image.base + 0x2050);
    let image = metadata.image(app).unwrap();
    assert_eq!(image.address(0x2050), image.base + 0x250);
    let bytes = image.bytes();
    assert_eq!(bytes[0x250..][..2], image.body(0x2050).unwrap()[..2]);
}

/// A call within the module names the method itself; one of another module a reference, which is there once.
#[test]
fn calls_name_methods_and_references() {
    let calls: &[(&str, &[&str])] = &[
        ("A.One", &["B.Two", "System.Console.Write", "System.Console.Write"]),
        ("System.Console.Write", &["System.Console.Flush"]),
    ];
    let methods = ["A.One", "B.Two", "System.Console.Write", "System.Console.Flush"];
    let metadata = described(&[], &methods, calls);
    let [app, core] = [0, 1].map(|at| metadata.image(metadata.modules()[at].id).unwrap());
    let body = |image: &ModuleImage, method| {
        let rva = image.metadata.get(method, md::Method::RVA);
        image.body(rva).unwrap()[1..].to_vec()
    };
    let call = |token: u32| [&[0x28], &token.to_le_bytes()[..]].concat();
    let end = vec![0x2A];
    let expected = [call(0x0600_0002), call(0x0A00_0001), call(0x0A00_0001), end.clone()].concat();
    assert_eq!(body(app, 0x0600_0001), expected);
    assert_eq!(app.metadata.len(Table::MemberRef), 1);
    assert_eq!(app.metadata.string(0x0A00_0001, md::MemberRef::Name), "Write");
    let class = app.metadata.get(0x0A00_0001, md::MemberRef::Class);
    assert_eq!(app.metadata.string(class, md::TypeRef::Name), "Console");
    assert_eq!(body(core, 0x0600_0001), [call(0x0600_0002), end].concat());
}
