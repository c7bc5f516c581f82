//! Names that a text gives: modules with types and methods.

/// A module, and the types in it that are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleNames {
    /// Path of the module's file, in the system's form.
    pub path: String,
    /// Simple name of the assembly; `None` for the name of the file without `.dll` or `.exe`.
    pub assembly: Option<String>,
    /// Types, in the order of their tokens.
    pub types: Vec<TypeNames>,
}

/// A type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeNames {
    /// Name, with the namespace unless the type is nested: `Acme.Web.Handler`.
    pub name: String,
    /// Names of the type parameters.
    pub parameters: Vec<String>,
    /// Full names of the classes of its custom attributes.
    pub attributes: Vec<String>,
    /// Fields, in the order of their tokens.
    pub fields: Vec<FieldNames>,
    /// Methods, in the order of their tokens.
    pub methods: Vec<MethodNames>,
    /// Nested types.
    pub types: Vec<TypeNames>,
}

/// A field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// Name without the type.
    pub name: String,
    /// Kind of its value.
    pub kind: FieldKind,
    /// True for a field of the type, not of its objects.
    pub is_static: bool,
}

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldKind {
    /// 32 bits.
    #[default]
    Int,
    /// 64 bits.
    Long,
    /// A reference to a string.
    String,
    /// A reference to any object.
    Object,
}

impl FieldKind {
    /// Returns the size in bytes.
    pub const fn size(self) -> u32 {
        match self {
            Self::Int => 4,
            Self::Long | Self::String | Self::Object => 8,
        }
    }

    /// Returns true for a reference.
    pub const fn is_reference(self) -> bool {
        matches!(self, Self::String | Self::Object)
    }
}

/// A method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodNames {
    /// Name without the type.
    pub name: String,
    /// Names of the type parameters.
    pub parameters: Vec<String>,
    /// Full names of the classes of its custom attributes.
    pub attributes: Vec<String>,
}

impl TypeNames {
    pub(super) fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

impl MethodNames {
    pub(super) fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// Returns the name of a file without its folder.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the name of an assembly, given its file's path.
pub(super) fn assembly_name(path: &str) -> &str {
    let name = file_name(path);
    let stem = name.strip_suffix(".dll").or_else(|| name.strip_suffix(".exe"));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// Splits the name of a member from that of its type: `App.Main` and `..ctor` at the last dot that
/// is not the first letter of the member's name. Returns an empty type for global functions.
pub(super) fn split(name: &str) -> (&str, &str) {
    let at = match name.rfind('.') {
        Some(at) if at > 0 && name.get(..at).is_some_and(|before| before.ends_with('.')) => at - 1,
        Some(at) => at,
        None => return ("", name),
    };
    (name.get(..at).unwrap_or_default(), name.get(at + 1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_split_from_its_type() {
        assert_eq!(split("App.Prog.Main"), ("App.Prog", "Main"));
        assert_eq!(split("App.Prog..ctor"), ("App.Prog", ".ctor"));
        assert_eq!(split("Main"), ("", "Main"));
        assert_eq!(split(".cctor"), ("", "cctor"));
    }

    #[test]
    fn an_assembly_has_the_name_of_its_file() {
        assert_eq!(assembly_name("/opt/acme/Acme.Web.dll"), "Acme.Web");
        assert_eq!(assembly_name(r"C:\acme\acme.exe"), "acme");
        assert_eq!(assembly_name(".dll"), ".dll");
        assert_eq!(assembly_name("Acme.netmodule"), "Acme.netmodule");
    }
}
