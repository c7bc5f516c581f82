//! The nodes of a text with their rules, to be changed.

use crate::text::document;
use crate::text::document::{Entry, Literal, Name};
use crate::text::error::Span;
use crate::text::grammar::{Kind, Level, NodeRule};
use std::borrow::Cow;

/// A value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(i128),
    Flag(bool),
}

/// A node, with its values in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) rule: &'static NodeRule,
    pub(crate) args: Vec<Value>,
    pub(crate) properties: Vec<(&'static str, Value)>,
    pub(crate) block: Option<Block>,
}

/// The nodes of a block, all of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) level: Level,
    pub(crate) nodes: Vec<Node>,
}

impl Value {
    fn of(value: &Literal<'_>) -> Option<Self> {
        match value {
            Literal::Text(text) => Some(Self::Text(text.to_string())),
            Literal::Number(number) => Some(Self::Number(*number)),
            Literal::Flag(flag) => Some(Self::Flag(*flag)),
            Literal::Fraction(_) | Literal::Null => None,
        }
    }

    fn written(&self) -> Literal<'_> {
        match self {
            Self::Text(text) => Literal::Text(Cow::Borrowed(text)),
            Self::Number(number) => Literal::Number(*number),
            Self::Flag(flag) => Literal::Flag(*flag),
        }
    }
}

/// The place of what was not read from a text.
const NOWHERE: Span = Span { offset: 0, len: 0 };

const fn unplaced(text: &str) -> Name<'_> {
    Name { text: Cow::Borrowed(text), span: NOWHERE }
}

impl Node {
    fn of(node: &document::Node<'_>, level: Level) -> Option<Self> {
        let rule = level.node(&node.name.text)?;
        let (mut args, mut properties) = (Vec::new(), Vec::new());
        for entry in &node.entries {
            let value = Value::of(&entry.value)?;
            match &entry.name {
                None => args.push(value),
                Some(name) => {
                    let property = rule.properties.iter().find(|rule| rule.name == name.text)?;
                    properties.push((property.name, value));
                }
            }
        }
        let block = match rule.block.filter(|_| !node.children().is_empty()) {
            Some(level) => Some(Block::of(node.children(), level)?),
            None => None,
        };
        Some(Self { rule, args, properties, block })
    }

    /// Calls `change` with each value and its kind.
    pub(crate) fn each_value(&mut self, change: &mut dyn FnMut(Kind, &mut Value)) {
        for (index, value) in self.args.iter_mut().enumerate() {
            if let Some(kind) = self.rule.kind_of_arg(index) {
                change(kind, value);
            }
        }
        for (name, value) in &mut self.properties {
            if let Some(kind) = self.rule.kind_of(name) {
                change(kind, value);
            }
        }
        for node in self.block.iter_mut().flat_map(|block| &mut block.nodes) {
            node.each_value(change);
        }
    }

    /// Returns the node as it is read from a text.
    fn written(&self) -> document::Node<'_> {
        let args = self.args.iter().map(|value| (None, value));
        let properties = self.properties.iter().map(|(name, value)| (Some(unplaced(name)), value));
        let entries = args.chain(properties).map(|(name, value)| Entry {
            name,
            value: value.written(),
            span: NOWHERE,
            value_span: NOWHERE,
        });
        document::Node {
            name: unplaced(self.rule.name),
            entries: entries.collect(),
            block: self.block.as_ref().map(Block::written),
        }
    }
}

impl Block {
    /// Converts the nodes of a level. Those of a scenario's text are all known.
    pub(crate) fn of(nodes: &[document::Node<'_>], level: Level) -> Option<Self> {
        let nodes = nodes.iter().map(|node| Node::of(node, level)).collect::<Option<_>>()?;
        Some(Self { level, nodes })
    }

    /// Returns the block and those in it, in the order in which [`place`](Self::place) numbers their nodes.
    pub(crate) fn blocks(&self) -> Vec<&Self> {
        let inner = self.nodes.iter().filter_map(|node| node.block.as_ref());
        core::iter::once(self).chain(inner.flat_map(Self::blocks)).collect()
    }

    /// Returns the number of nodes, including those in blocks.
    pub(crate) fn count(&self) -> usize {
        self.blocks().iter().map(|block| block.nodes.len()).sum()
    }

    /// Replaces a node by those of its block, if they may stand there.
    pub(crate) fn unwrap(&mut self, index: usize) -> Option<()> {
        let inner = self.nodes.get(index)?.block.as_ref()?;
        let inner = (inner.level == self.level).then(|| inner.nodes.clone())?;
        self.nodes.splice(index..=index, inner);
        Some(())
    }

    /// Returns the number of blocks that contain each other.
    pub(crate) fn depth(&self) -> usize {
        let inner = self.nodes.iter().filter_map(|node| node.block.as_ref());
        inner.map(|block| 1 + block.depth()).max().unwrap_or(0)
    }

    /// Returns the nodes as they are read from a text, but without places there.
    pub(crate) fn written(&self) -> Vec<document::Node<'_>> {
        self.nodes.iter().map(Node::written).collect()
    }

    /// Returns the block of a node and its index there, by its number among all nodes.
    pub(crate) fn place(&mut self, number: &mut usize) -> Option<(&mut Self, usize)> {
        if *number < self.nodes.len() {
            return Some((self, *number));
        }
        *number -= self.nodes.len();
        self.nodes.iter_mut().filter_map(|node| node.block.as_mut()).find_map(|it| it.place(number))
    }

    /// Returns the number of blocks of a level.
    pub(crate) fn count_of(&self, level: Level) -> usize {
        self.blocks().iter().filter(|block| block.level == level).count()
    }

    /// Returns a block of a level by its number among those.
    pub(crate) fn of_level(&mut self, level: Level, number: &mut usize) -> Option<&mut Self> {
        if self.level == level {
            if *number == 0 {
                return Some(self);
            }
            *number -= 1;
        }
        let mut inner = self.nodes.iter_mut().filter_map(|node| node.block.as_mut());
        inner.find_map(|block| block.of_level(level, number))
    }

    /// Calls `change` with each value and its kind.
    pub(crate) fn each_value(&mut self, change: &mut dyn FnMut(Kind, &mut Value)) {
        for node in &mut self.nodes {
            node.each_value(change);
        }
    }
}
