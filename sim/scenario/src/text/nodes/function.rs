//! Functions and their shapes.

use crate::text::codec::{Codec, Data as _, MANY, SIZE32, between};
use crate::text::grammar::{Kind, Level};
use crate::text::keywords::{FREE_SLOT, Keyword as _, REGISTERS, SLOTS, xmm, xmm_number};
use crate::text::nodes::{body, export};
use crate::text::problem::ProblemKind;
use crate::{Buffer, Export, Scenario};
use clr_codegen::{
    CodeKind, Exit, FrameRegister, FrameSet, Function, FunctionIndex, FunctionShape, MAX_ARGUMENTS,
    ReturnForm, SaveArea, TailCallForm, UnwindData,
};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generations;
use clr_unwind::Gpr;

/// Names of the nodes that state the function's end.
pub(crate) const ENDS: [&str; 3] = ["return", "tail-call", "no-end"];

/// A function, with what a scenario has beside its program.
#[derive(Clone)]
struct Described {
    function: Function,
    method: MethodKind,
    on: Generations,
    optional: bool,
    inlines: Vec<FunctionIndex>,
    export: Option<Export>,
    attach: Option<String>,
}

pub(super) fn functions(text: &mut Scenario, c: &mut Codec<'_>) {
    let functions = core::mem::take(&mut text.program.functions).into_iter().zip(0..);
    let mut all: Vec<_> = functions
        .map(|(function, index)| Described {
            function,
            method: text.methods.remove(&FunctionIndex(index)).unwrap_or_default(),
            optional: text.optional.remove(&FunctionIndex(index)),
            inlines: text.inlines.remove(&FunctionIndex(index)).unwrap_or_default(),
            on: text.only_on.remove(&FunctionIndex(index)).unwrap_or(Generations::ALL),
            export: text.exports.remove(&FunctionIndex(index)),
            attach: text.attaches.remove(&FunctionIndex(index)),
        })
        .collect();
    let function = Function {
        name: String::new(),
        kind: CodeKind::default(),
        shape: FunctionShape::default(),
        body: Vec::new(),
        end: Some(Exit::Return(ReturnForm::Ret)),
    };
    let (method, on) = (MethodKind::default(), Generations::ALL);
    let (optional, inlines) = (false, Vec::new());
    let (export, attach) = (None, None);
    let blank = Described { function, method, on, optional, inlines, export, attach };
    let buffers = &text.buffers;
    c.each("function", &mut all, &blank, |function, c| described(function, buffers, c));
    for (Described { function, method, on, optional, inlines, export, attach }, index) in
        all.into_iter().zip(0..)
    {
        let index = FunctionIndex(index);
        // The default that is written out is the same as none.
        let method = Some(method).filter(|method| *method != MethodKind::default());
        text.methods.extend(method.map(|method| (index, method)));
        text.only_on.extend((on != Generations::ALL).then_some((index, on)));
        text.optional.extend(optional.then_some(index));
        text.inlines.extend((!inlines.is_empty()).then_some((index, inlines)));
        text.exports.extend(export.map(|export| (index, export)));
        text.attaches.extend(attach.map(|data| (index, data)));
        text.program.functions.push(function);
    }
}

fn described(described: &mut Described, buffers: &[Buffer], c: &mut Codec<'_>) {
    let Described { function, method, on, optional, inlines, export, attach } = described;
    c.arg(&mut function.name);
    c.with("kind", &mut function.kind);
    c.with("method", method);
    c.on(on);
    c.with("optional", optional);
    c.refuse(*optional && *on == Generations::ALL, ProblemKind::Without("optional=", "on="));
    c.block(Level::Function, |c| {
        shape(&mut function.shape, c);
        c.maybe("export", export, &Export::default(), |it, c| export::export(it, buffers, c));
        c.maybe("attach", attach, &String::new(), |data, c| c.default_arg(data));
        c.refuse(export.is_some() && attach.is_some(), ProblemKind::Excluded("export", "attach"));
        c.each("inlines", inlines, &FunctionIndex(0), |callee, c| c.arg(callee));
        let has_body = !function.body.is_empty();
        c.once("body", has_body, |c| body::statements(&mut function.body, c));
        c.one_of(&ENDS);
        end(&mut function.end, c);
    });
}

