use super::*;

#[test]
fn all_runtimes_are_listed_with_the_number_of_answers_known_in_each_way() {
    let text = printed("runtimes", &[]);
    for (generation, line) in Generation::ALL.into_iter().zip(text.lines().skip(1)) {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some(generation.name()));
        let counts: Vec<usize> = words.map_while(|word| word.parse().ok()).take(4).collect();
        assert_eq!(counts.iter().sum::<usize>(), QUESTIONS.len(), "{line}");
    }
    assert_eq!(text.lines().count(), 1 + Generation::ALL.len());
}

#[test]
fn each_answer_of_a_runtime_says_how_it_is_known() {
    let text = printed("runtimes", &["net8-windows"]);
    assert!(
        text.contains("  hijack_args: registers 0x8, SP 0x48, return address 0x50  observed\n")
    );
    assert!(text.contains("  has_detach: yes  assumed (as CoreCLR 3.1 on Windows"), "{text}");
    let runtimes = objects("runtimes", &["net8"]);
    let names: Vec<_> = runtimes.iter().map(|runtime| runtime["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["net8-windows", "net8-unix"]);
    for runtime in &runtimes {
        assert_eq!((&runtime["version"], &runtime["product"]), (&"8.0".into(), &"core".into()));
        assert_eq!(runtime["answers"].as_array().unwrap().len(), QUESTIONS.len());
    }
    assert_eq!(objects("runtimes", &[]).len(), Generation::ALL.len());
}

#[test]
fn the_difference_of_two_runtimes_is_what_they_answer_differently() {
    let same = printed("runtimes", &["--diff", "net9-unix", "net9-unix"]);
    assert_eq!(same, format!("0 of {} answers differ.\n", QUESTIONS.len()));
    let text = printed("runtimes", &["--diff", "net9-unix", "net10-unix"]);
    let (_, size) = text.split_once("\ncontext_size\n  ").unwrap();
    // The meaning of the question, then the answers.
    let (meaning, answers) = size.split_once("\n  net9-unix").unwrap();
    assert!(!meaning.is_empty() && !meaning.contains("net9-unix"), "{meaning}");
    assert!(
        answers.starts_with("   0xc20  observed\n  net10-unix  0xca0  observed\n"),
        "{answers}"
    );
    let (left, right) = (Generation::Net9Unix, Generation::Net10Unix);
    let differ = QUESTIONS.iter().filter(|it| (it.answer)(left) != (it.answer)(right));
    let names: Vec<_> = differ.map(|question| question.name).collect();
    let found = objects("runtimes", &["--diff", "net9-unix", "net10-unix"]);
    let found: Vec<_> = found.iter().map(|line| line["question"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    assert!(names.len() > 5, "{names:?}");
}

#[test]
fn a_wrong_name_gets_the_nearest_one() {
    for (word, near) in [("net8-linux", "net8-unix"), ("window", "windows"), ("net-10", "net10")] {
        let answer = clrsim(&["runtimes", word]);
        assert_eq!(answer.code, 2, "{word}");
        assert!(answer.err.contains(&format!("did you mean {near}?")), "{}", answer.err);
    }
    let answer = clrsim(&["runtimes", "--diff", "net8-linux", "net8-unix"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("net8-unix"), "{}", answer.err);
}
