//! The operating systems of ready-to-run images.

use crate::registers::Convention;
use object::pe;

/// The operating system that the code of a PE image was compiled for. Ready-to-run images of all
/// systems are PE files, with the Machine field XORed with a number of the system.
///
/// Source of the numbers: `IMAGE_FILE_MACHINE_NATIVE_OS_OVERRIDE`, dotnet/runtime
/// `src/coreclr/inc/pedecoder.h` at 0204f5c. That of Linux is in the images of .NET Core 3.1.23, too;
/// no image of the other systems was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetOs {
    /// Windows: the Machine field as it is documented.
    Windows,
    /// Linux.
    Linux,
    /// macOS and its relatives.
    Apple,
    /// FreeBSD.
    FreeBsd,
    /// NetBSD.
    NetBsd,
    /// illumos and Solaris.
    SunOs,
}

impl TargetOs {
    const ALL: [Self; 6] =
        [Self::Windows, Self::Linux, Self::Apple, Self::FreeBsd, Self::NetBsd, Self::SunOs];

    /// Returns the number that the Machine field is XORed with.
    const fn mask(self) -> u16 {
        match self {
            Self::Windows => 0,
            Self::Linux => 0x7B79,
            Self::Apple => 0x4644,
            Self::FreeBsd => 0xADC4,
            Self::NetBsd => 0x1993,
            Self::SunOs => 0x1992,
        }
    }

    /// Returns the system of x86-64 code with this Machine field; `None` for other processors.
    pub(super) fn of_machine(machine: u16) -> Option<Self> {
        let amd64 = pe::IMAGE_FILE_MACHINE_AMD64.0;
        Self::ALL.into_iter().find(|system| machine == amd64 ^ system.mask())
    }

    /// Returns the name of the system.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Windows => "Windows",
            Self::Linux => "Linux",
            Self::Apple => "macOS",
            Self::FreeBsd => "FreeBSD",
            Self::NetBsd => "NetBSD",
            Self::SunOs => "illumos",
        }
    }

    /// Returns the calling convention of the code.
    pub const fn convention(self) -> Convention {
        match self {
            Self::Windows => Convention::WindowsX64,
            Self::Linux | Self::Apple | Self::FreeBsd | Self::NetBsd | Self::SunOs => {
                Convention::SystemV
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of `pedecoder.h`; 0x8664 is x86-64.
    #[test]
    fn machines_belong_to_systems() {
        for (machine, name, convention) in [
            (0x8664, "Windows", Convention::WindowsX64),
            (0xFD1D, "Linux", Convention::SystemV),
            (0xC020, "macOS", Convention::SystemV),
            (0x2BA0, "FreeBSD", Convention::SystemV),
            (0x9FF7, "NetBSD", Convention::SystemV),
            (0x9FF6, "illumos", Convention::SystemV),
        ] {
            let system = TargetOs::of_machine(machine).unwrap();
            assert_eq!((system.name(), system.convention()), (name, convention), "{machine:#x}");
        }
        // ARM64, and ARM64 of Linux.
        assert_eq!([0xAA64, 0xD11D].map(TargetOs::of_machine), [None; 2]);
    }
}