fn shape(shape: &mut FunctionShape, c: &mut Codec<'_>) {
    c.setting("entry", &mut shape.entry);
    home(&mut shape.home, c);
    c.words("push", Gpr::KIND, &mut shape.pushes);
    c.setting_of("locals", SIZE32, &mut shape.locals);
    saves(shape, c);
    c.setting("allocation", &mut shape.allocation);
    let blank =
        FrameRegister { register: Gpr::Rbp, offset: 0, set: FrameSet::default(), described: true };
    c.maybe("frame", &mut shape.frame, &blank, |frame, c| {
        c.arg(&mut frame.register);
        c.with_of("offset", between(0, 15), &mut frame.offset);
        c.with("set", &mut frame.set);
        c.or("described", &mut frame.described, &true);
    });
    c.setting("release", &mut shape.release);
    c.mark("scheduled", &mut shape.scheduled);
    let has_unwind = shape.unwind != UnwindData::default() || shape.handler;
    c.once("unwind", has_unwind, |c| {
        c.default_arg(&mut shape.unwind);
        c.with("handler", &mut shape.handler);
    });
    c.setting("cold-parts", &mut shape.cold);
    c.setting("wrap", &mut shape.wrap);
    c.setting("realign", &mut shape.realign);
    c.setting_of("arguments", between(0, MAX_ARGUMENTS.into()), &mut shape.arguments);
    c.setting("epilogue-cfi", &mut shape.epilogue_cfi);
}

fn home(home: &mut [Option<Gpr>; 4], c: &mut Codec<'_>) {
    let used = home.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let word = |slot: &Option<Gpr>| slot.map_or(FREE_SLOT, Gpr::word);
    let mut words: Vec<_> = home.iter().take(used).map(word).collect();
    let limit = home.len();
    c.once("home", used > 0, |c| c.args_of(Kind::Word(SLOTS), limit, &mut words));
    for (slot, word) in home.iter_mut().zip(words) {
        *slot = Gpr::from_word(word);
    }
}

fn saves(shape: &mut FunctionShape, c: &mut Codec<'_>) {
    let gprs = shape.saves.iter().map(|register| register.word());
    let mut words: Vec<_> = gprs.chain(shape.xmm_saves.iter().map(|it| xmm(*it))).collect();
    let is_written = !words.is_empty() || shape.save_area != SaveArea::default();
    c.once("save", is_written, |c| {
        c.args_of(Kind::Word(REGISTERS), MANY, &mut words);
        c.with("area", &mut shape.save_area);
    });
    shape.saves = words.iter().filter_map(|word| Gpr::from_word(word)).collect();
    shape.xmm_saves = words.iter().filter_map(|word| xmm_number(word)).collect();
}

/// The end of a function, which is mostly an ordinary return.
fn end(end: &mut Option<Exit>, c: &mut Codec<'_>) {
    let (mut form, mut jump) = parts_of(*end);
    let is_written = matches!(end, Some(Exit::Return(form)) if *form != ReturnForm::default());
    c.once("return", is_written, |c| {
        c.default_arg(&mut form);
        *end = Some(Exit::Return(form));
    });
    c.once("tail-call", matches!(end, Some(Exit::TailCall(..))), |c| {
        *end = Some(tail_call(&mut jump, c));
    });
    c.once("no-end", end.is_none(), |_| *end = None);
}

/// The exit of a statement.
pub(super) fn exit(exit: &mut Exit, c: &mut Codec<'_>) {
    let (mut form, mut jump) = parts_of(Some(*exit));
    c.node_if("return", matches!(exit, Exit::Return(_)), |c| {
        c.default_arg(&mut form);
        *exit = Exit::Return(form);
    });
    c.node_if("tail-call", matches!(exit, Exit::TailCall(..)), |c| {
        *exit = tail_call(&mut jump, c);
    });
}

fn tail_call((form, callee): &mut (TailCallForm, FunctionIndex), c: &mut Codec<'_>) -> Exit {
    c.arg(callee);
    c.with("by", form);
    Exit::TailCall(*form, *callee)
}

/// Returns the parts of an exit of either kind.
fn parts_of(exit: Option<Exit>) -> (ReturnForm, (TailCallForm, FunctionIndex)) {
    match exit {
        Some(Exit::Return(form)) => (form, Default::default()),
        Some(Exit::TailCall(form, callee)) => (ReturnForm::default(), (form, callee)),
        // The runtime's own code, which no text contains, has other exits.
        Some(Exit::Computed) | None => Default::default(),
    }
}
