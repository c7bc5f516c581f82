//! The lines of a file "clr-walks 1".

use super::hidden::Hidden;
use super::mask::{Mask, Value};
use super::met::{Body, Image, Met, Method};
use super::walk::{Report, State, Thread, Walk};
use clr_walker::profiling::HResult;
use clr_walker::registers::Registers;
use std::fmt::Write as _;

/// Size of the seed that a call says it passes, in bytes: a CONTEXT without extended state.
pub(super) const CONTEXT_SIZE: u32 = 1232;
/// ContextFlags of seeds: control, integer and floating-point registers.
pub(super) const SEED_FLAGS: u32 = 0x0010_000B;

/// Returns a JSON string.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\0'..='\x1f' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns bytes in lower-case hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns bytes in base 64, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let mut three = [0; 4];
        three[1..=part.len()].copy_from_slice(part);
        let number = u32::from_be_bytes(three);
        for digit in 0..4 {
            let value = number >> (18 - 6 * digit) & 63;
            text.push(if digit > part.len() { '=' } else { DIGITS[value as usize].into() });
        }
    }
    text
}

/// Returns the first line.
pub(super) fn header(generation: &str, runtime: &str, is_legacy: bool, note: &str) -> String {
    let legacy = if is_legacy { ",\"legacy_exception_handling\":true" } else { "" };
    format!(
        "{{\"t\":\"recording\",\"format\":1,\"generation\":{},\"runtime\":{},\"os\":\"Linux x64\",\
         \"name\":\"clr-recorder\",\"note\":{}{legacy}}}\n",
        string(generation),
        string(runtime),
        string(note)
    )
}

/// Returns the line of an image.
pub(super) fn image(id: u32, image: &Image) -> String {
    let size = image.size.map_or_else(|| "null".to_owned(), |size| size.to_string());
    let (name, base) = (string(&image.name), image.base);
    format!(
        "{{\"t\":\"image\",\"id\":{id},\"name\":{name},\"base\":\"{base:#x}\",\"size\":{size}}}\n"
    )
}

/// Returns the line of a function.
pub(super) fn function(id: u32, method: &Method) -> String {
    format!(
        "{{\"t\":\"function\",\"id\":{id},\"function_id\":\"{:#x}\",\"name\":{},\"dynamic\":{}{}}}\n",
        method.id.0,
        string(&method.name),
        method.is_dynamic,
        if method.is_dispatch() { ",\"exception_handling\":true" } else { "" }
    )
}

/// Returns the line of a body of code. `image` is the number of its image, if it is precompiled.
pub(super) fn code(id: u32, function: Option<u32>, image: Option<u32>, body: &Body) -> String {
    let number = |id: Option<u32>| id.map_or_else(|| "null".to_owned(), |id| id.to_string());
    let mut line = format!(
        "{{\"t\":\"code\",\"id\":{id},\"function\":{},\"kind\":\"{}\",\"image\":{},\
         \"ranges\":[[\"{:#x}\",{}]],\"unwind_base\":\"{:#x}\",\"entries\":[",
        number(function),
        if image.is_some() { "r2r" } else { "jit" },
        number(image),
        body.range.start,
        body.range.end - body.range.start,
        body.base
    );
    for (index, entry) in body.entries.iter().enumerate() {
        let _ = write!(
            line,
            "{}{{\"begin\":{},\"end\":{},\"unwind_info\":\"{}\"",
            if index > 0 { "," } else { "" },
            entry.begin,
            entry.end,
            hexadecimal(&entry.unwind_info)
        );
        if let Some(funclet) = entry.funclet {
            let _ = write!(line, ",\"funclet\":\"{funclet}\"");
        }
        line.push('}');
    }
    line.push_str("]}\n");
    line
}

/// Returns the line of a piece of machine code at `address` (VA).
pub(super) fn bytes(address: u64, code: &[u8]) -> String {
    format!("{{\"t\":\"bytes\",\"at\":\"{address:#x}\",\"hex\":\"{}\"}}\n", hexadecimal(code))
}

/// Appends what exceptions hide.
fn append_hidden(hidden: &Hidden, line: &mut String) {
    let mut names = Vec::new();
    let mut fields = Vec::new();
    if let Some((lower, upper)) = hidden.unwound {
        fields.push(format!("\"unwound\":[[\"{lower:#x}\",\"{upper:#x}\"]]"));
        names.push("\"exception.unwound\"");
    }
    if !hidden.handlers.is_empty() {
        let handlers = hidden.handlers.iter().map(|handler| {
            let parent = handler.parent_caller_sp;
            let parent = parent.map_or_else(|| "null".to_owned(), |sp| format!("\"{sp:#x}\""));
            let own = handler.caller_sp;
            format!("{{\"caller_sp\":\"{own:#x}\",\"parent_caller_sp\":{parent}}}")
        });
        fields.push(format!("\"funclets\":[{}]", handlers.collect::<Vec<_>>().join(",")));
        names.push("\"exception.funclets\"");
    }
    if !fields.is_empty() {
        let (fields, names) = (fields.join(","), names.join(","));
        let _ = write!(line, ",\"exception\":{{{fields}}},\"inferred\":[{names}]");
    }
}

/// The numbers by which a walk's line refers to other lines, and the masked values.
pub(super) struct References<'r> {
    pub(super) met: &'r Met,
    pub(super) hidden: &'r Hidden,
    /// Returns true for an address of code.
    pub(super) is_code: &'r dyn Fn(u64) -> bool,
    pub(super) mask: &'r mut Mask,
    /// Returns the number of a function.
    pub(super) function: &'r dyn Fn(u64) -> Option<u32>,
}

