//! Fields of a text's types: what CLRs 8.0.34, 10.0.15 and 11.0.0 answer for the same four classes.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_runtime::metadata::APP_DOMAIN;
use clr_walker::profiling::HResult;
use clrsim::{Role, Session};
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

const TEXT: &str = r#"
module "App.dll" {
    type "Fields" {
        field "a"
        field "s" kind="string"
        field "o" kind="object"
        field "l" kind="long"
        field "count" static=#true
        field "text" kind="string" static=#true
        method "All"
    }
    type "Empty" { method "One" }
    type "Two" {
        field "a"
        field "b"
        field "o" kind="object" static=#true
        method "All"
    }
    type "Bare" {
        field "count" static=#true
        field "text" kind="string" static=#true
        method "All"
    }
}
function "Fields.All" kind="jit" {
    body {
        call "Empty.One"
        call "Two.All"
        call "Bare.All"
    }
}
function "Empty.One" kind="jit" { body { work 1 } }
function "Two.All" kind="jit" { body { work 1 } }
function "Bare.All" kind="jit" { body { work 1 } }
stop at="Bare.All"
"#;

/// What the CLRs printed: size and fields of each class, then each field with attributes, signature, kind, and the result of
/// GetAppDomainStaticAddress.
const ANSWERS: &str = "\
Fields 4 fields 48 bytes: 04000001@32 04000002@8 04000003@16 04000004@24
04000001 a 1 06 08 0 80070057
04000002 s 1 06 0e 0 80070057
04000003 o 1 06 1c 0 80070057
04000004 l 1 06 0a 0 80070057
04000005 count 11 06 08 1 00000000
04000006 text 11 06 0e 1 00000000
Empty 0 fields 24 bytes:
Two 2 fields 24 bytes: 04000007@8 04000008@12
04000007 a 1 06 08 0 80070057
04000008 b 1 06 08 0 80070057
04000009 o 11 06 1c 1 00000000
Bare 0 fields 24 bytes:
0400000a count 11 06 08 1 00000000
0400000b text 11 06 0e 1 00000000
";

/// The runtime's object and the metadata of the text's module.
struct Asked {
    info: ManuallyDrop<ICorProfilerInfo3>,
    import: IMetaDataImport,
    module: ModuleId,
}

impl Asked {
    fn new(session: &Session) -> Self {
        // SAFETY: the session's object, which is not counted; the pointers are to these values.
        unsafe {
            let unknown = ManuallyDrop::new(IUnknown::from_raw(session.info()).unwrap());
            let info: ManuallyDrop<ICorProfilerInfo3> = ManuallyDrop::new(unknown.cast().unwrap());
            let (mut all, mut module, mut len, mut found) =
                (null_mut(), ModuleId(0), 0, null_mut());
            assert_eq!(info.EnumModules(&raw mut all), HResult::OK);
            let all = ICorProfilerModuleEnum::from_raw(all).unwrap();
            assert_eq!(all.Next(1, &raw mut module, &raw mut len), HResult::OK);
            let result = info.GetModuleMetaData(module, 0, &IMetaDataImport::IID, &raw mut found);
            assert_eq!(result, HResult::OK);
            Self { info, import: IMetaDataImport::from_raw(found).unwrap(), module }
        }
    }

    fn class_id(&self, token: Token) -> ClassId {
        let mut id = ClassId(0);
        // SAFETY: the pointer is to this value.
        let result = unsafe { self.info.GetClassFromToken(self.module, token, &raw mut id) };
        assert_eq!(result, HResult::OK);
        id
    }

