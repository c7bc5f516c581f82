//! Functions whose tables are wrong at some of their instructions.

/// A function, identified by its first bytes, which stay the same from version to version.
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
        why: "__mpn_mul_1 of glibc 2.36: assembly that pushes two registers without CFI",
    },
    Known {
        module: "libc.so.6",
        // mov r8, [rdi + 0x30]; mov r9, [rdi + 8]
        begins: &[0x4C, 0x8B, 0x47, 0x30, 0x4C, 0x8B, 0x4F, 0x08],
        why: "__longjmp of glibc 2.36: its table describes the frame that it jumps to",
    },
];

/// Functions of libgcc (12.2) that replace their own callers' registers by those of another frame,
/// and return to that: `eh_return`.
const LEAVE_TO_OTHERS: [&str; 4] = [
    "_Unwind_ForcedUnwind",
    "_Unwind_RaiseException",
    "_Unwind_Resume",
    "_Unwind_Resume_or_Rethrow",
];

/// Returns true if a function's table is known to be wrong somewhere.
pub(super) fn is_known(module: &str, symbol: Option<&str>, code: &[u8]) -> bool {
    let leaves = |symbol| LEAVE_TO_OTHERS.contains(&symbol);
    module.starts_with("libgcc_s") && symbol.is_some_and(leaves)
        || KNOWN.iter().any(|known| module == known.module && code.starts_with(known.begins))
}
