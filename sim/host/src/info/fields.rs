//! The fields of classes: where they lie in objects, and where static ones are.
//!
//! A probe of four classes had the same results on 8.0.34, 10.0.15 and 11.0.0: references come first, in the order of their tokens,
//! then numbers, the larger ones first. Of the other runtimes this is assumed.

use super::Call;
use clr_com::{ClassId, FieldOffset, Token};
use clr_runtime::Outcome;
use clr_runtime::metadata::{FieldKind, FieldNames, Module, TypeDef};
use clr_walker::profiling::CallError;

/// Offset of the first field in an object, in bytes: its class is before it.
const FIRST: u32 = 8;
/// Bytes of an object before its class, and of the smallest object.
const HEADER: u32 = 8;
const SMALLEST: u32 = 24;
/// The name of a static constructor.
const STATIC_CONSTRUCTOR: &str = ".cctor";

/// The fields of a class's objects.
pub(super) struct ClassLayout {
    /// The fields in the order of their tokens.
    pub(super) fields: Vec<FieldOffset>,
    /// Bytes of an object.
    pub(super) size: u32,
}

impl ClassLayout {
    fn of(module: &Module, class: &TypeDef) -> Self {
        let own =
            |(_, owner, field): &(_, Token, &FieldNames)| *owner == class.token && !field.is_static;
        let mut all: Vec<_> =
            module.fields().filter(own).map(|(token, _, one)| (token, one.kind)).collect();
        let rank = |kind: FieldKind| (!kind.is_reference(), u32::MAX - kind.size());
        all.sort_by_key(|(_, kind)| rank(*kind));
        let mut next = FIRST;
        let place = |(token, kind): (Token, FieldKind)| {
            let offset = next;
            next += kind.size();
            FieldOffset { field: token, offset }
        };
        let mut fields: Vec<_> = all.into_iter().map(place).collect();
        fields.sort_by_key(|one| one.field);
        Self { fields, size: (HEADER + next).next_multiple_of(8).max(SMALLEST) }
    }
}

impl Call<'_> {
    /// Returns the layout of a class.
    pub(super) fn layout_of(&self, class: ClassId) -> Result<ClassLayout, CallError<Outcome>> {
        let (module, one) = self.class_of(class.0)?;
        Ok(ClassLayout::of(module, one))
    }

    /// Returns true if a field of a class is static, or `None` if the class has no such field.
    pub(super) fn is_static(
        &self,
        class: ClassId,
        field: Token,
    ) -> Result<Option<bool>, CallError<Outcome>> {
        let (module, one) = self.class_of(class.0)?;
        let found =
            module.fields().find(|(token, owner, _)| (*token, *owner) == (field, one.token));
        Ok(found.map(|(.., found)| found.is_static))
    }

    /// Returns true for a class whose static fields are there only when its static constructor has run.
    pub(super) fn has_static_constructor(&self, class: ClassId) -> bool {
        self.runtime().metadata.class(class.0).is_some_and(|(module, one)| {
            let mut methods = module.methods().iter();
            methods.any(|method| method.owner == one.token && method.name == STATIC_CONSTRUCTOR)
        })
    }
}
