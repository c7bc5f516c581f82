//! Unwind data in words.

use crate::render::code::{Code, Link};
use crate::render::console::{BAD, DIM};
use crate::render::version3;
use clr_unwind::win64::{
    Operation, UNW_FLAG_CHAININFO, UNW_FLAG_EHANDLER, UNW_FLAG_LARGE, UNW_FLAG_UHANDLER,
    UnwindInfo, UnwindInfoV3,
};
use clr_unwind::{CodeRegion, Gpr, RuntimeFunction, Trust, UnwindError};
use serde::{Serialize, Serializer};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// A number that is written in hex; in JSON as a string, because not every reader has 64-bit
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex(u128);

impl Hex {
    /// Returns the number, if it is an address.
    pub(crate) const fn address(self) -> u64 {
        self.0 as u64
    }
}

impl<T: Into<u128>> From<T> for Hex {
    fn from(number: T) -> Self {
        Self(number.into())
    }
}

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:#x}", self.0))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "pages")]
impl schemars::JsonSchema for Hex {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hex".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^0x[0-9a-f]+$" })
    }
}

/// A function entry with its unwind data.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Function {
    #[serde(flatten)]
    entry: Entry,
    /// The target of an indirect entry, to which all other fields belong.
    #[serde(skip_serializing_if = "Option::is_none")]
    stands_for: Option<Entry>,
    #[serde(flatten)]
    info: Option<Info>,
    /// The error of the entry or its unwind data.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Offset of rip from the begin in bytes, if the codes up to there are marked.
    #[serde(skip)]
    marked: Option<u32>,
}

/// A range of code and the place of its unwind data.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Entry {
    /// RVA of the first byte.
    begin: Hex,
    /// RVA after the last byte.
    end: Hex,
    /// Name of the function, with the offset in bytes from its start.
    name: String,
    /// RVA of the UNWIND_INFO.
    unwind_info: Hex,
}

/// An UNWIND_INFO.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Info {
    version: u8,
    flags: Vec<&'static str>,
    /// Size of the prologue in bytes.
    prologue_size: u16,
    frame_register: Option<&'static str>,
    /// The frame register's distance from rsp, in bytes.
    frame_offset: u32,
    /// Unwind codes in table order: the last operation of the prologue first.
    codes: Vec<Line>,
    epilogs: Option<Epilogs>,
    /// The epilogues that version 3 describes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    epilogues: Vec<version3::Epilogue>,
    handler: Option<Handler>,
    parent: Option<Entry>,
}

/// An unwind code.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Line {
    /// Bytes from the function's begin to the end of the instruction; in version 3 to its start.
    pub(crate) offset: u16,
    /// The operation of the prologue, in words.
    pub(crate) text: String,
}

/// The epilogues that a function of version 2 lists.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Epilogs {
    /// Size of each epilogue in bytes.
    size: u8,
    /// RVAs of the epilogues.
    starts: Vec<Hex>,
}

/// A language handler.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Handler {
    rva: Hex,
    /// Name of the function, if it is known.
    name: Option<String>,
    /// RVA of the handler's data.
    data: Hex,
}

impl Handler {
    /// Creates the description of a handler of code in `region`.
    pub(crate) fn new<'a>(
        code: &Code<'_, 'a>,
        region: &CodeRegion<'a>,
        handler: clr_unwind::Handler,
    ) -> Self {
        let location = code.locate(region, handler.rva);
        Self {
            rva: handler.rva.into(),
            name: location.is_known().then(|| location.to_string()),
            data: handler.data_rva.into(),
        }
    }
}

impl Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rva, name, data } = self;
        match name {
            Some(name) => write!(f, "handler {rva} {name}, data at {data}"),
            None => write!(f, "handler {rva}, data at {data}"),
        }
    }
}

impl Entry {
    fn new<'a>(code: &Code<'_, 'a>, region: &CodeRegion<'a>, entry: RuntimeFunction) -> Self {
        Self {
            begin: entry.begin.into(),
            end: entry.end.into(),
            name: code.locate(region, entry.begin).to_string(),
            unwind_info: entry.unwind_info.into(),
        }
    }
}

