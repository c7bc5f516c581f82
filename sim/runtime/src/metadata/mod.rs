//! Names as profilers see them: the AppDomain, assemblies, modules, types and methods of a process,
//! with their ids and tokens.
//!
//! Without further words a method `Prog.Main` is in the type `Prog` of the module `App.dll`, whose
//! assembly is `App`; the types of `System` are in the core library. [`ModuleNames`] say otherwise.
//! Ids and tokens depend on nothing but the names and their order.
//!
//! Fields are private, as in C# without words.
//!
//! Of a method's signature nothing is known: each is `public static void`, without parameters, and
//! each constructor `public void`.

mod image;
mod names;
mod tables;
#[cfg(test)]
mod tests;

pub use image::{MethodCalls, ModuleImage};
pub use names::{FieldKind, FieldNames, MethodNames, ModuleNames, TypeNames};
pub use tables::{GenericParameter, MetadataToken, MethodDef, Module, TypeDef, TypeRef};

use crate::{CodeManager, Method};
use names::{assembly_name, split};
use std::sync::{Arc, OnceLock};

/// The `AppDomainID` of the only AppDomain.
pub const APP_DOMAIN: u64 = 0x7FF8_4000_0000;
/// `AppDomainID` of the runtime's own domain.
pub const SYSTEM_DOMAIN: u64 = 0x7FF8_4080_0000;
/// First `AssemblyID`.
const ASSEMBLIES: u64 = 0x7FF8_4100_0000;
/// First `ModuleID`.
const MODULES: u64 = 0x7FF8_4200_0000;
/// First `ClassID`.
const CLASSES: u64 = 0x7FF8_4300_0000;
/// Distance between two ids.
const PITCH: u64 = 0x1000;
const CLASS_PITCH: u64 = 0x80;

/// Path of the module that a method is in without further words.
const DEFAULT_MODULE: &str = "App.dll";
/// The root of all classes.
const OBJECT: &str = "System.Object";
/// The type whose instantiation shared code is compiled for.
const CANONICAL: &str = "System.__Canon";

/// The names of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    modules: Vec<Module>,
    /// Module (index) and row of each class, in the order of the ids.
    classes: Vec<(usize, usize)>,
    /// Path of the core library.
    core_library: String,
    /// Which methods call which.
    calls: Arc<MethodCalls>,
    /// True if modules lie in memory as in their files, unless they are precompiled.
    has_flat_modules: bool,
    images: OnceLock<Vec<ModuleImage>>,
}

/// The place of a method among the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodPlace {
    /// `ClassID` of the type.
    pub class: u64,
    /// `ModuleID`.
    pub module: u64,
    /// Token in the module.
    pub token: u32,
    /// Number of type parameters of the type, and of the method.
    pub parameters: (u32, u32),
}

impl Metadata {
    /// Creates the names of a process with these modules, whose core library has this path.
    pub fn new(modules: &[ModuleNames], core_library: &str) -> Self {
        let mut metadata = Self { core_library: core_library.to_owned(), ..Self::default() };
        for module in modules {
            let assembly = module.assembly.as_deref();
            let index = metadata.add_module(&module.path, assembly);
            for one in &module.types {
                metadata.add_type(index, one, None);
            }
        }
        metadata
    }

    /// Returns all modules, in the order of their ids.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Returns the module with this `ModuleID`.
    pub fn module(&self, id: u64) -> Option<&Module> {
        self.modules.iter().find(|module| module.id == id)
    }

    /// Returns the manifest module of the assembly with this `AssemblyID`.
    pub fn assembly(&self, id: u64) -> Option<&Module> {
        self.modules.iter().find(|module| module.assembly == id)
    }

    /// Returns the module and the type of the class with this `ClassID`.
    pub fn class(&self, id: u64) -> Option<(&Module, &TypeDef)> {
        let offset = id.checked_sub(CLASSES)?;
        let number =
            usize::try_from(offset / CLASS_PITCH).ok().filter(|_| offset % CLASS_PITCH == 0);
        let (module, row) = *self.classes.get(number?)?;
        let module = self.modules.get(module)?;
        Some((module, module.types().get(row)?))
    }

    /// Returns the `ClassID` of `System.Object`.
    pub fn object_class(&self) -> u64 {
        self.class_of(OBJECT)
    }

    /// Returns the `ClassID` of the type that stands for all reference types in shared code.
    pub fn canonical_class(&self) -> u64 {
        self.class_of(CANONICAL)
    }

    fn class_of(&self, path: &str) -> u64 {
        let mut types = self.modules.iter().flat_map(Module::types);
        types.find(|one| one.path == path).map_or(0, |one| one.class)
    }

    /// Returns the place of a method, given its full name. A type and a module that do not exist
    /// are added.
    fn place(&mut self, name: &str) -> MethodPlace {
        let (module, row, method) = match self.declared(name) {
            Some(found) => found,
            None => self.undeclared(name),
        };
        self.method_of(module, row, &method)
    }

    /// Returns the place of a method without metadata: in the global type of the default module,
    /// with a nil token.
    fn place_dynamic(&mut self) -> MethodPlace {
        let module = self.default_module();
        let Some(module) = self.modules.get(module) else { return MethodPlace::default() };
        let class = module.types().first().map_or(0, |global| global.class);
        MethodPlace { class, module: module.id, token: tables::METHOD_DEF, parameters: (0, 0) }
    }

