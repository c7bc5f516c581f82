//! Functions whose tables do not say what really is, at some of their instructions.

/// A function by its first bytes, which stay the same from version to version.
struct Known {
    module: &'static str,
    begins: &'static [u8],
    #[expect(dead_code, reason = "for the reader")]
    why: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        module: "libc.so.6",
        // push rbx; push rbp; lea rbx, [rdx]; neg rbx
        begins: &[0x53, 0x55, 0x48, 0x8D, 0x1A, 0x48, 0xF7, 0xDB],
        why: "__mpn_mul_1 of glibc 2.36: assembly that pushes two registers without telling of it",
    },
    Known {
        module: "libc.so.6",
        // mov r8, [rdi + 0x30]; mov r9, [rdi + 8]
        begins: &[0x4C, 0x8B, 0x47, 0x30, 0x4C, 0x8B, 0x4F, 0x08],
        why: "__longjmp of glibc 2.36: its table tells of the frame that it jumps to",
    },
];

/// Functions of libgcc (12.2) that put another frame's registers where their own callers' are, and then
/// leave to it: `eh_return`.
const LEAVE_TO_OTHERS: [&str; 4] = [
    "_Unwind_ForcedUnwind",
    "_Unwind_RaiseException",
    "_Unwind_Resume",
    "_Unwind_Resume_or_Rethrow",
];

/// Whether a function is known to be described wrongly somewhere.
pub(super) fn is_known(module: &str, symbol: Option<&str>, code: &[u8]) -> bool {
    let leaves = |symbol| LEAVE_TO_OTHERS.contains(&symbol);
    module.starts_with("libgcc_s") && symbol.is_some_and(leaves)
        || KNOWN.iter().any(|known| module == known.module && code.starts_with(known.begins))
}
