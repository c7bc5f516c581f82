//! The images of modules: their metadata, the IL of their methods, and where they lie.

use super::names::{FieldKind, FieldNames};
use super::tables::{Module, TypeDef};
use super::{Metadata, split};
use clr_metadata as md;
use clr_metadata::{Format, Il, Image, Layout, Table, Token, method_signature, token};
use std::collections::{BTreeMap, BTreeSet};

/// The names of the methods that each method calls, in order.
pub type MethodCalls = BTreeMap<String, Vec<String>>;

/// First base address of a module (VA). Systems and sanitizers place nothing of a process there by chance.
const BASES: u64 = 0x7E90_0000_0000;
/// The number of places for images, and the distance between two: what Windows reserves at once.
const PLACES: u64 = 0x10_0000;
const PLACE: u64 = 0x1_0000;
/// `IMAGE_FILE_MACHINE_AMD64`, and what precompiled images for Linux have in its place.
const AMD64: u16 = 0x8664;
const AMD64_LINUX: u16 = 0xFD1D;
/// `CALG_SHA1`, of each assembly that compilers make (observed).
const SHA1: u32 = 0x8004;
/// The public key token of the core library of .NET.
const CORE_TOKEN: [u8; 8] = [0x7C, 0xEC, 0x85, 0xD7, 0xBE, 0xA7, 0x79, 0x8E];
/// The value of a custom attribute without arguments.
const NO_ARGUMENTS: [u8; 4] = [1, 0, 0, 0];
/// `fdPrivate`, `fdStatic`, and the first byte of a field's signature.
const PRIVATE: u32 = 1;
const STATIC: u32 = 0x10;
const FIELD: u8 = 6;
/// ELEMENT_TYPE_I4, I8, STRING, OBJECT, CLASS, GENERICINST, and the first byte of a MethodSpec.
const INT: u8 = 8;
const LONG: u8 = 0x0A;
const STRING: u8 = 0x0E;
const OBJECT: u8 = 0x1C;
const CLASS: u8 = 0x12;
const INSTANCE: u8 = 0x15;
const INSTANTIATION: u8 = 0x0A;

/// The image of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleImage {
    /// Load address (VA). The owner of the process's memory maps the bytes there.
    pub base: u64,
    /// The metadata, as the image has it.
    pub metadata: md::Metadata,
    /// True if the image lies as in its file.
    pub is_flat: bool,
    /// `IMAGE_FILE_MACHINE` of the headers.
    pub machine: u16,
    image: Image,
}

impl ModuleImage {
    /// Returns the bytes from the base on.
    pub fn bytes(&self) -> Vec<u8> {
        self.image.bytes(self.layout())
    }

    /// Returns RVA and size of the metadata root.
    pub const fn metadata_root(&self) -> (u32, u32) {
        self.image.metadata()
    }

    /// Returns the address of an RVA.
    pub fn address(&self, rva: u32) -> u64 {
        self.base + u64::from(self.image.offset(rva, self.layout()))
    }

    /// Returns the body of a method, given its RVA.
    pub fn body(&self, rva: u32) -> Option<&[u8]> {
        let bytes = self.image.at(rva);
        bytes.get(..md::body_size(bytes)?)
    }

    const fn layout(&self) -> Layout {
        if self.is_flat { Layout::Flat } else { Layout::Loaded }
    }
}

impl Metadata {
    /// Returns the image of a module by its `ModuleID`. All images are made when one is asked for.
    pub fn image(&self, id: u64) -> Option<&ModuleImage> {
        let index = self.modules.iter().position(|module| module.id == id)?;
        self.images.get_or_init(|| self.make_images()).get(index)
    }

