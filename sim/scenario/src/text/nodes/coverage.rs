//! Demands on coverage.

use crate::model::{CountDemand, Demand, Entrance};
use crate::text::codec::{Codec, Data as _, Item, MANY, nodes};
use crate::text::grammar::{Kind, Level};
use crate::text::problem::ProblemKind;
use clr_runtime::generation::Generations;
use clr_runtime::profiling::CallbackKind;
use std::sync::LazyLock;

pub(super) fn coverage(demands: &mut Vec<Demand>, c: &mut Codec<'_>) {
    c.once("coverage", !demands.is_empty(), |c| {
        c.whole_block(Level::Coverage, |c| c.items(demands));
    });
}

nodes! {
    fn demand(node: Demand, c), fn blanks;
    Callback(kind = CallbackKind::ThreadCreated, how) => c.node("callback", |c| {
        c.arg(kind);
        count(how, c);
    }),
    Actions(entrance = Entrance::Hook, how) => {
        for each in [Entrance::Hook, Entrance::Signal, Entrance::Crash] {
            c.node_if(each.word(), *entrance == each, |c| {
                *entrance = each;
                count(how, c);
            });
        }
    },
    Call { method, returns, count = CountDemand::default() } => c.node("call", |c| {
        c.arg_of(Kind::Name, method);
        c.with("returns", returns);
        self::count(count, c);
    }),
    Order { on = Generations::ALL, callbacks, by } => c.node("order", |c| {
        c.args_of(CallbackKind::KIND, MANY, callbacks);
        c.with_of("by", Kind::Name, by);
        c.on(on);
    }),
    Stuck { on = Generations::ALL, thread } => c.node("stuck", |c| {
        c.arg_of(Kind::Name, thread);
        c.on(on);
    }),
}

fn count(demand: &mut CountDemand, c: &mut Codec<'_>) {
    c.with_of("by", Kind::Name, &mut demand.by);
    c.or("least", &mut demand.least, &1);
    c.with("most", &mut demand.most);
    let mut share = if demand.each { "each" } else { "some" };
    c.or_of("in", Kind::Word(&["some", "each"]), &mut share, &"some");
    demand.each = share == "each";
    c.on(&mut demand.on);
    if demand.most == Some(0) && !c.is_written("least") {
        demand.least = 0;
    }
    let is_empty = demand.most.is_some_and(|most| most < demand.least);
    c.refuse(is_empty, ProblemKind::Excluded("least=", "most="));
}

impl Item for Demand {
    fn blanks() -> &'static [Self] {
        static BLANKS: LazyLock<Vec<Demand>> = LazyLock::new(blanks);
        &BLANKS
    }

    fn codec(&mut self, c: &mut Codec<'_>) {
        demand(self, c);
    }
}
