//! Rules of other unwinders, their mistakes included: for who has to predict what they answer.

/// The rules to apply where unwinders disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rules {
    /// Correct where Windows is known to be wrong: a jump into a gcc cold part or back is no tail
    /// call, unless the whole frame is released before it, `rex ret` returns, iretq over a machine
    /// frame returns too, version 2 may lack EPILOG codes, jumps to a shared tail are followed,
    /// `vzeroupper` may be among the pops, `nop`, long pops and indirect jumps without REX.W end an
    /// epilogue if its code undoes the whole frame, `___chkstk_ms` is recognised by its code, and
    /// callers are looked up at their return address − 1. Operation 11 is known in the images and
    /// the generated code of Unix, and only there.
    #[default]
    Precise,
    /// Exactly the behaviour of the unwinder in CoreCLR's source, compiled for Windows, mistakes
    /// included (contract §8.2). It is a copy of an ntdll before Windows 10 1809.
    CoreClr,
    /// The behaviour of [`CoreClr`](Self::CoreClr), with the operation that CoreCLR adds on Unix:
    /// 11, UWOP_SET_FPREG_LARGE.
    CoreClrUnix,
    /// The behaviour of [`CoreClr`](Self::CoreClr) with the changes that ntdll has seen since:
    /// from Windows 10 1809 on, no epilogue is looked for in a function without unwind codes; from
    /// Windows 11 on, the establisher frame in the epilogue of a function with a frame register is
    /// the address of the return address, as the register may be popped.
    ///
    /// Source: the tables of wine's test of `RtlVirtualUnwind` (`dlls/ntdll/tests/unwind.c`), which
    /// passes on these versions of Windows. Assumed, as that test does not reach it: chained infos
    /// without codes have epilogues, the establisher frame in those of version 2 is the same, and
    /// version 3 is read as documented.
    Ntdll,
}

impl Rules {
    /// Returns true for the rules of Windows' own code, in any of its versions and copies.
    #[inline]
    pub(crate) const fn is_windows(self) -> bool {
        !matches!(self, Self::Precise)
    }

    /// Returns true if an UNWIND_INFO of this version is one of version 3 and read as such. CoreCLR's source takes every version
    /// above 2 for 2.
    pub(crate) const fn has_version_3(self, version: u8) -> bool {
        version == 3 && matches!(self, Self::Precise | Self::Ntdll)
    }
}
