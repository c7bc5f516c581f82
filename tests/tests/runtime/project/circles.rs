//! Circles of files inside a crate: files of which each needs the next, and the last the first.
//!
//! A file needs the files that define what its imports and paths name (a re-export is none of them), and those with
//! the inherent methods that it calls. Code for tests does not count, and code that macros make is not seen.

use super::*;
use crate::project::lines::{crate_of, sources};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, File, ImplItem, Item, ItemUse, TraitItem, Type, UseTree, Visibility};

/// Largest circle that a reader can keep in mind.
const LARGEST: usize = 5;

/// Crates with a circle that stays, the files that it may have, and what it is.
const LEFT: &[(&str, usize, &str)] = &[
    ("sim/codegen", 8, "the tree of a program, its shapes, and what is computed from both"),
    ("sim/generate", 8, "generators of one recursive value"),
    (
        "sim/world",
        16,
        "one state machine: threads, services, exceptions, suspension, GCs, what programs arrange",
    ),
];

/// Methods of the standard library whose names ours have, too: a call of one says nothing.
const STANDARD: &str = "all any as_mut as_ref as_slice bits borrow bytes chain chars clear clone cmp collect contains \
    contains_key count direct drain end entry eq extend filter find first flush for_each from get get_mut index insert into \
    into_iter is_empty is_none is_some iter iter_mut join keys kind last len lock map max message min name new next \
    next_back ok position pop pop_front push push_back push_str read remove replace reserve resize rev run send set \
    skip sort split start starts_with status step take then to_owned to_string total truncate try_lock update values wait with \
    write zip";

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// The files of a crate as a graph, by their indices.
#[derive(Default)]
struct Graph {
    files: Vec<String>,
    /// The file of each module, of inline ones too.
    modules: BTreeMap<Module, usize>,
    /// The file of each item, by module and name.
    items: BTreeMap<(Module, String), usize>,
    /// The re-exports of a module, by the name there; and the modules of which it re-exports everything.
    exports: BTreeMap<(Module, String), Module>,
    globs: BTreeMap<Module, Vec<Module>>,
    /// The files with an inherent method, by its name; and by the type's name as well.
    methods: BTreeMap<String, BTreeSet<usize>>,
    of_type: BTreeMap<(String, String), BTreeSet<usize>>,
    /// The paths and methods that files name, with the module.
    named: Vec<(usize, Module, Module)>,
    called: Vec<(usize, String)>,
    /// Names of methods that are declared somewhere else, too: a call of one says nothing.
    elsewhere: BTreeSet<String>,
}

