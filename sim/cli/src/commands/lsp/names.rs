//! Names of a text: where one is defined and used, and another name in its place.

use super::document::Document;
use clr_scenario::{NameUse, RenameError, names_of};
use lsp_types::{
    Location, PrepareRenameResponse, TextDocumentPositionParams, TextEdit, WorkspaceEdit,
};
use std::collections::HashMap;

/// Returns the place where the name at a position is defined.
pub(super) fn definition(
    document: &Document,
    place: &TextDocumentPositionParams,
) -> Option<Location> {
    let names = names_of(&document.text);
    let name = at(document, place, &names)?;
    let definition = names.iter().find(|it| it.is_definition && it.is_of_same(name))?;
    Some(location(document, place, definition))
}

/// Returns the places where the name at a position is used, and defined if that is asked for.
pub(super) fn uses(
    document: &Document,
    place: &TextDocumentPositionParams,
    with_definition: bool,
) -> Vec<Location> {
    let names = names_of(&document.text);
    let Some(name) = at(document, place, &names) else { return Vec::new() };
    let all = names.iter().filter(|it| it.is_of_same(name));
    let wanted = all.filter(|it| with_definition || !it.is_definition);
    wanted.map(|it| location(document, place, it)).collect()
}

/// Returns the place of the name at a position, and the name, if it can be changed.
pub(super) fn prepare(
    document: &Document,
    place: &TextDocumentPositionParams,
) -> Option<PrepareRenameResponse> {
    let names = names_of(&document.text);
    let name = at(document, place, &names)?;
    let (range, placeholder) = (document.range(name.span), name.name.clone());
    Some(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder })
}

/// Returns the changes that give the name at a position another one.
pub(super) fn rename(
    document: &Document,
    place: &TextDocumentPositionParams,
    new: &str,
) -> Result<WorkspaceEdit, RenameError> {
    let offset = document.offset(place.position);
    let changes = clr_scenario::rename(&document.text, offset, new)?;
    let edits = changes.into_iter().map(|(span, text)| TextEdit::new(document.range(span), text));
    Ok(edit(place.text_document.uri.clone(), edits.collect()))
}

/// Returns the changes of one text.
// The protocol has a map with such keys.
#[expect(clippy::mutable_key_type, reason = "an address does not change")]
pub(super) fn edit(uri: lsp_types::Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    let changes = HashMap::from([(uri, edits)]);
    WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
}

/// Returns the name at a position.
fn at<'n>(
    document: &Document,
    place: &TextDocumentPositionParams,
    names: &'n [NameUse],
) -> Option<&'n NameUse> {
    let offset = document.offset(place.position);
    names.iter().find(|it| it.is_at(offset))
}

fn location(document: &Document, place: &TextDocumentPositionParams, name: &NameUse) -> Location {
    Location::new(place.text_document.uri.clone(), document.range(name.span))
}
