//! The tables of ECMA-335, II.22, as data: numbers, columns, kinds and names.
//!
//! Names of tables and columns are those that IMetaDataTables gives (src/coreclr/md/inc/metamodelcolumndefs.h of
//! dotnet/runtime); the standard's differ in a few places.

/// The kind of a column: a number, or the place where its cells point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One byte, which takes two in a row.
    U8,
    /// Two bytes.
    U16,
    /// Two bytes with a sign.
    I16,
    /// Four bytes.
    U32,
    /// An offset in the heap of strings.
    String,
    /// A number in the heap of GUIDs, from 1.
    Guid,
    /// An offset in the heap of blobs.
    Blob,
    /// A row of a table.
    Row(Table),
    /// A token of one of some tables.
    Coded(Coded),
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name, with a final 0.
    pub name_with_end: &'static str,
    /// Kind of its cells.
    pub kind: Kind,
}

/// The columns of a table, as a type: [`TypeDef::Name`].
pub trait Column: Copy {
    /// The table.
    const TABLE: Table;

    /// Returns the number of the column, from 0.
    fn index(self) -> usize;
}

macro_rules! tables {
    ($($number:literal $table:ident $(key $key:ident)? {
        $($column:ident: $kind:ident $(($of:ident))?),* $(,)?
    })*) => {
        /// A table of metadata.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Table {
            $(#[doc = concat!("`", stringify!($table), "`.")] $table = $number,)*
        }

        impl Table {
            /// All tables, by number.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$table),*];

            /// Returns the table's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$table => stringify!($table),)* }
            }

            /// Returns the table's name with a final 0.
            pub const fn name_with_end(self) -> &'static str {
                match self { $(Self::$table => concat!(stringify!($table), "\0"),)* }
            }

            /// Returns the table's columns.
            pub const fn columns(self) -> &'static [ColumnSchema] {
                match self {
                    $(Self::$table => &[$(ColumnSchema {
                        name_with_end: concat!(stringify!($column), "\0"),
                        kind: tables!(@kind $kind $(($of))?),
                    },)*],)*
                }
            }

            /// Returns the number of the column by which rows are sorted, if they are.
            pub const fn key(self) -> Option<usize> {
                match self { $(Self::$table => tables!(@key $table $($key)?),)* }
            }
        }

        $(
            #[doc = concat!("The columns of the table `", stringify!($table), "`.")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $table {
                $(#[doc = concat!("`", stringify!($column), "`.")] $column,)*
            }

            impl Column for $table {
                const TABLE: Table = Table::$table;

                fn index(self) -> usize {
                    self as usize
                }
            }
        )*
    };
    (@kind Row($of:ident)) => { Kind::Row(Table::$of) };
    (@kind Coded($of:ident)) => { Kind::Coded(Coded::$of) };
    (@kind $kind:ident) => { Kind::$kind };
    (@key $table:ident $key:ident) => { Some($table::$key as usize) };
    (@key $table:ident) => { None };
}

tables! {
    0x00 Module { Generation: U16, Name: String, Mvid: Guid, EncId: Guid, EncBaseId: Guid }
    0x01 TypeRef { ResolutionScope: Coded(ResolutionScope), Name: String, Namespace: String }
    0x02 TypeDef {
        Flags: U32, Name: String, Namespace: String, Extends: Coded(TypeDefOrRef), FieldList: Row(Field),
        MethodList: Row(Method),
    }
    0x03 FieldPtr { Field: Row(Field) }
    0x04 Field { Flags: U16, Name: String, Signature: Blob }
    0x05 MethodPtr { Method: Row(Method) }
    0x06 Method {
        RVA: U32, ImplFlags: U16, Flags: U16, Name: String, Signature: Blob, ParamList: Row(Param),
    }
    0x07 ParamPtr { Param: Row(Param) }
    0x08 Param { Flags: U16, Sequence: U16, Name: String }
    0x09 InterfaceImpl key Class { Class: Row(TypeDef), Interface: Coded(TypeDefOrRef) }
    0x0A MemberRef { Class: Coded(MemberRefParent), Name: String, Signature: Blob }
    0x0B Constant key Parent { Type: U8, Parent: Coded(HasConstant), Value: Blob }
    0x0C CustomAttribute key Parent {
        Parent: Coded(HasCustomAttribute), Type: Coded(CustomAttributeType), Value: Blob,
    }
    0x0D FieldMarshal key Parent { Parent: Coded(HasFieldMarshal), NativeType: Blob }
    0x0E DeclSecurity key Parent { Action: I16, Parent: Coded(HasDeclSecurity), PermissionSet: Blob }
    0x0F ClassLayout key Parent { PackingSize: U16, ClassSize: U32, Parent: Row(TypeDef) }
    0x10 FieldLayout key Field { OffSet: U32, Field: Row(Field) }
    0x11 StandAloneSig { Signature: Blob }
    0x12 EventMap { Parent: Row(TypeDef), EventList: Row(Event) }
    0x13 EventPtr { Event: Row(Event) }
    0x14 Event { EventFlags: U16, Name: String, EventType: Coded(TypeDefOrRef) }
    0x15 PropertyMap { Parent: Row(TypeDef), PropertyList: Row(Property) }
    0x16 PropertyPtr { Property: Row(Property) }
    0x17 Property { PropFlags: U16, Name: String, Type: Blob }
    0x18 MethodSemantics key Association {
        Semantic: U16, Method: Row(Method), Association: Coded(HasSemantic),
    }
    0x19 MethodImpl key Class {
        Class: Row(TypeDef), MethodBody: Coded(MethodDefOrRef), MethodDeclaration: Coded(MethodDefOrRef),
    }
    0x1A ModuleRef { Name: String }
    0x1B TypeSpec { Signature: Blob }
    0x1C ImplMap key MemberForwarded {
        MappingFlags: U16, MemberForwarded: Coded(MemberForwarded), ImportName: String,
        ImportScope: Row(ModuleRef),
    }
    0x1D FieldRVA key Field { RVA: U32, Field: Row(Field) }
    0x1E ENCLog { Token: U32, FuncCode: U32 }
    0x1F ENCMap { Token: U32 }
    0x20 Assembly {
        HashAlgId: U32, MajorVersion: U16, MinorVersion: U16, BuildNumber: U16, RevisionNumber: U16,
        Flags: U32, PublicKey: Blob, Name: String, Locale: String,
    }
    0x21 AssemblyProcessor { Processor: U32 }
    0x22 AssemblyOS { OSPlatformId: U32, OSMajorVersion: U32, OSMinorVersion: U32 }
    0x23 AssemblyRef {
        MajorVersion: U16, MinorVersion: U16, BuildNumber: U16, RevisionNumber: U16, Flags: U32,
        PublicKeyOrToken: Blob, Name: String, Locale: String, HashValue: Blob,
    }
    0x24 AssemblyRefProcessor { Processor: U32, AssemblyRef: Row(AssemblyRef) }
    0x25 AssemblyRefOS {
        OSPlatformId: U32, OSMajorVersion: U32, OSMinorVersion: U32, AssemblyRef: Row(AssemblyRef),
    }
    0x26 File { Flags: U32, Name: String, HashValue: Blob }
    0x27 ExportedType {
        Flags: U32, TypeDefId: U32, TypeName: String, TypeNamespace: String,
        Implementation: Coded(Implementation),
    }
    0x28 ManifestResource {
        Offset: U32, Flags: U32, Name: String, Implementation: Coded(Implementation),
    }
    0x29 NestedClass key NestedClass { NestedClass: Row(TypeDef), EnclosingClass: Row(TypeDef) }
    0x2A GenericParam key Owner {
        Number: U16, Flags: U16, Owner: Coded(TypeOrMethodDef), Name: String,
    }
    0x2B MethodSpec { Method: Coded(MethodDefOrRef), Instantiation: Blob }
    0x2C GenericParamConstraint key Owner {
        Owner: Row(GenericParam), Constraint: Coded(TypeDefOrRef),
    }
}

