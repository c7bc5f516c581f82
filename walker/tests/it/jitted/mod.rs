//! Jitted code: read from recordings of real processes, and from memory made by hand.

mod contracts;
mod headers;
mod methods;
mod process;
mod recorded;
mod recording;

use crate::jitted::process::{BASE, HEADER, METHOD_DESC, Process, START, UNWIND};
use clr_unwind::{CodeMap, Convention, Memory, Unreadable};
use clr_walker::jitted::contracts::{
    CodeAt, CodeLookupError, ContractDescriptor, ContractError, ContractVersion, ExecutionManager,
};
use clr_walker::jitted::{
    CodeHeaderLayout, JittedCodeError, JittedMethod, JittedMethods, JittedMethodsError,
    StubBlockKind,
};
