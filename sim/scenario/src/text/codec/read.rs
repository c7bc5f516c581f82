//! The reader: checks the nodes of a text against the grammar, and lets codecs take their values.
//! Every problem is reported.

use crate::text::codec::typed::Names;
use crate::text::codec::value::Value;
use crate::text::codec::{ARGUMENT, Codec, Field, List, Run, Task};
use crate::text::document::{Entry, Literal, Name, Node};
use crate::text::error::Span;
use crate::text::grammar::{Args, Kind, Level, NodeRule};
use crate::text::problem::ProblemKind;
use clr_runtime::generation::Generations;
use std::collections::BTreeSet;

/// A node whose arguments and properties were checked. A wrong part is missing: its problem was
/// reported, and the value built from the other parts is discarded.
struct Fields<'t> {
    node: &'t Node<'t>,
    args: Vec<Value>,
    properties: Vec<(&'static str, Value)>,
}

/// A node of a block, until a codec takes it.
struct Child<'t> {
    rule: &'static NodeRule,
    span: Span,
    fields: Option<Fields<'t>>,
}

/// The reader of a text.
pub(crate) struct Reader<'t> {
    pub(crate) problems: Vec<(Span, ProblemKind)>,
    names: Names,
    /// The nodes around the codec, innermost last.
    nodes: Vec<(&'static str, Fields<'t>)>,
    /// The nodes of the current block.
    block: Vec<Child<'t>>,
    /// Index of the only node of the block that the codec may take.
    item: Option<usize>,
}

impl<'t> Reader<'t> {
    /// Creates the reader of the nodes outside all blocks.
    pub(crate) fn new(nodes: &'t [Node<'t>]) -> Self {
        let names = Names::of(nodes);
        let (problems, block) = (Vec::new(), Vec::new());
        let mut reader = Self { problems, names, nodes: Vec::new(), block, item: None };
        reader.block = reader.checked(nodes, Level::Text);
        reader
    }

    fn report(&mut self, span: Span, kind: ProblemKind) {
        self.problems.push((span, kind));
    }

    /// Returns the nodes of a block, without those that are not allowed there.
    fn checked(&mut self, nodes: &'t [Node<'t>], level: Level) -> Vec<Child<'t>> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (span, name) = (node.name.span, &*node.name.text);
            let Some(rule) = level.node(name) else {
                let allowed = level.nodes().iter().map(|rule| rule.name.to_owned()).collect();
                let (found, place) = (name.to_owned(), level.place());
                self.report(span, ProblemKind::UnknownNode { found, place, allowed });
                continue;
            };
            if rule.once && !seen.insert(rule.name) {
                self.report(span, ProblemKind::DuplicateNode(rule.name));
            }
            let fields = Some(self.fields(node, rule));
            all.push(Child { rule, span, fields });
        }
        all
    }

    fn fields(&mut self, node: &'t Node<'t>, rule: &'static NodeRule) -> Fields<'t> {
        let span = node.name.span;
        let mut fields = Fields { node, args: Vec::new(), properties: Vec::new() };
        let (least, limit) = rule.arity();
        let mut count = 0;
        let mut names = BTreeSet::new();
        for entry in &node.entries {
            if let Some(name) = &entry.name {
                if !names.insert(&*name.text) {
                    let duplicate = ProblemKind::DuplicateProperty(name.text.to_string());
                    self.report(entry.span, duplicate);
                }
                self.property(&mut fields, rule, name, entry);
                continue;
            }
            match rule.kind_of_arg(count) {
                Some(kind) => fields.args.extend(self.value(kind, &entry.value, entry.span)),
                None => {
                    self.report(entry.span, ProblemKind::ExtraArgument { node: rule.name, limit });
                }
            }
            count += 1;
        }
        if count < least
            && let Some(expected) = rule.kind_of_arg(0)
        {
            self.report(span, ProblemKind::MissingArgument { node: rule.name, expected });
        }
        for property in rule.properties.iter().filter(|property| property.required) {
            if !names.contains(property.name) {
                let (node, property, expected) = (rule.name, property.name, property.kind);
                self.report(span, ProblemKind::MissingProperty { node, property, expected });
            }
        }
        if node.block.is_some() && rule.block.is_none() {
            self.report(span, ProblemKind::ExtraBlock(rule.name));
        }
        fields
    }

    fn property(
        &mut self,
        fields: &mut Fields<'_>,
        rule: &'static NodeRule,
        name: &Name<'_>,
        entry: &Entry<'_>,
    ) {
        if let Some(property) = rule.properties.iter().find(|it| it.name == name.text) {
            let value = self.value(property.kind, &entry.value, entry.value_span);
            fields.properties.extend(value.map(|value| (property.name, value)));
        } else {
            let allowed = rule.properties.iter().map(|it| it.name.to_owned()).collect();
            let (node, found) = (rule.name, name.text.to_string());
            self.report(name.span, ProblemKind::UnknownProperty { node, found, allowed });
        }
    }

    fn value(&mut self, kind: Kind, literal: &Literal<'_>, span: Span) -> Option<Value> {
        let value = self.names.typed(kind, literal);
        let narrowed = |problem| wrong_runtime(&problem, span).unwrap_or((span, problem));
        let value = value.map_err(narrowed);
        value.map_err(|(span, problem)| self.report(span, problem)).ok()
    }

    fn node(&self) -> Option<&Fields<'t>> {
        self.nodes.last().map(|(_, fields)| fields)
    }

    fn node_mut(&mut self) -> Option<&mut Fields<'t>> {
        self.nodes.last_mut().map(|(_, fields)| fields)
    }

    fn children(&self) -> &'t [Node<'t>] {
        self.node().map_or(&[], |fields| fields.node.children())
    }
}

