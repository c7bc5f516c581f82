//! The tables of a module.

use super::names::{FieldNames, MethodNames, TypeNames, file_name, split};
use clr_metadata::{Coded, method_signature};
use std::collections::BTreeMap;

/// A metadata token: a table in the highest byte, a row in the others.
pub type MetadataToken = u32;

/// Token of the module itself.
const MODULE: u32 = 0x0000_0001;
const TYPE_REF: u32 = 0x0100_0000;
const TYPE_DEF: u32 = 0x0200_0000;
const FIELD_DEF: u32 = 0x0400_0000;
/// A nil token of methods.
pub(super) const METHOD_DEF: u32 = 0x0600_0000;
const ASSEMBLY: u32 = 0x2000_0001;
const ASSEMBLY_REF: u32 = 0x2300_0000;
const GENERIC_PARAMETER: u32 = 0x2A00_0000;

/// `tdPublic | tdBeforeFieldInit`, of a class in C# without words.
const PUBLIC_CLASS: u32 = 0x10_0001;
/// The same of a nested one: `tdNestedPublic | tdBeforeFieldInit`.
const NESTED_PUBLIC_CLASS: u32 = 0x10_0002;
/// `mdPublic | mdStatic | mdHideBySig`.
const PUBLIC_STATIC: u32 = 0x96;
/// `mdPublic | mdHideBySig | mdSpecialName | mdRTSpecialName`.
const CONSTRUCTOR: u32 = 0x1886;
/// `mdPrivate | mdStatic | mdHideBySig | mdSpecialName | mdRTSpecialName`.
const CLASS_CONSTRUCTOR: u32 = 0x1891;

/// A module, which is the manifest module of an assembly of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// `ModuleID`.
    pub id: u64,
    /// `AssemblyID`.
    pub assembly: u64,
    /// Path of the file.
    pub path: String,
    /// Simple name of the assembly.
    pub assembly_name: String,
    assembly_refs: Vec<String>,
    types: Vec<TypeDef>,
    methods: Vec<MethodDef>,
    type_refs: Vec<TypeRef>,
    parameters: Vec<GenericParameter>,
    attributes: Vec<(MetadataToken, String)>,
}

/// A row of the table TypeDef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDef {
    /// `ClassID`.
    pub class: u64,
    /// Token.
    pub token: MetadataToken,
    /// Namespace; empty for none, and for nested types.
    pub namespace: String,
    /// Name, with the number of type parameters: ``List`1``.
    pub name: String,
    /// Token of the enclosing type of a nested one.
    pub enclosing: Option<MetadataToken>,
    /// `CorTypeAttr`.
    pub flags: u32,
    /// Token of the base type; nil for none.
    pub extends: MetadataToken,
    /// Fields, in the order of their tokens.
    pub fields: Vec<FieldNames>,
    /// The names of the type and of those around it as texts write them: `Acme.Web.Handler.Inner`.
    pub(super) path: String,
}

/// A row of the table MethodDef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodDef {
    /// Token.
    pub token: MetadataToken,
    /// Token of the type.
    pub owner: MetadataToken,
    /// Name without the type.
    pub name: String,
    /// `CorMethodAttr`.
    pub flags: u32,
    /// Signature blob.
    pub signature: Vec<u8>,
}

/// A row of the table TypeRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRef {
    /// Token.
    pub token: MetadataToken,
    /// Token of the assembly.
    pub scope: MetadataToken,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A row of the table GenericParam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericParameter {
    /// Token.
    pub token: MetadataToken,
    /// Token of the type or method.
    pub owner: MetadataToken,
    /// Number among the owner's parameters, from 0.
    pub number: u32,
    /// Name.
    pub name: String,
}

