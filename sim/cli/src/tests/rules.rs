use super::*;
use clr_runtime::clause::{self, Chapter, Clause};

/// The clauses that are printed, of which JSON and text have the same.
#[track_caller]
fn numbers(args: &[&str]) -> Vec<Clause> {
    let json: Vec<Clause> = objects("rules", args)
        .iter()
        .map(|object| object["clause"].as_str().unwrap().parse().unwrap())
        .collect();
    let text = printed("rules", args);
    let heads = text.lines().filter(|line| line.starts_with("C-"));
    let text: Vec<Clause> = heads.map(|line| line[..5].parse().unwrap()).collect();
    assert_eq!(json, text);
    json
}

#[test]
fn all_of_them() {
    let text = printed("rules", &[]);
    assert_eq!(numbers(&[]), clause::entries().map(|entry| entry.clause).collect::<Vec<_>>());
    for chapter in Chapter::ALL {
        assert!(text.lines().any(|line| line == chapter.title()), "{chapter}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100 && line.trim_end() == line));
}

#[test]
fn some_by_number() {
    insta::assert_snapshot!("by_number", printed("rules", &["C-113", "14", "c-162"]));
    insta::assert_snapshot!("by_number_json", printed("rules", &["C-014", "--json"]));
    assert_eq!(numbers(&["C-009", "C-014", "C-009"]), [Clause::new(9), Clause::new(14)]);
}

#[test]
fn of_a_generation() {
    for generation in Generation::ALL {
        let meant = clause::entries().filter(|entry| entry.generations.contains(generation));
        let meant: Vec<_> = meant.map(|entry| entry.clause).collect();
        assert_eq!(numbers(&["--on", generation.name()]), meant, "{generation}");
        let other = clause::entries().find(|entry| !meant.contains(&entry.clause)).unwrap();
        for object in objects("rules", &["--on", generation.name()]) {
            let names = object["generations"].as_array().unwrap();
            assert!(names.contains(&Value::from(generation.name())), "{object}");
        }
        let other = other.clause.to_string();
        assert_eq!(clrsim(&["rules", &other, "--on", generation.name()]).code, 2);
    }
}

#[test]
fn of_a_chapter() {
    for chapter in Chapter::ALL {
        let meant: Vec<_> = chapter.entries().iter().map(|entry| entry.clause).collect();
        assert_eq!(numbers(&["--chapter", chapter.name()]), meant, "{chapter}");
    }
    let both = ["--chapter", "ending", "--on", "framework-2"];
    let both = numbers(&both);
    assert!(both.contains(&Clause::new(107)) && !both.contains(&Clause::new(106)));
}

#[test]
fn objects_have_the_fields_that_the_help_names() {
    for (object, entry) in objects("rules", &[]).iter().zip(clause::entries()) {
        let keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["chapter", "clause", "generations", "rule", "schema", "source", "support"]
        );
        assert_eq!(object["chapter"], entry.chapter.name());
        let support = object["support"].as_array().unwrap();
        for (generation, support) in entry.generations.iter().zip(support) {
            assert_eq!(support["runtime"], generation.name());
            assert_eq!(support["grade"], entry.support(generation).unwrap().word());
        }
        assert_eq!(object["rule"], entry.rule);
        assert!(object["source"].as_array().unwrap().iter().all(Value::is_string));
    }
}

#[test]
fn ids_of_every_kind() {
    let ids = ["C-044", "H-08", "§2.9", "Row 18", "D-3", "E-19", "G-17"];
    insta::assert_snapshot!("every_kind", printed("rules", &ids));
    let objects = objects("rules", &ids);
    assert_eq!(objects.len(), ids.len());
    let keys: Vec<_> = objects[1].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "kind", "page", "schema", "text", "title"]);
    assert_eq!(objects[6]["id"], "G17");
}

#[test]
fn unknown_ids_are_refused() {
    let mut refusals = String::new();
    for args in [
        &["rules", "C-999"][..],
        &["rules", "H-99"],
        &["rules", "rule"],
        &["rules", "--on", "net4"],
        &["rules", "--chapter", "weather"],
        &["rules", "C-004", "--on", "net9-unix"],
    ] {
        let answer = clrsim(args);
        assert_eq!(answer.code, 2);
        writeln!(refusals, "$ clrsim {}\n{}", args.join(" "), answer.text()).unwrap();
    }
    insta::assert_snapshot!("refusals", refusals);
}