/// The declarations of one file, or the names in it, as the visitor meets them.
struct Reader<'g> {
    graph: &'g mut Graph,
    file: usize,
    module: Module,
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg")
            && it.parse_args::<syn::Meta>().is_ok_and(|meta| meta.path().is_ident("test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Returns the paths that a tree of imports names, each with the name that it gets; `*` for all.
fn leaves(tree: &UseTree, before: &[String]) -> Vec<(Module, String)> {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(it) => leaves(&it.tree, &with(&it.ident)),
        UseTree::Group(it) => it.items.iter().flat_map(|tree| leaves(tree, before)).collect(),
        UseTree::Glob(_) => vec![(before.to_vec(), "*".to_owned())],
        UseTree::Name(it) if it.ident == "self" => {
            vec![(before.to_vec(), before.last().cloned().unwrap_or_default())]
        }
        UseTree::Name(it) => vec![(with(&it.ident), it.ident.to_string())],
        UseTree::Rename(it) => vec![(with(&it.ident), it.rename.to_string())],
    }
}

impl Graph {
    fn of(files: &[(Module, String, File)]) -> Self {
        let mut graph = Self::default();
        for (module, name, _) in files {
            graph.modules.insert(module.clone(), graph.files.len());
            graph.files.push(name.clone());
        }
        for (file, (module, _, parsed)) in files.iter().enumerate() {
            Reader { graph: &mut graph, file, module: module.clone() }.visit_file(parsed);
        }
        graph
    }

    /// Returns a path from the root of the crate; `None` if it is one of another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let ups = path.iter().take_while(|part| *part == "super").count();
        match &**first {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
            _ => {
                let inner = [&module[..], &path[..1]].concat();
                let is_known = self.modules.contains_key(&inner);
                (is_known && path.len() > 1).then(|| [module, path].concat())
            }
        }
    }

    /// Returns the file that defines what a path from the root names.
    fn definer(&self, path: &[String], depth: usize) -> Option<usize> {
        if let Some(file) = self.modules.get(path) {
            return Some(*file);
        }
        let known = (0..path.len()).rev().find(|len| self.modules.contains_key(&path[..*len]))?;
        let (module, name) = (path[..known].to_vec(), path[known].clone());
        if let Some(file) = self.items.get(&(module.clone(), name.clone())) {
            return Some(*file);
        }
        if depth == 0 {
            return None;
        }
        if let Some(target) = self.exports.get(&(module.clone(), name)) {
            return self.definer(&[&target[..], &path[known + 1..]].concat(), depth - 1);
        }
        let mut globs = self.globs.get(&module).into_iter().flatten();
        globs.find_map(|from| self.definer(&[&from[..], &path[known..]].concat(), depth - 1))
    }

    /// Returns the files that each file needs.
    fn needs(&self) -> Vec<BTreeSet<usize>> {
        let mut needs = vec![BTreeSet::new(); self.files.len()];
        for (file, module, path) in &self.named {
            let target = self.absolute(module, path).and_then(|path| self.definer(&path, 8));
            needs[*file].extend(target);
            if let [.., of, method] = &path[..]
                && let Some(files) = self.of_type.get(&(of.clone(), method.clone()))
                && files.len() == 1
            {
                needs[*file].extend(files);
            }
        }
        for (file, method) in &self.called {
            if let Some(files) = self.methods.get(method)
                && files.len() == 1
                && !STANDARD.split_whitespace().any(|name| name == method)
                && !self.elsewhere.contains(method)
            {
                needs[*file].extend(files);
            }
        }
        // Each file of a folder needs the head of the folder: that is no circle.
        let mut module_of: BTreeMap<usize, &Module> = BTreeMap::new();
        // From the last, so that the file's own module comes after the inline ones.
        module_of.extend(self.modules.iter().rev().map(|(module, file)| (*file, module)));
        for (file, needs) in needs.iter_mut().enumerate() {
            let own = module_of[&file];
            needs.retain(|other| *other != file && !own.starts_with(module_of[other]));
        }
        needs
    }

    /// Returns the circles of more files than [`LARGEST`].
    fn circles(&self) -> Vec<Vec<&str>> {
        self.circles_above(LARGEST)
    }

    /// Returns the circles of more than some files.
    fn circles_above(&self, most: usize) -> Vec<Vec<&str>> {
        let needs = self.needs();
        let reached: Vec<_> = (0..needs.len()).map(|file| reach(&needs, file)).collect();
        let mut circles = BTreeSet::new();
        for file in 0..needs.len() {
            let circle: Vec<_> =
                reached[file].iter().filter(|other| reached[**other].contains(&file)).collect();
            circles.insert(circle);
        }
        let named = |circle: Vec<&usize>| circle.iter().map(|it| &*self.files[**it]).collect();
        circles.into_iter().filter(|circle| circle.len() > most).map(named).collect()
    }
}

/// Returns the files that a file needs, and those that these need, and so on.
fn reach(needs: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(file) = left.pop() {
        left.extend(needs[file].iter().filter(|next| found.insert(**next)));
    }
    found
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        let name = match item {
            Item::Const(it) => Some(&it.ident),
            Item::Enum(it) => Some(&it.ident),
            Item::Fn(it) => Some(&it.sig.ident),
            Item::Macro(it) => it.ident.as_ref(),
            Item::Static(it) => Some(&it.ident),
            Item::Struct(it) => Some(&it.ident),
            Item::Trait(it) => Some(&it.ident),
            Item::Type(it) => Some(&it.ident),
            _ => None,
        };
        if let Some(name) = name {
            self.graph.items.insert((self.module.clone(), name.to_string()), self.file);
        }
        match item {
            Item::Mod(it) if it.content.is_some() => {
                self.module.push(it.ident.to_string());
                self.graph.modules.insert(self.module.clone(), self.file);
                visit::visit_item(self, item);
                self.module.pop();
            }
            Item::Trait(it) => {
                let methods = it.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(method) => Some(method.sig.ident.to_string()),
                    _ => None,
                });
                self.graph.elsewhere.extend(methods);
                visit::visit_item(self, item);
            }
            Item::Impl(it) if it.trait_.is_none() => {
                if let Type::Path(of) = &*it.self_ty
                    && let Some(of) = of.path.segments.last()
                {
                    for item in &it.items {
                        let ImplItem::Fn(method) = item else { continue };
                        let method = method.sig.ident.to_string();
                        let key = (of.ident.to_string(), method.clone());
                        self.graph.methods.entry(method).or_default().insert(self.file);
                        self.graph.of_type.entry(key).or_default().insert(self.file);
                    }
                }
                visit::visit_item(self, item);
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        for (path, name) in leaves(&item.tree, &[]) {
            if matches!(item.vis, Visibility::Inherited) {
                self.graph.named.push((self.file, self.module.clone(), path.clone()));
            }
            // Which modules there are is not known yet, so a path without a first word is one from here.
            let from_root = match &*path[0] {
                "crate" => path[1..].to_vec(),
                "self" => [&self.module[..], &path[1..]].concat(),
                "super" => {
                    let ups = path.iter().take_while(|part| *part == "super").count();
                    [&self.module[..self.module.len().saturating_sub(ups)], &path[ups..]].concat()
                }
                _ => [&self.module[..], &path].concat(),
            };
            if name == "*" {
                self.graph.globs.entry(self.module.clone()).or_default().push(from_root);
            } else {
                self.graph.exports.insert((self.module.clone(), name), from_root);
            }
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.graph.named.push((self.file, self.module.clone(), parts));
        visit::visit_path(self, path);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::MethodCall(call) = expression {
            self.graph.called.push((self.file, call.method.to_string()));
        }
        visit::visit_expr(self, expression);
    }
}

