//! The object that GetReJITParameters passes.

use crate::inner::Inner;
use crate::object::{Head, Headed, Kind, make};
use clr_com::{
    ICorProfilerFunctionControl, ICorProfilerFunctionControlMethods, IUnknownMethods, IlMap,
    Interface,
};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// The way to change a method that is compiled again: an `ICorProfilerFunctionControl`. What it is given is checked, and has
/// no effect on the program's code.
pub(crate) struct FunctionControl(Head);

impl FunctionControl {
    const KIND: Kind =
        Kind::Counted("ICorProfilerFunctionControl", &[ICorProfilerFunctionControl::IID]);

    /// Makes an object with one reference, which is the runtime's.
    pub(crate) fn make(session: &Inner) -> *mut c_void {
        session.keep(|number| {
            let head = Head::new(session, number, Self::KIND);
            make::<ICorProfilerFunctionControl, _>(Self(head))
        })
    }
}

impl Headed for FunctionControl {
    fn head(&self) -> &Head {
        &self.0
    }
}

impl IUnknownMethods for FunctionControl {}

impl ICorProfilerFunctionControlMethods for FunctionControl {
    unsafe fn SetCodegenFlags(&self, _: u32) -> HResult {
        self.0.call("SetCodegenFlags", |_| Ok(HResult::OK))
    }

    unsafe fn SetILFunctionBody(&self, len: u32, header: *const u8) -> HResult {
        self.0.call("SetILFunctionBody", |_| {
            let is_given = len > 0 && !header.is_null();
            Ok(if is_given { HResult::OK } else { HResult::INVALID_ARGUMENT })
        })
    }

    unsafe fn SetILInstrumentedCodeMap(&self, _: u32, _: *const IlMap) -> HResult {
        self.0.call("SetILInstrumentedCodeMap", |_| Ok(HResult::OK))
    }
}
