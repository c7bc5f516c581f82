//! The lines of a file "clr-walks 1".

use super::bad_seeds::is_of_zeroes;
use super::hidden::Hidden;
use super::mask::{Mask, Value};
use super::referenced_code::{Body, Image, Method, ReferencedCode};
use super::walk::{Report, State, Suspension, Thread, Walk};
use clr_sampler::os;
use clr_unwind::Registers;
use clr_walker::profiling::HResult;
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value as Json, json};

/// Size of the seed that a call says it passes, in bytes: a CONTEXT without extended state.
pub(super) const CONTEXT_SIZE: u32 = 1232;
/// ContextFlags of seeds: control, integer and floating-point registers.
pub(super) const SEED_FLAGS: u32 = 0x0010_000B;

/// Returns a number as the format has addresses and flags.
fn hex(number: u64) -> String {
    format!("{number:#x}")
}

/// Returns the line of a JSON object.
fn line(object: &Json) -> String {
    format!("{object}\n")
}

/// Returns the first line.
pub(super) fn header(generation: &str, runtime: &str, is_legacy: bool, note: &str) -> String {
    let mut header = json!({
        "t": "recording",
        "format": 1,
        "generation": generation,
        "runtime": runtime,
        "os": os::NAME,
        "name": "clr-recorder",
        "note": note,
    });
    if is_legacy {
        header["legacy_exception_handling"] = json!(true);
    }
    line(&header)
}

/// Returns the line of an image.
pub(super) fn image(id: u32, image: &Image) -> String {
    let Image { name, base, size } = image;
    line(&json!({"t": "image", "id": id, "name": name, "base": hex(*base), "size": size}))
}

/// Returns the line of a function.
pub(super) fn function(id: u32, method: &Method) -> String {
    let mut function = json!({
        "t": "function",
        "id": id,
        "function_id": hex(method.id.0),
        "name": method.name,
        "dynamic": method.is_dynamic,
    });
    if method.is_dispatch() {
        function["exception_handling"] = json!(true);
    }
    line(&function)
}

/// Returns the line of a body of code. `image` is the number of its image, if it is precompiled.
pub(super) fn code(id: u32, function: Option<u32>, image: Option<u32>, body: &Body) -> String {
    let entries = body.entries.iter().map(|entry| {
        let unwind_info = HEXLOWER.encode(&entry.unwind_info);
        let mut line = json!({"begin": entry.begin, "end": entry.end, "unwind_info": unwind_info});
        if let Some(funclet) = entry.funclet {
            line["funclet"] = json!(funclet);
        }
        line
    });
    line(&json!({
        "t": "code",
        "id": id,
        "function": function,
        "kind": if image.is_some() { "r2r" } else { "jit" },
        "image": image,
        "ranges": [[hex(body.range.start), body.range.end - body.range.start]],
        "unwind_base": hex(body.base),
        "entries": entries.collect::<Json>(),
    }))
}

/// Returns the line of a piece of machine code at `address` (VA).
pub(super) fn bytes(address: u64, code: &[u8]) -> String {
    line(&json!({"t": "bytes", "at": hex(address), "hex": HEXLOWER.encode(code)}))
}

/// Adds the frames that exceptions hide to a state.
fn add_hidden(hidden: &Hidden, state: &mut Json) {
    let mut inferred = Vec::new();
    if let Some((lower, upper)) = hidden.unwound {
        state["exception"]["unwound"] = json!([[hex(lower), hex(upper)]]);
        inferred.push("exception.unwound");
    }
    if !hidden.handlers.is_empty() {
        let handlers = hidden.handlers.iter().map(|handler| {
            let parent = handler.parent_caller_sp.map(hex);
            json!({"caller_sp": hex(handler.caller_sp), "parent_caller_sp": parent})
        });
        state["exception"]["funclets"] = handlers.collect();
        inferred.push("exception.funclets");
    }
    if !inferred.is_empty() {
        state["inferred"] = json!(inferred);
    }
}

/// The numbers by which a walk's line refers to other lines, and the masked values.
pub(super) struct References<'r> {
    pub(super) met: &'r ReferencedCode,
    pub(super) hidden: &'r Hidden,
    /// Returns true for an address of code.
    pub(super) is_code: &'r dyn Fn(u64) -> bool,
    pub(super) mask: &'r mut Mask,
    /// Returns the number of a function.
    pub(super) function: &'r dyn Fn(u64) -> Option<u32>,
}

