//! The grammar for tools: the nodes of the text format with their arguments and properties.

use crate::Scenario;
use crate::grammar::{Kind, Level, NodeRule};

/// A node of the text format in one of its places.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrammarNode {
    /// Place of the node: the name of a block.
    pub place: &'static str,
    /// Name of the node.
    pub name: &'static str,
    /// Form of the first argument, if the node takes any.
    pub first: Option<ValueForm>,
    /// Form of the other arguments, if the node takes several.
    pub rest: Option<ValueForm>,
    /// Minimum number of arguments.
    pub least: usize,
    /// Maximum number of arguments.
    pub most: usize,
    /// Properties.
    pub properties: Vec<GrammarProperty>,
    /// Place of the nodes in the node's block, if it has one.
    pub block: Option<&'static str>,
    /// The node appears at most once in a block.
    pub once: bool,
}

/// A property of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrammarProperty {
    /// Name of the property.
    pub name: &'static str,
    /// Form of its value.
    pub form: ValueForm,
    /// The property must be present.
    pub required: bool,
}

/// The form of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueForm {
    /// A number in a range, both ends included.
    Number(u64, u64),
    /// A truth value.
    Flag,
    /// One of several words.
    Word(&'static [&'static str]),
    /// Any string: a name, a label, or several words.
    Text,
    /// A string or a number.
    TextOrNumber,
    /// A string or a truth value.
    TextOrFlag,
}

impl From<Kind> for ValueForm {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Number(least, most, _) => Self::Number(least, most),
            Kind::Flag => Self::Flag,
            Kind::Word(words) => Self::Word(words),
            Kind::Stale => Self::TextOrFlag,
            Kind::Address | Kind::Target | Kind::HResult | Kind::Outcome | Kind::Flags => {
                Self::TextOrNumber
            }
            _ => Self::Text,
        }
    }
}

impl GrammarNode {
    fn new(level: Level, rule: &NodeRule) -> Self {
        let (least, most) = rule.arity();
        let form = |index: usize| rule.kind_of_arg(index).filter(|_| index < most);
        let property = |rule: &crate::grammar::PropertyRule| GrammarProperty {
            name: rule.name,
            form: rule.kind.into(),
            required: rule.required,
        };
        Self {
            place: level.name(),
            name: rule.name,
            first: form(0).map(ValueForm::from),
            rest: form(1).map(ValueForm::from),
            least,
            most,
            properties: rule.properties.iter().map(property).collect(),
            block: rule.block.map(Level::name),
            once: rule.once,
        }
    }
}

impl Scenario {
    /// Returns the nodes of the text format, by place; those of the outermost place come first.
    #[must_use]
    pub fn grammar() -> Vec<GrammarNode> {
        let nodes =
            |level: Level| level.nodes().iter().map(move |rule| GrammarNode::new(level, rule));
        Level::ALL.into_iter().flat_map(nodes).collect()
    }
}
