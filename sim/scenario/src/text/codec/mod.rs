//! Codecs: each node of the text format is described once, by a function that goes through the parts
//! of its value ([`crate::nodes`]).
//!
//! The function is executed by three runners. The [reader](read) stores into the parts what a text
//! says, the [printer](print) writes them to the canonical text, and the [lister](list) notes the
//! node with its arguments and properties for the grammar, from which completion, the mutator, the
//! tables of the format's page and the JSON Schema come.
//!
//! A codec begins with the value that the text means if it writes nothing. It visits all parts of a
//! node whatever they are, in the order in which they are printed; what is printed only sometimes
//! says so.

mod list;
mod print;
mod read;
mod typed;
mod value;

pub(crate) use print::{quoted, text_of};
pub(crate) use read::Reader;
pub(crate) use typed::is_fixed_word;
pub(crate) use value::{CONTENT, Code, Data, Field, Label, List, Value};

use crate::text::grammar::{Args, Kind, Level, Style};
use crate::text::keywords::Keyword;
use crate::text::problem::ProblemKind;
use clr_runtime::generation::Generations;
use clr_unwind::Gpr;
use value::{Named, One};

/// Limit of arguments: above the number of registers, each of which can be named once.
pub(crate) const MANY: usize = 64;

/// Stands for an argument where properties are named.
pub(crate) const ARGUMENT: &str = "";

/// Sizes and addresses of 32 and 64 bits.
pub(crate) const SIZE32: Kind = Kind::Number(0, u32::MAX as u64, Style::Size);
pub(crate) const SIZE64: Kind = Kind::Number(0, u64::MAX, Style::Size);
pub(crate) const HEX32: Kind = Kind::Number(0, u32::MAX as u64, Style::Hex);
pub(crate) const HEX64: Kind = Kind::Number(0, u64::MAX, Style::Hex);
/// The number of something that is counted from 1.
pub(crate) const ORDINAL: Kind = Kind::Number(1, u32::MAX as u64, Style::Decimal);

/// Returns the kind of a count in a range, both ends included.
pub(crate) const fn between(least: u64, most: u64) -> Kind {
    Kind::Number(least, most, Style::Decimal)
}

/// The way in which codecs go through the parts of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Read,
    Print,
    List,
}

/// The blank lines before the outermost nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Blank {
    /// There are none.
    #[default]
    None,
    /// A blank line is before the next node only.
    Once,
    /// A blank line is before each of the following nodes.
    Each,
}

/// A runner of codecs. Codecs use the shorter methods of [`Codec`].
pub(crate) trait Run {
    fn task(&self) -> Task;