    fn make_images(&self) -> Vec<ModuleImage> {
        let mut taken = BTreeSet::new();
        let make = |module| {
            let is_core = self.is_core(module);
            let mut references = References::new(self, module);
            let bodies = references.fill();
            let mut metadata = references.to;
            let machine = if self.has_flat_modules { AMD64_LINUX } else { AMD64 };
            let format = if is_core { Format::Pe32Plus { machine } } else { Format::Pe32 };
            let machine = format.machine();
            let is_library = module.path.strip_suffix(".exe").is_none();
            let image = Image::new(&mut metadata, &bodies, format, is_library);
            // As a reader of the file finds it: with its heaps filled up.
            let (rva, size) = image.metadata();
            let root = image.at(rva).get(..size as usize).unwrap_or_default();
            let metadata = md::read(root).unwrap_or(metadata);
            // Precompiled code has to lie at its RVAs.
            let is_flat = self.has_flat_modules && !is_core;
            let mut made = ModuleImage { base: 0, metadata, is_flat, machine, image };
            let bytes = made.bytes();
            made.base = place(&bytes, &mut taken);
            made
        };
        self.modules.iter().map(make).collect()
    }

    fn is_core(&self, module: &Module) -> bool {
        module.path == self.core_library
    }

    /// Returns true if the module with this `ModuleID` is the core library, which is precompiled.
    pub fn is_precompiled(&self, id: u64) -> bool {
        self.module(id).is_some_and(|module| self.is_core(module))
    }
}

/// Returns the base of an image: it depends on nothing but the bytes, so that processes with the same module can share it, and
/// on the images before it in the process.
fn place(bytes: &[u8], taken: &mut BTreeSet<u64>) -> u64 {
    // FNV-1a.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    let hash = bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix);
    let size = (bytes.len() as u64).div_ceil(PLACE);
    let mut first = hash % PLACES;
    while (first..first + size).any(|place| taken.contains(&place)) {
        first = (first + 1) % PLACES;
    }
    taken.extend(first..first + size);
    BASES + first * PLACE
}

/// The metadata of a module that is being made, with the references that it has so far.
struct References<'m> {
    all: &'m Metadata,
    of: &'m Module,
    to: md::Metadata,
    assemblies: BTreeMap<String, Token>,
    types: BTreeMap<(String, String), Token>,
    members: BTreeMap<String, Token>,
}

impl<'m> References<'m> {
    fn new(all: &'m Metadata, of: &'m Module) -> Self {
        Self {
            all,
            of,
            to: md::Metadata::default(),
            assemblies: BTreeMap::new(),
            types: BTreeMap::new(),
            members: BTreeMap::new(),
        }
    }

    /// Fills the tables. Returns the bodies of the methods.
    fn fill(&mut self) -> Vec<Option<Vec<u8>>> {
        self.manifest();
        for one in self.of.types() {
            self.define(one);
        }
        for parameter in self.of.generic_parameters() {
            let row = self.to.add(Table::GenericParam);
            self.to.set(row, md::GenericParam::Number, parameter.number);
            self.to.set(row, md::GenericParam::Owner, parameter.owner);
            self.to.set_string(row, md::GenericParam::Name, &parameter.name);
        }
        for (owner, class) in self.of.attributes() {
            let constructor = self.member(&format!("{class}..ctor"));
            let row = self.to.add(Table::CustomAttribute);
            self.to.set(row, md::CustomAttribute::Parent, owner);
            self.to.set(row, md::CustomAttribute::Type, constructor);
            self.to.set_blob(row, md::CustomAttribute::Value, &NO_ARGUMENTS);
        }
        self.to.sort();
        let names: Vec<_> = self.of.methods().iter().map(|one| self.full_name(one.token)).collect();
        names.iter().map(|name| Some(self.body(name))).collect()
    }

    fn manifest(&mut self) {
        let module = self.to.add(Table::Module);
        self.to.set_string(module, md::Module::Name, self.of.name());
        // A GUID of version 4 by its bits, different for each module.
        let mut mvid = [0; 16];
        for (to, byte) in mvid.iter_mut().zip(self.of.id.to_le_bytes()) {
            *to = byte;
        }
        (mvid[7], mvid[8]) = (0x40, 0x80);
        let mvid = self.to.guids.add(mvid);
        self.to.set(module, md::Module::Mvid, mvid);
        let assembly = self.to.add(Table::Assembly);
        self.to.set(assembly, md::Assembly::HashAlgId, SHA1);
        self.to.set_string(assembly, md::Assembly::Name, &self.of.assembly_name);
        if !self.all.is_core(self.of) {
            self.type_ref("System.Object");
        }
    }

