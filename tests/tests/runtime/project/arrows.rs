//! The crates, and who may depend on whom.
//!
//! The list is the architecture: a crate that needs an arrow which is not in it is in the wrong
//! place, or the architecture changes, here and in `ARCHITECTURE.md`.

use super::*;

/// Crates of the workspace, lowest first, with the crates of the workspace that each may depend on
/// (build-time and optional dependencies included, dev-dependencies apart).
const ARROWS: &[(&str, &[&str])] = &[
    ("clr-fixtures", &[]),
    ("clr-coroutine", &[]),
    ("clr-unwind", &[]),
    ("clr-dump", &["clr-unwind"]),
    ("clr-walker", &["clr-unwind"]),
    ("clr-com", &["clr-walker"]),
    ("clr-sampler", &["clr-unwind", "clr-walker", "clr-com"]),
    ("clr-trace", &["clr-walker", "clr-com"]),
    ("clr-recorder", &["clr-unwind", "clr-walker", "clr-com", "clr-sampler", "clr-trace"]),
    ("clr-lint", &["clr-unwind"]),
    ("clr-machine", &["clr-unwind"]),
    ("clr-codegen", &["clr-unwind", "clr-machine"]),
    ("clr-metadata", &[]),
    ("clr-inspect", &["clr-dump", "clr-metadata", "clr-unwind", "clr-walker"]),
    ("clr-runtime", &["clr-unwind", "clr-walker", "clr-machine", "clr-metadata", "clr-codegen"]),
    ("clr-world", &["clr-unwind", "clr-walker", "clr-machine", "clr-codegen", "clr-runtime"]),
    ("clr-reference", &["clr-unwind", "clr-walker", "clr-codegen", "clr-runtime", "clr-world"]),
    ("clr-recording", &["clr-unwind", "clr-walker", "clr-machine", "clr-runtime"]),
    (
        "clr-generate",
        &["clr-unwind", "clr-walker", "clr-machine", "clr-codegen", "clr-runtime", "clr-world"],
    ),
    (
        "clr-explore",
        &[
            "clr-coroutine",
            "clr-unwind",
            "clr-walker",
            "clr-machine",
            "clr-codegen",
            "clr-runtime",
            "clr-world",
        ],
    ),
    ("clr-story", &["clr-runtime", "clr-explore"]),
    (
        "clr-scenario",
        &[
            "clr-unwind",
            "clr-walker",
            "clr-codegen",
            "clr-runtime",
            "clr-world",
            "clr-recording",
            "clr-generate",
            "clr-explore",
            "clr-story",
        ],
    ),
    (
        "clr-import",
        &["clr-dump", "clr-inspect", "clr-runtime", "clr-scenario", "clr-unwind", "clr-world"],
    ),
    (
        "clr-host",
        &[
            "clr-unwind",
            "clr-walker",
            "clr-com",
            "clr-codegen",
            "clr-explore",
            "clr-machine",
            "clr-metadata",
            "clr-runtime",
            "clr-world",
            "clr-scenario",
        ],
    ),
    (
        "clr-guest",
        &[
            "clr-unwind",
            "clr-walker",
            "clr-com",
            "clr-codegen",
            "clr-explore",
            "clr-machine",
            "clr-runtime",
            "clr-world",
            "clr-scenario",
            "clr-host",
            "clr-trace",
        ],
    ),
    ("clr-sim", BELOW_THE_FACADE),
    ("clrsim", TOOL),
    ("clr-tests", TESTS),
];

/// The crates that the tool depends on: what the tests need, without the second opinion.
const TOOL: &[&str] = ALL.split_at(1).1;

/// The crates that the tests of the whole system depend on: what the tool needs, without the guest and imports.
const TESTS: &[&str] = ALL.split_at(ALL.len() - 2).0;

const ALL: &[&str] = &[
    "clr-reference",
    "clr-fixtures",
    "clr-unwind",
    "clr-walker",
    "clr-lint",
    "clr-machine",
    "clr-codegen",
    "clr-runtime",
    "clr-world",
    "clr-recording",
    "clr-generate",
    "clr-explore",
    "clr-story",
    "clr-scenario",
    "clr-host",
    "clr-sim",
    "clr-dump",
    "clr-inspect",
    "clr-trace",
    "clr-guest",
    "clr-import",
];

/// The crates that the facade depends on: the same without the host, the guest, traces, dumps and the facade.
const BELOW_THE_FACADE: &[&str] = TOOL.split_at(TOOL.len() - 7).0;

