//! Names of methods: from the runtime's MethodDesc to a row of metadata.

use crate::error::InspectError;
use crate::runtime::Runtime;
use clr_metadata::{Metadata, Method, NestedClass, Table, Token, TypeDef, token};
use clr_unwind::{Memory, Unreadable};
use clr_walker::jitted::contracts::{ContractDescriptor, ContractError, ContractVersion};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::rc::Rc;

/// Classes around a class at most.
const NESTING_LIMIT: usize = 64;
/// Length of a text of the runtime at most.
const TEXT_LIMIT: usize = 4096;
/// Size of an assembly's metadata at most, in bytes. That of System.Private.CoreLib has 3 MB.
const METADATA_LIMIT: u32 = 1 << 28;
/// `mcDynamic`, the kind of a method without metadata, in the low bits of a MethodDesc's flags.
const DYNAMIC: u16 = 7;

/// The name of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodName {
    /// Path of the assembly on the machine of the process; empty of one that was loaded from memory.
    pub module: String,
    /// Token of the method, or 0 of a dynamic method.
    pub token: u32,
    /// The class with its namespace, nested ones after `+`. A dynamic method has none.
    pub class: String,
    /// The method.
    pub name: String,
}

impl Display for MethodName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        if self.class.is_empty() {
            return formatter.write_str(&self.name);
        }
        write!(formatter, "{}.{}", self.class, self.name)
    }
}

/// Where MethodDescs and Modules have their parts.
#[derive(Clone, Copy, Debug)]
struct MethodLayout {
    chunk_index: u32,
    flags: u32,
    token_rest: u32,
    dynamic_name: u32,
    alignment: u64,
    rest_bits: u32,
    chunk_size: u32,
    chunk_table: u32,
    token_range: u32,
    module: u32,
    path: Path,
    assembly: u32,
    image: u32,
    layout: u32,
    base: u32,
    layout_flags: u32,
}

/// Where the path of an assembly is.
#[derive(Clone, Copy, Debug)]
enum Path {
    OfModule(u32),
    /// .NET 8.
    OfImage(u32),
}

impl MethodLayout {
    fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        for name in ["RuntimeTypeSystem", "Loader", "EcmaMetadata"] {
            match descriptor.contract(name)? {
                ContractVersion::Number(1) | ContractVersion::C(1) => {}
                version => return Err(ContractError::ContractVersion { name, version }),
            }
        }
        let field = |type_name, field| descriptor.field(type_name, field);
        let bits = descriptor.global("MethodDescTokenRemainderBitCount")?;
        let missing = ContractError::MissingGlobal { name: "MethodDescTokenRemainderBitCount" };
        Ok(Self {
            chunk_index: field("MethodDesc", "ChunkIndex")?,
            flags: field("MethodDesc", "Flags")?,
            token_rest: field("MethodDesc", "Flags3AndTokenRemainder")?,
            dynamic_name: field("DynamicMethodDesc", "MethodName")?,
            alignment: descriptor.global("MethodDescAlignment")?,
            rest_bits: u32::try_from(bits).ok().filter(|bits| *bits <= 16).ok_or(missing)?,
            chunk_size: field("MethodDescChunk", "!")?,
            chunk_table: field("MethodDescChunk", "MethodTable")?,
            token_range: field("MethodDescChunk", "FlagsAndTokenRange")?,
            module: field("MethodTable", "Module")?,
            path: match field("PEImage", "Path") {
                Ok(offset) => Path::OfImage(offset),
                Err(_) => Path::OfModule(field("Module", "Path")?),
            },
            assembly: field("Module", "PEAssembly")?,
            image: field("PEAssembly", "PEImage")?,
            layout: field("PEImage", "LoadedImageLayout")?,
            base: field("PEImageLayout", "Base")?,
            layout_flags: field("PEImageLayout", "Flags")?,
        })
    }
}

/// The names of methods, with the metadata of the modules that were met.
#[derive(Debug)]
pub struct MethodNames<'m, M: ?Sized> {
    memory: &'m M,
    layout: MethodLayout,
    /// By the address of the runtime's Module (VA).
    modules: BTreeMap<u64, Result<Rc<ModuleNames>, InspectError>>,
}

