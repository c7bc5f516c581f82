//! IL: bodies of methods, and the memory for new ones. Nothing compiles what the profiler sets.
//!
//! A probe of wrong arguments in three places had the same results on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0 on Linux.

use super::Call;
use crate::inner::{Inner, ScopeKey};
use crate::object::{Head, Headed, Kind, make};
use crate::out::{Answer, count, put};
use crate::results;
use clr_com::{
    ICorProfilerInfoMethods, IMethodMalloc, IMethodMallocMethods, IUnknown, IUnknownMethods,
    Interface, ModuleId, Token,
};
use clr_metadata as md;
use clr_metadata::{Table, table_of};
use clr_runtime::Outcome;
use clr_walker::profiling::{CallError, HResult};
use std::ffi::c_void;

/// `miCodeTypeMask`: 0 is IL, 2 is OPTIL.
const CODE_TYPE: u32 = 3;
const OPTIL: u32 = 2;
/// `miInternalCall`.
const INTERNAL_CALL: u32 = 0x1000;
/// The largest body that an allocator gives memory for.
const LARGEST: u32 = 0x0100_0000;

impl Call<'_> {
    /// Refuses a module that is being loaded, other than the core library, where the runtime answers for IL only afterwards:
    /// CoreCLR 3.1 (recorded there and on 8, 9, 10 and 11, which answer).
    fn check_loaded(&self, module: u64) -> Result<(), CallError<Outcome>> {
        let is_core =
            self.runtime().metadata.modules().last().is_some_and(|core| core.id == module);
        let answers = is_core || self.session.generation.family().is_core_since(5);
        if answers || self.caller().is_loaded(module) {
            return Ok(());
        }
        Err(CallError::Failed(HResult::DATA_INCOMPLETE))
    }

    /// Refuses a nil token and one of another table.
    fn check_method(token: u32) -> Result<(), HResult> {
        let is_method = table_of(token) == Some(Table::Method) && md::row_of(token) != 0;
        is_method.then_some(()).ok_or(HResult::INVALID_ARGUMENT)
    }

    ICorProfilerInfoMethods!(get_il_body = GetILFunctionBody(self, module, token, header, size) {
        self.begin()?;
        if module.0 == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        Self::check_method(token)?;
        let id = self.module_of(module.0)?.id;
        self.check_loaded(id)?;
        let stage = self.session.stage_number();
        let key = ScopeKey::own(stage, id);
        let Some(data) = self.session.metadata_of(key) else { return self.unknown(id) };
        let set = self.session.bodies.borrow().get(&(stage, id, token)).copied();
        let (address, len) = if let Some((address, len)) = set {
            (address as u64, len)
        } else {
            let data = data.borrow();
            if !data.has_row(Table::Method, token) {
                return Ok(results::INDEX_NOT_FOUND);
            }
            let rva = data.get(token, md::Method::RVA);
            let code = data.get(token, md::Method::ImplFlags);
            let has_il = matches!(code & CODE_TYPE, 0 | OPTIL) || code & INTERNAL_CALL != 0;
            let Some(image) = self.runtime().metadata.image(id) else { return self.unknown(id) };
            let body = image.body(rva).filter(|_| rva != 0 && has_il);
            let Some(body) = body else { return Ok(HResult::FUNCTION_NOT_IL) };
            if self.session.map(image).is_none() {
                return Ok(results::ADDRESS_TAKEN);
            }
            (image.address(rva), count(body.len()))
        };
        // SAFETY: the profiler's pointers.
        unsafe {
            put(header, address as *const u8);
            put(size, len);
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfoMethods!(get_il_allocator = GetILFunctionBodyAllocator(self, module, allocator) {
        self.begin()?;
        if module.0 == 0 || allocator.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let id = self.module_of(module.0)?.id;
        self.check_loaded(id)?;
        // A module has one.
        let known = self.session.allocators.borrow().get(&id).copied();
        let made = known.unwrap_or_else(|| {
            let made = Allocator::make(self.session) as usize;
            self.session.allocators.borrow_mut().insert(id, made);
            made
        });
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(allocator, made as *mut c_void) };
        Ok(HResult::OK)
    });

    ICorProfilerInfoMethods!(set_il_body = SetILFunctionBody(self, module, token, header) {
        self.begin()?;
        self.check_may_change()?;
        if module.0 == 0 || header.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        Self::check_method(token)?;
        let id = self.module_of(module.0)?.id;
        let stage = self.session.stage_number();
        // That there is no such method is not noticed.
        // SAFETY: the profiler's body has what its headers say.
        let byte = |at: usize| Some(unsafe { header.add(at).read() });
        let size = md::body_size_by(byte).map_or(0, count);
        let mut bodies = self.session.bodies.borrow_mut();
        bodies.insert((stage, id, token), (header as usize, size));
        Ok(HResult::OK)
    });
}

/// An `IMethodMalloc`.
pub(crate) struct Allocator(Head);

impl Allocator {
    const KIND: Kind = Kind::Uncounted(&[IUnknown::IID, IMethodMalloc::IID]);

    fn make(session: &Inner) -> *mut c_void {
        session
            .keep(|number| make::<IMethodMalloc, _>(Self(Head::new(session, number, Self::KIND))))
    }
}

impl Headed for Allocator {
    fn head(&self) -> &Head {
        &self.0
    }
}

impl IUnknownMethods for Allocator {
    fn unimplemented(&self, method: &'static str) {
        self.0.not_simulated(method);
    }
}

impl IMethodMallocMethods for Allocator {
    unsafe fn Alloc(&self, size: u32) -> *mut c_void {
        let mut found = std::ptr::null_mut();
        self.0.call("Alloc", |session| {
            if (1..=LARGEST).contains(&size) {
                found = session.allocate(size as usize).cast();
            }
            Ok(HResult::OK)
        });
        found
    }
}