    fn define(&mut self, one: &TypeDef) {
        let row = self.to.add(Table::TypeDef);
        self.to.set(row, md::TypeDef::Flags, one.flags);
        self.to.set_string(row, md::TypeDef::Name, &one.name);
        self.to.set_string(row, md::TypeDef::Namespace, &one.namespace);
        if md::row_of(one.extends) != 0 {
            self.to.set(row, md::TypeDef::Extends, one.extends);
        }
        self.to.begin_list(row, Table::Field);
        for field in &one.fields {
            self.define_field(row, field);
        }
        self.to.begin_list(row, Table::Method);
        if let Some(outer) = one.enclosing {
            let nested = self.to.add(Table::NestedClass);
            self.to.set(nested, md::NestedClass::NestedClass, md::row_of(row));
            self.to.set(nested, md::NestedClass::EnclosingClass, md::row_of(outer));
        }
        for method in self.of.methods().iter().filter(|method| method.owner == one.token) {
            let Some(row) = self.to.add_child(row, Table::Method) else { continue };
            self.to.set(row, md::Method::Flags, method.flags);
            self.to.set_string(row, md::Method::Name, &method.name);
            self.to.set_blob(row, md::Method::Signature, &method.signature);
            self.to.begin_list(row, Table::Param);
        }
    }

    fn define_field(&mut self, of: Token, field: &FieldNames) {
        let Some(row) = self.to.add_child(of, Table::Field) else { return };
        let kind = match field.kind {
            FieldKind::Int => INT,
            FieldKind::Long => LONG,
            FieldKind::String => STRING,
            FieldKind::Object => OBJECT,
        };
        let flags = if field.is_static { PRIVATE | STATIC } else { PRIVATE };
        self.to.set(row, md::Field::Flags, flags);
        self.to.set_string(row, md::Field::Name, &field.name);
        self.to.set_blob(row, md::Field::Signature, &[FIELD, kind]);
    }

    /// Returns a method's name with that of its type, as texts write it.
    fn full_name(&self, method: Token) -> String {
        let Some(found) = self.of.methods().iter().find(|one| one.token == method) else {
            return String::new();
        };
        let path = self.of.types().iter().find(|one| one.token == found.owner);
        match path.map(|one| one.path.as_str()) {
            None | Some("") => found.name.clone(),
            Some(path) => format!("{path}.{}", found.name),
        }
    }

    /// Returns the IL of a method: the calls of others that it makes.
    fn body(&mut self, name: &str) -> Vec<u8> {
        let all = self.all;
        let calls = all.calls.get(name).map_or(&[][..], Vec::as_slice);
        calls.iter().fold(Il::default(), |il, callee| il.call(self.callee(callee))).end()
    }

    /// Returns the token by which a method of any module is called: of an instantiation, for a generic one.
    fn callee(&mut self, name: &str) -> Token {
        let method = self.member(name);
        let arity = self.declared(name).map_or(0, |(module, _, found)| {
            found.map_or(0, |found| module.parameters_of(found).count())
        });
        if arity == 0 {
            return method;
        }
        let row = self.to.add(Table::MethodSpec);
        let arguments = vec![OBJECT; arity];
        let blob = [&[INSTANTIATION], &md::compress(arity as u32)[..], &arguments].concat();
        self.to.set(row, md::MethodSpec::Method, method);
        self.to.set_blob(row, md::MethodSpec::Instantiation, &blob);
        row
    }

    /// Returns the module, the type and the method that a name names, as far as they exist.
    fn declared(&self, name: &str) -> Option<(&'m Module, &'m TypeDef, Option<Token>)> {
        let (path, method) = split(name);
        self.all.modules.iter().find_map(|module| {
            let one = module.types().iter().find(|one| one.path == path)?;
            let own = |known: &&super::MethodDef| known.owner == one.token && known.name == method;
            Some((module, one, module.methods().iter().find(own).map(|known| known.token)))
        })
    }

