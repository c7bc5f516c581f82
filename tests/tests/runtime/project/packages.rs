//! Tests of what is packaged: one version everywhere, and in each crate its licences and a page of its own.

use super::*;

/// Returns the folders of the crates that can be published.
fn crates() -> Vec<String> {
    let manifest = read("Cargo.toml");
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members = members.split('"').skip(1).step_by(2).map(str::to_owned);
    members.filter(|it| !read(&format!("{it}/Cargo.toml")).contains("publish = false")).collect()
}

#[test]
fn the_version_is_the_same_wherever_it_is_written() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    let version = version.trim_matches('"');
    for (file, line) in [
        (
            "sim/host/cmake/clrsim-config-version.cmake",
            format!("set(PACKAGE_VERSION \"{version}\")"),
        ),
        ("sim/host/pkgconfig/clrsim.pc", format!("Version: {version}")),
        ("sim/cli/editors/vscode/package.json", format!("  \"version\": \"{version}\",")),
        ("sim/cli/editors/vscode/package-lock.json", format!("  \"version\": \"{version}\",")),
        ("sim/playground/package.json", format!("  \"version\": \"{version}\",")),
        ("sim/playground/package-lock.json", format!("  \"version\": \"{version}\",")),
        (".github/actions/check/action.yml", format!("    default: \"{version}\"")),
    ] {
        assert!(read(file).lines().any(|it| it == line), "{file}: {line}");
    }
    let own = manifest.lines().filter(|line| line.contains("{ path = "));
    for line in own {
        assert!(line.contains(&format!("version = \"{version}\"")), "{line}");
    }
}

/// The tool and the library's door show the project's page; others would only repeat it.
#[test]
fn each_crate_has_licences_and_a_page_of_its_own() {
    assert!(crates().len() > 20);
    for folder in crates() {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(&format!("{folder}/{licence}")), read(licence), "{folder}");
        }
        let page = manifest.lines().find_map(|line| line.strip_prefix("readme = "));
        let is_front = ["sim", "sim/cli"].contains(&&*folder);
        let own = page.is_none_or(|page| page == "\"README.md\"");
        assert_eq!(own, !is_front, "{folder}: {page:?}");
        assert!(is_front || path(&format!("{folder}/README.md")).is_file(), "{folder}");
        assert!(manifest.contains("\ndescription = \""), "{folder}");
    }
}

#[test]
fn binaries_are_installed_from_where_archives_have_them() {
    let release = read(".ci/release");
    assert!(
        release.contains("f\"clrsim-{version}-{target}\"") && release.contains("\"bin\": [tool")
    );
    let manifest = read("sim/cli/Cargo.toml");
    let pattern = "bin-dir = \"{ name }-{ version }-{ target }/bin/{ bin }{ binary-ext }\"";
    assert!(manifest.contains(pattern));
}
