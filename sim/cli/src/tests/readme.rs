//! The README and the book show the output of the tool.
//!
//! Each console block of these pages is run. Where a block has output, the tool must print that;
//! `CLR_BLESS=1` writes the output into the pages.

use super::*;

/// Opening line of a console block.
const CONSOLE: &str = "```console\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// Replays all embedded fixtures on all runtimes, the searches of interleavings included.
#[test]
fn the_main_command_prints_what_the_readme_shows() {
    let readme = readme();
    let (_, block) =
        readme.split_once("```console\n$ cargo run --profile quick -- run --summary\n").unwrap();
    let (output, _) = block.split_once("```").unwrap();
    let printed = &summary().out;
    assert_eq!(printed.lines().count(), output.lines().count(), "{printed}");
    for (printed, shown) in printed.lines().zip(output.lines()) {
        let counts_texts = ["stack ", "program ", "passed: ", "snapshots: ", "not judged: "];
        if counts_texts.iter().any(|begin| shown.starts_with(begin)) {
            assert!(is_a_little_more(printed, shown), "{printed}\n{shown}");
        } else {
            assert_eq!(printed, shown);
        }
    }
}

/// Returns true if the words of both lines are the same, but for numbers that are at most a tenth above the shown ones:
/// the page need not follow each new text.
fn is_a_little_more(printed: &str, shown: &str) -> bool {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (printed, shown) = (words(printed), words(shown));
    let number = |word: &str| word.trim_end_matches(',').parse::<u64>().ok();
    let fits = |(printed, shown): (&String, &String)| match (number(printed), number(shown)) {
        (Some(printed), Some(shown)) => (shown..=shown + shown / 10).contains(&printed),
        _ => printed == shown,
    };
    printed.len() == shown.len() && printed.iter().zip(&shown).all(fits)
}

/// The commands of a page.
struct Page {
    path: &'static str,
    content: String,
}

impl Page {
    fn new(path: &'static str) -> Self {
        let content = fs::read_to_string(root().join(path)).unwrap();
        Self { path, content }
    }

    /// Returns the commands in the console blocks, with the output that each is shown to have.
    fn commands(&self) -> Vec<(&str, &str)> {
        let blocks = self.content.split(CONSOLE).skip(1);
        let blocks = blocks.map(|block| block.split_once("```").unwrap().0);
        let commands = blocks.flat_map(commands_of);
        commands.collect()
    }

    /// Runs the commands of the tool in this page, and returns their number.
    fn check(&self, files: &Files) -> usize {
        let (mut count, mut content) = (0, self.content.clone());
        for (command, shown) in self.commands() {
            let Some(command) = command.strip_prefix("clrsim ") else {
                // The main command has a test of its own.
                assert!(command.starts_with("cargo "), "{}: {command}", self.path);
                continue;
            };
            count += 1;
            let answer = files.run(command);
            // A search that finds a failed interleaving is shown.
            let code = u8::from(command.starts_with("explore "));
            assert_eq!(answer.code, code, "{}: {command}: {}", self.path, answer.err);
            if shown.is_empty() {
                continue;
            }
            if std::env::var_os("CLR_BLESS").is_some() {
                let block = |output: &str| format!("$ clrsim {command}\n{output}");
                content = content.replacen(&block(shown), &block(&answer.out), 1);
            } else {
                assert_eq!(answer.out, shown, "{}: {command}; CLR_BLESS=1 rewrites it", self.path);
            }
        }
        if content != self.content {
            fs::write(root().join(self.path), content).unwrap();
        }
        count
    }
}

/// Splits a console block into commands and their output.
fn commands_of(block: &str) -> Vec<(&str, &str)> {
    let mut commands = Vec::new();
    let mut rest = block;
    while let Some(begin) = rest.strip_prefix("$ ") {
        let (command, after) = begin.split_once('\n').unwrap();
        let end =
            if after.starts_with("$ ") { Some(0) } else { after.find("\n$ ").map(|at| at + 1) };
        let (output, next) = after.split_at(end.unwrap_or(after.len()));
        commands.push((command, output));
        rest = next;
    }
    assert_eq!(rest, "", "a console block begins with a command");
    commands
}

/// The files that the pages name.
struct Files(Folder);

impl Files {
    fn new() -> Self {
        let folder = Folder::new();
        let readme = readme();
        let (_, text) = readme.split_once("```kdl\n").unwrap();
        let (text, _) = text.split_once("```").unwrap();
        folder.write("sampler.kdl", text.as_bytes());
        let template = folder.path("my.kdl");
        assert_eq!(clrsim(&["new", &template]).code, 0);
        Self(folder)
    }

    /// Runs a command of a page: its arguments, and possibly a comment.
    fn run(&self, command: &str) -> Answer {
        let (command, _comment) = command.split_once('#').unwrap_or((command, ""));
        let fixtures = root().join("fixtures/win64");
        let args: Vec<String> = command
            .split_whitespace()
            .map(|arg| match arg {
                "fixtures/win64" => fixtures.to_str().unwrap().to_owned(),
                "images" | "my.kdl" | "sampler.kdl" | "field.kdl" | "small.kdl" => self.0.path(arg),
                arg => arg.to_owned(),
            })
            .collect();
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let answer = self.0.clrsim(&args);
        let out = answer.out.replace("DIR/", "");
        Answer { out, ..answer }
    }
}

#[test]
fn the_commands_of_the_readme_print_what_it_shows() {
    let files = Files::new();
    assert_eq!(Page::new("README.md").check(&files), 2);
    // The expectations of the README's text are met.
    let answer = files.run("run sampler.kdl");
    assert_eq!(answer.code, 0, "{}", answer.out);
}

#[test]
fn the_commands_of_the_book_print_what_it_shows() {
    let files = Files::new();
    let book = |path| Page::new(path).check(&files);
    assert_eq!(book("sim/src/book/tool.md"), 14);
    assert_eq!(book("sim/src/book/matrix.md"), 1);
    assert_eq!(book("sim/src/book/customer.md"), 4);
    // The chapter prints the texts that its commands have written.
    let chapter = Page::new("sim/src/book/customer.md").content;
    for file in ["field.kdl", "small.kdl"] {
        let written = fs::read_to_string(files.0.path(file)).unwrap();
        assert!(chapter.contains(&format!("```kdl\n{written}```\n")), "{written}");
    }
}

/// Checks that only the pages that other tests check show commands of the tool.
#[test]
fn no_other_chapter_shows_output() {
    for chapter in fs::read_dir(root().join("sim/src/book")).unwrap() {
        let path = chapter.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        if !is_page || ["tool.md", "matrix.md", "customer.md"].contains(&&*name) {
            continue;
        }
        assert!(!fs::read_to_string(&path).unwrap().contains("$ clrsim"), "{name}");
    }
}