impl Function {
    /// Creates the description of an entry.
    pub(crate) fn new<'a>(code: &Code<'_, 'a>, region: &CodeRegion<'a>, link: &Link<'a>) -> Self {
        let entry = Entry::new(code, region, link.entry);
        let stands_for =
            (link.function != link.entry).then(|| Entry::new(code, region, link.function));
        let (info, error) = match link.info {
            Ok(info) => {
                let (info, error) = Info::new(code, region, link.function, info);
                (Some(info), error)
            }
            Err(error) => (None, Some(error)),
        };
        Self { entry, stands_for, info, error: error.map(|error| error.to_string()), marked: None }
    }

    /// Marks the codes whose instructions have run if rip is at `rva`.
    pub(crate) fn marked_at(self, rva: u32, link: &Link<'_>) -> Self {
        Self { marked: Some(rva.wrapping_sub(link.function.begin)), ..self }
    }

    /// Writes the description, each line after `indent`.
    pub(crate) fn write(&self, out: &mut (impl Write + ?Sized), indent: &str) -> io::Result<()> {
        let Entry { begin, end, name, unwind_info } = &self.entry;
        writeln!(out, "{indent}{begin}..{end}  {name}")?;
        let mut unwind_info = unwind_info;
        if let Some(other) = &self.stands_for {
            let Entry { begin, end, name, .. } = other;
            writeln!(out, "{indent}  stands for {begin}..{end} {name}")?;
            unwind_info = &other.unwind_info;
        }
        if let Some(info) = &self.info {
            writeln!(out, "{indent}  unwind info {unwind_info}: {}", info.header())?;
            for code in &info.codes {
                let mark = match self.marked {
                    Some(offset) if info.applies(code, offset) => "*",
                    _ => " ",
                };
                writeln!(out, "{indent}  {mark} +{:#04x}  {}", code.offset, code.text)?;
            }
            info.write_rest(out, indent)?;
        }
        match &self.error {
            Some(error) => writeln!(out, "{indent}  {BAD}error:{BAD:#} {error}"),
            None => Ok(()),
        }
    }
}

impl Info {
    /// Reads the codes up to an error, and returns the error with them.
    fn new<'a>(
        code: &Code<'_, 'a>,
        region: &CodeRegion<'a>,
        function: RuntimeFunction,
        info: UnwindInfo<'a>,
    ) -> (Self, Option<UnwindError>) {
        let mut words = Self {
            version: info.version(),
            flags: flags(info.flags(), info.version()),
            prologue_size: info.prologue_size().into(),
            frame_register: None,
            frame_offset: 0,
            codes: Vec::new(),
            epilogs: None,
            epilogues: Vec::new(),
            handler: None,
            parent: None,
        };
        let error = words.fill(code, region, function, info).err();
        (words, error)
    }

    fn fill<'a>(
        &mut self,
        code: &Code<'_, 'a>,
        region: &CodeRegion<'a>,
        function: RuntimeFunction,
        info: UnwindInfo<'a>,
    ) -> Result<(), UnwindError> {
        match info.version() {
            1 | 2 => self.fill_codes(function, info)?,
            3 => {
                let payload = UnwindInfoV3::read(&info)?;
                self.prologue_size = payload.prologue_size();
                version3::lines(&payload.prologue(), &mut self.codes)?;
                version3::epilogues(&payload, function, &mut self.epilogues)?;
            }
            // Other versions have other layouts.
            version => {
                return Err(UnwindError::UnsupportedVersion { version, rva: info.rva() });
            }
        }
        self.parent = info.parent()?.map(|parent| Entry::new(code, region, parent));
        // The parent takes the place of the handler.
        if self.parent.is_none() {
            self.handler = info.handler()?.map(|handler| Handler::new(code, region, handler));
        }
        Ok(())
    }

    /// Reads the codes of versions 1 and 2.
    fn fill_codes(
        &mut self,
        function: RuntimeFunction,
        info: UnwindInfo<'_>,
    ) -> Result<(), UnwindError> {
        self.frame_register =
            (info.frame_register() != 0).then(|| Gpr::from_number(info.frame_register()).name());
        self.frame_offset = info.frame_offset();
        let epilogs = if info.version() == 2 { info.epilogs() } else { None };
        self.epilogs = epilogs.map(|epilogs| Epilogs {
            size: epilogs.size(),
            starts: epilogs.starts(function.end).map(Hex::from).collect(),
        });
        let mut has_epilogs = self.epilogs.is_some();
        for entry in info.codes() {
            let entry = entry?;
            has_epilogs &= entry.operation == Operation::Epilog;
            if !has_epilogs {
                let text = operation(entry.operation, &info);
                self.codes.push(Line { offset: entry.offset.into(), text });
            }
        }
        Ok(())
    }

    /// Returns true if the instruction of a code has run at `offset` bytes from the function's begin.
    fn applies(&self, code: &Line, offset: u32) -> bool {
        let own = u32::from(code.offset);
        match self.version {
            3 => offset >= u32::from(self.prologue_size) || offset > own,
            _ => offset >= own,
        }
    }

    fn header(&self) -> String {
        let flags =
            if self.flags.is_empty() { "no flags".to_owned() } else { self.flags.join(" + ") };
        let frame = match self.frame_register {
            Some(register) => {
                format!(", frame register {register} = rsp + {:#x}", self.frame_offset)
            }
            // In version 3 it is an operation that names the frame register.
            None if self.version == 3 => String::new(),
            None => ", no frame register".to_owned(),
        };
        format!("version {}, {flags}, prologue size {}{frame}", self.version, self.prologue_size)
    }

    fn write_rest(&self, out: &mut (impl Write + ?Sized), indent: &str) -> io::Result<()> {
        if let Some(Epilogs { size, starts }) = &self.epilogs {
            let starts: Vec<_> = starts.iter().map(Hex::to_string).collect();
            let starts = if starts.is_empty() { "none".to_owned() } else { starts.join(", ") };
            writeln!(out, "{indent}  epilogues of {size} bytes at: {starts}")?;
        }
        for epilogue in &self.epilogues {
            epilogue.write(out, indent)?;
        }
        if let Some(handler) = &self.handler {
            writeln!(out, "{indent}  {handler}")?;
        }
        if let Some(Entry { begin, end, name, unwind_info }) = &self.parent {
            writeln!(
                out,
                "{indent}  chained to {begin}..{end} {name} {DIM}(unwind info {unwind_info}){DIM:#}"
            )?;
        }
        Ok(())
    }
}