/// What names need of a module.
#[derive(Debug)]
struct ModuleNames {
    path: String,
    metadata: Metadata,
}

impl<'m, M: Memory + ?Sized> MethodNames<'m, M> {
    /// Creates names without any.
    ///
    /// # Errors
    /// [`InspectError::Contract`] if the runtime does not have the contracts of methods: a build of .NET 9 whose layout is not known.
    pub fn new(memory: &'m M, runtime: &Runtime) -> Result<Self, InspectError> {
        let layout = MethodLayout::new(runtime.descriptor())?;
        Ok(Self { memory, layout, modules: BTreeMap::new() })
    }

    /// Returns the name of the method whose MethodDesc is at `desc` (VA).
    ///
    /// # Errors
    /// [`InspectError`] if the runtime's data, or the metadata, is unknown or contradicts itself.
    pub fn name(&mut self, desc: u64) -> Result<MethodName, InspectError> {
        let layout = self.layout;
        let memory = self.memory;
        let at = |offset: u32| desc.wrapping_add(offset.into());
        if memory.read_u16(at(layout.flags))? & DYNAMIC == DYNAMIC {
            let text = memory.read_u64(at(layout.dynamic_name))?;
            let name = read_text(memory, text)?;
            return Ok(MethodName { module: String::new(), token: 0, class: String::new(), name });
        }
        let mut index = [0];
        memory.read(at(layout.chunk_index), &mut index)?;
        let [index] = index;
        let before = u64::from(layout.chunk_size) + u64::from(index) * layout.alignment;
        let chunk = desc.wrapping_sub(before);
        let range = memory.read_u16(chunk.wrapping_add(layout.token_range.into()))? & 0xFFF;
        let rest = memory.read_u16(at(layout.token_rest))?;
        let rest = u32::from(rest) & ((1 << layout.rest_bits) - 1);
        let row = u32::from(range) << layout.rest_bits | rest;
        let table = memory.read_u64(chunk.wrapping_add(layout.chunk_table.into()))?;
        let module = memory.read_u64(table.wrapping_add(layout.module.into()))?;
        let names = self.module(module)?;
        let (token, metadata) = (token(Table::Method, row), &names.metadata);
        let class = metadata.parent(token).filter(|_| metadata.has(token));
        let class = class.ok_or(InspectError::NoSuchMethod { desc, token })?;
        Ok(MethodName {
            module: names.path.clone(),
            token,
            class: class_name(metadata, class),
            name: metadata.string(token, Method::Name).to_owned(),
        })
    }

    pub(crate) const fn memory(&self) -> &'m M {
        self.memory
    }

    /// Returns the name of the class in this row of the module's metadata that the MethodTable at `table` (VA) is of.
    pub(crate) fn class(&mut self, table: u64, row: u32) -> Result<String, InspectError> {
        let module = self.memory.read_u64(table.wrapping_add(self.layout.module.into()))?;
        let names = self.module(module)?;
        let token = token(Table::TypeDef, row);
        let class = names.metadata.has(token).then(|| class_name(&names.metadata, token));
        class.ok_or(InspectError::NoSuchClass { table, token })
    }

    fn module(&mut self, module: u64) -> Result<Rc<ModuleNames>, InspectError> {
        if let Some(known) = self.modules.get(&module) {
            return known.clone();
        }
        let names = self.read_module(module).map(Rc::new);
        self.modules.insert(module, names.clone());
        names
    }

    fn read_module(&self, module: u64) -> Result<ModuleNames, InspectError> {
        let (memory, layout) = (self.memory, &self.layout);
        let follow = |from: u64, offset: u32| memory.read_u64(from.wrapping_add(offset.into()));
        let image = follow(follow(module, layout.assembly)?, layout.image)?;
        let path = match layout.path {
            Path::OfModule(offset) => follow(module, offset),
            Path::OfImage(offset) => follow(image, offset),
        };
        let path = read_wide_text(memory, path?)?;
        let loaded = follow(image, layout.layout)?;
        let base = follow(loaded, layout.base)?;
        let flags = memory.read_u32(loaded.wrapping_add(layout.layout_flags.into()))?;
        // FLAG_MAPPED of pedecoder.h: sections are at their RVAs.
        let bytes = metadata_of(memory, base, flags & 1 != 0)?;
        let metadata = clr_metadata::read(&bytes);
        let metadata = metadata.map_err(|_| InspectError::NoMetadata { base })?;
        Ok(ModuleNames { path, metadata })
    }
}