impl Module {
    pub(super) fn new(
        (id, assembly): (u64, u64),
        path: &str,
        assembly_name: &str,
        core_library: Option<&str>,
    ) -> Self {
        let object = core_library.map(|_| TypeRef {
            token: TYPE_REF | 1,
            scope: ASSEMBLY_REF | 1,
            namespace: "System".to_owned(),
            name: "Object".to_owned(),
        });
        Self {
            id,
            assembly,
            path: path.to_owned(),
            assembly_name: assembly_name.to_owned(),
            assembly_refs: core_library.map(str::to_owned).into_iter().collect(),
            types: Vec::new(),
            methods: Vec::new(),
            type_refs: object.into_iter().collect(),
            parameters: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Returns the name of the file without its folder: the module's own name.
    pub fn name(&self) -> &str {
        file_name(&self.path)
    }

    /// Returns the token of the module itself.
    pub const fn token(&self) -> MetadataToken {
        MODULE
    }

    /// Returns the token of the assembly itself.
    pub const fn assembly_token(&self) -> MetadataToken {
        ASSEMBLY
    }

    /// Returns the names of the assemblies that this one refers to, with their tokens.
    pub fn assembly_refs(&self) -> impl Iterator<Item = (MetadataToken, &str)> {
        (ASSEMBLY_REF + 1..).zip(self.assembly_refs.iter().map(String::as_str))
    }

    /// Returns the types in the order of their tokens; the first one has the global functions.
    pub fn types(&self) -> &[TypeDef] {
        &self.types
    }

    /// Returns the fields in the order of their tokens, with the tokens of their types.
    pub fn fields(&self) -> impl Iterator<Item = (MetadataToken, MetadataToken, &FieldNames)> {
        let of = |one: &'_ TypeDef| one.fields.len();
        let owners = self.types.iter().flat_map(move |one| std::iter::repeat_n(one.token, of(one)));
        let fields = self.types.iter().flat_map(|one| &one.fields);
        (FIELD_DEF + 1..).zip(owners).zip(fields).map(|((token, owner), one)| (token, owner, one))
    }

    /// Returns the methods in the order of their tokens.
    pub fn methods(&self) -> &[MethodDef] {
        &self.methods
    }

    /// Returns the references to types of other modules in the order of their tokens.
    pub fn type_refs(&self) -> &[TypeRef] {
        &self.type_refs
    }

    /// Returns all type parameters in the order of their tokens.
    pub fn generic_parameters(&self) -> &[GenericParameter] {
        &self.parameters
    }

    /// Returns the type parameters of a type or method.
    pub fn parameters_of(&self, owner: MetadataToken) -> impl Iterator<Item = &GenericParameter> {
        self.parameters.iter().filter(move |parameter| parameter.owner == owner)
    }

    /// Returns all custom attributes: tokens of the items, and full names of the classes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (MetadataToken, &str)> {
        self.attributes.iter().map(|(owner, class)| (*owner, class.as_str()))
    }

    /// Returns the full names of the classes of an item's custom attributes.
    pub fn attributes_of(&self, owner: MetadataToken) -> impl Iterator<Item = &str> {
        let own = self.attributes.iter().filter(move |(of, _)| *of == owner);
        own.map(|(_, name)| name.as_str())
    }

    /// Adds a type with its methods, but without its nested types. Returns its index.
    pub(super) fn add_type(
        &mut self,
        class: u64,
        path: String,
        names: &TypeNames,
        enclosing: Option<&TypeDef>,
    ) -> usize {
        let token = TYPE_DEF | (self.types.len() as u32 + 1);
        let (namespace, name) = match enclosing {
            Some(_) => ("", names.name.as_str()),
            None => split(&names.name),
        };
        let arity = match names.parameters.len() {
            0 => String::new(),
            arity => format!("`{arity}"),
        };
        let is_root = path.is_empty() || path == "System.Object";
        let object = match self.type_refs.first() {
            Some(object) => object.token,
            // The core library's own, which follows the type of global functions.
            None => TYPE_DEF | 2,
        };
        self.types.push(TypeDef {
            class,
            token,
            namespace: namespace.to_owned(),
            name: format!("{name}{arity}"),
            enclosing: enclosing.map(|outer| outer.token),
            flags: match enclosing {
                _ if path.is_empty() => 0,
                Some(_) => NESTED_PUBLIC_CLASS,
                None => PUBLIC_CLASS,
            },
            extends: if is_root { TYPE_REF } else { object },
            fields: names.fields.clone(),
            path,
        });
        self.add_parameters(token, &names.parameters);
        self.add_attributes(token, &names.attributes);
        for method in &names.methods {
            self.add_method(token, method);
        }
        self.types.len() - 1
    }

    /// Adds a method to a type. Returns its token.
    pub(super) fn add_method(
        &mut self,
        owner: MetadataToken,
        names: &MethodNames,
    ) -> MetadataToken {
        let row = self.methods.len() as u32;
        let token = METHOD_DEF | (row + 1);
        let (flags, has_this) = match names.name.as_str() {
            ".ctor" => (CONSTRUCTOR, true),
            ".cctor" => (CLASS_CONSTRUCTOR, false),
            _ => (PUBLIC_STATIC, false),
        };
        let signature = method_signature(has_this, names.parameters.len() as u32);
        let name = names.name.clone();
        self.methods.push(MethodDef { token, owner, name, flags, signature });
        self.add_parameters(token, &names.parameters);
        self.add_attributes(token, &names.attributes);
        token
    }

    /// Numbers methods by their types, and type parameters by their owners.
    pub(super) fn number(&mut self) {
        self.methods.sort_by_key(|method| method.owner);
        let mut tokens = BTreeMap::new();
        for (row, method) in (1..).zip(&mut self.methods) {
            tokens.insert(method.token, METHOD_DEF | row);
            method.token = METHOD_DEF | row;
        }
        let numbered = |token: MetadataToken| tokens.get(&token).copied().unwrap_or(token);
        for parameter in &mut self.parameters {
            parameter.owner = numbered(parameter.owner);
        }
        self.parameters.sort_by_key(|parameter| Coded::TypeOrMethodDef.encode(parameter.owner));
        for (row, parameter) in (1..).zip(&mut self.parameters) {
            parameter.token = GENERIC_PARAMETER | row;
        }
        for (owner, _) in &mut self.attributes {
            *owner = numbered(*owner);
        }
    }

    fn add_parameters(&mut self, owner: MetadataToken, names: &[String]) {
        for (number, name) in (0..).zip(names) {
            let token = GENERIC_PARAMETER | (self.parameters.len() as u32 + 1);
            self.parameters.push(GenericParameter { token, owner, number, name: name.clone() });
        }
    }

    fn add_attributes(&mut self, owner: MetadataToken, names: &[String]) {
        self.attributes.extend(names.iter().map(|name| (owner, name.clone())));
    }
}