    /// Returns the token of a method of any module, by its full name.
    fn member(&mut self, name: &str) -> Token {
        let declared = self.declared(name);
        if let Some((module, one, Some(method))) = declared
            && module.id == self.of.id
            && module.parameters_of(one.token).next().is_none()
        {
            return method;
        }
        if let Some(known) = self.members.get(name) {
            return *known;
        }
        let (path, method) = split(name);
        let found = declared.and_then(|(module, _, method)| {
            let method = method?;
            module.methods().iter().find(|one| one.token == method)
        });
        let has_this = method == ".ctor";
        let signature =
            found.map_or_else(|| method_signature(has_this, 0), |found| found.signature.clone());
        let parent = self.parent_of_member(path);
        let row = self.to.add(Table::MemberRef);
        self.to.set(row, md::MemberRef::Class, parent);
        self.to.set_string(row, md::MemberRef::Name, method);
        self.to.set_blob(row, md::MemberRef::Signature, &signature);
        self.members.insert(name.to_owned(), row);
        row
    }

    /// Returns the token of a member's type: of an instantiation, for a generic one.
    fn parent_of_member(&mut self, path: &str) -> Token {
        let declared = self.declared(&format!("{path}."));
        let arity = declared.map_or(0, |(module, one, _)| module.parameters_of(one.token).count());
        let own = declared.filter(|(module, ..)| module.id == self.of.id);
        let one = own.map_or_else(|| self.type_ref(path), |(_, one, _)| one.token);
        if arity == 0 {
            return one;
        }
        let coded = md::Coded::TypeDefOrRef.encode(one).unwrap_or_default();
        let arguments = vec![OBJECT; arity];
        let arity = md::compress(arity as u32);
        let blob = [&[INSTANCE, CLASS], &md::compress(coded)[..], &arity, &arguments].concat();
        let row = self.to.add(Table::TypeSpec);
        self.to.set_blob(row, md::TypeSpec::Signature, &blob);
        row
    }

    /// Returns the token of a type of another module. One that no module has is the core library's.
    fn type_ref(&mut self, path: &str) -> Token {
        let declared = self.declared(&format!("{path}."));
        let (assembly, scope, namespace, name) = if let Some((module, one, _)) = declared {
            let outer = module.types().iter().find(|outer| Some(outer.token) == one.enclosing);
            let scope = outer.map(|outer| self.type_ref(&outer.path));
            (module.assembly_name.clone(), scope, one.namespace.clone(), one.name.clone())
        } else {
            let (namespace, name) = split(path);
            let core = super::assembly_name(&self.all.core_library).to_owned();
            (core, None, namespace.to_owned(), name.to_owned())
        };
        let key = (assembly.clone(), path.to_owned());
        if let Some(known) = self.types.get(&key) {
            return *known;
        }
        let scope = scope.unwrap_or_else(|| self.assembly_ref(&assembly));
        let row = self.to.add(Table::TypeRef);
        self.to.set(row, md::TypeRef::ResolutionScope, scope);
        self.to.set_string(row, md::TypeRef::Name, &name);
        self.to.set_string(row, md::TypeRef::Namespace, &namespace);
        self.types.insert(key, row);
        row
    }

    fn assembly_ref(&mut self, name: &str) -> Token {
        if name == self.of.assembly_name {
            // What the core library lacks is looked up in itself.
            return token(Table::Module, 1);
        }
        if let Some(known) = self.assemblies.get(name) {
            return *known;
        }
        let row = self.to.add(Table::AssemblyRef);
        self.to.set_string(row, md::AssemblyRef::Name, name);
        if name == super::assembly_name(&self.all.core_library) {
            self.to.set_blob(row, md::AssemblyRef::PublicKeyOrToken, &CORE_TOKEN);
        }
        self.assemblies.insert(name.to_owned(), row);
        row
    }
}