impl References<'_> {
    fn show(&mut self, walk: &Walk, value: u64) -> u64 {
        let value = if (self.is_code)(value) { Value::Plain(value) } else { Value::Data(value) };
        self.mask.show(value, walk.stack)
    }

    fn registers(&mut self, walk: &Walk, registers: &Registers) -> String {
        let mut text = String::from("[");
        for value in registers.gpr {
            let _ = write!(text, "\"{:#x}\",", self.show(walk, value));
        }
        let _ = write!(text, "\"{:#x}\"]", self.show(walk, registers.rip));
        text
    }

    /// Returns the line of a walk.
    pub(super) fn walk(&mut self, number: u32, workload: &str, walk: &Walk) -> String {
        let (situation, call) = (&walk.situation, &walk.call);
        let mut line = format!(
            "{{\"t\":\"walk\",\"n\":{number},\"situation\":{},\"variant\":{},",
            string(situation.name),
            string(call.variant)
        );
        if !workload.is_empty() {
            let _ = write!(line, "\"workload\":{},", string(workload));
        }
        let _ = write!(
            line,
            "\"relation\":\"{}\",\"walker\":\"{}\",\"thread\":{},",
            if situation.is_own { "self" } else { "other" },
            if situation.is_managed_walker { "managed" } else { "native" },
            walk.target
        );
        self.call(walk, &mut line);
        self.state(walk, &mut line);
        self.stack(walk, &mut line);
        self.result(walk, &mut line);
        line.push_str("\"replayable\":true}\n");
        line
    }

    fn call(&mut self, walk: &Walk, line: &mut String) {
        let call = &walk.call;
        let thread = match call.thread {
            Thread::Null => "null",
            Thread::Own => "own",
            Thread::Other => "other",
        };
        let size = if call.seed.is_some() { CONTEXT_SIZE } else { 0 };
        let _ = write!(
            line,
            "\"call\":{{\"thread\":\"{thread}\",\"flags\":\"{:#x}\",\"context_size\":{size},\"seed\":",
            call.flags
        );
        match &call.seed {
            Some(seed) => {
                let registers = self.registers(walk, &seed.registers);
                let _ = write!(
                    line,
                    "{{\"made\":{},\"registers\":{registers},\"context_flags\":\"{SEED_FLAGS:#x}\"}}",
                    string(seed.made)
                );
            }
            None => line.push_str("null"),
        }
        if let Some(stop) = call.stop_at {
            let _ = write!(line, ",\"policy\":{{\"stop_at\":{stop},\"returns\":\"0x1\"}}");
        }
        line.push_str("},");
    }

    fn state(&mut self, walk: &Walk, line: &mut String) {
        let is_cooperative = walk.chain.is_cooperative || walk.state == State::Cooperative;
        let mode = if is_cooperative { "coop" } else { "preemptive" };
        let _ = write!(line, "\"state\":{{\"mode\":\"{mode}\"");
        if walk.situation.is_suspended_by_profiler {
            line.push_str(",\"runtime_suspended_by_profiler\":true");
        }
        line.push_str(match walk.state {
            State::Usual => "",
            State::Cooperative => ",\"inferred\":[\"mode\"]",
            State::NotStarted => ",\"ee_started\":false,\"inferred\":[\"ee_started\"]",
            State::ForbidsSuspension => {
                ",\"forbid_suspend\":true,\"inferred\":[\"forbid_suspend\"]"
            }
            State::SecondPass => {
                ",\"exception\":{\"second_pass_native\":true},\
                 \"inferred\":[\"exception.second_pass_native\"]"
            }
        });
        append_hidden(self.hidden, line);
        line.push_str("},\"frames\":[");
        for (index, frame) in walk.chain.frames.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (at, kind) = (frame.at, frame.kind.name);
            let _ = write!(line, "{comma}{{\"at\":\"{at:#x}\",\"kind\":\"{kind}\"}}");
        }
        line.push_str("],");
    }

    fn stack(&mut self, walk: &Walk, line: &mut String) {
        let low = walk.words.keys().next().copied().unwrap_or(walk.stack.base);
        let _ = write!(
            line,
            "\"stack\":{{\"low\":\"{low:#x}\",\"base\":\"{:#x}\",\"limit\":\"{:#x}\",\"parts\":[",
            walk.stack.base, walk.stack.limit
        );
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
        for (index, (address, bytes)) in parts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(line, "{comma}[\"{address:#x}\",\"{}\"]", base64(bytes));
        }
        line.push_str("]},");
    }

    fn result(&mut self, walk: &Walk, line: &mut String) {
        let HResult(result) = walk.answer.result;
        let _ = write!(line, "\"result\":{{\"hr\":\"{result:#x}\",\"callbacks\":[");
        for (index, report) in walk.answer.reports.iter().enumerate() {
            line.push_str(if index > 0 { "," } else { "" });
            self.report(walk, report, line);
        }
        line.push(']');
        if walk.answer.count > walk.answer.reports.len() {
            let _ = write!(line, ",\"callback_count\":{}", walk.answer.count);
        }
        line.push_str("},");
    }

    fn report(&mut self, walk: &Walk, report: &Report, line: &mut String) {
        let function = report.function.and_then(|function| (self.function)(function.0));
        let function = function.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let ip = self.show(walk, report.ip);
        let _ = write!(
            line,
            "{{\"function\":{function},\"ip\":\"{ip:#x}\",\"frame_info\":{},\"context_size\":{}",
            report.has_frame_info, report.context_size
        );
        if let Some((registers, flags)) = &report.context {
            let registers = self.registers(walk, registers);
            let _ = write!(line, ",\"registers\":{registers},\"context_flags\":\"{flags:#x}\"");
        }
        if report.function.is_none()
            && let Some(native) = self.met.native(report.ip)
        {
            let _ = write!(line, ",\"native\":{}", string(&native));
        }
        line.push('}');
    }
}
