//! Tests of the first steps: the tool without a command, texts by name and by word, and completions.

use super::*;

#[test]
fn without_a_command_it_says_where_to_begin() {
    let answer = clrsim(&[]);
    insta::assert_snapshot!("begin", answer.text());
    let commands = answer.out.lines().filter_map(|line| line.strip_prefix("  clrsim "));
    let mut count = 0;
    for command in commands.filter(|command| !command.contains("my.kdl") && !command.contains("--"))
    {
        let args: Vec<_> = command.split_whitespace().collect();
        let code = u8::from(command.starts_with("explore "));
        assert_eq!(clrsim(&args).code, code, "{command}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn embedded_texts_are_printed_as_they_are() {
    let name = "gallery/seeds/hole-at-the-leaf.kdl";
    let text = std::str::from_utf8(fixture(name)).unwrap();
    assert_eq!(printed("list", &["--print", name]), text);
    assert_eq!(printed("list", &["--print", &format!("fixtures/{name}")]), text);
    let folder = Folder::new();
    let path = folder.write("my.kdl", b"// mine\n");
    assert_eq!(printed("list", &["--print", &path]), "// mine\n");
    let near = clrsim(&["list", "--print", "gallery/seeds/hole-at-leaf.kdl"]);
    assert_eq!(near.code, 2);
    insta::assert_snapshot!(near.err, @"error: gallery/seeds/hole-at-leaf.kdl: no such file, and no embedded fixture of that name; did you mean gallery/seeds/hole-at-the-leaf.kdl?");
    let folderless = clrsim(&["list", "--print", "hole-at-the-leaf.kdl"]).err;
    assert!(
        folderless.contains("did you mean gallery/seeds/hole-at-the-leaf.kdl?"),
        "{folderless}"
    );
}

#[test]
fn texts_are_found_by_words() {
    let names = |args: &[&str]| -> Vec<String> {
        let listed = super::objects("list", args);
        listed.iter().map(|text| text["file"].as_str().unwrap().to_owned()).collect()
    };
    let all = names(&[]);
    let locks = names(&["lock"]);
    assert!(!locks.is_empty() && locks.len() < all.len() / 2, "{}", locks.len());
    let both = names(&["lock", "CALLBACK"]);
    assert!(!both.is_empty() && both.len() < locks.len());
    assert!(both.iter().all(|name| locks.contains(name)));
    assert!(names(&["C-044"]).len() >= names(&["--clause", "C-044"]).len());
    let refused = names(&["UNMANAGED_CTX"]);
    assert!(refused.len() > 20 && refused.len() < all.len() / 2, "{}", refused.len());
    let folder = Folder::new();
    let path = folder.write("my/lock.kdl", super::texts::BARRIER.as_bytes());
    assert_eq!(names(&[&path, "lock"]), [path.replace('\\', "/")]);
    assert_eq!(clrsim(&["list", "no-text-has-this-word"]).code, 2);
}

/// A text is shown by each command that a refusal names.
#[test]
fn refusals_name_commands_that_work() {
    let folder = Folder::new();
    let stack = folder.write("stack.kdl", super::texts::BARRIER.as_bytes());
    let out = folder.path("out");
    let texts = [&stack, "gallery/seeds/hole-at-the-leaf.kdl", "programs/tail_call.kdl"];
    let mut named = 0;
    for text in texts {
        for command in [&["show", text][..], &["trace", text], &["emit", text, "-o", &out]] {
            let answer = clrsim(command);
            if answer.code == 0 {
                continue;
            }
            let (_, uses) = answer.err.split_once(": use ").unwrap();
            let uses = uses.trim().replace(" or ", ", ");
            for command in uses.split(", ").map(|command| command.strip_prefix("clrsim ").unwrap())
            {
                let words: Vec<_> = command.split(' ').chain([text]).collect();
                let named_one = clrsim(&words);
                assert_eq!(named_one.code, 0, "{command} {text}: {}", named_one.err);
                named += 1;
            }
        }
    }
    assert_eq!(named, 17);
}

/// Returns the completions of the last of these words.
fn completed(words: &[&str]) -> Vec<String> {
    let args = ["clrsim"].iter().chain(words).map(OsString::from).collect();
    let found = clap_complete::engine::complete(&mut Cli::command(), args, words.len(), None);
    let found = found.unwrap().into_iter();
    found.map(|it| it.get_value().to_string_lossy().into_owned()).collect()
}

#[test]
fn shells_complete_commands_and_names() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let registration = printed("gen", &["completions", shell]);
        assert!(registration.contains("COMPLETE") && registration.contains("clrsim"), "{shell}");
    }
    let commands = completed(&[""]);
    for command in Cli::command().get_subcommands() {
        assert!(commands.iter().any(|it| it == command.get_name()), "{}", command.get_name());
    }
    for (words, expected) in [
        (&["run", "--unw"][..], "--unwind-rules"),
        (&["matrix", "gallery/hazards/h-08-c"], "gallery/hazards/h-08-callback-takes-a-lock.kdl"),
        (&["show", "win64/img/gcc_O2"], "win64/img/gcc_O2.dll"),
        (&["matrix", "x.kdl", "--on", "net8-windows,net9-w"], "net8-windows,net9-windows"),
        (&["runtimes", "coreclr-3.1-u"], "coreclr-3.1-unix"),
        (&["rules", "C-04"], "C-044"),
        (&["rules", "H-0"], "H-08"),
    ] {
        let found = completed(words);
        assert!(found.iter().any(|it| it == expected), "{words:?}: {found:?}");
    }
    assert_eq!(completed(&["rules", "C-999"]), [""; 0]);
}

#[test]
fn every_command_has_a_manual_page() {
    let page = printed("gen", &["man"]);
    assert!(page.contains(".SH NAME\nclrsim "), "{page}");
    let folder = Folder::new();
    std::fs::create_dir(folder.path("man1")).unwrap();
    let written = folder.clrsim(&["gen", "man", "-o", &folder.path("man1")]);
    assert_eq!(written.code, 0, "{}", written.text());
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let page = std::fs::read_to_string(folder.path(&format!("man1/clrsim-{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH clrsim-{name} 1")), "{name}: {page}");
    }
    let again = folder.clrsim(&["gen", "man", "-o", &folder.path("man1")]);
    assert_eq!(again.code, 2, "{}", again.text());
}

/// The names of earlier versions say the new ones, with the arguments.
#[test]
fn old_names_say_the_new_ones() {
    let mut said = String::new();
    for args in [
        &["cat", "programs/tail_call.kdl"][..],
        &["clauses", "C-044", "--json"],
        &["completions", "bash"],
        &["dump", "my image.dll", "--function", "main"],
        &["from-recording", "my.walks.jsonl", "--walk", "12"],
        &["man"],
        &["schema", "text"],
        &["test-dir", "my/fixtures"],
        &["timeline", "my.kdl", "--width", "160"],
        &["clauses", "--generation=net9-unix"],
        &["new", "--program", "my.kdl"],
        &["run", "--rules", "coreclr", "--max-failures", "0"],
    ] {
        let answer = clrsim(args);
        assert_eq!(answer.code, 2, "{args:?}");
        said += &(answer.out + &answer.err);
        let command = answer.err.split_once("clrsim ").unwrap().1.trim();
        let words: Vec<_> = command.split(' ').collect();
        let known = Cli::command();
        assert!(known.find_subcommand(words[0]).is_some(), "{command}");
    }
    insta::assert_snapshot!("renamed", said);
}
