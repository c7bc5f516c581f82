//! Calls about the subject of a callback.

use super::names::Names;
use super::subject::Subject;
use super::walks::result;
use super::{Block, Trace};
use clr_com::{AssemblyId, Bool, ClassId, IMetaDataImport, Interface, ModuleId, ObjectId, Token};
use clr_sampler::names::{metadata, method};
use clr_walker::profiling::{CodeRange, FunctionId, HResult, ProfilerInfo as _, ReJitId};
use std::ptr::null_mut;

const fn same(is_same: bool) -> &'static str {
    if is_same { "the same" } else { "another" }
}

impl Trace {
    /// Asks about the subject of a callback.
    pub(super) fn ask_about(&self, block: &mut Block, subject: Subject) {
        match subject {
            Subject::Function(function) => self.ask_function(block, function),
            Subject::Module(module) => self.ask_module(block, module),
            Subject::Assembly(assembly) => self.ask_assembly(block, assembly),
            Subject::Class(class) => self.ask_class(block, class),
            Subject::Object(object, class) => {
                self.ask_class(block, class);
                self.ask_object(block, object, Some(class));
            }
            Subject::Thrown(object) => self.ask_object(block, object, None),
            Subject::Nothing | Subject::Thread(_) | Subject::Early(_) => {}
        }
    }

    fn ask_function(&self, block: &mut Block, function: FunctionId) {
        let found = self.info.get_function_info2(function, None, 0);
        let name = self.names.function(&self.raw, function).text;
        block.add("GetFunctionInfo2", result(&found), "");
        let (mut class, mut module, mut token) = (ClassId(0), ModuleId(0), 0);
        // SAFETY: the pointers are to locals.
        let older = unsafe {
            self.raw.GetFunctionInfo(function, &raw mut class, &raw mut module, &raw mut token)
        };
        block.add("GetFunctionInfo", older, &self.names.class(&self.raw, class).text);
        self.ask_metadata(block, function, &name);
        let mut ranges = [CodeRange { start: 0, size: 0 }; 4];
        let counted = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
        let code = self.info.get_code_info(function);
        block.add("GetCodeInfo", result(&code), "");
        let code = self.info.get_code_info2(function, &mut ranges);
        block.add("GetCodeInfo2", result(&code), &counted(code.ok()));
        let code = self.info.get_code_info2(function, &mut []);
        block.add("GetCodeInfo2(without room)", result(&code), &counted(code.ok()));
        let code = self.info.get_code_info3(function, ReJitId(0), &mut ranges);
        block.add("GetCodeInfo3", result(&code), &counted(code.ok()));
        if code.is_ok() {
            let [first, ..] = ranges;
            let code = self.info.get_code_info4(first.start, &mut ranges);
            block.add("GetCodeInfo4", result(&code), &counted(code.ok()));
            let at_start = self.info.get_function_from_ip(first.start);
            let is_same = at_start.is_ok_and(|found| found == function);
            block.add("GetFunctionFromIP(of its code)", result(&at_start), same(is_same));
        }
        let mut is_dynamic: Bool = 7;
        // SAFETY: the pointer is to a local.
        let dynamic = unsafe { self.raw.IsFunctionDynamic(function, &raw mut is_dynamic) };
        block.add("IsFunctionDynamic", dynamic, &is_dynamic.to_string());
        if !older.is_failure() && class.0 != 0 {
            self.ask_class(block, class);
            self.ask_module(block, module);
        }
    }

    /// Asks for the metadata of a function, by which it should have this name.
    fn ask_metadata(&self, block: &mut Block, function: FunctionId, name: &str) {
        let (mut import, mut token): (_, Token) = (null_mut(), 0);
        // SAFETY: the pointers are to an id and to locals.
        let result = unsafe {
            let (iid, import, token) = (&IMetaDataImport::IID, &raw mut import, &raw mut token);
            self.raw.GetTokenAndMetaDataFromFunction(function, iid, import, token)
        };
        // SAFETY: NULL, or the reference that the successful call has given.
        let import = unsafe { IMetaDataImport::from_raw(import) };
        let found = import.and_then(|import| method(&import, token).ok());
        block.add("GetTokenAndMetaDataFromFunction", result, same(found.as_deref() == Some(name)));
    }

    fn ask_class(&self, block: &mut Block, class: ClassId) {
        let (mut module, mut token, mut parent, mut arguments) = (ModuleId(0), 0, ClassId(0), 0);
        // SAFETY: the pointers are to locals.
        let result = unsafe {
            let (module, token) = (&raw mut module, &raw mut token);
            let (parent, arguments) = (&raw mut parent, &raw mut arguments);
            self.raw.GetClassIDInfo2(class, module, token, parent, 0, arguments, null_mut())
        };
        let name = self.names.class(&self.raw, class).text;
        let parent = match parent {
            ClassId(0) => "nothing".to_owned(),
            parent => self.names.class(&self.raw, parent).text,
        };
        block.add("GetClassIDInfo2", result, &format!("{name} of {parent}, {arguments} arguments"));
        // SAFETY: the pointers are to locals.
        let older = unsafe { self.raw.GetClassIDInfo(class, &raw mut module, &raw mut token) };
        block.add("GetClassIDInfo", older, &Names::module(&self.raw, module));
    }

    fn ask_module(&self, block: &mut Block, module: ModuleId) {
        let (mut assembly, mut flags) = (AssemblyId(0), 0);
        // SAFETY: the pointers are to locals, or NULL where the result is not wanted.
        let result = unsafe {
            let (assembly, flags) = (&raw mut assembly, &raw mut flags);
            let (base, len, name) = (null_mut(), null_mut(), null_mut());
            self.raw.GetModuleInfo2(module, base, 0, len, name, assembly, flags)
        };
        let name = Names::module(&self.raw, module);
        block.add("GetModuleInfo2", result, &format!("{name} {flags:#x}"));
        let has_metadata = metadata(&self.raw, module);
        block.add("GetModuleMetaData", has_metadata.err().unwrap_or(HResult::OK), "");
        if assembly.0 != 0 {
            self.ask_assembly(block, assembly);
        }
    }

    fn ask_assembly(&self, block: &mut Block, assembly: AssemblyId) {
        let (result, name) = Names::assembly(&self.raw, assembly);
        block.add("GetAssemblyInfo", result, &name);
    }

    /// Asks about an object. `class` is the one that the runtime has said.
    fn ask_object(&self, block: &mut Block, object: ObjectId, class: Option<ClassId>) {
        let mut found = ClassId(0);
        // SAFETY: the pointer is to a local; the object is that of the callback.
        let result = unsafe { self.raw.GetClassFromObject(object, &raw mut found) };
        let given = match class {
            Some(class) if class == found => "the same".to_owned(),
            _ if result.is_failure() => String::new(),
            _ => self.names.class(&self.raw, found).text,
        };
        block.add("GetClassFromObject", result, &given);
        let mut size = 0;
        // SAFETY: the same.
        let result = unsafe { self.raw.GetObjectSize2(object, &raw mut size) };
        block.add("GetObjectSize2", result, &size.to_string());
    }
}
