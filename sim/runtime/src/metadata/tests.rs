mod image;

use super::*;
use crate::MethodKind;

const CORE: &str = "System.Private.CoreLib.dll";

fn one(name: &str) -> TypeNames {
    TypeNames { name: name.to_owned(), ..TypeNames::default() }
}

/// Returns module, namespace, type and method of a place.
fn words(metadata: &Metadata, place: MethodPlace) -> String {
    let module = metadata.module(place.module).unwrap();
    let (of_class, class) = metadata.class(place.class).unwrap();
    assert_eq!(module.id, of_class.id);
    let method = module.methods().iter().find(|method| method.token == place.token).unwrap();
    assert_eq!(method.owner, class.token);
    format!("{} [{}] {} {}", module.name(), class.namespace, class.name, method.name)
}

#[test]
fn a_method_alone_has_a_module_a_type_and_the_first_token() {
    let mut metadata = Metadata::new(&[], CORE);
    let place = metadata.place("Prog.Main");
    assert_eq!(words(&metadata, place), "App.dll [] Prog Main");
    assert_eq!(place.token, 0x0600_0001);
    let module = metadata.module(place.module).unwrap();
    assert_eq!(module.assembly_name, "App");
    assert_eq!(module.types()[0].name, "<Module>");
    assert_eq!(module.types()[1].token, 0x0200_0002);
    assert_eq!(module.types()[1].extends, module.type_refs()[0].token);
    assert_eq!(metadata.assembly(module.assembly).unwrap().id, place.module);
    assert_eq!(metadata.place("Prog.Main"), place);
}

#[test]
fn methods_of_system_are_in_the_core_library() {
    let mut metadata = Metadata::new(&[], CORE);
    let place = metadata.place("System.Runtime.EH.DispatchEx");
    assert_eq!(
        words(&metadata, place),
        "System.Private.CoreLib.dll [System.Runtime] EH DispatchEx"
    );
    let (_, object) = metadata.class(CLASSES + CLASS_PITCH).unwrap();
    assert_eq!((object.name.as_str(), object.extends), ("Object", 0x0100_0000));
}

#[test]
fn global_functions_and_constructors_have_their_types() {
    let mut metadata = Metadata::new(&[], CORE);
    let global = metadata.place("main");
    assert_eq!(words(&metadata, global), "App.dll [] <Module> main");
    let constructor = metadata.place("App.Prog..ctor");
    assert_eq!(words(&metadata, constructor), "App.dll [App] Prog .ctor");
    let module = metadata.module(constructor.module).unwrap();
    assert_eq!(module.methods()[1].signature, [0x20, 0, 1]);
}

#[test]
fn methods_belong_to_the_type_that_their_name_begins_with() {
    let inner = TypeNames {
        methods: vec![MethodNames { parameters: vec!["U".to_owned()], ..MethodNames::plain("Go") }],
        ..one("Inner")
    };
    let handler = TypeNames {
        parameters: vec!["T".to_owned(), "K".to_owned()],
        attributes: vec!["System.ObsoleteAttribute".to_owned()],
        types: vec![inner],
        ..one("Acme.Web.Handler")
    };
    let module = ModuleNames {
        path: "/opt/acme/Acme.Web.dll".to_owned(),
        assembly: None,
        types: vec![handler],
    };
    let mut metadata = Metadata::new(&[module], CORE);
    let run = metadata.place("Acme.Web.Handler.Run");
    assert_eq!(words(&metadata, run), "Acme.Web.dll [Acme.Web] Handler`2 Run");
    assert_eq!(run.parameters, (2, 0));
    let go = metadata.place("Acme.Web.Handler.Inner.Go");
    assert_eq!(words(&metadata, go), "Acme.Web.dll [] Inner Go");
    assert_eq!((go.token, go.parameters), (0x0600_0001, (0, 1)));
    let module = metadata.module(go.module).unwrap();
    assert_eq!(module.types()[2].enclosing, Some(0x0200_0002));
    assert_eq!(module.methods()[0].signature, [0x10, 1, 0, 1]);
    let names: Vec<_> = module.parameters_of(0x0200_0002).map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["T", "K"]);
    assert_eq!(module.attributes_of(0x0200_0002).collect::<Vec<_>>(), ["System.ObsoleteAttribute"]);
    assert_ne!(metadata.canonical_class(), 0);
    // A type that is not named is in the first module.
    let other = metadata.place("Prog.Main");
    assert_eq!(words(&metadata, other), "Acme.Web.dll [] Prog Main");
}

