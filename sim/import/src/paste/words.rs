//! Numbers and names in what debuggers print.

/// Parses a hexadecimal number, with or without `0x`, in which WinDbg has a backquote.
pub(crate) fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace('`', "");
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    u64::from_str_radix(&digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

/// Returns the last part of a path of either system.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns a method's name without its module, arguments and spaces.
pub(crate) fn method_name(text: &str) -> String {
    // C++ has parentheses in names, too.
    let text = text.replace("(anonymous namespace)", "anonymous");
    let name = text.split('(').next().unwrap_or(&text).trim();
    let name = name.split_once('!').map_or(name, |(_, name)| name);
    name.replace("::", ".").replace([' ', '@'], "_")
}