    fn class(&self, token: Token, id: ClassId) -> String {
        let (mut name, mut len, mut size) = ([0_u16; 64], 0, 99);
        let mut fields = [FieldOffset { field: 0, offset: 0 }; 16];
        let (room, mut out) = (fields.len() as u32, String::new());
        // SAFETY: the pointers are to these values.
        unsafe {
            let (to, room_of_name) = (name.as_mut_ptr(), name.len() as u32);
            self.import.GetTypeDefProps(
                token,
                to,
                room_of_name,
                &raw mut len,
                null_mut(),
                null_mut(),
            );
            let name = String::from_utf16_lossy(&name[..len as usize - 1]);
            let info = &self.info;
            let result =
                info.GetClassLayout(id, fields.as_mut_ptr(), room, &raw mut len, &raw mut size);
            assert_eq!(result, HResult::OK);
            write!(out, "{name} {len} fields {size} bytes:").unwrap();
            for one in &fields[..len as usize] {
                write!(out, " {:08x}@{}", one.field, one.offset).unwrap();
            }
            // With room for one, one is given; without room the number of all.
            for (room, expected) in [(1, len.min(1)), (0, len)] {
                let mut given = 99;
                let to = if room == 0 { null_mut() } else { fields.as_mut_ptr() };
                let result = info.GetClassLayout(id, to, room, &raw mut given, &raw mut size);
                assert_eq!((result, given), (HResult::OK, expected));
            }
            out.push('\n');
            let (mut list, mut tokens, mut count) = (null_mut(), [0; 16], 0);
            let (to, room) = (tokens.as_mut_ptr(), tokens.len() as u32);
            self.import.EnumFields(&raw mut list, token, to, room, &raw mut count);
            self.import.CloseEnum(list);
            out + &tokens[..count as usize]
                .iter()
                .map(|one| self.field(id, *one))
                .collect::<String>()
        }
    }

    fn field(&self, class: ClassId, token: Token) -> String {
        let (mut name, mut len, mut flags) = ([0_u16; 64], 0, 0);
        let (mut signature, mut size, mut kind, mut address) =
            (std::ptr::null(), 0, 99, null_mut());
        let none = null_mut();
        // SAFETY: the pointers are to these values; the signature has this size.
        unsafe {
            let (to, room) = (name.as_mut_ptr(), name.len() as u32);
            let result = self.import.GetFieldProps(
                token,
                null_mut(),
                to,
                room,
                &raw mut len,
                &raw mut flags,
                &raw mut signature,
                &raw mut size,
                null_mut(),
                null_mut(),
                null_mut(),
            );
            assert_eq!(result, HResult::OK);
            let signature = std::slice::from_raw_parts(signature, size as usize);
            let bytes: Vec<_> = signature.iter().map(|byte| format!("{byte:02x}")).collect();
            let name = String::from_utf16_lossy(&name[..len as usize - 1]);
            assert_eq!(self.info.GetStaticFieldInfo(class, token, &raw mut kind), HResult::OK);
            let domain = AppDomainId(APP_DOMAIN);
            let mut of_domain =
                || self.info.GetAppDomainStaticAddress(class, token, domain, &raw mut address);
            let result = of_domain();
            let first = address as usize;
            // The address stays.
            address = none;
            assert_eq!(
                self.info.GetAppDomainStaticAddress(class, token, domain, &raw mut address),
                result
            );
            assert_eq!((address as usize, first != 0), (first, result == HResult::OK));
            let bytes = bytes.join(" ");
            format!("{token:08x} {name} {flags:x} {bytes} {kind} {:08x}\n", result.0)
        }
    }
}

#[test]
fn fields_are_where_clrs_have_them() {
    for generation in [Generation::Net8Unix, Generation::Net10Unix, Generation::Net11Unix] {
        let session = Session::open(TEXT, generation).unwrap();
        session.run_to_stop(0).unwrap();
        session.act_as(Role::Native);
        let asked = Asked::new(&session);
        let classes = [2, 3, 4, 5].map(|row| 0x0200_0000 + row);
        let classes = classes.map(|token| (token, asked.class_id(token)));
        let all: String = classes.iter().map(|(token, id)| asked.class(*token, *id)).collect();
        assert_eq!(all, ANSWERS, "{generation}");
        drop(asked.import);
        assert_eq!(session.report().findings(), []);
    }
}
