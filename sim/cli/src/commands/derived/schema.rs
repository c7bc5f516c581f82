//! `clrsim gen schema`: the JSON Schemas of the output and of the nodes of texts.

use crate::PASSED;
use crate::args::{SchemaArgs, SchemaOf};
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::json::DRAFT;
use clr_scenario::{Kind, Level, NodeRule};
use serde_json::{Map, Value, json};
use std::io;

/// Prints the schema that `args` name and returns the exit code.
pub(crate) fn schema(args: &SchemaArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let schema = match args.of {
        SchemaOf::Output => output()?,
        SchemaOf::Text => text(),
    };
    let text = serde_json::to_string_pretty(&schema).map_err(io::Error::from)?;
    writeln!(console.out, "{text}")?;
    Ok(PASSED)
}

#[cfg(feature = "pages")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is none")]
fn output() -> Result<Value, CliError> {
    Ok(super::output::schema())
}

#[cfg(not(feature = "pages"))]
fn output() -> Result<Value, CliError> {
    Err(crate::is_left_out("pages"))
}

/// Returns the schema of a text as a list of nodes: objects with a name, arguments, properties and
/// children.
fn text() -> Value {
    let nodes = |level: Level| level.nodes().iter().map(of_node).collect::<Vec<_>>();
    let place = |level: Level| (level.name().to_owned(), json!({ "anyOf": nodes(level) }));
    let places: Map<_, _> = Level::ALL.map(place).into_iter().collect();
    json!({
        "$schema": DRAFT,
        "title": "The nodes of a clr-sim scenario",
        "type": "array",
        "items": { "$ref": "#/$defs/text" },
        "$defs": places,
    })
}

/// Returns the schema of a node.
fn of_node(node: &NodeRule) -> Value {
    let arg = |index| node.kind_of_arg(index).map_or(Value::Bool(false), of_value);
    let (least, most) = node.arity();
    let properties: Map<_, _> = node
        .properties
        .iter()
        .map(|property| (property.name.to_owned(), of_value(property.kind)))
        .collect();
    let required: Vec<_> = node
        .properties
        .iter()
        .filter(|property| property.required)
        .map(|property| property.name)
        .collect();
    let arguments = json!({
        "type": "array",
        "prefixItems": [arg(0)],
        "items": arg(1),
        "minItems": least,
        "maxItems": most,
    });
    let children = match node.block {
        Some(place) => json!({
            "type": "array",
            "items": { "$ref": format!("#/$defs/{}", place.name()) },
        }),
        None => json!({ "type": "array", "maxItems": 0 }),
    };
    let parts = [("name", true), ("arguments", least > 0), ("properties", !required.is_empty())];
    let parts: Vec<_> =
        parts.into_iter().filter(|(_, needed)| *needed).map(|(part, _)| part).collect();
    json!({
        "type": "object",
        "required": parts,
        "properties": {
            "name": { "const": node.name },
            "arguments": arguments,
            "properties": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "children": children,
        },
        "additionalProperties": false,
    })
}

/// Returns the schema of a value.
fn of_value(kind: Kind) -> Value {
    match kind {
        Kind::Number(least, most, _) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "enum": words }),
        kind if kind.is_text_or_number() => json!({ "type": ["string", "integer"] }),
        Kind::Stale => json!({ "type": ["string", "boolean"] }),
        _ => json!({ "type": "string" }),
    }
}
