//! The JSON of createdump's `--crashreport`. All of its values are texts.

use super::thread::{PastedCode, PastedFrame, PastedThread};
use super::words::{file_name, hex, method_name};
use crate::error::ImportError;
use serde::Deserialize;

#[derive(Deserialize)]
struct Report {
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    configuration: Option<Configuration>,
    threads: Vec<Thread>,
}

#[derive(Deserialize)]
struct Configuration {
    version: Option<String>,
}

#[derive(Deserialize)]
struct Thread {
    native_thread_id: String,
    #[serde(default)]
    stack_frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    is_managed: String,
    stack_pointer: Option<String>,
    native_offset: Option<String>,
    native_image_offset: Option<String>,
    native_module: Option<String>,
    unmanaged_name: Option<String>,
    method_name: Option<String>,
}

/// Reads the threads, and the version of the runtime.
pub(super) fn read(text: &str) -> Result<(Vec<PastedThread>, Option<String>), ImportError> {
    let report: Report = serde_json::from_str(text)
        .map_err(|error| ImportError::Line { line: error.line(), column: error.column() })?;
    let threads = report.payload.threads.into_iter().map(|thread| PastedThread {
        id: hex(&thread.native_thread_id).and_then(|id| u32::try_from(id).ok()).unwrap_or_default(),
        is_cooperative: None,
        frames: thread.stack_frames.iter().map(frame).collect(),
    });
    let threads = threads.collect();
    Ok((threads, report.payload.configuration.and_then(|configuration| configuration.version)))
}

fn frame(frame: &Frame) -> PastedFrame {
    let number = |text: &Option<String>| text.as_deref().and_then(hex);
    let sp = number(&frame.stack_pointer);
    if frame.is_managed == "true" {
        let name = frame.method_name.as_deref().map(method_name).unwrap_or_default();
        let offset = number(&frame.native_offset);
        return PastedFrame { code: PastedCode::Managed, name, offset, sp };
    }
    let module = file_name(frame.native_module.as_deref().unwrap_or("native"));
    let function = match (&frame.unmanaged_name, number(&frame.native_image_offset)) {
        (Some(name), _) => method_name(name),
        (None, Some(offset)) => format!("{offset:#x}"),
        (None, None) => "unknown".to_owned(),
    };
    let name = format!("{module}!{function}");
    PastedFrame { code: PastedCode::Native, name, offset: None, sp }
}
