//! Rust values as COM objects.

use crate::Guid;
use crate::interface::{IUnknown, IUnknownMethods, Implements, interfaces};
use clr_walker::profiling::HResult;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// A value with the head of a COM object.
#[repr(C)]
pub(crate) struct Object<T> {
    /// The functions of the interface that the object was made with.
    vtable: *const c_void,
    /// Answers to the three methods of `IUnknown`.
    unknown: Unknown<T>,
    value: T,
}

/// The way in which an object answers `QueryInterface`, `AddRef` and `Release`.
enum Unknown<T> {
    /// Counts references to the object, which is dropped after the last one.
    Counted {
        /// `extends` of the interface that the object was made with.
        extends: fn(&Guid) -> bool,
        references: AtomicU32,
    },
    /// Calls functions of the object's value.
    Owned(OwnUnknown<T>),
}

/// The answer to `QueryInterface`: another pointer of the object, or `None` for the one asked.
pub type Queried = Result<Option<NonNull<c_void>>, HResult>;

/// Answers of a value to the three methods of `IUnknown`, for an object that [`own`] has made.
#[derive(Debug)]
pub struct OwnUnknown<T> {
    /// `QueryInterface` for an id, or for `None` if one of the two pointers is NULL.
    pub query: fn(&T, Option<&Guid>) -> Queried,
    /// `AddRef`.
    pub add_reference: fn(&T) -> u32,
    /// `Release`.
    pub release: fn(&T) -> u32,
}

impl<T> Clone for OwnUnknown<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OwnUnknown<T> {}

/// An object that lives until this is dropped, however often others release it: its value counts
/// the references, and can notice what is done with it after the last one.
#[derive(Debug)]
pub struct OwnedObject<T>(NonNull<Object<T>>);

// SAFETY: the object is a box of a `T`, which `own` demands to be both.
unsafe impl<T: Send + Sync> Send for OwnedObject<T> {}
// SAFETY: the same.
unsafe impl<T: Send + Sync> Sync for OwnedObject<T> {}

impl<T> OwnedObject<T> {
    /// Returns the pointer that others call. No reference is counted.
    pub const fn as_raw(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        // SAFETY: the box lives as long as `self`, and is only ever shared.
        unsafe { &(*self.0.as_ptr()).value }
    }
}

impl<T> Drop for OwnedObject<T> {
    fn drop(&mut self) {
        // SAFETY: `own` has allocated the object as a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Makes a value an object with the interface `I` and those that it extends, which the result owns.
/// Nobody may call it after that.
pub fn own<I: Implements<T>, T: Send + Sync + 'static>(
    value: T,
    unknown: OwnUnknown<T>,
) -> OwnedObject<T> {
    let vtable = std::ptr::from_ref(I::VTABLE).cast();
    let object = Box::new(Object { vtable, unknown: Unknown::Owned(unknown), value });
    OwnedObject(NonNull::from(Box::leak(object)))
}

impl<T> Object<T> {
    /// Returns the value of an object.
    ///
    /// # Safety
    /// `this` points to an `Object<T>` with a reference that lasts for `'o`.
    pub(crate) unsafe fn value<'o>(this: *mut c_void) -> &'o T {
        // SAFETY: as above; objects are only ever shared.
        unsafe { &(*this.cast::<Self>()).value }
    }
}

/// Makes a value an object with the interface `I` and those that it extends, and returns the first
/// reference to it. The value is dropped after the last one, on the thread that releases it.
pub fn create<I: Implements<T>, T: Send + Sync + 'static>(value: T) -> I {
    let object = Box::new(Object {
        vtable: std::ptr::from_ref(I::VTABLE).cast(),
        unknown: Unknown::Counted { extends: I::extends, references: AtomicU32::new(1) },
        value,
    });
    // SAFETY: the box begins with a pointer to the vtable of `I`, has one reference, and is not NULL.
    unsafe { I::from_raw(Box::into_raw(object).cast()).unwrap_unchecked() }
}

/// `QueryInterface` of objects of `T`.
pub(crate) unsafe extern "system" fn query_interface<T>(
    this: *mut c_void,
    iid: *const Guid,
    found: *mut *mut c_void,
) -> HResult {
    let are_null = iid.is_null() || found.is_null();
    // SAFETY: the caller has a reference to an object of T, and the pointers are its promise.
    unsafe {
        let object = &*this.cast::<Object<T>>();
        let answer = match &object.unknown {
            Unknown::Counted { .. } if are_null => return HResult::INVALID_ARGUMENT,
            Unknown::Counted { extends, references } if extends(&*iid) => {
                count_one_more(references);
                Ok(None)
            }
            Unknown::Counted { .. } => Err(HResult::NO_INTERFACE),
            Unknown::Owned(own) => (own.query)(&object.value, (!are_null).then(|| &*iid)),
        };
        let (result, pointer) = match answer {
            Ok(other) => (HResult::OK, other.map_or(this, NonNull::as_ptr)),
            Err(refused) => (refused, null_mut()),
        };
        if !found.is_null() {
            found.write(pointer);
        }
        result
    }
}

/// `AddRef` of objects of `T`.
pub(crate) unsafe extern "system" fn add_reference<T>(this: *mut c_void) -> u32 {
    // SAFETY: the caller has a reference to an object of T.
    let object = unsafe { &*this.cast::<Object<T>>() };
    match &object.unknown {
        Unknown::Counted { references, .. } => count_one_more(references),
        Unknown::Owned(own) => (own.add_reference)(&object.value),
    }
}

