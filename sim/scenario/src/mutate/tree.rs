//! The nodes of a text with their rules, to be changed and printed.

use crate::format::quoted;
use crate::grammar::{Args, Kind, Level, NodeRule};
use core::fmt::{self, Write};
use kdl::{KdlDocument, KdlNode, KdlValue};

/// A value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(i128),
    Flag(bool),
}

/// A node, with its values in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) rule: &'static NodeRule,
    pub(super) args: Vec<Value>,
    pub(super) properties: Vec<(&'static str, Value)>,
    pub(super) block: Option<Block>,
}

/// The nodes of a block, all of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) level: Level,
    pub(super) nodes: Vec<Node>,
}

impl Value {
    fn of(value: &KdlValue) -> Option<Self> {
        match value {
            KdlValue::String(text) => Some(Self::Text(text.clone())),
            KdlValue::Integer(number) => Some(Self::Number(*number)),
            KdlValue::Bool(flag) => Some(Self::Flag(*flag)),
            KdlValue::Float(_) | KdlValue::Null => None,
        }
    }
}

impl NodeRule {
    /// Returns the kind of an argument by its index.
    pub(super) const fn kind_of_arg(&self, index: usize) -> Option<Kind> {
        match self.args {
            Args::None => None,
            Args::Named(..) if index == 0 => Some(Kind::Name),
            Args::One(kind) | Args::Optional(kind) | Args::Many(kind, _) | Args::Named(kind, _) => {
                Some(kind)
            }
        }
    }

    /// Returns the kind of a property.
    pub(super) fn kind_of(&self, property: &str) -> Option<Kind> {
        Some(self.properties.iter().find(|rule| rule.name == property)?.kind)
    }
}

impl Node {
    fn of(node: &KdlNode, level: Level) -> Option<Self> {
        let name = node.name().value();
        let rule = level.nodes().iter().find(|rule| rule.name == name)?;
        let (mut args, mut properties) = (Vec::new(), Vec::new());
        for entry in node.entries() {
            let value = Value::of(entry.value())?;
            match entry.name() {
                None => args.push(value),
                Some(name) => {
                    let name = name.value();
                    let property = rule.properties.iter().find(|rule| rule.name == name)?;
                    properties.push((property.name, value));
                }
            }
        }
        let children = node.children().map_or(&[][..], KdlDocument::nodes);
        let block = rule.block.filter(|_| !children.is_empty());
        let block = match block {
            Some(level) => Some(Block::of(children, level)?),
            None => None,
        };
        Some(Self { rule, args, properties, block })
    }

    /// Calls `change` with each value and its kind.
    pub(super) fn each_value(&mut self, change: &mut dyn FnMut(Kind, &mut Value)) {
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

    /// Returns the number of nodes, including those in blocks.
    fn count(&self) -> usize {
        1 + self.block.as_ref().map_or(0, Block::count)
    }
}

impl Block {
    /// Converts the nodes of a text that is a scenario.
    pub(super) fn of_text(document: &KdlDocument) -> Option<Self> {
        Self::of(document.nodes(), Level::Text)
    }

    fn of(nodes: &[KdlNode], level: Level) -> Option<Self> {
        let nodes = nodes.iter().map(|node| Node::of(node, level)).collect::<Option<_>>()?;
        Some(Self { level, nodes })
    }

    /// Returns the number of nodes, including those in blocks.
    pub(super) fn count(&self) -> usize {
        self.nodes.iter().map(Node::count).sum()
    }

    /// Returns the block of a node and its index there, by its number among all nodes.
    pub(super) fn place(&mut self, number: &mut usize) -> Option<(&mut Self, usize)> {
        if *number < self.nodes.len() {
            return Some((self, *number));
        }
        *number -= self.nodes.len();
        self.nodes.iter_mut().filter_map(|node| node.block.as_mut()).find_map(|it| it.place(number))
    }

    /// Returns the number of blocks of a level.
    pub(super) fn count_of(&self, level: Level) -> usize {
        let inner = self.nodes.iter().filter_map(|node| node.block.as_ref());
        usize::from(self.level == level) + inner.map(|block| block.count_of(level)).sum::<usize>()
    }

    /// Returns a block of a level by its number among those.
    pub(super) fn of_level(&mut self, level: Level, number: &mut usize) -> Option<&mut Self> {
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
    pub(super) fn each_value(&mut self, change: &mut dyn FnMut(Kind, &mut Value)) {
        for node in &mut self.nodes {
            node.each_value(change);
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "#{flag}"),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.name)?;
        self.args.iter().try_for_each(|value| write!(f, " {value}"))?;
        self.properties.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        match &self.block {
            Some(block) => write!(f, " {{\n{block}}}\n"),
            None => f.write_char('\n'),
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nodes.iter().try_for_each(|node| node.fmt(f))
    }
}
