//! Sections of call frame information → rows of all functions: one pass over the entries.

use super::entry::{CodeRanges, Frames};
use super::error::CfiError;
use super::program::Fault;
use super::rows::{Rows, RowsBuilder, RuleId};
use super::rules::Rules;
use super::scan::{Function, Problems, Visited, scan, select};
use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};

/// The result of compilation.
pub(super) struct Compiled {
    pub(super) rows: Rows,
    pub(super) functions: Vec<Range<u32>>,
    pub(super) rules: Rules,
    pub(super) problems: Problems,
}

pub(super) fn compile(sections: &[Frames<'_>; 2], code: &CodeRanges) -> Compiled {
    let len = sections.iter().map(|frames| frames.bytes.len()).sum::<usize>();
    let mut compiler = Compiler {
        rows: RowsBuilder::with_capacity(len / 4),
        functions: Vec::with_capacity(len / 32),
        rules: Rules::new(len),
    };
    let mut problems = Problems::default();
    for frames in sections {
        scan(frames, code, &mut problems, &mut |visited| compiler.function(visited));
    }
    compiler.finish(problems)
}

struct Compiler {
    /// Rows in the order of the entries.
    rows: RowsBuilder,
    /// Functions with the indices of their rows.
    functions: Vec<Function<Range<usize>>>,
    rules: Rules,
}

impl Compiler {
    /// Runs the program of an FDE.
    #[inline]
    fn function(&mut self, visited: Visited<'_, '_>) {
        let Visited { fde, cie, initial, place, remembered, problems } = visited;
        let first = self.rows.len();
        let Self { rows, rules, .. } = self;
        let mut saved = None;
        let run =
            remembered.run(fde.program, &cie.terms, Some(initial), fde.range.clone(), &mut |row| {
                let state = row.state;
                if row.has_new_registers {
                    saved = state.saved().map(|rule| (rule, rule.hash_of_saved()));
                }
                let simple = saved.filter(|_| !cie.signal_frame);
                let simple = simple.and_then(|(rule, hash)| Some((state.with_cfa(rule)?, hash)));
                let rule = match simple {
                    Some((rule, hash)) => rules.simple(rule, rule.hash(hash)),
                    None => rules.general(state, &cie.terms, cie.signal_frame, place),
                };
                rows.push(row.range.start, rule, first);
                ControlFlow::Continue(())
            });
        if let Err(Fault { problem, offset, location }) = run {
            let error = CfiError { problem, section: place.section, offset: offset as u32 };
            rows.push(location, rules.fault(error), first);
            problems.add(error);
        }
        self.functions.push(Function {
            range: fde.range,
            section: place.section,
            content: first..self.rows.len(),
        });
    }

    /// Brings the rows into the order of addresses.
    fn finish(self, problems: Problems) -> Compiled {
        let kept = select(self.functions);
        let mut rows = RowsBuilder::with_capacity(self.rows.len() + kept.len() + 2);
        let mut end = 0;
        for function in &kept {
            if function.range.start != end {
                rows.push(end, RuleId::NOTHING, 0);
            }
            end = function.range.end;
            for row in self.rows.get(function.content.clone()) {
                if row.start < end {
                    rows.push(row.start, row.rule, 0);
                }
            }
        }
        rows.push(end, RuleId::NOTHING, 0);
        Compiled {
            rows: rows.finish(),
            functions: kept.into_iter().map(|function| function.range).collect(),
            rules: self.rules,
            problems,
        }
    }
}