/// Returns the words for the way in which a frame's caller was found.
pub(crate) const fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Body => "body",
        Trust::Prologue => "prologue",
        Trust::EpilogueCodes => "epilogue codes",
        Trust::EpilogueInstructions => "epilogue instructions",
        Trust::Cfi => "CFI",
        Trust::Compact => "compact unwind information",
        Trust::FollowedCode => "followed code",
        Trust::CompactAssumed => "compact unwind information, assumed",
        Trust::SignalFrame => "signal frame",
        Trust::KnownCode => "known code",
        Trust::Leaf => "leaf",
        Trust::Stub => "stub",
        Trust::StackTop => "stack top",
        Trust::ReturnInstruction => "return instruction",
        Trust::FramePointer => "frame pointer",
    }
}

/// Returns true if an epilogue is executed, so that the unwind codes do not describe the stack.
pub(crate) const fn is_epilogue(trust: Option<Trust>) -> bool {
    matches!(trust, Some(Trust::EpilogueCodes | Trust::EpilogueInstructions))
}

/// Returns the heading of unwind data, which depends on whether its codes are marked.
pub(crate) const fn title(trust: Option<Trust>) -> &'static str {
    if is_epilogue(trust) {
        "Unwind data (here the rest of the epilogue decides)"
    } else {
        "Unwind data (* applies here)"
    }
}

fn flags(bits: u8, version: u8) -> Vec<&'static str> {
    let names = [
        (UNW_FLAG_EHANDLER, "exception handler"),
        (UNW_FLAG_UHANDLER, "termination handler"),
        (UNW_FLAG_CHAININFO, "chained"),
        (UNW_FLAG_LARGE, if version == 3 { "large" } else { "flag 8" }),
        (16, "flag 16"),
    ];
    names.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| name).collect()
}

/// Returns the words for an operation of the prologue.
pub(crate) fn operation(operation: Operation, info: &UnwindInfo<'_>) -> String {
    let frame = Gpr::from_number(info.frame_register()).name();
    match operation {
        Operation::PushNonvol(register) => format!("push {}", register.name()),
        Operation::Alloc(bytes) => format!("allocate {bytes:#x} bytes"),
        Operation::SetFpreg if info.frame_register() == 0 => {
            "set the frame register, but there is none".to_owned()
        }
        Operation::SetFpreg => format!("set {frame} to rsp + {:#x}", info.frame_offset()),
        Operation::SetFpregLarge(offset) => format!("set {frame} to rsp + {offset:#x}"),
        Operation::SaveNonvol(register, at) => {
            format!("save {} at frame base + {at:#x}", register.name())
        }
        Operation::SaveXmm128(n, at) => format!("save xmm{n} at frame base + {at:#x}"),
        Operation::PushMachframe(false) => "machine frame pushed by the processor".to_owned(),
        Operation::PushMachframe(true) => {
            "machine frame and error code pushed by the processor".to_owned()
        }
        Operation::Epilog => "EPILOG, without effect here".to_owned(),
        Operation::Spare => "operation 7, without effect".to_owned(),
    }
}