/// `Release` of objects of `T`.
pub(crate) unsafe extern "system" fn release<T>(this: *mut c_void) -> u32 {
    let object = this.cast::<Object<T>>();
    // SAFETY: the caller has a reference to an object of T, which it gives up.
    let left = match unsafe { &(*object).unknown } {
        Unknown::Counted { references, .. } => count_one_less(references),
        // SAFETY: as above; the owner frees the object.
        Unknown::Owned(own) => return (own.release)(unsafe { &(*object).value }),
    };
    if left == 0 {
        fence(Ordering::Acquire);
        // SAFETY: this was the last reference, and `create` has allocated the object as a box.
        drop(unsafe { Box::from_raw(object) });
    }
    left
}

/// The number of references that stays: nobody knows how many there are, and the object is never freed.
const UNCOUNTABLE: u32 = u32::MAX;

/// Counts a reference, and returns the number of all.
fn count_one_more(references: &AtomicU32) -> u32 {
    let counted = references.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
        (before != UNCOUNTABLE).then(|| before + 1)
    });
    counted.map_or(UNCOUNTABLE, |before| before + 1)
}

/// Counts a reference that is given up, and returns the number of the others.
fn count_one_less(references: &AtomicU32) -> u32 {
    let counted = references.fetch_update(Ordering::Release, Ordering::Relaxed, |before| {
        (before != UNCOUNTABLE).then(|| before.wrapping_sub(1))
    });
    counted.map_or(UNCOUNTABLE, |before| before.wrapping_sub(1))
}

interfaces! {
    ($) HResult::NOT_IMPLEMENTED;

    /// `IClassFactory`: makes the profiler's object. `DllGetClassObject` returns one.
    IClassFactory, IClassFactoryMethods, "00000001-0000-0000-c000-000000000046": IUnknown, IUnknownMethods {
        3 CreateInstance(outer: *mut c_void, riid: *const Guid, object: *mut *mut c_void);
        4 LockServer(lock: i32);
    }
}

/// An `IClassFactory` around a function that makes the object.
///
/// ```
/// use clr_com::*;
/// use clr_walker::profiling::HResult;
/// use std::ffi::c_void;
///
/// struct Profiler;
/// impl IUnknownMethods for Profiler {}
/// impl ICorProfilerCallbackMethods for Profiler {}
/// impl ICorProfilerCallback2Methods for Profiler {}
///
/// /// The export by which a runtime gets the profiler: `#[unsafe(no_mangle)]` in a profiler.
/// unsafe extern "system" fn DllGetClassObject(
///     _class: *const Guid,
///     riid: *const Guid,
///     object: *mut *mut c_void,
/// ) -> HResult {
///     // SAFETY: the runtime's pointers.
///     unsafe { ClassFactory::get(|| create::<ICorProfilerCallback2, _>(Profiler), riid, object) }
/// }
/// # let mut factory = std::ptr::null_mut();
/// # let got = unsafe { DllGetClassObject(&IUnknown::IID, &IClassFactory::IID, &mut factory) };
/// # assert_eq!(got, HResult::OK);
/// # let factory = unsafe { IClassFactory::from_raw(factory) }.unwrap();
/// # let mut object = std::ptr::null_mut();
/// # let (outer, iid) = (std::ptr::null_mut(), ICorProfilerCallback2::IID);
/// # assert_eq!(unsafe { factory.CreateInstance(outer, &iid, &mut object) }, HResult::OK);
/// # assert!(unsafe { ICorProfilerCallback2::from_raw(object) }.is_some());
/// ```
#[derive(Debug)]
pub struct ClassFactory<F>(F);

impl<F, I> ClassFactory<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Into<IUnknown>,
{
    /// Answers `DllGetClassObject`: makes a factory whose objects are made by `make`.
    ///
    /// # Safety
    /// The pointers are those of the caller of `DllGetClassObject`.
    pub unsafe fn get(make: F, riid: *const Guid, object: *mut *mut c_void) -> HResult {
        let factory: IClassFactory = create(Self(make));
        // SAFETY: a factory made by `create`; the rest is the caller's promise.
        unsafe { query_interface::<Self>(factory.as_raw(), riid, object) }
    }
}

impl<F> IUnknownMethods for ClassFactory<F> {}

impl<F, I> IClassFactoryMethods for ClassFactory<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Into<IUnknown>,
{
    unsafe fn CreateInstance(
        &self,
        outer: *mut c_void,
        riid: *const Guid,
        object: *mut *mut c_void,
    ) -> HResult {
        if !outer.is_null() {
            return HResult::NO_AGGREGATION;
        }
        let made: IUnknown = (self.0)().into();
        // SAFETY: the object is alive until the end of this function; the rest is the caller's.
        unsafe { made.query(riid, object) }
    }

    unsafe fn LockServer(&self, _lock: i32) -> HResult {
        HResult::OK
    }
}

#[cfg(test)]
mod tests {
    use super::{UNCOUNTABLE, count_one_less, count_one_more};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn references_beyond_the_count_are_never_given_up() {
        let references = AtomicU32::new(UNCOUNTABLE - 1);
        assert_eq!(count_one_less(&references), UNCOUNTABLE - 2);
        for _ in 0..4 {
            count_one_more(&references);
        }
        // It would be 1, and the next release would free an object that 2^32 others have.
        assert_eq!(references.load(Ordering::Relaxed), UNCOUNTABLE);
        assert_eq!(count_one_less(&references), UNCOUNTABLE);
        let last = AtomicU32::new(1);
        assert_eq!(
            (count_one_more(&last), count_one_less(&last), count_one_less(&last)),
            (2, 1, 0)
        );
    }
}
