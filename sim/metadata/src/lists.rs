//! Children that a row has by the number of its first one: fields and methods of a type, parameters of a method, events and
//! properties of a map.

use crate::{
    Column, EventMap, EventPtr, FieldPtr, Metadata, Method, MethodPtr, ParamPtr, PropertyMap,
    PropertyPtr, Table, Token, TypeDef, row_of, token,
};

/// A list: the parents' column, the table of children, and the table that puts them into another order.
#[derive(Clone, Copy)]
struct List {
    parents: Table,
    column: usize,
    children: Table,
    order: Table,
}

impl List {
    fn new<C: Column, O: Column>(column: C, children: Table, _: O) -> Self {
        Self { parents: C::TABLE, column: column.index(), children, order: O::TABLE }
    }

    /// Returns the list that rows of a table are in.
    fn of(children: Table) -> Option<Self> {
        Some(match children {
            Table::Field => Self::new(TypeDef::FieldList, children, FieldPtr::Field),
            Table::Method => Self::new(TypeDef::MethodList, children, MethodPtr::Method),
            Table::Param => Self::new(Method::ParamList, children, ParamPtr::Param),
            Table::Event => Self::new(EventMap::EventList, children, EventPtr::Event),
            Table::Property => {
                Self::new(PropertyMap::PropertyList, children, PropertyPtr::Property)
            }
            _ => return None,
        })
    }
}

impl Metadata {
    /// Returns the children of a row, of one of the tables Field, Method, Param, Event or Property.
    pub fn children(&self, parent: Token, table: Table) -> Vec<Token> {
        let Some(list) = List::of(table) else { return Vec::new() };
        let (first, end) = self.range(list, row_of(parent));
        (first..end).map(|place| token(table, self.ordered(list, place))).collect()
    }

    /// Returns the row whose child this is.
    pub fn parent(&self, child: Token) -> Option<Token> {
        let list = List::of(crate::table_of(child)?)?;
        let rows = 1..=self.len(list.parents);
        let has = |row: &u32| {
            let (first, end) = self.range(list, *row);
            (first..end).any(|place| self.ordered(list, place) == row_of(child))
        };
        rows.into_iter().find(has).map(|row| token(list.parents, row))
    }

    /// Adds a child to a row. Returns its token.
    pub fn add_child(&mut self, parent: Token, table: Table) -> Option<Token> {
        let list = List::of(table)?;
        if !self.has_row(list.parents, parent) {
            return None;
        }
        let (_, end) = self.range(list, row_of(parent));
        let child = self.add(table);
        let count = self.len(table);
        if end == count && self.len(list.order) == 0 {
            self.shift(list, row_of(parent));
            return Some(child);
        }
        if self.len(list.order) == 0 {
            for row in 1..count {
                let place = self.add(list.order);
                self.set_cell(list.order, row_of(place), 0, row);
            }
        }
        // The new one goes to the end of its parent's.
        let at = end.saturating_sub(1) as usize;
        self.cells_mut(list.order).insert(at, count);
        self.shift(list, row_of(parent));
        Some(child)
    }

    /// Gives a new row of parents its empty list, behind all children.
    pub fn begin_list(&mut self, parent: Token, table: Table) {
        if let Some(list) = List::of(table) {
            let next = self.len(table) + 1;
            self.set_cell(list.parents, row_of(parent), list.column, next);
        }
    }

    /// Moves the lists behind one by a child.
    fn shift(&mut self, list: List, parent: u32) {
        for row in parent + 1..=self.len(list.parents) {
            let first = self.cell(list.parents, row, list.column);
            self.set_cell(list.parents, row, list.column, first + 1);
        }
    }

    /// Returns the places of a row's children: the first, and that behind the last.
    fn range(&self, list: List, row: u32) -> (u32, u32) {
        let end = self.len(list.children) + 1;
        if row == 0 || row > self.len(list.parents) {
            return (end, end);
        }
        let first = self.cell(list.parents, row, list.column);
        let next = if row == self.len(list.parents) {
            end
        } else {
            self.cell(list.parents, row + 1, list.column)
        };
        (first.clamp(1, end), next.clamp(first.clamp(1, end), end))
    }

    fn ordered(&self, list: List, place: u32) -> u32 {
        if self.len(list.order) == 0 { place } else { self.cell(list.order, place, 0) }
    }
}
