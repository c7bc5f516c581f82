//! The parts that all interfaces have in common.

use crate::{Guid, object};
use clr_walker::profiling::HResult;
use std::ffi::c_void;
use std::ptr::NonNull;

/// A pointer to an object with a COM interface, which owns one reference.
///
/// # Safety
/// The type is a `repr(transparent)` wrapper of [`IUnknown`], and the first word of the object that
/// it points to points to a `Vtable`.
pub unsafe trait Interface: Sized {
    /// The function pointers, those of the base interface first.
    type Vtable: Copy + 'static;

    /// The interface's id.
    const IID: Guid;

    /// Returns true if an object with this interface has the one with this id: the same, or one
    /// that it extends.
    fn extends(iid: &Guid) -> bool;

    /// Takes over a reference to an object, or returns `None` for NULL.
    ///
    /// # Safety
    /// `raw` is NULL, or a pointer to an object with this interface, and the caller gives up one of
    /// its references.
    unsafe fn from_raw(raw: *mut c_void) -> Option<Self> {
        let unknown = IUnknown(NonNull::new(raw)?);
        let this = std::mem::ManuallyDrop::new(unknown);
        // SAFETY: by the promise of the trait, `Self` is such a pointer.
        Some(unsafe { std::mem::transmute_copy::<IUnknown, Self>(&this) })
    }
}

/// An interface that values of the type `T` can have.
///
/// # Safety
/// The functions of the table expect an object of `T`, as `create` makes it.
pub unsafe trait Implements<T>: Interface {
    /// The functions that call the methods of a `T`.
    const VTABLE: &'static Self::Vtable;
}

/// `IUnknown`: references, and other interfaces of an object.
///
/// All objects behind the interfaces of this crate can be used by any thread: the documentation of
/// the profiling interface says that of the runtime's, and [`create`](crate::create) demands it of
/// a profiler's.
#[repr(transparent)]
#[derive(Debug)]
pub struct IUnknown(NonNull<c_void>);

// SAFETY: see above: objects are free-threaded, and their counts are atomic.
unsafe impl Send for IUnknown {}
// SAFETY: the same.
unsafe impl Sync for IUnknown {}

/// The methods of any object; those of `IUnknown` itself are made by [`create`](crate::create) or
/// [`own`](crate::own).
pub trait IUnknownMethods {
    /// Notices a call of a method that the type does not implement.
    fn unimplemented(&self, method: &'static str) {
        let _ = method;
    }
}

/// The first three functions of each interface.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UnknownVtable {
    query_interface:
        unsafe extern "system" fn(*mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    add_reference: unsafe extern "system" fn(*mut c_void) -> u32,
    release: unsafe extern "system" fn(*mut c_void) -> u32,
}

// SAFETY: the pointer type itself; every COM object begins with these three.
unsafe impl Interface for IUnknown {
    type Vtable = UnknownVtable;

    const IID: Guid = Guid::new("00000000-0000-0000-c000-000000000046");

    fn extends(iid: &Guid) -> bool {
        *iid == Self::IID
    }
}

// SAFETY: the functions cast their argument to an `Object<T>`.
unsafe impl<T> Implements<T> for IUnknown {
    const VTABLE: &'static UnknownVtable = &UnknownVtable {
        query_interface: object::query_interface::<T>,
        add_reference: object::add_reference::<T>,
        release: object::release::<T>,
    };
}

