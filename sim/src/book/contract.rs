#![doc = include_str!("contract/index.md")]

use super::references::Page;

/// Declares one module for each page. The modules contain no code.
macro_rules! pages {
    ($($name:ident)*) => {
        $(
            #[doc = include_str!(concat!("contract/", stringify!($name), ".md"))]
            pub mod $name {}
        )*

        pub(super) const PAGES: &[Page] = &[$(Page {
            name: concat!("contract/", stringify!($name)),
            text: include_str!(concat!("contract/", stringify!($name), ".md")),
        },)*];
    };
}

pages! {
    types
    entry_checks
    walk
    leaves
    worked_stacks
    methods
    waits
    unwinding
    documents
    field_bugs
}
