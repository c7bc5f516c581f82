use super::*;

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
