use super::*;
use crate::generation::{EmptyWalk, Generation, ProfilerSuspension, StackCheck, WalkFault};
use clr_walker::profiling::HResult;

#[test]
fn numbers_have_no_holes() {
    let numbers: Vec<u16> = entries().map(|entry| entry.clause.number()).collect();
    assert_eq!(numbers, (1..=last().number()).collect::<Vec<_>>());
}

#[test]
fn entries_belong_to_their_chapter() {
    for chapter in Chapter::ALL.iter().copied() {
        assert!(chapter.entries().iter().all(|entry| entry.chapter == chapter), "{chapter}");
        assert_eq!(Chapter::from_name(chapter.name()), Some(chapter));
    }
    assert_eq!(Chapter::from_name("Entry checks"), None);
}

#[test]
fn every_entry_is_complete() {
    for ClauseEntry { clause, rule, generations, source, .. } in entries() {
        assert!(rule.ends_with('.') && rule.len() >= 20, "{clause}: {rule}");
        assert!(generations.iter().count() > 0, "{clause}");
        for source in source.split("; ") {
            assert!(!source.is_empty() && source.trim() == source, "{clause}: {source}");
        }
        for text in [rule, source] {
            assert!(text.is_ascii() && !text.contains("  "), "{clause}: {text}");
        }
    }
}

/// Returns the words of a rule, without surrounding punctuation.
fn words(rule: &str) -> impl Iterator<Item = &str> {
    rule.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)))
}

#[test]
fn hresults_are_spelt_right() {
    let names: Vec<_> = HResult::NAMED.iter().filter_map(|hresult| hresult.name()).collect();
    let mut count = 0;
    for ClauseEntry { clause, rule, .. } in entries() {
        let hresults =
            words(rule).filter(|word| ["E_", "S_", "CORPROF_"].iter().any(|p| word.starts_with(p)));
        for hresult in hresults {
            assert!(names.contains(&hresult), "{clause}: {hresult}");
            count += 1;
        }
        let short = words(rule).find(|word| names.contains(&format!("CORPROF_E_{word}").as_str()));
        assert_eq!(short, None, "{clause}: with its prefix");
    }
    assert!(count > 60, "{count}");
}

#[test]
fn rules_refer_to_clauses_that_there_are() {
    for ClauseEntry { clause, rule, .. } in entries() {
        for other in words(rule).filter(|word| word.starts_with("C-")) {
            assert!(
                other.parse::<Clause>().is_ok_and(|other| other != *clause),
                "{clause}: {other}"
            );
        }
    }
}

/// Of clauses that exclude each other, each generation has exactly one.
#[test]
fn opposites_share_no_generation() {
    for (one, other) in [(3, 4), (102, 103), (106, 107), (109, 110), (19, 26)] {
        let [one, other] = [one, other].map(|number| Clause::new(number).entry().unwrap());
        for generation in Generation::ALL {
            let either = [one, other].map(|entry| entry.generations.contains(generation));
            assert_ne!(either[0], either[1], "{}, {}: {generation}", one.clause, other.clause);
        }
    }
}

/// The simulator's answers for a generation agree with the generations of the clauses.
#[test]
fn generations_answer_as_clauses_say() {
    type Question = fn(Generation) -> bool;
    let questions: &[(u16, Question)] = &[
        (1, Generation::has_detach),
        (3, |g| g.missing_snapshot_flag() == HResult::INCONSISTENT_WITH_FLAGS),
        (4, |g| g.missing_snapshot_flag() == HResult::INVALID_ARGUMENT),
        (11, Generation::passes_over_gc_special),
        (19, Generation::is_unix),
        (23, |g| !g.seed_size().depends_on_flags()),
        (26, |g| !g.is_unix()),
        (31, |g| g.profiler_suspension() != ProfilerSuspension::None && !g.is_unix()),
        (32, |g| g.checks_redirection() && !g.is_unix()),
        (33, |g| g.checks_redirection() && !g.is_unix()),
        (34, |g| g.checks_redirection() && !g.is_unix()),
        (35, Generation::reads_context_first),
        (36, Generation::refuses_to_wait),
        (53, |g| !g.seed_size().depends_on_flags()),
        (54, |g| g.walk_fault() == WalkFault::Unexpected),
        (75, Generation::stops_at_resumable_frames),
        (87, Generation::hides_exception_handling),
        (102, |g| g.context_size() == 0x4D0),
        (103, |g| g.context_size() >= 0xC20),
        (106, |g| g.empty_walk() == EmptyWalk::FailsWithoutStop),
        (107, |g| g.empty_walk() == EmptyWalk::FailsWithoutFrame),
        (109, |g| g.stack_check() == StackCheck::Bounds),
        (110, |g| g.stack_check() == StackCheck::Readable),
        (111, |g| g.walk_fault() == WalkFault::Unexpected),
        (121, Generation::refuses_thread_0),
        (118, |g| g.profiler_info() >= 8),
        (126, |g| g.profiler_suspension() != ProfilerSuspension::None),
    ];
    for (number, answer) in questions {
        let entry = Clause::new(*number).entry().unwrap();
        for generation in Generation::ALL {
            let said = entry.generations.contains(generation);
            assert_eq!(answer(generation), said, "{}: {generation}", entry.clause);
        }
    }
}

#[test]
fn clauses_are_read_as_they_are_written() {
    for entry in entries() {
        let text = entry.clause.to_string();
        assert_eq!(text, format!("{:?}", entry.clause));
        assert_eq!(text.parse(), Ok(entry.clause));
        assert_eq!(entry.clause.entry(), Some(entry));
    }
    assert_eq!(Clause::new(14).to_string(), "C-014");
    for text in ["C-14", "c-014", "14", "014"] {
        assert_eq!(text.parse(), Ok(Clause::new(14)), "{text}");
    }
    for text in
        ["", "C-", "C", "C14", "C-000", "C-999", "C-+14", "-14", "C-99999", "C-014 ", "H-01"]
    {
        assert_eq!(text.parse::<Clause>(), Err(NoClause), "{text}");
    }
    assert_eq!(Clause::new(last().number() + 1).entry(), None);
    let range = format!("C-001 to {}", last());
    assert_eq!(NoClause.to_string(), format!("there is no such clause; they are {range}"));
}

/// Texts, pages and JSON have these words.
#[test]
fn words_of_evidence_are_those_of_the_book() {
    let words = Support::ALL.map(|support| support.to_string());
    assert_eq!(words, ["shown", "observed", "read", "documented", "assumed"]);
    assert_eq!(format!("{:>9}|", Support::Shown), "    shown|");
    assert_eq!(Chapter::EntryChecks.to_string(), "Entry checks");
}