#[test]
fn ids_do_not_name_anything_else() {
    let mut metadata = Metadata::new(&[], CORE);
    let place = metadata.place("Prog.Main");
    for id in [0, 1, place.class + 1, place.class + CLASS_PITCH, place.module, APP_DOMAIN] {
        assert_eq!(metadata.class(id), None, "{id:#x}");
    }
    assert_eq!(metadata.module(place.class), None);
    assert_eq!(metadata.assembly(place.module), None);
}

#[test]
fn modules_have_ids_assemblies_and_bases_of_their_own() {
    let module = |path: &str, assembly: Option<&str>, names: [&str; 3]| ModuleNames {
        path: path.to_owned(),
        assembly: assembly.map(str::to_owned),
        // The third one is there already.
        types: names.map(one).into(),
    };
    let modules = [
        module("a.dll", None, ["A", "B", "A"]),
        module(CORE, None, ["C", "D", "D"]),
        module("b.dll", Some("Bee"), ["E", "F", "E"]),
    ];
    let mut metadata = Metadata::new(&modules, CORE);
    let names: Vec<_> = metadata.modules().iter().map(Module::name).collect();
    assert_eq!(names, ["a.dll", CORE, "b.dll"]);
    let types = metadata.modules().iter().map(|module| module.types().len());
    assert_eq!(types.collect::<Vec<_>>(), [3, 5, 3], "with that of global functions");
    for (n, module) in (0..).zip(metadata.modules()) {
        assert_eq!(module.id, 0x7FF8_4200_0000 + 0x1000 * n);
        assert_eq!(module.assembly, 0x7FF8_4100_0000 + 0x1000 * n);
        let refs: Vec<_> = module.assembly_refs().collect();
        let core = (0x2300_0001, "System.Private.CoreLib");
        assert_eq!(refs, if module.path == CORE { vec![] } else { vec![core] });
        for (row, one) in (1..).zip(module.types()) {
            assert_eq!(one.token, 0x0200_0000 + row, "{}", one.path);
            let (of, found) = metadata.class(one.class).unwrap();
            assert_eq!((of.id, found), (module.id, one));
        }
    }
    let object = metadata.class(metadata.object_class()).unwrap();
    assert_eq!((object.0.name(), object.1.path.as_str()), (CORE, "System.Object"));
    let canonical = metadata.class(metadata.canonical_class()).unwrap();
    assert_eq!((canonical.0.name(), canonical.1.path.as_str()), (CORE, "System.__Canon"));
    assert_eq!(Metadata::default().object_class(), 0);
    // System.Object has no base; it is the second type of its own module, and the first one that others name.
    for module in metadata.modules() {
        let extends: Vec<_> = module.types().iter().map(|one| one.extends).collect();
        let (is_core, nil) = (module.path == CORE, 0x0100_0000);
        let object = if is_core { 0x0200_0002 } else { 0x0100_0001 };
        let expected = if is_core {
            vec![nil, nil, object, object, object]
        } else {
            vec![nil, object, object]
        };
        assert_eq!(extends, expected, "{}", module.path);
        let flags = module.types().iter().map(|one| one.flags);
        let global: Vec<_> = flags.map(|flags| flags == 0).collect();
        assert_eq!(global.iter().filter(|is_global| **is_global).count(), 1);
        assert!(global[0], "{}", module.path);
    }
    // A declared type decides the module.
    for (name, expected) in
        [("F.Run", "b.dll"), ("D.Run", CORE), ("G.Run", "a.dll"), ("run", "a.dll")]
    {
        let place = metadata.place(name);
        assert_eq!(metadata.module(place.module).unwrap().name(), expected, "{name}");
    }
}