impl IUnknown {
    /// Returns the pointer, which stays valid for as long as `self`.
    pub const fn as_raw(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Returns the pointer with its reference, which the caller now owns.
    pub fn into_raw(self) -> *mut c_void {
        std::mem::ManuallyDrop::new(self).as_raw()
    }

    fn vtable(&self) -> UnknownVtable {
        // SAFETY: an object begins with a pointer to its functions, of which these are the first.
        unsafe { **self.0.cast::<*const UnknownVtable>().as_ptr() }
    }

    /// Calls `QueryInterface`.
    ///
    /// # Safety
    /// The pointers are as the documentation of `QueryInterface` demands.
    pub unsafe fn query(&self, riid: *const Guid, found: *mut *mut c_void) -> HResult {
        // SAFETY: the pointer is valid; the caller answers for the arguments.
        unsafe { (self.vtable().query_interface)(self.as_raw(), riid, found) }
    }

    /// Gives the reference up, and returns the number of those that the object says are left. Drop does
    /// the same without the number.
    #[must_use = "drop it to release it without the number"]
    pub fn release(self) -> u32 {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: this pointer owns a reference, which ends here.
        unsafe { (this.vtable().release)(this.as_raw()) }
    }

    /// Calls `AddRef`.
    ///
    /// # Safety
    /// A reference of this pointer's own is not counted: the caller has to release the new one.
    pub(crate) unsafe fn add_reference(&self) -> u32 {
        // SAFETY: the pointer is valid.
        unsafe { (self.vtable().add_reference)(self.as_raw()) }
    }

    /// Calls `Release`.
    ///
    /// # Safety
    /// The reference is one that the caller has counted, or was given; or the object outlives its
    /// references.
    pub(crate) unsafe fn release_reference(&self) -> u32 {
        // SAFETY: the pointer is valid; the reference is the caller's.
        unsafe { (self.vtable().release)(self.as_raw()) }
    }

    /// Returns another interface of the object.
    ///
    /// # Errors
    /// `E_NOINTERFACE`, or what else the object answers.
    pub fn cast<I: Interface>(&self) -> Result<I, HResult> {
        let mut found = std::ptr::null_mut();
        // SAFETY: the two arguments point to what they should.
        let result = unsafe { self.query(&I::IID, &raw mut found) };
        if result.is_failure() {
            return Err(result);
        }
        // SAFETY: QueryInterface has counted a reference to an object with this interface.
        unsafe { I::from_raw(found) }.ok_or(HResult::UNEXPECTED)
    }
}

impl Clone for IUnknown {
    fn clone(&self) -> Self {
        // SAFETY: the pointer is valid.
        unsafe { (self.vtable().add_reference)(self.as_raw()) };
        Self(self.0)
    }
}

impl Drop for IUnknown {
    fn drop(&mut self) {
        // SAFETY: this pointer owns a reference, which ends here.
        unsafe { (self.vtable().release)(self.as_raw()) };
    }
}

/// A result that a method without an implementation returns.
pub(crate) trait Unimplemented {
    /// Returns this HRESULT, if the method returns one.
    fn with(result: HResult) -> Self;
}

impl Unimplemented for HResult {
    fn with(result: HResult) -> Self {
        result
    }
}

impl Unimplemented for () {
    fn with(_: HResult) {}
}

impl Unimplemented for i32 {
    fn with(_: HResult) -> Self {
        0
    }
}

impl Unimplemented for *mut c_void {
    fn with(_: HResult) -> Self {
        std::ptr::null_mut()
    }
}

/// Declares interfaces: `Interface, TraitOfItsMethods, "id": Base, TraitOfItsMethods`, then each
/// method with its slot in the vtable. Methods that a type does not implement return `$default`.
///
/// A macro with the name of the trait implements one of its methods. The type has a method `on`, which takes the name
/// and a closure:
/// `GetRVA => rva` passes all arguments to `rva` of the closure's argument, `GetRVA = result` returns a result,
/// `ForceGC: force_gc` calls `force_gc` of `caller()` of the closure's argument, and
/// `fn GetRVA(call, token, rva, flags) { … }` is such a closure. `fn GetRVA(&self, token, rva, flags) { … }` is the method
/// itself, and `GetRVA in declare` passes its signature to the macro `declare`. `rva = GetRVA(self, token, rva, flags) { … }` declares what
/// `=>` passes the arguments to. Types are those of the interface.
macro_rules! interfaces {
    (($d:tt) $default:expr; $(
        $(#[$doc:meta])*
        $name:ident, $methods:ident, $iid:literal: $base:ident, $base_methods:ident {
            $($slot:literal $method:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Debug)]
        pub struct $name($base);

        impl std::ops::Deref for $name {
            type Target = $base;

            fn deref(&self) -> &$base {
                &self.0
            }
        }

        impl From<$name> for $crate::IUnknown {
            fn from(pointer: $name) -> Self {
                pointer.0.into()
            }
        }

        #[doc = concat!("The methods of [`", stringify!($name), "`], for a type that implements it.")]
        #[allow(clippy::missing_safety_doc, clippy::too_many_arguments, reason = "as documented")]
        pub trait $methods: $base_methods {
            $(
                #[doc = concat!("`", stringify!($method), "`.")]
                unsafe fn $method(&self, $($argument: $type),*)
                    -> $crate::interface::interfaces!(@result $($result)?)
                {
                    let _ = ($($argument,)*);
                    self.unimplemented(stringify!($method));
                    $crate::interface::Unimplemented::with($default)
                }
            )*
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $methods {
            $(
                (fn $method($d call:ident $(, $d $argument:ident)*) $d body:block) => {
                    unsafe fn $method(&self, $($d $argument: $type),*) -> clr_walker::profiling::HResult {
                        self.on(stringify!($method), |$d call| $d body)
                    }
                };
                (fn $method(& $d this:ident $(, $d $argument:ident)*) $d body:block) => {
                    unsafe fn $method(&$d this, $($d $argument: $type),*) -> clr_walker::profiling::HResult $d body
                };
                ($method in $d declare:ident) => { $d declare! { $method($($argument: $type),*); } };
                ($d name:ident = $method($d this:ident $(, $d $argument:ident)*) $d body:block) => {
                    #[allow(clippy::too_many_arguments, reason = "as documented")]
                    pub(super) unsafe fn $d name(&$d this, $($d $argument: $type),*) -> Answer $d body
                };
                ($method => $d to:ident) => {
                    unsafe fn $method(&self, $($argument: $type),*) -> clr_walker::profiling::HResult {
                        // SAFETY: the caller answers for the arguments.
                        self.on(stringify!($method), |call| unsafe { call.$d to($($argument),*) })
                    }
                };
                ($method = $d answer:expr) => {
                    unsafe fn $method(&self, $(_: $type),*) -> clr_walker::profiling::HResult {
                        self.on(stringify!($method), |_| Ok($d answer))
                    }
                };
                ($method: $d to:ident) => {
                    unsafe fn $method(&self, $($argument: $type),*) -> clr_walker::profiling::HResult {
                        self.on(stringify!($method), |call| {
                            call.caller().$d to($($argument),*)?;
                            Ok(clr_walker::profiling::HResult::OK)
                        })
                    }
                };
            )*
        }

        #[allow(clippy::too_many_arguments, reason = "as documented")]
        impl $name {
            $(
                #[doc = concat!("Calls `", stringify!($method), "`, slot ", $slot, ".")]
                ///
                /// # Safety
                /// The pointers are as the documentation of the method demands.
                pub unsafe fn $method(&self, $($argument: $type),*)
                    -> $crate::interface::interfaces!(@result $($result)?)
                {
                    let this = self.as_raw();
                    // SAFETY: the object has this interface, so its first word points to the
                    // vtable; the caller answers for the arguments.
                    unsafe {
                        let vtable = *this.cast::<*const <Self as $crate::Interface>::Vtable>();
                        ((*vtable).$method)(this, $($argument),*)
                    }
                }
            )*
        }

        #[allow(clippy::too_many_arguments, reason = "as documented")]
        impl $methods for $crate::Forwarder {
            $(
                unsafe fn $method(&self, $($argument: $type),*)
                    -> $crate::interface::interfaces!(@result $($result)?)
                {
                    let words = &mut [$($crate::dynamic::Word::word(&$argument)),*];
                    // SAFETY: the caller answers for the arguments, which live until the call is over.
                    unsafe {
                        $crate::dynamic::Word::from_word(self.forward::<$name>($slot, words))
                    }
                }
            )*
        }

        impl $crate::dynamic::Callable for $name {
            fn method(slot: u32) -> Option<$crate::dynamic::MethodSignature> {
                let (name, arguments): (_, &'static [_]) = match slot {
                    $($slot => (
                        stringify!($method),
                        const {
                            &[$($crate::dynamic::argument::<$type>(
                                stringify!($argument), stringify!($type),
                            ),)*]
                        },
                    ),)*
                    _ => return <$base as $crate::dynamic::Callable>::method(slot),
                };
                Some($crate::dynamic::MethodSignature { name, arguments })
            }

            unsafe fn call(&self, slot: u32, words: &[u64]) -> Option<u64> {
                let mut iter = words.iter();
                // SAFETY: the caller answers for the arguments.
                unsafe {
                    match slot {
                        $($slot => {
                            $(let $argument = $crate::dynamic::next::<$type>(&mut iter)?;)*
                            let result = self.$method($($argument),*);
                            Some($crate::dynamic::Word::word(&result))
                        })*
                        _ => $crate::dynamic::Callable::call(&self.0, slot, words),
                    }
                }
            }
        }

        const _: () = {
            use $crate::interface::{Implements, Interface};

            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct Vtable {
                base: <$base as Interface>::Vtable,
                $(
                    $method: unsafe extern "system" fn(*mut std::ffi::c_void, $($type),*)
                        -> $crate::interface::interfaces!(@result $($result)?),
                )*
            }

            $(
                const _: () = assert!(std::mem::offset_of!(Vtable, $method) == $slot * 8);
            )*

            // SAFETY: a wrapper of the base interface; the vtable has its functions first.
            unsafe impl Interface for $name {
                type Vtable = Vtable;

                const IID: $crate::Guid = $crate::Guid::new($iid);

                fn extends(iid: &$crate::Guid) -> bool {
                    *iid == Self::IID || <$base as Interface>::extends(iid)
                }
            }

            // SAFETY: each function casts its first argument to an `Object<T>`.
            unsafe impl<T: $methods> Implements<T> for $name {
                const VTABLE: &'static Vtable = &Vtable {
                    base: *<$base as Implements<T>>::VTABLE,
                    $(
                        $method: {
                            #[allow(clippy::too_many_arguments, reason = "as documented")]
                            unsafe extern "system" fn thunk<T: $methods>(
                                this: *mut std::ffi::c_void,
                                $($argument: $type),*
                            ) -> $crate::interface::interfaces!(@result $($result)?) {
                                // SAFETY: this function is only in vtables of objects of T, and the
                                // caller has a reference; it answers for the arguments.
                                unsafe {
                                    $crate::object::Object::<T>::value(this)
                                        .$method($($argument),*)
                                }
                            }
                            thunk::<T>
                        },
                    )*
                };
            }
        };
    )*};
    (@result $result:ty) => { $result };
    (@result) => { clr_walker::profiling::HResult };
}

pub(crate) use interfaces;