macro_rules! coded {
    ($($name:ident $bits:literal { $($table:ident)* })*) => {
        /// A set of tables of which a column holds tokens, in the order of `CDTKN_` (src/coreclr/md/inc/metamodel.h of
        /// dotnet/runtime). `Module` stands for a tag that no table has, too.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Coded {
            $(#[doc = concat!("`", stringify!($name), "`.")] $name,)*
        }

        impl Coded {
            /// All sets.
            pub const ALL: [Self; [$($bits),*].len()] = [$(Self::$name),*];

            /// Returns the name with a final 0.
            pub const fn name_with_end(self) -> &'static str {
                match self { $(Self::$name => concat!(stringify!($name), "\0"),)* }
            }

            /// Returns the number of bits that the tag takes.
            pub const fn bits(self) -> u32 {
                match self { $(Self::$name => $bits,)* }
            }

            /// Returns the nil tokens of the tables in the order of their tags.
            pub const fn tokens(self) -> &'static [u32] {
                match self { $(Self::$name => &[$((Table::$table as u32) << 24),*],)* }
            }

            /// Returns the tables in the order of their tags.
            pub const fn tables(self) -> &'static [Table] {
                match self { $(Self::$name => &[$(Table::$table),*],)* }
            }
        }
    };
}

coded! {
    TypeDefOrRef 2 { TypeDef TypeRef TypeSpec }
    HasConstant 2 { Field Param Property }
    HasCustomAttribute 5 {
        Method Field TypeRef TypeDef Param InterfaceImpl MemberRef Module DeclSecurity Property Event
        StandAloneSig ModuleRef TypeSpec Assembly AssemblyRef File ExportedType ManifestResource
        GenericParam GenericParamConstraint MethodSpec Module Module
    }
    HasFieldMarshal 1 { Field Param }
    HasDeclSecurity 2 { TypeDef Method Assembly }
    MemberRefParent 3 { TypeDef TypeRef ModuleRef Method TypeSpec }
    HasSemantic 1 { Event Property }
    MethodDefOrRef 1 { Method MemberRef }
    MemberForwarded 1 { Field Method }
    Implementation 2 { File AssemblyRef ExportedType }
    CustomAttributeType 3 { Module Module Method MemberRef Module }
    ResolutionScope 2 { Module ModuleRef AssemblyRef TypeRef }
    TypeOrMethodDef 1 { TypeDef Method }
}

impl ColumnSchema {
    /// Returns the column's name.
    pub fn name(&self) -> &'static str {
        self.name_with_end.trim_end_matches('\0')
    }
}

impl Coded {
    /// Returns the number in a row for a token, or `None` for one of another table.
    pub fn encode(self, token: u32) -> Option<u32> {
        let wanted = crate::table_of(token)?;
        let tag = self.tables().iter().position(|table| *table == wanted)?;
        Some(crate::row_of(token) << self.bits() | tag as u32)
    }

    /// Returns the token for a number in a row, or `None` for an unknown tag.
    pub fn decode(self, value: u32) -> Option<u32> {
        let tag = value & ((1 << self.bits()) - 1);
        Some(crate::token(*self.tables().get(tag as usize)?, value >> self.bits()))
    }
}