/// Dev-dependencies within the workspace. They must not point at the crate's own dependants, or
/// publishing would go in a circle.
const DEV_ARROWS: &[(&str, &[&str])] = &[
    ("clr-unwind", &["clr-coroutine", "clr-fixtures"]),
    ("clr-walker", &["clr-coroutine", "clr-fixtures"]),
    ("clr-recording", &["clr-fixtures"]),
    ("clr-explore", &["clr-generate"]),
    ("clr-story", &["clr-codegen", "clr-walker", "clr-world"]),
    ("clr-scenario", &["clr-fixtures", "clr-reference"]),
    ("clr-host", &["clr-sampler", "clr-trace"]),
    ("clr-guest", &["clr-story"]),
    ("clr-tests", &["clr-coroutine", "clr-import"]),
    // Its own features, for its tests.
    ("clrsim", &["clrsim"]),
];

/// Crates that only the tool may use: no library parses arguments, prints, or embeds the gallery.
const FOR_THE_TOOL: &[&str] = &["annotate-snippets", "anstream", "anstyle", "clap", "similar"];

/// Dependencies of a crate: normal and build-time ones, and dev-dependencies.
type Dependencies = (BTreeSet<String>, BTreeSet<String>);

/// Returns the dependencies of each crate of the workspace, or `None` where there is no cargo.
fn dependencies() -> Option<BTreeMap<String, Dependencies>> {
    let metadata = cargo_metadata()?;
    let packages = metadata["packages"].as_array().unwrap();
    let of = |package: &Value| {
        let mut found = Dependencies::default();
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap().to_owned();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if is_dev { &mut found.1 } else { &mut found.0 }.insert(name);
        }
        found
    };
    Some(packages.iter().map(|p| (p["name"].as_str().unwrap().to_owned(), of(p))).collect())
}

fn allowed<'a>(arrows: &[(&'a str, &'a [&'a str])], of: &str) -> BTreeSet<&'a str> {
    arrows.iter().filter(|(name, _)| *name == of).flat_map(|(_, to)| to.iter().copied()).collect()
}

fn is_ours(name: &str) -> bool {
    name == "clrsim" || name.starts_with("clr-")
}

#[test]
fn crates_depend_on_lower_crates_alone() {
    let Some(found) = dependencies() else { return };
    let names: BTreeSet<_> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ARROWS.iter().map(|(name, _)| *name).collect(), "crates of the workspace");
    for (name, (normal, dev)) in &found {
        let ours = |set: &'static [(&str, &[&str])], found: &BTreeSet<String>| {
            let found: BTreeSet<_> =
                found.iter().map(String::as_str).filter(|name| is_ours(name)).collect();
            assert_eq!(found, allowed(set, name), "workspace dependencies of {name}");
        };
        ours(ARROWS, normal);
        ours(DEV_ARROWS, dev);
    }
}

/// Each list of `ARROWS` names only crates that stand before its own: there is no circle.
#[test]
fn the_list_of_arrows_has_no_circle() {
    for (at, (name, to)) in ARROWS.iter().enumerate() {
        for lower in *to {
            assert!(ARROWS[..at].iter().any(|(name, _)| name == lower), "{name} → {lower}");
        }
    }
}

#[test]
fn libraries_have_no_dependency_of_the_tool() {
    for (name, (normal, _)) in dependencies().into_iter().flatten() {
        let of_the_tool: Vec<_> =
            FOR_THE_TOOL.iter().filter(|tool| normal.contains(**tool)).collect();
        assert!(name == "clrsim" || of_the_tool.is_empty(), "{name} depends on {of_the_tool:?}");
    }
}

/// Returns the third-party crates that `cargo tree -e normal` lists for a crate.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn tree(of: &str) -> BTreeSet<String> {
    let format = ["--prefix", "none", "--format", "{p}"];
    let arguments = [&["tree", "--offline", "-e", "normal", "-p", of][..], &format].concat();
    let lines = crate::project::repository::cargo(&arguments).unwrap();
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.is_empty() && !is_ours(name)).map(str::to_owned).collect()
}

/// Other targets have other crates, and the host's toolchain may lack their sources.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_trees_of_architecture_are_those_of_cargo() {
    let page = include_str!("../../../../ARCHITECTURE.md");
    for of in ["clr-unwind", "clr-walker", "clr-sim", "clrsim"] {
        let (_, list) = page.split_once(&format!("<!-- tree:{of} -->\n")).unwrap();
        let (list, _) = list.split_once("\n\n").unwrap();
        let listed: BTreeSet<_> =
            list.split_whitespace().map(|name| name.trim_matches('`').to_owned()).collect();
        assert_eq!(listed, tree(of), "cargo tree -e normal -p {of}");
    }
}
