//! The JSON Schema of the output, made of the structs that are printed.

use super::words;
#[cfg(target_pointer_width = "64")]
#[cfg(feature = "host")]
use crate::commands::host;
use crate::commands::{
    bless, compare, diagnose, explain, explore, inspect, list, matrix, replay, rules, runtimes,
    trace,
};
use crate::render::error::Diagnostic;
use crate::render::json::{DRAFT, SCHEMA};
use crate::render::{cfi, unwind_data};
use crate::report::lint::{FindingReport, ImageReport};
use crate::report::mismatch::Mismatch;
use crate::report::recording::DifferentWalk;
use crate::report::sequence::FailedSequence;
use crate::report::table::Total;
use crate::report::vector::FailedCase;
use crate::report::walk::FailedWalk;
use crate::report::{FileReport, Finding, mixed, search, snapshot};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Adds the schemas of lines to a list, each with what prints it.
macro_rules! lines {
    ($all:ident, $generator:ident: $($title:literal $line:ty,)+) => {
        $all.extend([$(line($title, &$generator.subschema_for::<$line>())),+]);
    };
}

/// Returns the schema of a line: one of the objects that are printed.
pub(super) fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut any = Vec::new();
    lines! { any, generator:
        "an error" Diagnostic,
        "run: a file" FileReport,
        "run: the total" Total,
        "run --bless" bless::Blessed<'_>,
        "matrix" matrix::Matrix,
        "compare" compare::Comparison,
        "explain: a scenario" explain::text::SnapshotStory<'_>,
        "explain: a recorded walk" explain::Explained<'_>,
        "explore" explore::found::Explored<'_>,
        "explore --shard" explore::line::ShardLine,
        "replay" replay::Replayed,
        "trace: an instruction or an interrupt" trace::row::Row,
        "trace: the end" trace::row::End,
        "trace: a cut" trace::Cut,
        "show: a function of a PE image" unwind_data::Function,
        "show: a function of an ELF image" cfi::Function,
        "lint: a finding" FindingReport,
        "lint: an image" ImageReport,
        "inspect" inspect::json::Report<'_>,
        "diagnose" diagnose::json::Report<'_>,
        "list" list::Listed,
        "rules: a clause" rules::Line,
        "rules: another rule" rules::OtherLine<'_>,
        "runtimes" runtimes::Runtime,
        "runtimes --diff" runtimes::Difference,
        "gen words" words::Word<'_>,
    }
    #[cfg(all(feature = "host", target_pointer_width = "64"))]
    lines! { any, generator:
        "host" host::account::Account,
        "host --compare" host::trace::Report,
    }
    #[cfg(all(
        feature = "host",
        target_arch = "x86_64",
        any(windows, all(target_os = "linux", target_env = "gnu"))
    ))]
    lines! { any, generator:
        "host --schedules" host::histories::search::Histories,
        "host --replay" host::histories::replay::Replayed,
    }
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": DRAFT,
        "title": "A line that clrsim prints with --json",
        "anyOf": any,
        "$defs": definitions,
    })
}

/// Returns the schema of a line: an object of a struct and the name of these schemas, and nothing else.
fn line(title: &str, of: &Schema) -> Value {
    json!({
        "title": title,
        "type": "object",
        "required": ["schema"],
        "properties": { "schema": { "const": SCHEMA } },
        "allOf": [of],
        "unevaluatedProperties": false,
    })
}

/// One of the findings.
impl JsonSchema for dyn Finding {
    fn schema_name() -> Cow<'static, str> {
        "Finding".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let any = [
            generator.subschema_for::<Mismatch<snapshot::Snapshot>>(),
            generator.subschema_for::<Mismatch<mixed::MixedWalk>>(),
            generator.subschema_for::<Mismatch<search::Search>>(),
            generator.subschema_for::<FailedCase>(),
            generator.subschema_for::<DifferentWalk>(),
            generator.subschema_for::<FailedSequence>(),
            generator.subschema_for::<FailedWalk>(),
        ];
        json_schema!({ "anyOf": any })
    }
}
