//! Tests with text that no person would write.

use super::*;
use crate::text::grammar::MAX_TEXT;

fn first(text: &str) -> ProblemKind {
    Scenario::parse(text).unwrap_err().problems()[0].kind.clone()
}

/// Deep nesting and many errors, which overflow the stack of a recursive parser, and text for which
/// the `kdl` crate takes exponential time.
#[test]
fn repeated_text_ends_soon() {
    let many = 100_000;
    for part in [
        "a {", "{", "}", ")", "(", "a )\n", "= ", "a =1\n", "/-", "/- a {", "a /-{", "/*", "\"",
        "\\", ";", "#", "##\"", "a\\\n", "a [\n", "a #x\n", "a 1e9\n", "a 0x\n", "\u{FEFF}", "\r",
        "\"\"\"",
    ] {
        let error = Scenario::parse(&part.repeat(many)).unwrap_err();
        assert!(error.problems().len() <= ScenarioError::LIMIT, "{part}");
        assert!(
            error.problems().iter().all(|problem| !matches!(problem.kind, ProblemKind::Kdl(_)))
        );
    }
    let nested = format!("{}{}", "a {\n".repeat(many), "}\n".repeat(many));
    assert_eq!(first(&nested), SyntaxError::Nesting.into());
    let comments = format!("{}{}", "/*".repeat(many), "*/".repeat(many));
    assert_eq!(first(&comments), SyntaxError::Nesting.into());
    let left_out = format!("stop\n{}{}", "a {\n/- a {\n".repeat(8), "}\n".repeat(16));
    assert_eq!(first(&left_out), SyntaxError::NestedSlashdash.into());
    for text in [" ".repeat(MAX_TEXT + 1), "\u{20ac}\n".repeat(MAX_TEXT)] {
        let error = Scenario::parse(&text).unwrap_err();
        assert_eq!(error.problems()[0].kind, SyntaxError::TooLong.into());
        // The rest would be quoted.
        assert_eq!(error.problems()[0].span.len, 0);
    }
    assert!(Scenario::parse(&" ".repeat(1000)).is_err());
}

/// As many problems as fit in a text of the maximum size.
#[test]
fn many_problems_end_soon() {
    for part in ["function x kind=jit2 { body { call y } }\n", "thread x start=y\n", "a b=1 b=2\n"]
    {
        let text = format!("stop\n{}", part.repeat((MAX_TEXT >> 4) / part.len()));
        let error = Scenario::parse(&text).unwrap_err();
        assert_eq!(error.problems().len(), ScenarioError::LIMIT);
        assert!(error.problems().iter().all(|problem| problem.kind.help().is_some()));
    }
}

/// The largest stacks are checked quickly, and larger ones are refused.
#[test]
fn large_stacks_end_soon() {
    let stack = |line: &dyn Fn(usize) -> String, count: usize| {
        let lines: String = (0..count).map(line).collect();
        format!("stack {{\n{lines}}}")
    };
    let row = |n: usize| format!("jit \"f{n}+0x20\" rsp={}\n", 0x10_0000 + 64 * n);
    let block = |n: usize| format!("block {} size=8\n", 0x50_0000 + 0x1000 * n);
    for line in [&row as &dyn Fn(usize) -> String, &block] {
        assert_eq!(first(&stack(line, 4097)), ProblemKind::LargeStack);
        // Problems of inconsistent stacks are reported too.
        let _ = Scenario::parse(&stack(line, 4096));
    }
    let words = |n: usize| format!("word {} value=1 count=4096\n", 0x1F_0000 + n);
    assert_eq!(first(&stack(&words, 2)), ProblemKind::LargeStack);
}

/// A random number generator with the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}

const SCRAPS: [&str; 40] = [
    "{",
    "}",
    "\"",
    "\\",
    "/-",
    "/*",
    "*/",
    "//",
    "=",
    ";",
    "\n",
    " ",
    "#",
    "#true",
    "#\"",
    "0x",
    "-1",
    "1.5",
    "_",
    "\u{85}",
    "\u{FEFF}",
    "\u{A0}",
    "ä",
    "\r",
    "function",
    "body",
    "catch",
    "\"main\"",
    "at=",
    "99999999999999999999999",
    "(",
    "none",
    "stack",
    "snapshot",
    "expect",
    "result",
    "on=",
    "unix",
    "+0x",
    "seed",
];

/// Replaces, inserts and removes some parts of a text.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(characters.len().max(1));
        let end = (at + random.below(12)).min(characters.len());
        let scrap = SCRAPS[random.below(SCRAPS.len())];
        match random.below(4) {
            0 => {
                characters.splice(at..end, scrap.chars());
            }
            1 => {
                characters.splice(at..at, scrap.chars());
            }
            2 => {
                characters.drain(at..end);
            }
            _ => {
                let from = random.below(characters.len().max(1));
                let to = (from + random.below(40)).min(characters.len());
                let copy = characters[from.min(to)..to].to_vec();
                characters.splice(at..at, copy);
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn mutated_text_gives_errors_in_the_text() {
    // `CLR_TEST_CASES` scales the number of cases, as for the properties of `clr-tests`.
    let times = std::env::var("CLR_TEST_CASES").ok().and_then(|times| times.parse::<f64>().ok());
    #[expect(clippy::cast_sign_loss, reason = "a negative factor gives 0")]
    let count = (4_000.0 * times.unwrap_or(0.1)) as u32;
    let mut random = Random(0x5CE0_A210);
    let (mut scenarios, mut formatted, mut refused) = (0, 0, 0);
    let texts: Vec<&str> = examples().chain([EVERYTHING, STACK]).collect();
    for _ in 0..count {
        let text = mutate(texts[random.below(texts.len())], &mut random);
        match Scenario::parse(&text) {
            Ok(scenario) => {
                scenarios += 1;
                assert_eq!(
                    Scenario::parse(&scenario.to_string()).as_ref(),
                    Ok(&scenario),
                    "{text}"
                );
            }
            Err(error) => {
                assert!(!error.problems().is_empty());
                for problem in error.problems() {
                    assert!(text.get(problem.span.offset..problem.span.end()).is_some(), "{text}");
                    assert_eq!(problem.position, LineColumn::of(&text, problem.span.offset));
                    refused += usize::from(matches!(problem.kind, ProblemKind::Kdl(_)));
                    let _ = problem.kind.help();
                }
            }
        }
        if let Ok(text_of) = format_text(&text) {
            formatted += 1;
            assert_eq!(format_text(&text_of).as_ref(), Ok(&text_of), "{text}");
            assert_eq!(Scenario::parse(&text_of).is_ok(), Scenario::parse(&text).is_ok(), "{text}");
        }
    }
    assert!(scenarios >= count / 100 && formatted >= count / 20, "{scenarios} {formatted}");
    assert_eq!(refused, 0, "the KDL parser rejects text that the syntax check accepts");
}
