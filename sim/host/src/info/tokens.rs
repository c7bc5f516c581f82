//! Functions and classes of tokens.

use super::Call;
use crate::out::{Answer, put};
use crate::results;
use clr_com::{ClassId, ICorProfilerInfo2Methods, ICorProfilerInfoMethods, ModuleId, Token};
use clr_metadata::{Table, table_of, token};
use clr_runtime::profiling::TYPE_LOAD;
use clr_runtime::{Method, Outcome};
use clr_walker::profiling::{CallError, FunctionId, HResult};

/// Refuses a token of a table that has no methods.
fn check_method(token: Token) -> Result<(), HResult> {
    let is_method = matches!(table_of(token), Some(Table::Method | Table::MemberRef));
    is_method.then_some(()).ok_or(HResult::INVALID_ARGUMENT)
}

impl Call<'_> {
    /// Refuses calls before the core library is loaded.
    fn check_started(&self) -> Result<(), CallError<Outcome>> {
        if self.runtime().process.get().started {
            return Ok(());
        }
        Err(HResult::RUNTIME_UNINITIALIZED.into())
    }

    /// Returns the method of a token, if its class is loaded.
    fn method_of(&self, module: u64, token: Token) -> Option<&Method> {
        if self.runtime().unfinished.borrow().has_no_classes(module) {
            return None;
        }
        let mut all = self.runtime().code.methods().map(|(_, method)| method);
        all.find(|one| one.module == module && one.token == token)
    }

    ICorProfilerInfoMethods!(class_of_token = GetClassFromToken(self, module, type_def, class) {
        const NIL: Token = token(Table::TypeDef, 0);
        self.begin()?;
        if module.0 == 0 || matches!(type_def, 0 | NIL) {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.check_started()?;
        let module = self.module_of(module.0)?;
        self.caller().may_fail(self.method)?;
        // Of the token only the row counts (recorded).
        let token = token(Table::TypeDef, type_def);
        let Some(found) = module.types().iter().find(|one| one.token == token) else {
            return Ok(TYPE_LOAD);
        };
        if module.parameters_of(token).next().is_some() {
            return Ok(HResult::TYPE_IS_PARAMETERIZED);
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(class, ClassId(found.class)) };
        Ok(HResult::OK)
    });

    ICorProfilerInfoMethods!(function_of_token = GetFunctionFromToken(self, module, token, function) {
        self.begin()?;
        if module.0 == 0 || token == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.check_started()?;
        let module = self.module_of(module.0)?;
        check_method(token)?;
        let Some(method) = self.method_of(module.id, token) else {
            return Ok(HResult::INVALID_ARGUMENT);
        };
        if method.shared {
            return Ok(HResult::FUNCTION_IS_PARAMETERIZED);
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(function, method.id) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(function_of_token_and_arguments = GetFunctionFromTokenAndTypeArgs(self,
        module, method, class, len, type_args, function) {
        self.begin()?;
        if module.0 == 0 || class.0 == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.check_started()?;
        let module = self.module_of(module.0)?;
        check_method(method)?;
        self.class_of(class.0)?;
        let Some(found) = self.method_of(module.id, method) else {
            return Ok(HResult::DATA_INCOMPLETE);
        };
        if len > 0 && type_args.is_null() {
            return self.null("typeArgs");
        }
        if function.is_null() {
            return self.null("pFunctionID");
        }
        self.caller().may_fail(self.method)?;
        if found.type_arguments.len() != len as usize {
            return Ok(results::BAD_FORMAT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(function, found.id) };
        Ok(HResult::OK)
    });

    /// Returns the function of a method that RequestReJIT names.
    pub(super) fn function_named(&self, module: u64, token: Token) -> Option<FunctionId> {
        self.method_of(module, token).map(|method| method.id)
    }
}