/// Returns the problem of the first name in a list of runtimes that is none, with its place; `None` if the list has one name, is wrong
/// otherwise, or is written with escapes.
fn wrong_runtime(problem: &ProblemKind, list: Span) -> Option<(Span, ProblemKind)> {
    let ProblemKind::UnknownWord { found, expected: expected @ Kind::Generations } = problem else {
        return None;
    };
    let words = found.split([' ', ',']).filter(|word| !word.is_empty());
    let wrong = words.into_iter().find(|word| Generations::from_word(word).is_none())?;
    if wrong == found {
        return None;
    }
    let quotes = list.len.checked_sub(found.len()).filter(|more| [0, 2].contains(more))?;
    // The same letters may be in a name before.
    let before = wrong.as_ptr().addr() - found.as_ptr().addr() + quotes / 2;
    let span = Span { offset: list.offset + before, len: wrong.len() };
    Some((span, ProblemKind::UnknownWord { found: wrong.to_owned(), expected: *expected }))
}

impl Run for Reader<'_> {
    fn task(&self) -> Task {
        Task::Read
    }

    fn visit(&mut self, name: &'static str, _: bool, parts: &mut dyn FnMut(&mut Codec<'_>)) {
        let item = self.item.take();
        let range = item.map_or(0..self.block.len(), |item| item..item + 1);
        for index in range {
            let child = self.block.get_mut(index).filter(|child| child.rule.name == name);
            if let Some(fields) = child.and_then(|child| child.fields.take()) {
                self.nodes.push((name, fields));
                parts(self);
                self.nodes.pop();
            }
        }
        self.item = item;
    }

    fn visit_args(&mut self, _: Args, list: &mut dyn List) {
        if let Some(fields) = self.node_mut() {
            list.set_all(core::mem::take(&mut fields.args));
        }
    }

    fn visit_property(&mut self, name: &'static str, _: Kind, _: bool, field: &mut dyn Field) {
        let Some(fields) = self.node_mut() else { return };
        if let Some(index) = fields.properties.iter().position(|(other, _)| *other == name) {
            field.set(fields.properties.swap_remove(index).1);
        }
    }

    fn visit_block(&mut self, level: Level, _: bool, nodes: &mut dyn FnMut(&mut Codec<'_>)) {
        let children = self.children();
        let block = self.checked(children, level);
        let outer = (core::mem::replace(&mut self.block, block), self.item.take());
        nodes(self);
        (self.block, self.item) = outer;
    }

    fn visit_items(&mut self, _: usize, item: &mut dyn FnMut(&mut Codec<'_>, usize)) {
        for index in 0..self.block.len() {
            if let Some(blank) = self.block.get(index).and_then(|child| child.rule.item) {
                self.item = Some(index);
                item(self, blank);
            }
        }
        self.item = None;
    }

    fn item(&self, by: isize) -> Option<&'static str> {
        let index = self.item?.checked_add_signed(by)?;
        self.block.get(index).map(|child| child.rule.name)
    }

    fn one_of(&mut self, names: &[&'static str]) -> usize {
        let is_one = |child: &&Node<'_>| names.contains(&&*child.name.text);
        let known = |child: &Node<'_>| names.iter().find(|name| **name == child.name.text);
        let all: Vec<_> = self.children().iter().filter(is_one).collect();
        for pair in all.windows(2) {
            if let [before, after] = pair
                && let (Some(before), Some(name)) = (known(before), known(after))
                && before != name
            {
                self.report(after.name.span, ProblemKind::Excluded(before, name));
            }
        }
        all.len()
    }

    fn is_written(&self, property: &str) -> bool {
        self.node().is_some_and(|fields| match property {
            ARGUMENT => fields.node.args().next().is_some(),
            name => fields.node.has_property(name),
        })
    }

    fn has_block(&self) -> bool {
        self.node().is_some_and(|fields| fields.node.block.is_some())
    }

    fn has_argument(&self) -> bool {
        self.node().is_some_and(|fields| !fields.args.is_empty())
    }

    fn is_in(&self, name: &str) -> bool {
        self.nodes.iter().any(|(other, _)| *other == name)
    }

    fn problem(&mut self, problem: ProblemKind) {
        let item = self.item.and_then(|item| self.block.get(item)).map(|item| item.span);
        let span = item.or_else(|| Some(self.node()?.node.name.span));
        self.report(span.unwrap_or_default(), problem);
    }
}
