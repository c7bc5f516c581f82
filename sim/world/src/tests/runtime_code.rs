//! The runtime's own code in programs of each generation: its functions, their use of the stack, and the functions that they
//! call.

use super::*;

/// Writes the calls of statements by the names of their targets, and other statements by their kinds.
fn write_body(body: &[Statement], names: &[Function], line: &mut String) {
    for statement in body {
        match statement {
            Statement::Call(_, target) => {
                write!(line, " {}", names[target.index()].name).unwrap();
            }
            Statement::Loop(_, inner)
            | Statement::If(_, inner)
            | Statement::Cold(inner)
            | Statement::Region(_, inner)
            | Statement::Funclet(inner) => {
                line.push_str(" (");
                write_body(inner, names, line);
                line.push_str(" )");
            }
            other => {
                let words = match other {
                    Statement::Primitive(primitive) => format!("{primitive:?}"),
                    other => format!("{other:?}"),
                };
                let kind = words.split(['(', ' ', '{']).next().unwrap_or_default();
                write!(line, " {}", kind.to_lowercase()).unwrap();
            }
        }
    }
}

/// Returns a line for each function of the runtime.
fn lines(expanded: &Expanded) -> BTreeSet<String> {
    let functions = &expanded.program.functions;
    let added = (0..functions.len())
        .filter(|index| !expanded.placed.iter().any(|placed| placed.index() == *index));
    added
        .map(|index| {
            let Function { name, kind, shape, body, end } = &functions[index];
            let mut line = format!("{name}, {kind:?}, {:?}", expanded.identities[index]);
            write!(
                line,
                "\n    {:?} {:#x} {:?} {:?}:",
                shape.pushes, shape.locals, shape.frame, end
            )
            .unwrap();
            write_body(body, functions, &mut line);
            line
        })
        .collect()
}

#[test]
fn every_generation_has_its_own_code() {
    let mut generations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for generation in Generation::ALL {
        let of = |kind: &RuntimeCallKind| {
            [Hooks::None, Hooks::Slow, Hooks::Fast]
                .map(|hooks| lines(&expand(&program(*kind), &BTreeMap::new(), generation, hooks)))
        };
        let all: BTreeSet<String> = RuntimeCallKind::ALL.iter().flat_map(of).flatten().collect();
        for line in all {
            generations.entry(line).or_default().push(generation.to_string());
        }
    }
    let mut text = String::new();
    for (line, of) in generations {
        let of = if of.len() == Generation::ALL.len() { "all".to_owned() } else { of.join(", ") };
        writeln!(text, "{line}\n    {of}").unwrap();
    }
    insta::assert_snapshot!(text);
}