/// Returns the bytes of the metadata of an image.
fn metadata_of<M: Memory + ?Sized>(
    memory: &M,
    base: u64,
    is_mapped: bool,
) -> Result<Vec<u8>, InspectError> {
    let none = InspectError::NoMetadata { base };
    let word = |at: u64| memory.read_u32(base.wrapping_add(at));
    let headers = u64::from(word(0x3C)?);
    if word(headers)? != u32::from_le_bytes(*b"PE\0\0") {
        return Err(none);
    }
    let (sections, size) = (word(headers + 4)? >> 16, word(headers + 20)? & 0xFFFF);
    let optional = headers + 24;
    // The data directories begin elsewhere in PE32, which assemblies without native code are.
    let directories = match word(optional)? & 0xFFFF {
        0x20B => optional + 112,
        0x10B => optional + 96,
        _ => return Err(none),
    };
    let place = |rva: u32| {
        if is_mapped {
            return Ok(base.wrapping_add(rva.into()));
        }
        for index in 0..u64::from(sections) {
            let header = optional + u64::from(size) + 40 * index;
            let (start, len, offset) = (word(header + 12)?, word(header + 16)?, word(header + 20)?);
            if let Some(inside) = rva.checked_sub(start).filter(|inside| *inside < len) {
                return Ok(base.wrapping_add(u64::from(offset) + u64::from(inside)));
            }
        }
        Err(none)
    };
    // The directory of the CLI header, and in it that of the metadata.
    let header = place(word(directories + 14 * 8)?)?;
    let (rva, size) = (memory.read_u32(header + 8)?, memory.read_u32(header + 12)?);
    if size > METADATA_LIMIT {
        return Err(none);
    }
    let start = place(rva)?;
    // The last byte first: a size that is wrong allocates nothing.
    memory.read(start.wrapping_add(u64::from(size.max(1)) - 1), &mut [0])?;
    let mut bytes = vec![0; size as usize];
    memory.read(start, &mut bytes)?;
    Ok(bytes)
}

/// Returns the name of a class with its namespace and the classes around it.
fn class_name(metadata: &Metadata, class: Token) -> String {
    let mut names = vec![metadata.string(class, TypeDef::Name)];
    let mut outermost = class;
    while let Some(row) = metadata.find(NestedClass::NestedClass, outermost & 0xFF_FFFF)
        && names.len() < NESTING_LIMIT
    {
        outermost =
            token(Table::TypeDef, metadata.get(row, NestedClass::EnclosingClass) & 0xFF_FFFF);
        names.push(metadata.string(outermost, TypeDef::Name));
    }
    names.reverse();
    let names = names.join("+");
    match metadata.string(outermost, TypeDef::Namespace) {
        "" => names,
        namespace => format!("{namespace}.{names}"),
    }
}

/// Reads a text that ends with a NUL.
fn read_text<M: Memory + ?Sized>(memory: &M, address: u64) -> Result<String, Unreadable> {
    let mut text = Vec::new();
    for at in 0..TEXT_LIMIT as u64 {
        let mut byte = [0];
        memory.read(address.wrapping_add(at), &mut byte)?;
        if byte == [0] {
            break;
        }
        text.extend(byte);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Reads a text of UTF-16 that ends with a NUL; a null pointer is an empty one.
fn read_wide_text<M: Memory + ?Sized>(memory: &M, address: u64) -> Result<String, Unreadable> {
    let mut text = Vec::new();
    for at in 0..TEXT_LIMIT as u64 {
        match if address == 0 { 0 } else { memory.read_u16(address.wrapping_add(2 * at))? } {
            0 => break,
            unit => text.push(unit),
        }
    }
    Ok(String::from_utf16_lossy(&text))
}