/// Returns the path of a file's module, from the folder `src`; `None` for a file that is somewhere else.
fn module_of(path: &str) -> Option<Module> {
    let (_, inside) = path.split_once("/src/")?;
    let mut module: Module = inside.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    module.pop_if(|last| matches!(&**last, "lib" | "mod"));
    // The root of a program is a crate of its own.
    (module != ["main"]).then_some(module)
}

/// Returns the graph of each crate, by its folder.
fn crates() -> BTreeMap<String, Graph> {
    let mut files: BTreeMap<String, Vec<(Module, String, File)>> = BTreeMap::new();
    for (path, text, is_test) in sources() {
        if let (Some(module), false) = (module_of(&path), is_test) {
            let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
            files.entry(crate_of(&path).to_owned()).or_default().push((module, path, parsed));
        }
    }
    let mut crates: BTreeMap<_, _> =
        files.iter().map(|(name, files)| (name.clone(), Graph::of(files))).collect();
    let names = |graph: &Graph| graph.methods.keys().chain(&graph.elsewhere).cloned().collect();
    let declared: BTreeMap<String, BTreeSet<String>> =
        crates.iter().map(|(name, graph)| (name.clone(), names(graph))).collect();
    for (name, graph) in &mut crates {
        let others = declared.iter().filter(|(other, _)| *other != name);
        graph.elsewhere.extend(others.flat_map(|(_, names)| names.iter().cloned()));
    }
    crates
}

#[test]
fn no_circle_of_files_is_larger_than_a_reader_can_follow() {
    let mut wrong = String::new();
    let crates = crates();
    let needs: usize = crates.values().flat_map(Graph::needs).map(|needs| needs.len()).sum();
    assert!(crates.len() > 20 && needs > 2_000, "{} crates, {needs} arrows", crates.len());
    for (name, graph) in crates {
        let left = LEFT.iter().find(|(left, ..)| *left == name).map_or(0, |(_, files, _)| *files);
        for circle in graph.circles().iter().filter(|circle| circle.len() > left) {
            writeln!(wrong, "{name}: {} files\n    {}", circle.len(), circle.join("\n    "))
                .unwrap();
        }
    }
    assert!(wrong.is_empty(), "circles of more than {LARGEST} files:\n{wrong}");
}

/// Six files, of which each needs the next by what its name says.
#[test]
fn circles_are_found_by_imports_paths_and_methods() {
    let texts = [
        ("lib", "mod a; mod b; mod c; mod d; mod e; mod f; pub use b::B;"),
        ("a", "use crate::B; pub struct A(B);"),
        ("b", "pub struct B; impl B { fn go(&self) { crate::c::call() } }"),
        ("c", "pub fn call() { super::d::D.only_in_e() }"),
        ("d", "pub struct D;"),
        ("e", "impl crate::d::D { pub fn only_in_e(&self) { crate::f::F::build() } }"),
        ("f", "pub struct F; impl F { pub fn build() { let _: crate::a::A; } }"),
    ];
    let parsed = |without: &str| {
        let texts = texts.iter().filter(|(name, _)| *name != without);
        let file = |(name, text): &(&str, &str)| {
            let path = format!("x/src/{name}.rs");
            (module_of(&path).unwrap(), path, syn::parse_file(text).unwrap())
        };
        texts.map(file).collect::<Vec<_>>()
    };
    // The head of the folder belongs to no circle, and `d` needs nothing.
    assert_eq!(Graph::of(&parsed("")).needs()[1], BTreeSet::from([2]), "a needs b");
    let circle = |files: &[_]| Graph::of(files).circles_above(4).len();
    assert_eq!(circle(&parsed("")), 1, "a → b → c → e → f → a");
    for (name, _) in &texts[1..] {
        assert_eq!(circle(&parsed(name)), usize::from(*name == "d"), "without {name}");
    }
}
