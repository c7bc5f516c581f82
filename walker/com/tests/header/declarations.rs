//! The declarations of interfaces and structures, read from this crate's sources.

/// What the sources declare.
pub(crate) struct Declarations {
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) structures: Vec<Structure>,
}

pub(crate) struct Interface {
    /// The sentence of its documentation.
    pub(crate) doc: String,
    pub(crate) name: String,
    pub(crate) iid: String,
    pub(crate) base: String,
    pub(crate) methods: Vec<Method>,
}

pub(crate) struct Method {
    pub(crate) slot: u32,
    pub(crate) name: String,
    /// Names and types in Rust.
    pub(crate) arguments: Vec<(String, String)>,
    /// A type in Rust; empty for an HRESULT.
    pub(crate) result: String,
}

pub(crate) struct Structure {
    pub(crate) name: String,
    /// Names and types in Rust.
    pub(crate) fields: Vec<(String, String)>,
}

/// Interfaces are declared before those that extend them or have them in arguments.
const SOURCES: [&str; 5] = [
    include_str!("../../src/object.rs"),
    include_str!("../../src/enumerator.rs"),
    include_str!("../../src/info.rs"),
    include_str!("../../src/callback.rs"),
    include_str!("../../src/metadata.rs"),
];

/// Reads all declarations.
pub(crate) fn read() -> Declarations {
    let interfaces = SOURCES.iter().flat_map(|source| interfaces(source)).collect();
    let structures = structures(include_str!("../../src/data.rs"));
    Declarations { interfaces, structures }
}

/// Returns the text between the braces of the macro's call.
fn body<'s>(source: &'s str, call: &str) -> &'s str {
    let (_, rest) = source.split_once(&format!("\n{call} {{\n")).expect("the macro is used");
    rest.split_once("\n}\n").expect("its call has an end").0
}

fn interfaces(source: &str) -> Vec<Interface> {
    let body = body(source, "interfaces!");
    let (_, body) = body.split_once(';').expect("the default comes first");
    let all = body.split('}').filter(|one| !one.trim().is_empty());
    all.map(interface).collect()
}

/// Reads `/// Docs, Name, Methods, "id": Base, Methods { methods`.
fn interface(text: &str) -> Interface {
    let doc: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("/// ")).collect();
    let code: Vec<_> = text.lines().filter(|line| !line.trim().starts_with("///")).collect();
    let code = code.join(" ");
    let (head, methods) = code.split_once('{').expect("methods follow");
    let (name, base) = head.split_once(':').expect("it extends another one");
    let mut name = name.split(',').map(str::trim);
    let methods = methods.split(';').filter(|one| !one.trim().is_empty());
    Interface {
        doc: doc.join(" "),
        name: name.next().expect("it has a name").to_owned(),
        iid: name.next_back().expect("it has an id").trim_matches('"').to_owned(),
        base: base.split(',').next().expect("there is always one").trim().to_owned(),
        methods: methods.map(method).collect(),
    }
}

/// Reads `3 Name(argument: Type, …) -> Type`.
fn method(text: &str) -> Method {
    let (head, rest) = text.split_once('(').expect("arguments follow");
    let (arguments, result) = rest.split_once(')').expect("the list ends");
    let (slot, name) = head.trim().split_once(' ').expect("the slot comes first");
    Method {
        slot: slot.parse().expect("it is a number"),
        name: name.trim().to_owned(),
        arguments: pairs(arguments),
        result: result.trim().trim_start_matches("->").trim().to_owned(),
    }
}

fn structures(source: &str) -> Vec<Structure> {
    let code: Vec<_> = body(source, "structures!")
        .lines()
        .filter(|line| !line.trim().starts_with("///"))
        .collect();
    let code = code.join(" ");
    let all = code.split('}').filter(|one| !one.trim().is_empty());
    let all = all.map(|one| one.split_once('{').expect("fields follow"));
    all.map(|(name, fields)| Structure { name: name.trim().to_owned(), fields: pairs(fields) })
        .collect()
}

/// Reads `name: Type, …`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let all = text.split(',').filter(|one| !one.trim().is_empty());
    let all = all.map(|one| one.split_once(':').expect("a type follows"));
    all.map(|(name, kind)| (name.trim().to_owned(), kind.trim().to_owned())).collect()
}