    /// Visits nodes with a name in the current block. The printer prints one.
    fn visit(&mut self, name: &'static str, once: bool, parts: &mut dyn FnMut(&mut Codec<'_>));

    /// Visits the arguments of the node.
    fn visit_args(&mut self, args: Args, list: &mut dyn List);

    /// Visits a property of the node.
    fn visit_property(
        &mut self,
        name: &'static str,
        kind: Kind,
        required: bool,
        field: &mut dyn Field,
    );

    /// Visits the block of the node. An empty block is printed if it is `whole`.
    fn visit_block(&mut self, level: Level, whole: bool, nodes: &mut dyn FnMut(&mut Codec<'_>));

    /// Visits the nodes of the block that are items of a list, in the order of the text. `item` gets
    /// the index of the blank value. The lister visits each blank value instead.
    fn visit_items(&mut self, blanks: usize, item: &mut dyn FnMut(&mut Codec<'_>, usize));

    /// Returns the name of the item that is being visited, or of one `by` places after it.
    fn item(&self, _by: isize) -> Option<&'static str> {
        None
    }

    /// Returns the number of nodes in the current block that have one of these names, of which
    /// several exclude each other.
    fn one_of(&mut self, _names: &[&'static str]) -> usize {
        1
    }

    /// Returns true if the node has the property, with a valid value or not; with the name
    /// [`ARGUMENT`], if it has an argument.
    fn is_written(&self, _property: &str) -> bool {
        false
    }

    /// Returns true if the text has the block of the node.
    fn has_block(&self) -> bool {
        true
    }

    /// Returns true if the node has an argument that is valid.
    fn has_argument(&self) -> bool {
        false
    }

    /// Returns true if the node is in the block of a node with this name.
    fn is_in(&self, _name: &str) -> bool {
        true
    }

    /// Reports a problem at the item, or at the node whose parts are visited.
    fn problem(&mut self, _problem: ProblemKind) {}

    /// Sets the blank lines before the following nodes.
    fn blank(&mut self, _blank: Blank) {}
}

/// A runner as codecs see it.
pub(crate) type Codec<'c> = dyn Run + 'c;

/// An element of a list whose elements have nodes of different names.
pub(crate) trait Item: Clone + 'static {
    /// Returns a value of each kind, as it is without what a text says.
    fn blanks() -> &'static [Self];

    /// Goes through the nodes that an item may have; the first that a text has begins the item.
    fn codec(&mut self, c: &mut Codec<'_>);

    /// Returns how the node that the codec is at belongs to the item before it.
    fn joins(_last: Option<&Self>, _c: &Codec<'_>) -> Join {
        Join::Begins
    }
}

/// The relation of a node to the item before it.
pub(crate) enum Join {
    /// The node begins an item.
    Begins,
    /// The node continues the item.
    Continues,
    /// The node would continue an item of another kind.
    Stray(ProblemKind),
}

impl Codec<'_> {
    pub(crate) fn reads(&self) -> bool {
        self.task() == Task::Read
    }

    fn is_printed(&self, shown: bool) -> bool {
        shown || self.task() != Task::Print
    }

    /// A node that may appear any number of times.
    pub(crate) fn node(&mut self, name: &'static str, mut parts: impl FnMut(&mut Codec<'_>)) {
        self.visit(name, false, &mut parts);
    }

    /// The same, printed only if it is `shown`.
    pub(crate) fn node_if(
        &mut self,
        name: &'static str,
        shown: bool,
        mut parts: impl FnMut(&mut Codec<'_>),
    ) {
        if self.is_printed(shown) {
            self.visit(name, false, &mut parts);
        }
    }

    /// A node that appears at most once in a block, printed only if it is `shown`.
    pub(crate) fn once(
        &mut self,
        name: &'static str,
        shown: bool,
        mut parts: impl FnMut(&mut Codec<'_>),
    ) {
        if self.is_printed(shown) {
            self.visit(name, true, &mut parts);
        }
    }

    /// A node that appears at most once, for a value that need not be there.
    pub(crate) fn maybe<T: Clone>(
        &mut self,
        name: &'static str,
        value: &mut Option<T>,
        blank: &T,
        mut parts: impl FnMut(&mut T, &mut Codec<'_>),
    ) {
        self.once(name, value.is_some(), |c| {
            parts(value.get_or_insert_with(|| blank.clone()), c);
        });
    }

    /// A node with one argument that appears at most once, printed unless it has its default.
    pub(crate) fn setting<T: Data + Default + PartialEq>(
        &mut self,
        name: &'static str,
        value: &mut T,
    ) {
        self.setting_of(name, T::KIND, value);
    }

    /// The same with another kind of value.
    pub(crate) fn setting_of<T: Data + Default + PartialEq>(
        &mut self,
        name: &'static str,
        kind: Kind,
        value: &mut T,
    ) {
        self.once(name, *value != T::default(), |c| c.arg_of(kind, value));
    }

    /// A node without arguments that appears at most once and sets a flag.
    pub(crate) fn mark(&mut self, name: &'static str, flag: &mut bool) {
        self.once(name, *flag, |_| *flag = true);
    }

    /// A node with arguments that appears at most once, printed if there are any.
    pub(crate) fn words<T: Data>(&mut self, name: &'static str, kind: Kind, all: &mut Vec<T>) {
        self.once(name, !all.is_empty(), |c| c.args_of(kind, MANY, all));
    }

    /// Nodes with one name, one for each element of a list.
    pub(crate) fn each<T: Clone>(
        &mut self,
        name: &'static str,
        all: &mut Vec<T>,
        blank: &T,
        mut parts: impl FnMut(&mut T, &mut Codec<'_>),
    ) {
        if self.task() == Task::Print {
            for one in all {
                self.visit(name, false, &mut |c| parts(one, c));
            }
        } else {
            self.visit(name, false, &mut |c| {
                let mut one = blank.clone();
                parts(&mut one, c);
                all.push(one);
            });
        }
    }

    /// Nodes with different names, one or several for each element of a list.
    pub(crate) fn items<T: Item>(&mut self, all: &mut Vec<T>) {
        if self.task() == Task::Print {
            return all.iter_mut().for_each(|item| item.codec(self));
        }
        let blanks = T::blanks();
        self.visit_items(blanks.len(), &mut |c, index| {
            let join = T::joins(all.last(), c);
            if let (Join::Continues, Some(last)) = (&join, all.last_mut()) {
                return last.codec(c);
            }
            let Some(mut item) = blanks.get(index).cloned() else { return };
            item.codec(c);
            match join {
                Join::Stray(problem) => c.problem(problem),
                _ => all.push(item),
            }
        });
    }

    /// A block that is printed unless it is empty.
    pub(crate) fn block(&mut self, level: Level, mut nodes: impl FnMut(&mut Codec<'_>)) {
        self.visit_block(level, false, &mut nodes);
    }

    /// A block that is printed in any case.
    pub(crate) fn whole_block(&mut self, level: Level, mut nodes: impl FnMut(&mut Codec<'_>)) {
        self.visit_block(level, true, &mut nodes);
    }

    /// The only argument.
    pub(crate) fn arg<T: Data>(&mut self, value: &mut T) {
        self.arg_of(T::KIND, value);
    }

    /// The same of another kind.
    pub(crate) fn arg_of<T: Data>(&mut self, kind: Kind, value: &mut T) {
        self.visit_args(Args::One(kind), &mut One(value));
    }

    /// An argument that may be omitted.
    pub(crate) fn optional_arg<T: Data>(&mut self, value: &mut Option<T>) {
        self.optional_arg_of(T::KIND, value);
    }

    /// The same of another kind.
    pub(crate) fn optional_arg_of<T: Data>(&mut self, kind: Kind, value: &mut Option<T>) {
        self.visit_args(Args::Optional(kind), &mut One(value));
    }

    /// An argument that is omitted if it is the default.
    pub(crate) fn default_arg<T: Data + Default + PartialEq>(&mut self, value: &mut T) {
        let mut other = (*value != T::default()).then(|| core::mem::take(value));
        self.optional_arg(&mut other);
        *value = other.unwrap_or_default();
    }

    /// Any number of arguments.
    pub(crate) fn args<T: Data>(&mut self, all: &mut Vec<T>) {
        self.args_of(T::KIND, MANY, all);
    }

    /// Any number of arguments up to a limit, of another kind.
    pub(crate) fn args_of<T: Data>(&mut self, kind: Kind, limit: usize, all: &mut Vec<T>) {
        self.visit_args(Args::Many(kind, limit), all);
    }

    /// A name, and any number of arguments up to a limit.
    pub(crate) fn named_args<T: Data>(
        &mut self,
        name: &mut String,
        limit: usize,
        all: &mut Vec<T>,
    ) {
        self.visit_args(Args::Named(T::KIND, limit), &mut Named(name, all));
    }

    /// A property that must be there.
    pub(crate) fn required<T: Data>(&mut self, name: &'static str, value: &mut T) {
        self.required_of(name, T::KIND, value);
    }

    /// The same of another kind.
    pub(crate) fn required_of<T: Data>(&mut self, name: &'static str, kind: Kind, value: &mut T) {
        self.visit_property(name, kind, true, value);
    }

    /// A property that is omitted if it has the default of its type.
    pub(crate) fn with<T: Data + Default + PartialEq>(
        &mut self,
        name: &'static str,
        value: &mut T,
    ) {
        self.or_of(name, T::KIND, value, &T::default());
    }

    /// The same of another kind.
    pub(crate) fn with_of<T: Data + Default + PartialEq>(
        &mut self,
        name: &'static str,
        kind: Kind,
        value: &mut T,
    ) {
        self.or_of(name, kind, value, &T::default());
    }

    /// A property that is omitted if it has this default.
    pub(crate) fn or<T: Data + PartialEq>(
        &mut self,
        name: &'static str,
        value: &mut T,
        default: &T,
    ) {
        self.or_of(name, T::KIND, value, default);
    }

    /// The same of another kind.
    pub(crate) fn or_of<T: Data + PartialEq>(
        &mut self,
        name: &'static str,
        kind: Kind,
        value: &mut T,
        default: &T,
    ) {
        if self.is_printed(value != default) {
            self.visit_property(name, kind, false, value);
        }
    }

    /// A property for each integer register, of those that have a value.
    pub(crate) fn registers(&mut self, kind: Kind, values: &mut Vec<(Gpr, u64)>) {
        each_register(values, |name, value| self.with_of(name, kind, value));
    }

    /// `on=`, omitted for all generations.
    pub(crate) fn on(&mut self, on: &mut Generations) {
        self.or("on", on, &Generations::ALL);
    }

    /// `on=` of an expectation. The first one for a generation is used: `left` are the generations that those
    /// before it leave.
    pub(crate) fn on_what_is(&mut self, left: &mut Generations, on: &mut Generations) {
        self.on(on);
        self.refuse(left.both(*on).is_empty(), ProblemKind::DeadExpectation);
        *left = left.without(*on);
    }

    /// The node for clauses, which may be repeated.
    pub(crate) fn clauses(&mut self, clauses: &mut Vec<clr_runtime::clause::Clause>) {
        self.node_if("clause", !clauses.is_empty(), |c| c.args(clauses));
    }

    /// Reports a problem at the node if the text has it.
    pub(crate) fn refuse(&mut self, is_wrong: bool, problem: ProblemKind) {
        if is_wrong && self.reads() {
            self.problem(problem);
        }
    }

    /// Reports a property that has no meaning without another one. Both are written with `=`.
    pub(crate) fn needs(&mut self, property: &'static str, other: &'static str) {
        let is_written = |name: &str| self.is_written(name.trim_end_matches('='));
        let is_wrong = is_written(property) && !is_written(other);
        self.refuse(is_wrong, ProblemKind::Without(property, other));
    }
}

/// Calls `visit` with each integer register's name and value, and keeps the values that are there.
pub(crate) fn each_register(
    values: &mut Vec<(Gpr, u64)>,
    mut visit: impl FnMut(&'static str, &mut Option<u64>),
) {
    let all = core::mem::take(values);
    for register in Gpr::ALL {
        let mut value = all.iter().find(|(other, _)| *other == register).map(|(_, value)| *value);
        visit(register.word(), &mut value);
        values.extend(value.map(|value| (register, value)));
    }
}

/// The blank value of a part: the default of its type, or the one that is given.
macro_rules! blank {
    () => {
        Default::default()
    };
    ($blank:expr) => {
        $blank
    };
}

/// Defines the codec of an enum with a node for each variant, and the function that returns a blank
/// value of each. A part without a default has its blank value behind its name. Variants after `;`
/// have no node.
macro_rules! nodes {
    (
        fn $codec:ident($node:ident: $type:ident, $c:ident $(, $extra:ident: $extra_type:ty)*),
        fn $blanks:ident;
        $($variant:ident
            $(($($part:ident $(= $part_blank:expr)?),*))?
            $({$($field:ident $(= $field_blank:expr)?),*})?
            => $body:expr,)*
        $(; $($rest:pat),+)?
    ) => {
        fn $blanks() -> Vec<$type> {
            vec![$($type::$variant
                $(($(crate::text::codec::blank!($($part_blank)?)),*))?
                $({$($field: crate::text::codec::blank!($($field_blank)?)),*})?),*]
        }

        fn $codec($node: &mut $type, $c: &mut Codec<'_> $(, $extra: &mut $extra_type)*) {
            match $node {
                $($type::$variant $(($($part),*))? $({$($field),*})? => $body,)*
                $($($rest => {})+)?
            }
        }
    };
}

pub(crate) use {blank, nodes};