    /// Says which methods call which, for their IL.
    #[must_use]
    pub fn with_calls(self, calls: Arc<MethodCalls>) -> Self {
        Self { calls, ..self }
    }

    /// Says if modules lie in memory as in their files.
    #[must_use]
    pub fn with_flat_modules(self, has_flat_modules: bool) -> Self {
        Self { has_flat_modules, ..self }
    }

    /// Sets class, module and token of each method of a code manager.
    pub fn describe(&mut self, code: &mut CodeManager<'_>) {
        self.default_module();
        self.core_library_index();
        for method in code.methods_mut().iter().filter(|one| one.kind.has_metadata()) {
            self.place(&method.name);
        }
        // The methods of a type have successive rows (ECMA-335, II.22.37), now that all are known.
        for module in &mut self.modules {
            module.number();
        }
        for method in code.methods_mut() {
            let has_metadata = method.kind.has_metadata();
            let place = if has_metadata { self.place(&method.name) } else { self.place_dynamic() };
            self.fill(method, place);
        }
    }

    fn fill(&self, method: &mut Method, place: MethodPlace) {
        let (of_type, of_method) = place.parameters;
        method.class = place.class;
        method.module = place.module;
        method.token = place.token;
        // Code for reference types is shared.
        method.shared = of_type + of_method > 0;
        method.type_arguments = vec![self.canonical_class(); of_method as usize];
    }

    /// Finds the type of a method. Returns the module's index, the type's, and the method's name.
    fn declared(&self, name: &str) -> Option<(usize, usize, String)> {
        let (path, method) = split(name);
        if path.is_empty() {
            return None;
        }
        let row = |module: &Module| module.types().iter().position(|one| one.path == path);
        let found = |(index, module)| Some((index, row(module)?, method.to_owned()));
        self.modules.iter().enumerate().find_map(found)
    }

    /// Adds the type of a method. Returns the module's index, the type's, and the method's name.
    fn undeclared(&mut self, name: &str) -> (usize, usize, String) {
        let (path, method) = split(name);
        let module = if path == "System" || path.starts_with("System.") {
            self.core_library_index()
        } else {
            self.default_module()
        };
        let row =
            if path.is_empty() { 0 } else { self.add_type(module, &TypeNames::plain(path), None) };
        (module, row, method.to_owned())
    }

    fn method_of(&mut self, module: usize, row: usize, method: &str) -> MethodPlace {
        let Some(module) = self.modules.get_mut(module) else { return MethodPlace::default() };
        let Some((owner, class)) = module.types().get(row).map(|one| (one.token, one.class)) else {
            return MethodPlace::default();
        };
        let known =
            module.methods().iter().find(|known| known.owner == owner && known.name == method);
        let token = match known {
            Some(known) => known.token,
            None => module.add_method(owner, &MethodNames::plain(method)),
        };
        let parameters = (
            module.parameters_of(owner).count() as u32,
            module.parameters_of(token).count() as u32,
        );
        MethodPlace { class, module: module.id, token, parameters }
    }

    fn default_module(&mut self) -> usize {
        let first = self.modules.iter().position(|module| module.path != self.core_library);
        first.unwrap_or_else(|| self.add_module(DEFAULT_MODULE, None))
    }

    fn core_library_index(&mut self) -> usize {
        let found = self.modules.iter().position(|module| module.path == self.core_library);
        found.unwrap_or_else(|| {
            let path = self.core_library.clone();
            self.add_module(&path, None)
        })
    }

    fn add_module(&mut self, path: &str, assembly: Option<&str>) -> usize {
        let number = self.modules.len() as u64;
        let is_core = path == self.core_library;
        self.modules.push(Module::new(
            (MODULES + PITCH * number, ASSEMBLIES + PITCH * number),
            path,
            assembly.unwrap_or_else(|| assembly_name(path)),
            (!is_core).then(|| assembly_name(&self.core_library)),
        ));
        let index = self.modules.len() - 1;
        self.add_type(index, &TypeNames::plain("<Module>"), None);
        if is_core {
            for name in [OBJECT, CANONICAL] {
                self.add_type(index, &TypeNames::plain(name), None);
            }
        }
        index
    }

    /// Adds a type with its methods and nested types, or finds one of this name. Returns its index.
    fn add_type(&mut self, module: usize, names: &TypeNames, enclosing: Option<usize>) -> usize {
        let class = CLASSES + CLASS_PITCH * self.classes.len() as u64;
        let Some(of) = self.modules.get_mut(module) else { return 0 };
        let enclosing = enclosing.and_then(|row| of.types().get(row).cloned());
        let path = match &enclosing {
            Some(outer) => format!("{}.{}", outer.path, names.name),
            None if of.types().is_empty() => String::new(),
            None => names.name.clone(),
        };
        if let Some(row) = of.types().iter().position(|one| one.path == path && !path.is_empty()) {
            return row;
        }
        let row = of.add_type(class, path, names, enclosing.as_ref());
        self.classes.push((module, row));
        if !names.parameters.is_empty()
            || names.methods.iter().any(|one| !one.parameters.is_empty())
        {
            self.core_library_index();
        }
        for nested in &names.types {
            self.add_type(module, nested, Some(row));
        }
        row
    }
}
