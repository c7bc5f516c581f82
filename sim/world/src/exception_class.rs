//! Classes of exceptions and other objects, as far as a program or the runtime names them.

use clr_walker::profiling::FunctionId;

/// The number that stands for the exception that was thrown last.
const LAST: u64 = 0x7FF8_2FFF_FFF0;

macro_rules! classes {
    ($($class:ident $name:literal,)*) => {
        /// The class of an exception, or of another object.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum ExceptionClass {
            /// The program does not name it.
            #[default]
            Unknown,
            /// The class of this constructor.
            Of(FunctionId),
            /// That of the exception that was thrown last: the same object.
            Last,
            $(#[doc = concat!("`", $name, "`.")] $class,)*
        }

        impl ExceptionClass {
            /// The classes that the runtime names.
            const KNOWN: &[Self] = &[$(Self::$class,)*];

            /// Returns the name, if the runtime names the class.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    Self::Unknown | Self::Of(_) | Self::Last => None,
                    $(Self::$class => Some($name),)*
                }
            }
        }
    };
}

classes! {
    NullReference "System.NullReferenceException",
    DivideByZero "System.DivideByZeroException",
    IndexOutOfRange "System.IndexOutOfRangeException",
    InvalidCast "System.InvalidCastException",
    TypeInitialization "System.TypeInitializationException",
    TargetInvocation "System.Reflection.TargetInvocationException",
}

impl ExceptionClass {
    /// Returns the number by which code names the class to `IL_Throw`.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Of(constructor) => constructor.0,
            Self::Last => LAST,
            known => Self::KNOWN.iter().position(|one| *one == known).map_or(0, |at| at as u64 + 1),
        }
    }

    /// Returns the class with a number, which may be the id of a method.
    pub(super) fn from_number(number: u64, is_method: bool) -> Self {
        let known = number.checked_sub(1).and_then(|at| Self::KNOWN.get(usize::try_from(at).ok()?));
        match known {
            Some(known) => *known,
            None if number == LAST => Self::Last,
            None if is_method => Self::Of(FunctionId(number)),
            None => Self::Unknown,
        }
    }
}
