//! Lists that say what is there: the heap that no GC looks at, and the inliners of methods that are compiled ahead.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use clrsim::{Role, Session};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

/// Two methods of an image inline a third one; the JIT inlines it into a fourth.
const TEXT: &str = r#"
function "App.Main" kind="ready-to-run" { inlines "App.Small"; body { call "App.Other"; call "App.Jitted" } }
function "App.Other" kind="ready-to-run" { inlines "App.Small"; body { work 1 } }
function "App.Jitted" kind="jit" { inlines "App.Small"; body { work 1 } }
function "App.Small" kind="ready-to-run" { body { work 1 } }
"#;

fn info<I: Interface>(session: &Session) -> ManuallyDrop<I> {
    // SAFETY: the session's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
    ManuallyDrop::new(info.cast::<I>().unwrap())
}

/// Returns the elements of an enumerator.
macro_rules! all_of {
    ($enumerator:expr, $interface:ident, $blank:expr) => {{
        // SAFETY: the enumerator has a reference, which is given up.
        let enumerator = unsafe { $interface::from_raw($enumerator) }.unwrap();
        let (mut all, mut len) = ([$blank; 200], 0);
        // SAFETY: pointers to locals.
        assert_eq!(unsafe { enumerator.Next(200, all.as_mut_ptr(), &raw mut len) }, HResult::FALSE);
        all[..len as usize].to_vec()
    }};
}

#[test]
fn the_heap_that_no_gc_looks_at_has_the_objects_that_it_is_full_of() {
    for generation in [Generation::Net8Unix, Generation::Net10Windows, Generation::Net11Unix] {
        let session = Session::open(TEXT, generation).unwrap();
        session.act_as(Role::Native);
        let info = info::<ICorProfilerInfo14>(&session);
        let mut objects: *mut c_void = null_mut();
        let mut range = NonGcRange { start: 0, size: 0, reserved: 0 };
        let (mut ranges, mut class) = (0, ClassId(0));
        // SAFETY: pointers to locals.
        unsafe {
            assert_eq!(info.EnumerateNonGCObjects(&raw mut objects), HResult::OK);
            assert_eq!(info.GetNonGCHeapBounds(1, &raw mut ranges, &raw mut range), HResult::OK);
        }
        let objects = all_of!(objects, ICorProfilerObjectEnum, ObjectId(0));
        assert_eq!(ranges, 1);
        assert_eq!(objects.first().map(|object| object.0), Some(range.start));
        assert!(objects.is_sorted() && objects.last().unwrap().0 < range.start + range.size);
        for object in &objects {
            let (mut frozen, mut generation) =
                (0, GenerationRange { generation: 0, start: 0, size: 0, reserved: 0 });
            // SAFETY: pointers to locals.
            unsafe {
                assert_eq!(info.IsFrozenObject(*object, &raw mut frozen), HResult::OK);
                let found = info.GetObjectGeneration(*object, &raw mut generation);
                assert_eq!((frozen, found), (1, HResult(0x8013_1389)));
            }
        }
        assert!(session.report().findings().is_empty());
        session.act_as(Role::Stopped);
        // The thread is cooperative here, so that it may look at the object; the core library has no such class.
        // SAFETY: pointers to locals.
        let given = unsafe { info.GetClassFromObject(objects[0], &raw mut class) };
        assert!(
            matches!(given, HResult::NOT_IMPLEMENTED | HResult::UNSUPPORTED_CALL_SEQUENCE),
            "{given}"
        );
    }
}

#[test]
fn inliners_are_the_methods_of_the_image_that_the_text_names() {
    let session = Session::open(TEXT, Generation::Net10Unix).unwrap();
    session.act_as(Role::Native);
    let info = info::<ICorProfilerInfo14>(&session);
    let mut modules: *mut c_void = null_mut();
    // SAFETY: pointers to locals.
    unsafe { assert_eq!(info.EnumModules(&raw mut modules), HResult::OK) };
    let modules = all_of!(modules, ICorProfilerModuleEnum, ModuleId(0));
    let inliners = |of: ModuleId, inlinee: ModuleId, method| {
        let (mut incomplete, mut found) = (9, null_mut());
        // SAFETY: pointers to locals.
        let result = unsafe {
            info.EnumNgenModuleMethodsInliningThisMethod(
                of,
                inlinee,
                method,
                &raw mut incomplete,
                &raw mut found,
            )
        };
        let blank = Method { module: ModuleId(0), token: 0 };
        let all = || all_of!(found, ICorProfilerMethodEnum, blank);
        if result == HResult::OK { Ok((incomplete, all())) } else { Err(result) }
    };
    let answers: Vec<_> = modules
        .iter()
        .flat_map(|of| modules.iter().map(move |inlinee| (*of, *inlinee)))
        .map(|(of, inlinee)| {
            let methods = (0x0600_0001..0x0600_0005).map(|token| inliners(of, inlinee, token));
            let methods = methods.map(|found| {
                found.map(|(_, all)| all.iter().map(|one| one.token).collect::<Vec<_>>())
            });
            (of == inlinee, methods.collect::<Vec<_>>())
        })
        .collect();
    println!("{answers:x?}");
    let own: Vec<_> =
        answers.iter().filter(|(is_own, _)| *is_own).map(|(_, found)| found).collect();
    // The core library inlines much of itself, which the text does not say.
    assert!(own.iter().any(|found| found.iter().all(|one| *one == Err(HResult::NOT_IMPLEMENTED))));
    let small = Ok(vec![0x0600_0001, 0x0600_0002]);
    let of_app = own.iter().find(|found| found.iter().all(Result::is_ok)).unwrap();
    assert_eq!(of_app.iter().filter(|found| **found == small).count(), 1, "{of_app:x?}");
    assert_eq!(of_app.iter().filter(|found| **found == Ok(Vec::new())).count(), 3);
    assert!(
        session
            .report()
            .calls_not_simulated()
            .contains_key("EnumNgenModuleMethodsInliningThisMethod")
    );
}
