//! Names in a text that was changed: each definition has its own, and each use a definition.

use crate::ScenarioThread;
use crate::text::grammar::{Kind, Level};
use crate::text::mutate::tree::{Block, Value};
use clr_generate::Choices;

/// The names that a text defines.
#[derive(Default)]
struct Names {
    functions: Vec<String>,
    threads: Vec<String>,
    profilers_threads: Vec<String>,
    locks: Vec<String>,
    events: Vec<String>,
    buffers: Vec<String>,
}

/// Renames what is defined twice, and lets uses of names that are not defined use others. A use
/// for which there is no definition at all is left as it is.
pub(super) fn repair<C: Choices>(text: &mut Block, choices: &mut C) {
    let names = definitions(text);
    text.each_value(&mut |kind, value| {
        let Value::Text(name) = value else { return };
        let threads = || names.threads.iter().chain(&names.profilers_threads);
        let known: Vec<&String> = match kind {
            Kind::Function => names.functions.iter().collect(),
            Kind::Thread => names.threads.iter().collect(),
            Kind::Party if name != "own" => threads().collect(),
            Kind::Lock => names.locks.iter().collect(),
            Kind::Event => names.events.iter().collect(),
            Kind::Buffer | Kind::ExportArgument => names.buffers.iter().collect(),
            _ => return,
        };
        let is_content = || kind == Kind::ExportArgument && name.starts_with('*');
        if !known.contains(&&*name)
            && !is_content()
            && let Some(other) = choices.pick(&known)
        {
            name.clone_from(other);
        }
    });
}

/// Makes the names of functions, threads, buffers, locks and events unique, and returns them.
fn definitions(text: &mut Block) -> Names {
    let mut names = Names::default();
    for node in &mut text.nodes {
        let list = match node.rule.name {
            "function" => &mut names.functions,
            "thread" => &mut names.threads,
            "buffer" => &mut names.buffers,
            _ => continue,
        };
        node.args.iter_mut().for_each(|name| define(list, &[], name));
    }
    if names.threads.is_empty() {
        names.threads.push(ScenarioThread::DEFAULT_NAME.to_owned());
    }
    let blocks = text.nodes.iter_mut().filter_map(|node| node.block.as_mut());
    for node in blocks.filter(|block| block.level == Level::Profiler).flat_map(|it| &mut it.nodes) {
        let (list, others) = match node.rule.name {
            "thread" => (&mut names.profilers_threads, &*names.threads),
            "lock" => (&mut names.locks, &[][..]),
            "event" => (&mut names.events, &[][..]),
            _ => continue,
        };
        node.args.iter_mut().for_each(|name| define(list, others, name));
    }
    names
}

/// Adds a name to a list, changed if the list or another one has it.
fn define(list: &mut Vec<String>, others: &[String], name: &mut Value) {
    let Value::Text(name) = name else { return };
    let is_free = |name: &String| !list.contains(name) && !others.contains(name);
    if !is_free(name) {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        *name = numbered.into_iter().find(is_free).unwrap_or_default();
    }
    list.push(name.clone());
}
