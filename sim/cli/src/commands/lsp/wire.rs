//! Messages as bytes: each after a header with its length. What is no message is an error with a code, and the next one
//! is read.

use crate::render::json::escaped;
use clr_explore::visible;
use lsp_server::{ErrorCode, Message};
use serde_json::Value;
use std::io::{self, BufRead, Read as _, Write};

/// Largest message, in bytes: far more than the largest text.
const MOST: u64 = 64 << 20;
/// Longest line of a header, in bytes.
const LINE: u64 = 4 << 10;

/// A message of the editor, or bytes that are none.
#[derive(Debug)]
pub(super) enum Received {
    Message(Message),
    Bad(Bad),
}

/// A message that cannot be read.
#[derive(Debug)]
pub(super) struct Bad {
    /// The request's id, as far as it has one.
    pub(super) id: Value,
    pub(super) code: ErrorCode,
    pub(super) why: String,
}

impl Bad {
    fn new(code: ErrorCode, why: &str) -> Self {
        Self { id: Value::Null, code, why: visible(why) }
    }
}

/// Receives a message; `None` at the end of the input.
pub(super) fn receive(input: &mut dyn BufRead) -> io::Result<Option<Received>> {
    let Some(length) = length(input)? else { return Ok(None) };
    let length = match length {
        Ok(length) => length,
        Err(bad) => return Ok(Some(Received::Bad(bad))),
    };
    if length > MOST {
        io::copy(&mut input.take(length), &mut io::sink())?;
        let why = format!("a message has {length} bytes, and at most {MOST} are read");
        return Ok(Some(Received::Bad(Bad::new(ErrorCode::InvalidRequest, &why))));
    }
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    Ok(Some(message(&bytes)))
}

/// Sends a message, with escapes for what is not visible.
pub(super) fn send(out: &mut dyn Write, message: &Value) -> io::Result<()> {
    let text = escaped(&message.to_string());
    write!(out, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    out.flush()
}

/// Reads a header, and returns the length that it says; `None` at the end of the input.
fn length(input: &mut dyn BufRead) -> io::Result<Option<Result<u64, Bad>>> {
    let (mut length, mut is_empty) = (None, true);
    loop {
        let mut line = Vec::new();
        if input.take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let is_cut = line.last() != Some(&b'\n');
        if is_cut {
            skip_line(input)?;
        }
        let text = String::from_utf8_lossy(line.trim_ascii());
        if text.is_empty() && !is_cut {
            // Blank lines before a header are none of it.
            if is_empty {
                continue;
            }
            let missing = Bad::new(ErrorCode::ParseError, "a header says no Content-Length");
            return Ok(Some(length.unwrap_or(Err(missing))));
        }
        is_empty = false;
        if let Some((name, value)) = text.split_once(':')
            && name.trim().eq_ignore_ascii_case("Content-Length")
        {
            let why = || format!("a Content-Length is no number of bytes: {value}");
            let value = value.trim().parse();
            length = Some(value.map_err(|_| Bad::new(ErrorCode::ParseError, &why())));
        }
    }
}

/// Reads the rest of a line, and keeps nothing of it.
fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (end, is_over) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (bytes.len(), false),
        };
        input.consume(end);
        if is_over {
            return Ok(());
        }
    }
}

/// Parses a message.
fn message(bytes: &[u8]) -> Received {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            let why = format!("a message is no JSON: {error}");
            return Received::Bad(Bad::new(ErrorCode::ParseError, &why));
        }
    };
    let id = value.get("id").cloned();
    // Every object with a method could be a notification.
    let is_call = value.get("method").is_some();
    let why = match serde_json::from_value(value) {
        Ok(Message::Notification(_)) if id.is_some() => "a request's id is no number or text",
        Ok(message) => return Received::Message(message),
        Err(_) if is_call => "a method is no text",
        Err(_) => "a message is neither a request nor a notification nor a response",
    };
    let id = id.filter(|id| id.is_number() || id.is_string()).unwrap_or_default();
    Received::Bad(Bad { id, ..Bad::new(ErrorCode::InvalidRequest, why) })
}
