//! The lister: notes the nodes that codecs have.

use crate::Scenario;
use crate::text::codec::{Codec, Field, List, Run, Task};
use crate::text::grammar::{Args, Kind, Level, NodeRule, PropertyRule};
use crate::text::nodes;
use std::sync::LazyLock;

/// The nodes of each level, by its number.
static GRAMMAR: LazyLock<[Vec<NodeRule>; Level::ALL.len()]> = LazyLock::new(|| {
    let mut lister = Lister { levels: Default::default(), level: Level::Text, node: 0, item: None };
    nodes::text(&mut Scenario::default(), &mut lister);
    lister.levels
});

impl Level {
    /// Returns the nodes that are allowed on the level.
    #[must_use]
    pub fn nodes(self) -> &'static [NodeRule] {
        GRAMMAR.get(self as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the node with this name.
    pub(crate) fn node(self, name: &str) -> Option<&'static NodeRule> {
        self.nodes().iter().find(|rule| rule.name == name)
    }
}

struct Lister {
    levels: [Vec<NodeRule>; Level::ALL.len()],
    level: Level,
    /// Index of the node that is being visited.
    node: usize,
    /// Index of the blank value that is being visited.
    item: Option<usize>,
}

impl Lister {
    fn level(&mut self) -> &mut Vec<NodeRule> {
        &mut self.levels[self.level as usize]
    }

    fn node(&mut self) -> Option<&mut NodeRule> {
        let node = self.node;
        self.level().get_mut(node)
    }
}

impl Run for Lister {
    fn task(&self) -> Task {
        Task::List
    }

    fn visit(&mut self, name: &'static str, once: bool, parts: &mut dyn FnMut(&mut Codec<'_>)) {
        // Variants of an enum can share a node.
        if self.level().iter().any(|rule| rule.name == name) {
            return;
        }
        let (item, args) = (self.item, Args::None);
        self.level().push(NodeRule { name, args, properties: Vec::new(), block: None, once, item });
        let outer = core::mem::replace(&mut self.node, self.levels[self.level as usize].len() - 1);
        parts(self);
        self.node = outer;
    }

    fn visit_args(&mut self, args: Args, _: &mut dyn List) {
        if let Some(node) = self.node() {
            node.args = args;
        }
    }

    fn visit_property(
        &mut self,
        name: &'static str,
        kind: Kind,
        required: bool,
        _: &mut dyn Field,
    ) {
        if let Some(node) = self.node() {
            node.properties.push(PropertyRule { name, kind, required });
        }
    }

    fn visit_block(&mut self, level: Level, _: bool, nodes: &mut dyn FnMut(&mut Codec<'_>)) {
        if let Some(node) = self.node() {
            node.block = Some(level);
        }
        // Blocks contain blocks of their own level.
        if self.levels[level as usize].is_empty() {
            let outer = (self.level, self.node, self.item.take());
            self.level = level;
            nodes(self);
            (self.level, self.node, self.item) = outer;
        }
    }

    fn visit_items(&mut self, blanks: usize, item: &mut dyn FnMut(&mut Codec<'_>, usize)) {
        for index in 0..blanks {
            self.item = Some(index);
            item(self, index);
        }
        self.item = None;
    }
}
