//! The metadata of modules: what a text says comes back, and what is emitted is read again, by each interface.

use clr_com::*;
use clr_metadata as md;
use clr_metadata::{Table, token};
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use clrsim::{Role, Session};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};

/// Types of several kinds, and calls of methods in other types and modules.
pub(crate) const TEXT: &str = r#"
module "Acme.Web.dll" {
    type "Acme.Web.Handler" {
        parameter "T" "K"
        attribute "System.ObsoleteAttribute"
        method "Run" {
            parameter "U"
        }
        type "Inner" {
            method "Go"
        }
    }
}
function "Acme.Web.Handler.Inner.Go" kind="jit" {
    body {
        call "Acme.Web.Handler.Run"
        call "System.Console.Write"
    }
}
function "Acme.Web.Handler.Run" kind="jit" { body { call "Prog.Tail" } }
function "Prog.Tail" kind="jit" { body { work 1 } }
function "System.Console.Write" kind="jit" { body { work 1 } }
stop at="Prog.Tail"
"#;

/// Opens the text at its stop, on a thread of the profiler.
pub(crate) fn session(generation: Generation) -> Session {
    let session = Session::open(TEXT, generation).unwrap();
    session.run_to_stop(0).unwrap();
    session.act_as(Role::Native);
    session
}

/// Returns the runtime's object, which is not counted.
fn info(session: &Session) -> ManuallyDrop<ICorProfilerInfo3> {
    // SAFETY: the session's object.
    let unknown = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
    ManuallyDrop::new(unknown.cast().unwrap())
}

/// Returns the module of the text.
fn module(info: &ICorProfilerInfo3) -> ModuleId {
    let (mut all, mut found, mut len) = (null_mut(), ModuleId(0), 0);
    // SAFETY: the pointers are to these values.
    unsafe {
        assert_eq!(info.EnumModules(&raw mut all), HResult::OK);
        let all = ICorProfilerModuleEnum::from_raw(all).unwrap();
        assert_eq!(all.Next(1, &raw mut found, &raw mut len), HResult::OK);
    }
    found
}

/// Returns an interface of the module's metadata.
fn metadata<I: Interface>(info: &ICorProfilerInfo3, module: ModuleId) -> I {
    let mut found: *mut c_void = null_mut();
    // SAFETY: the pointers are to these values.
    unsafe {
        let result = info.GetModuleMetaData(module, 1, &I::IID, &raw mut found);
        assert_eq!(result, HResult::OK);
        I::from_raw(found).unwrap()
    }
}