impl References<'_> {
    fn show(&mut self, walk: &Walk, value: u64) -> u64 {
        let is_plain = (self.is_code)(value) || is_of_zeroes(value);
        let value = if is_plain { Value::Plain(value) } else { Value::Data(value) };
        self.mask.show(value, walk.stack)
    }

    fn registers(&mut self, walk: &Walk, registers: &Registers) -> Json {
        let values = registers.gpr.iter().chain([&registers.rip]);
        values.map(|value| hex(self.show(walk, *value))).collect()
    }

    /// Returns the line of a walk.
    pub(super) fn walk(&mut self, number: u32, workload: &str, walk: &Walk) -> String {
        let situation = &walk.situation;
        let mut object = json!({
            "t": "walk",
            "n": number,
            "situation": situation.name,
            "variant": walk.call.variant,
            "relation": if situation.is_own { "self" } else { "other" },
            "walker": if situation.is_managed_walker { "managed" } else { "native" },
            "thread": walk.target,
            "call": self.call(walk),
            "state": self.state(walk),
            "frames": frames(walk),
            "stack": self.stack(walk),
            "result": self.result(walk),
            "replayable": true,
        });
        if !workload.is_empty() {
            object["workload"] = json!(workload);
        }
        if let Some(leaf) = &walk.leaf {
            object["leaf"] = self.registers(walk, leaf);
        }
        line(&object)
    }

    fn call(&mut self, walk: &Walk) -> Json {
        let call = &walk.call;
        let seed = call.seed.as_ref().map(|seed| {
            let registers = self.registers(walk, &seed.registers);
            let flags = hex(seed.flags.into());
            json!({"made": seed.made, "registers": registers, "context_flags": flags})
        });
        let mut object = json!({
            "thread": match call.thread {
                Thread::Null => "null",
                Thread::Own => "own",
                Thread::Other => "other",
            },
            "flags": hex(call.flags.into()),
            "context_size": if seed.is_some() { CONTEXT_SIZE } else { 0 },
            "seed": seed,
        });
        if let Some(stop) = call.stop_at {
            object["policy"] = json!({"stop_at": stop, "returns": hex(1)});
        }
        object
    }

    fn state(&self, walk: &Walk) -> Json {
        let is_cooperative = walk.chain.is_cooperative || walk.state == State::Cooperative;
        let mut state = json!({"mode": if is_cooperative { "coop" } else { "preemptive" }});
        if walk.situation.suspended == Suspension::Runtime {
            state["runtime_suspended_by_profiler"] = json!(true);
        }
        if walk.situation.suspended == Suspension::Target {
            state["os_suspended"] = json!(true);
        }
        let inferred = match walk.state {
            State::Usual => None,
            State::Cooperative => Some("mode"),
            State::NotStarted => {
                state["ee_started"] = json!(false);
                Some("ee_started")
            }
            State::ForbidsSuspension => {
                state["forbid_suspend"] = json!(true);
                Some("forbid_suspend")
            }
            State::InSystemCall => {
                state["in_system_call"] = json!(true);
                Some("in_system_call")
            }
            State::SecondPass => {
                state["exception"] = json!({"second_pass_native": true});
                Some("exception.second_pass_native")
            }
            State::TrackerGone => {
                state["exception"] = json!({"tracker_gone": true});
                Some("exception.tracker_gone")
            }
        };
        if let Some(inferred) = inferred {
            state["inferred"] = json!([inferred]);
        }
        add_hidden(self.hidden, &mut state);
        state
    }

    fn stack(&mut self, walk: &Walk) -> Json {
        let (mut parts, mut end) = (Vec::<(u64, Vec<u8>)>::new(), 0);
        for (address, word) in &walk.words {
            let shown =
                if word.is_field { word.value } else { self.show(walk, word.value) }.to_le_bytes();
            match parts.last_mut() {
                Some((_, bytes)) if *address == end => bytes.extend(shown),
                _ => parts.push((*address, shown.to_vec())),
            }
            end = address + 8;
        }
        let part = |(address, bytes): &(u64, Vec<u8>)| json!([hex(*address), BASE64.encode(bytes)]);
        let low = walk.words.keys().copied().find(|at| walk.stack.contain(*at));
        let low = low.unwrap_or(walk.stack.base);
        // A CLR for musl is compiled without the check of the limit (C-109).
        let limit = if cfg!(target_env = "musl") { 0 } else { walk.stack.limit };
        json!({
            "low": hex(low),
            "base": hex(walk.stack.base),
            "limit": hex(limit),
            "parts": parts.iter().map(part).collect::<Json>(),
        })
    }

    fn result(&mut self, walk: &Walk) -> Json {
        let HResult(result) = walk.answer.result;
        let reports = walk.answer.reports.iter();
        let mut object = json!({
            "hr": hex(result.into()),
            "callbacks": reports.map(|report| self.report(walk, report)).collect::<Json>(),
        });
        if walk.answer.count > walk.answer.reports.len() {
            object["callback_count"] = json!(walk.answer.count);
        }
        object
    }

    fn report(&mut self, walk: &Walk, report: &Report) -> Json {
        let mut object = json!({
            "function": report.function.and_then(|function| (self.function)(function.0)),
            "ip": hex(self.show(walk, report.ip)),
            "frame_info": report.has_frame_info,
            "context_size": report.context_size,
        });
        if let Some((registers, flags)) = &report.context {
            object["registers"] = self.registers(walk, registers);
            object["context_flags"] = json!(hex((*flags).into()));
        }
        if report.function.is_none()
            && let Some(native) = self.met.native(report.ip)
        {
            object["native"] = json!(native);
        }
        object
    }
}

/// Returns the explicit Frames, the topmost first.
fn frames(walk: &Walk) -> Json {
    let frames = walk.chain.frames.iter();
    frames.map(|frame| json!({"at": hex(frame.at), "kind": frame.kind.name})).collect()
}
