//! The supported items of `clr-sim`: what the page on stability promises is what the crate shows.

use super::*;
use syn::{Item, UseTree, Visibility};

/// Largest number of items that can be promised.
const MOST: usize = 60;

fn names(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(it) => names(&it.tree),
        UseTree::Group(it) => it.items.iter().flat_map(names).collect(),
        UseTree::Name(it) => vec![it.ident.to_string()],
        UseTree::Rename(it) => vec![it.rename.to_string()],
        UseTree::Glob(_) => vec!["*".to_owned()],
    }
}

/// Returns the public items of a file, but for those that its documentation hides.
fn shown(file: &str) -> BTreeSet<String> {
    let parsed = syn::parse_file(&read(file)).unwrap();
    let is_hidden = |it: &syn::ItemMod| {
        it.attrs.iter().any(
            |it| matches!(&it.meta, syn::Meta::List(list) if list.tokens.to_string() == "hidden"),
        )
    };
    let of = |item: &Item| match item {
        Item::Use(it) if matches!(it.vis, Visibility::Public(_)) => names(&it.tree),
        Item::Mod(it) if matches!(it.vis, Visibility::Public(_)) && !is_hidden(it) => {
            vec![it.ident.to_string()]
        }
        Item::Fn(it) if matches!(it.vis, Visibility::Public(_)) => vec![it.sig.ident.to_string()],
        Item::Struct(it) if matches!(it.vis, Visibility::Public(_)) => vec![it.ident.to_string()],
        Item::Trait(it) if matches!(it.vis, Visibility::Public(_)) => vec![it.ident.to_string()],
        _ => Vec::new(),
    };
    parsed.items.iter().flat_map(of).collect()
}

#[test]
fn the_page_on_stability_lists_the_items_that_the_crate_shows() {
    let page = read("sim/src/book/stability.md");
    let (_, table) = page.split_once("<!-- surface -->\n").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let of_row = |row: &str| row.rsplit('|').nth(1).unwrap().to_owned();
    let listed: BTreeSet<_> = rows
        .flat_map(|row| {
            let items = of_row(row);
            items.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let mut all = shown("sim/src/lib.rs");
    all.extend(shown("sim/src/harness/mod.rs"));
    assert_eq!(listed, all, "sim/src/book/stability.md against sim/src/lib.rs");
    assert!(all.len() <= MOST, "{} items are more than can be promised", all.len());
}

#[test]
fn readme_and_book_need_nothing_that_is_not_supported() {
    let shown = shown("sim/src/lib.rs");
    let pages = files("sim/src", &[".md", ".rs"]);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, text) in pages.iter().chain([&("README.md".to_owned(), read("README.md"))]) {
        let is_doc = |line: &&str| {
            path.rsplit_once('.').is_some_and(|(_, it)| it == "md")
                || line.trim_start().starts_with("//!")
        };
        for line in text.lines().filter(is_doc) {
            let of_facade = line.split("clr_sim::").skip(1).map(|rest| {
                seen += 1;
                let rest = rest.trim_start_matches('{').trim_start();
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()
            });
            let unknown = of_facade.filter(|name| !name.is_empty() && !shown.contains(*name));
            wrong.extend(unknown.map(|name| format!("{path}: clr_sim::{name}")));
            let crates = ["scenario", "runtime", "explore", "world", "codegen", "machine"];
            let imports = crates.iter().filter(|it| line.contains(&format!("use clr_{it}")));
            wrong.extend(imports.map(|it| format!("{path}: use clr_{it}")));
        }
    }
    assert!(seen > 10, "the pages name {seen} items");
    assert!(wrong.is_empty(), "not supported:\n{}", wrong.join("\n"));
}