/// Returns the bytes that are at the base of the text's module.
pub(crate) fn image(session: &Session) -> Vec<u8> {
    let info = info(session);
    let module = module(&info);
    let file: IMetaDataInfo = metadata(&info, module);
    let (mut data, mut size, mut kind, mut base) = (null(), 0, 9, null());
    // SAFETY: the pointers are to these values; the bytes are mapped as long as the session lives.
    unsafe {
        let result = file.GetFileMapping(&raw mut data, &raw mut size, &raw mut kind);
        assert_eq!(result, HResult::OK);
        let (len, name) = (null_mut(), null_mut());
        let result = info.GetModuleInfo(module, &raw mut base, 0, len, name, null_mut());
        assert_eq!((result, base.cast()), (HResult::OK, data));
        std::slice::from_raw_parts(base, size as usize).to_vec()
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Reads the metadata of an image as a reader of files does: by headers and sections alone.
fn read(bytes: &[u8], is_flat: bool) -> md::Metadata {
    assert_eq!(bytes[..2], *b"MZ");
    let headers = number(bytes, 0x3C);
    assert_eq!(bytes[headers..headers + 4], *b"PE\0\0");
    let directories = headers + 24 + if bytes[headers + 24..][..2] == [0x0B, 2] { 112 } else { 96 };
    let section = headers + 24 + number(bytes, headers + 20) % 0x1_0000;
    let (rva, raw) = (number(bytes, section + 12), number(bytes, section + 20));
    let place = |at: usize| if is_flat { at - rva + raw } else { at };
    let cli = place(number(bytes, directories + 14 * 8));
    let (root, size) = (place(number(bytes, cli + 8)), number(bytes, cli + 12));
    md::read(&bytes[root..root + size]).unwrap()
}

fn names(data: &md::Metadata) -> Vec<String> {
    let types = data.tokens(Table::TypeDef);
    let name = |one| {
        let methods = data.children(one, Table::Method);
        let names = methods.iter().map(|method| data.string(*method, md::Method::Name));
        let all: Vec<_> = names.collect();
        format!("{}: {}", data.string(one, md::TypeDef::Name), all.join(" "))
    };
    types.map(name).collect()
}

#[test]
fn the_base_of_a_module_is_that_of_its_image() {
    // Modules are enumerated since ICorProfilerInfo3.
    for generation in Generation::ALL.into_iter().filter(|one| one.profiler_info() >= 3) {
        let session = session(generation);
        let data = read(&image(&session), generation.is_unix());
        let expected = ["<Module>: ", "Handler`2: Run", "Inner: Go", "Prog: Tail"];
        assert_eq!(names(&data), expected, "{generation}");
        let references: Vec<_> = data
            .tokens(Table::MemberRef)
            .map(|one| data.string(one, md::MemberRef::Name))
            .collect();
        assert_eq!(references, [".ctor", "Run", "Write"], "{generation}");
        let first = data.get(token(Table::Method, 1), md::Method::RVA);
        assert_eq!(first, 0x2050, "{generation}");
    }
}

#[test]
fn sessions_share_an_image() {
    let (one, other) = (session(Generation::Net10Unix), session(Generation::Net10Unix));
    let bytes = image(&one);
    assert_eq!(image(&other), bytes);
    drop(one);
    assert_eq!(image(&other), bytes);
}

/// The body of Handler.Inner.Go calls a MethodSpec of a MemberRef of a TypeSpec, and a MemberRef; a body that is set is the one
/// that is read from then on.
#[test]
fn il_is_read_and_replaced() {
    let session = session(Generation::Net10Windows);
    let info = info(&session);
    let module = module(&info);
    let go = token(Table::Method, 2);
    let (mut header, mut size, mut allocator) = (null(), 0, null_mut());
    // SAFETY: the pointers are to these values; the bodies have the sizes that are told.
    unsafe {
        let read = info.GetILFunctionBody(module, go, &raw mut header, &raw mut size);
        assert_eq!(read, HResult::OK);
        let body = std::slice::from_raw_parts(header, size as usize);
        assert_eq!(body, [0x2E, 0x28, 1, 0, 0, 0x2B, 0x28, 3, 0, 0, 0x0A, 0x2A]);
        let result = info.GetILFunctionBodyAllocator(module, &raw mut allocator);
        assert_eq!(result, HResult::OK);
        let allocator = ManuallyDrop::new(IMethodMalloc::from_raw(allocator).unwrap());
        assert!(allocator.Alloc(0).is_null());
        let new = allocator.Alloc(2).cast::<u8>();
        new.copy_from_nonoverlapping([6, 0x2A].as_ptr(), 2);
        assert_eq!(info.SetILFunctionBody(module, go, new), HResult::OK);
        let read = info.GetILFunctionBody(module, go, &raw mut header, &raw mut size);
        assert_eq!((read, header, size), (HResult::OK, new.cast_const(), 2));
    }
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// Rows that `IMetaDataEmit2` and `IMetaDataAssemblyEmit` define are found by `IMetaDataImport2`, `IMetaDataAssemblyImport` and
/// `IMetaDataTables`, also by a scope that is opened later.
#[test]
fn what_is_emitted_is_read_by_every_interface() {
    let session = session(Generation::Net10Unix);
    let info = info(&session);
    let module = module(&info);
    let emit: IMetaDataEmit2 = metadata(&info, module);
    let assemblies: IMetaDataAssemblyEmit = emit.cast().unwrap();
    let signature = [0, 1, 1, 0xE];
    let [mut assembly, mut class, mut member, mut text, mut own, mut method] = [0; 6];
    // SAFETY: the pointers are to these values, here and below.
    unsafe {
        let name = wide("Acme.Probe");
        let key = [1_u8; 8];
        let result = assemblies.DefineAssemblyRef(
            key.as_ptr().cast(),
            8,
            name.as_ptr(),
            null(),
            null(),
            0,
            0,
            &raw mut assembly,
        );
        assert_eq!((result, assembly), (HResult::OK, 0x2300_0002));
        let name = wide("Acme.Probe.Hook");
        let result = emit.DefineTypeRefByName(assembly, name.as_ptr(), &raw mut class);
        assert_eq!(result, HResult::OK);
        let again = emit.DefineTypeRefByName(assembly, name.as_ptr(), &raw mut class);
        assert_eq!(again, clrsim::results::DUPLICATE);
        let name = wide("Enter");
        let blob = signature.as_ptr();
        let result = emit.DefineMemberRef(class, name.as_ptr(), blob, 4, &raw mut member);
        assert_eq!(result, HResult::OK);
        let name = wide("Grüße");
        assert_eq!(emit.DefineUserString(name.as_ptr(), 5, &raw mut text), HResult::OK);
        let name = wide("Acme.New");
        let result =
            emit.DefineTypeDef(name.as_ptr(), 0x10_0001, 0x0100_0001, null(), &raw mut own);
        assert_eq!((result, own), (HResult::OK, 0x0200_0005));
        // To a type before the last one: the methods get an order of their own.
        let name = wide("Late");
        let to = 0x0200_0002;
        let result =
            emit.DefineMethod(to, name.as_ptr(), 0x96, blob, 4, 0x2050, 0, &raw mut method);
        assert_eq!((result, method), (HResult::OK, 0x0600_0004));
    }
    drop((emit, assemblies));
    let import: IMetaDataImport2 = metadata(&info, module);
    let (mut parent, mut found, mut len, mut size) = (0, [0_u16; 32], 0, 0);
    let (mut blob, mut bytes) = (null(), null());
    // SAFETY: as above.
    unsafe {
        let (name, room) = (found.as_mut_ptr(), 32);
        let result = import.GetMemberRefProps(
            member,
            &raw mut parent,
            name,
            room,
            &raw mut len,
            &raw mut blob,
            &raw mut size,
        );
        assert_eq!((result, parent, len, size), (HResult::OK, class, 6, 4));
        assert_eq!(std::slice::from_raw_parts(blob, 4), signature);
        assert_eq!(import.GetUserString(text, name, room, &raw mut len), HResult::OK);
        assert_eq!(String::from_utf16_lossy(&found[..len as usize]), "Grüße");
        let (mut all, mut methods) = (null_mut(), [0; 4]);
        let to = methods.as_mut_ptr();
        let result = import.EnumMethods(&raw mut all, 0x0200_0002, to, 4, &raw mut len);
        assert_eq!((result, &methods[..len as usize]), (HResult::OK, &[0x0600_0001, method][..]));
        import.CloseEnum(all);
        let late = wide("Late");
        let result = import.FindMethod(0x0200_0002, late.as_ptr(), blob, 4, &raw mut parent);
        assert_eq!((result, parent), (HResult::OK, method));
        let assemblies: IMetaDataAssemblyImport = import.cast().unwrap();
        let result = assemblies.GetAssemblyRefProps(
            assembly,
            &raw mut bytes,
            &raw mut size,
            found.as_mut_ptr(),
            32,
            &raw mut len,
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
        );
        assert_eq!((result, size), (HResult::OK, 8));
        assert_eq!(String::from_utf16_lossy(&found[..len as usize - 1]), "Acme.Probe");
        let tables: IMetaDataTables2 = import.cast().unwrap();
        let [mut rows, mut value] = [0; 2];
        let (table, skip) = (Table::MethodPtr as u32, null_mut());
        let result = tables.GetTableInfo(table, skip, &raw mut rows, skip, skip, null_mut());
        assert_eq!((result, rows), (HResult::OK, 4));
        assert_eq!(tables.GetColumn(table, 0, 2, &raw mut value), HResult::OK);
        assert_eq!(value, method);
        let table = Table::TypeRef as u32;
        assert_eq!(tables.GetColumn(table, 0, class & 0xFF, &raw mut value), HResult::OK);
        assert_eq!(value, assembly);
    }
}