/// ECMA-335, II.22: rows are counted from 1, and RVAs of methods differ.
#[test]
fn rows_of_a_module_are_numbered() {
    let method = |name: &str, parameters: &[&str]| MethodNames {
        parameters: parameters.iter().map(|&name| name.to_owned()).collect(),
        ..MethodNames::plain(name)
    };
    let list = TypeNames {
        parameters: vec!["T".to_owned()],
        methods: vec![method(".cctor", &[]), method("Map", &["K", "V"]), method("Run", &[])],
        ..one("List")
    };
    let module = ModuleNames { path: "a.dll".to_owned(), assembly: None, types: vec![list] };
    let mut metadata = Metadata::new(&[module], CORE);
    let map = metadata.place("List.Map");
    assert_eq!((map.token, map.parameters), (0x0600_0002, (1, 2)));
    let module = metadata.module(map.module).unwrap();
    // mdPrivate, mdStatic, mdHideBySig, mdSpecialName and mdRTSpecialName of a class constructor.
    let flags: Vec<_> = module.methods().iter().map(|method| method.flags).collect();
    assert_eq!(flags, [0x1891, 0x96, 0x96]);
    let rows = [0, 1, 2].map(|row: usize| module.methods()[row].token);
    assert_eq!(rows, [0x0600_0001, 0x0600_0002, 0x0600_0003]);
    let image = metadata.image(map.module).unwrap();
    let rva = |method| image.metadata.get(method, clr_metadata::Method::RVA);
    assert_eq!(rows.map(rva), [0x2050, 0x2054, 0x2058]);
    let parameters: Vec<_> = module
        .generic_parameters()
        .iter()
        .map(|one| (one.token, one.owner, one.number, one.name.as_str()))
        .collect();
    let expected = [
        (0x2A00_0001, 0x0200_0002, 0, "T"),
        (0x2A00_0002, 0x0600_0002, 0, "K"),
        (0x2A00_0003, 0x0600_0002, 1, "V"),
    ];
    assert_eq!(parameters, expected);
}

/// Tests C-124, and nil tokens of methods without metadata.
#[test]
fn methods_of_a_process_are_described() {
    let list = TypeNames {
        parameters: vec!["T".to_owned()],
        methods: vec![MethodNames {
            parameters: vec!["K".to_owned()],
            ..MethodNames::plain("Map")
        }],
        ..one("List")
    };
    let module = ModuleNames { path: "a.dll".to_owned(), assembly: None, types: vec![list] };
    let mut metadata = Metadata::new(&[module], CORE);
    let mut code = CodeManager::new();
    let methods = [
        ("List.Map", MethodKind::Ordinary, 0x0600_0001, true, 1),
        ("List.Add", MethodKind::Ordinary, 0x0600_0002, true, 0),
        ("Prog.Main", MethodKind::Ordinary, 0x0600_0003, false, 0),
        ("System.Runtime.EH.Throw", MethodKind::ExceptionHandling, 0x0600_0001, false, 0),
        ("stub", MethodKind::IlStub, 0x0600_0000, false, 0),
        ("lambda", MethodKind::Dynamic, 0x0600_0000, false, 0),
    ];
    for (name, kind, ..) in methods {
        code.add_method(Method { name: name.to_owned(), kind, ..Method::default() });
    }
    metadata.describe(&mut code);
    let canonical = metadata.canonical_class();
    for ((name, kind, token, shared, arguments), method) in
        methods.into_iter().zip(code.methods_mut())
    {
        assert_eq!((method.token, method.shared), (token, shared), "{name}");
        assert_eq!(method.type_arguments, vec![canonical; arguments], "{name}");
        let (module, class) = metadata.class(method.class).unwrap();
        assert_eq!(module.id, method.module, "{name}");
        let is_core = kind == MethodKind::ExceptionHandling;
        assert_eq!(module.name(), if is_core { CORE } else { "a.dll" }, "{name}");
        let expected = match kind {
            MethodKind::IlStub | MethodKind::Dynamic => "<Module>",
            _ => split(name).0,
        };
        let path = if class.path.is_empty() { class.name.as_str() } else { class.path.as_str() };
        assert_eq!(path, expected, "{name}");
    }
}

/// Shared code names a type of the core library, which is there then.
#[test]
fn the_core_library_is_there_if_code_is_shared() {
    let generic = || vec!["T".to_owned()];
    let method = |parameters| MethodNames { parameters, ..MethodNames::plain("Run") };
    for (parameters, of_method, expected) in [
        (vec![], vec![], 1),
        (generic(), vec![], 2),
        (vec![], generic(), 2),
        (generic(), generic(), 2),
    ] {
        let list = TypeNames { parameters, methods: vec![method(of_method)], ..one("List") };
        let module = ModuleNames { path: "a.dll".to_owned(), assembly: None, types: vec![list] };
        assert_eq!(Metadata::new(&[module], CORE).modules().len(), expected);
    }
}

#[test]
fn members_are_split_from_their_types() {
    for (name, expected) in [
        ("main", ("", "main")),
        ("App.Main", ("App", "Main")),
        ("App.Prog..ctor", ("App.Prog", ".ctor")),
        ("..ctor", ("", ".ctor")),
        (".ctor", ("", "ctor")),
        ("App.", ("App", "")),
    ] {
        assert_eq!(split(name), expected, "{name}");
    }
}
