//! `clrsim lsp`, as an editor sees it.

mod editing;

use super::*;
use crate::commands::lsp::serve;
use lsp_server::{Message, Notification, Request, RequestId};
use std::io::{BufReader, Cursor, PipeWriter};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The address of the text.
const URI: &str = "file:///my/texts/some.kdl";
/// The time after which an answer counts as missing.
const PATIENCE: Duration = Duration::from_mins(2);

/// An editor in a session with the server, by the bytes of pipes.
struct Editor {
    to: PipeWriter,
    messages: Receiver<Message>,
    server: JoinHandle<u8>,
    requests: i32,
}

impl Editor {
    /// Starts a session, and opens a text.
    fn open(text: &str) -> Self {
        Self::open_with(text, &json!({}))
    }

    /// Starts a session of an editor with these capabilities, and opens a text.
    fn open_with(text: &str, capabilities: &Value) -> Self {
        let (theirs, to) = io::pipe().unwrap();
        let (from, mut answers) = io::pipe().unwrap();
        let server =
            thread::spawn(move || serve(&mut BufReader::new(theirs), &mut answers).unwrap_or(2));
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            while let Ok(Some(message)) = Message::read(&mut from) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut editor = Self { to, messages, server, requests: 0 };
        let initialized = editor.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(initialized["capabilities"]["hoverProvider"], true);
        editor.tell("initialized", json!({}));
        let document = json!({ "uri": URI, "languageId": "kdl", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor
    }

    fn send(&self, message: impl Into<Message>) {
        message.into().write(&mut &self.to).unwrap();
    }

    fn tell(&self, method: &str, params: Value) {
        self.send(Notification::new(method.to_owned(), params));
    }

    fn receive(&self) -> Message {
        self.messages.recv_timeout(PATIENCE).unwrap()
    }

    fn request(&mut self, method: &str, params: Value) -> RequestId {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        let request = Request::new(id.clone(), method.to_owned(), params);
        self.send(request);
        id
    }

    /// Sends a request and returns the result. Messages before it are dropped.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        loop {
            if let Message::Response(response) = self.receive()
                && response.id == id
            {
                return response
                    .response_result
                    .unwrap_or_else(|error| panic!("{method}: {error:?}"));
            }
        }
    }

    /// Sends a request that the server refuses, and returns why.
    fn refused(&mut self, method: &str, params: Value) -> String {
        let id = self.request(method, params);
        loop {
            if let Message::Response(response) = self.receive()
                && response.id == id
            {
                return response.response_result.unwrap_err().message;
            }
        }
    }

    /// Waits for a notification.
    fn notified(&self, method: &str) -> Value {
        loop {
            if let Message::Notification(notification) = self.receive()
                && notification.method == method
            {
                return notification.params;
            }
        }
    }

    /// Changes the text, and returns its diagnostics.
    fn change(&self, text: &str) -> Value {
        let changes = json!([{ "text": text }]);
        let document = json!({ "uri": URI, "version": 2 });
        self.tell(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": changes }),
        );
        self.notified("textDocument/publishDiagnostics")["diagnostics"].clone()
    }

    /// Sends a request about the end of a text, which becomes the whole text.
    fn at_end(&mut self, method: &str, text: &str) -> Value {
        self.change(text);
        let line = text.matches('\n').count();
        let column = text.rsplit('\n').next().unwrap().encode_utf16().count();
        let position = json!({ "line": line, "character": column });
        self.ask(method, json!({ "textDocument": { "uri": URI }, "position": position }))
    }

    /// Returns the labels that are offered at the end of a text.
    fn offered(&mut self, text: &str) -> Vec<String> {
        let items = self.at_end("textDocument/completion", text);
        let items = items.as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    fn execute(&mut self, command: &str) {
        self.request("workspace/executeCommand", json!({ "command": command, "arguments": [URI] }));
    }

    /// Ends the session. The server must have met no error.
    fn close(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.tell("exit", Value::Null);
        assert_eq!(self.server.join().unwrap(), 0);
    }
}

#[test]
fn problems_are_shown_where_they_are() {
    let editor = Editor::open("stack {\n    jit \"A+0x1\" // ä\u{1F600}\n    jti 1\n}\n");
    let opened = editor.notified("textDocument/publishDiagnostics");
    assert_eq!(opened["uri"], URI);
    let found = &opened["diagnostics"];
    assert_eq!(found[0]["code"], "missing-property");
    assert_eq!(found[0]["range"]["start"], json!({ "line": 1, "character": 4 }));
    assert_eq!(found[1]["code"], "unknown-node");
    assert_eq!(
        found[1]["range"],
        json!({
            "start": { "line": 2, "character": 4 }, "end": { "line": 2, "character": 7 },
        })
    );
    assert_eq!(editor.change(BARRIER), json!([]));
    editor.close();
}

#[test]
fn the_grammar_and_the_names_of_the_text_are_offered() {
    let mut editor = Editor::open("");
    let has = |offered: &[String], names: &[&str]| {
        names.iter().all(|name| offered.iter().any(|it| it == name))
    };
    let outside = editor.offered("");
    assert!(has(&outside, &["function", "stack", "stop", "explore"]), "{outside:?}");
    assert!(!has(&outside, &["jit"]), "{outside:?}");
    let inside = editor.offered("stack {\n    ");
    assert!(
        has(&inside, &["jit", "native", "frame", "mode"]) && !has(&inside, &["stop"]),
        "{inside:?}"
    );
    let properties = editor.offered("stack {\n    jit \"A+0x1\" rsp=1 ");
    assert!(
        has(&properties, &["on", "gs-cookie"]) && !has(&properties, &["rsp"]),
        "{properties:?}"
    );
    let words = editor.offered("function \"A\" kind=");
    assert!(has(&words, &["jit", "ready-to-run"]), "{words:?}");
    let program = "function \"App.Main\" kind=\"jit\" {\n    body {\n        call ";
    assert_eq!(editor.offered(program)[0], "App.Main");
    assert_eq!(editor.offered("// fun"), [""; 0]);
    assert_eq!(editor.offered("stack { jit { unknown { "), [""; 0]);
    editor.close();
}

#[test]
fn ids_and_nodes_are_explained() {
    let mut editor = Editor::open("");
    let mut shown = |text: &str| {
        let hover = editor.at_end("textDocument/hover", text);
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    assert!(shown("// C-044").starts_with("**C-044** ("), "{}", shown("// C-044"));
    assert!(shown("tag \"H-08").contains("Avoided by"), "{}", shown("H-08"));
    assert!(shown("stop").starts_with("**stop** in "), "{}", shown("stop"));
    assert_eq!(shown("stack { stop"), "");
    assert_eq!(shown("nothing"), "");
    editor.close();
}

#[test]
fn texts_are_run_where_they_are_written() {
    let wrong = BARRIER.replace("\"E_NOTIMPL\"", "\"S_OK\"");
    let mut editor = Editor::open(&wrong);
    let document = json!({ "textDocument": { "uri": URI } });
    let lenses = editor.ask("textDocument/codeLens", document.clone());
    let snapshots = wrong.lines().filter(|line| line.starts_with("snapshot")).count();
    assert_eq!(lenses.as_array().unwrap().len(), snapshots);
    let lens = &lenses[0]["command"];
    assert_eq!((&lens["command"], &lens["arguments"]), (&json!("clrsim.run"), &json!([URI])));

    editor.execute("clrsim.run");
    let failures = editor.notified("textDocument/publishDiagnostics");
    let failures = failures["diagnostics"].as_array().unwrap();
    assert!(!failures.is_empty());
    for failure in failures {
        let line = failure["range"]["start"]["line"].as_u64().unwrap() as usize;
        assert!(wrong.lines().nth(line).unwrap().trim_start().starts_with("expect"), "{failure}");
        assert!(failure["message"].as_str().unwrap().contains("E_NOTIMPL"), "{failure}");
    }
    let message = editor.notified("window/showMessage");
    let message = message["message"].as_str().unwrap();
    assert!(message.starts_with("some.kdl: ") && !message.ends_with(" 0 failed"), "{message}");

    editor.execute("clrsim.bless");
    let edit = loop {
        if let Message::Request(request) = editor.receive() {
            assert_eq!(request.method, "workspace/applyEdit");
            break request.params;
        }
    };
    let text = edit["edit"]["changes"][URI][0]["newText"].as_str().unwrap();
    assert!(text.contains("E_NOTIMPL"), "{text}");
    assert_eq!(editor.change(text), json!([]));
    editor.tell("textDocument/didSave", document);
    assert_eq!(editor.notified("textDocument/publishDiagnostics")["diagnostics"], json!([]));
    editor.execute("clrsim.bless");
    let message = editor.notified("window/showMessage");
    assert_eq!(message["message"], "the expectations hold already");
    editor.close();
}

#[test]
fn texts_are_laid_out() {
    let mut editor = Editor::open("function \"A\"   kind=\"jit\" { body {work 3} }");
    let options = json!({ "tabSize": 4, "insertSpaces": true });
    let edits = editor.ask(
        "textDocument/formatting",
        json!({ "textDocument": { "uri": URI }, "options": options }),
    );
    let text = edits[0]["newText"].as_str().unwrap();
    assert_eq!(clr_scenario::format_text(text).unwrap(), text);
    let actions = json!({
        "textDocument": { "uri": URI }, "context": { "diagnostics": [] },
        "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } },
    });
    assert_eq!(editor.ask("textDocument/codeAction", actions.clone()).as_array().unwrap().len(), 2);
    editor.change("no text");
    assert_eq!(editor.ask("textDocument/codeAction", actions), json!([]));
    editor.close();
}

/// Returns a message with its header.
fn framed(content: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", content.len()).as_bytes(), content].concat()
}

/// Returns the answers of a session with these bytes, after its begin and before its end, and its exit code.
fn session(bytes: &[u8]) -> (Vec<Value>, u8) {
    let message = |value: Value| framed(value.to_string().as_bytes());
    let begin =
        message(json!({ "id": 1, "method": "initialize", "params": { "capabilities": {} } }));
    let alive = json!({ "id": 98, "method": "textDocument/hover", "params": {
        "textDocument": { "uri": URI }, "position": { "line": 0, "character": 0 } } });
    let end = message(json!({ "id": 99, "method": "shutdown" }));
    let exit = message(json!({ "method": "exit" }));
    let input = [begin, bytes.to_vec(), message(alive), end, exit].concat();
    let mut out = Vec::new();
    let code = serve(&mut Cursor::new(input), &mut out).unwrap();
    let mut rest = &out[..];
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let text = str::from_utf8(rest).unwrap();
        let raw = text.chars().find(|c| !clr_explore::is_visible(*c) && !"\r\n".contains(*c));
        assert_eq!(raw, None, "{}", text.escape_debug());
        let (header, after) = text.split_once("\r\n\r\n").unwrap();
        let length = header.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        answers.push(serde_json::from_str(&after[..length]).unwrap());
        rest = &after.as_bytes()[length..];
    }
    (answers, code)
}

#[test]
fn each_bad_message_has_an_answer_and_the_next_one_is_read() {
    let call = |params: &str| {
        framed(format!(r#"{{"id":7,"method":"textDocument/hover","params":{params}}}"#).as_bytes())
    };
    let place = r#""position":{"line":0,"character":0}"#;
    let deep = "[".repeat(500_000);
    // The text is shown in a diagnostic.
    let document = json!({ "uri": URI, "languageId": "kdl", "version": 1,
        "text": "\u{1b}]0;x\u{7}\u{9b}31m\u{202e} 1\n" });
    let nasty = json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } });
    let nasty = framed(nasty.to_string().as_bytes());
    let (parse, request, params) = (-32700, -32600, -32602);
    let cases: Vec<(Vec<u8>, Option<i32>)> = vec![
        (call("[]"), Some(params)),
        (call(&format!(r#"{{"textDocument":{{"uri":"a b c"}},{place}}}"#)), Some(params)),
        (
            call(&format!(r#"{{"textDocument":{{"uri":"file://x/%1b%5d]"}},{place}}}"#)),
            Some(params),
        ),
        (
            call(r#"{"textDocument":{"uri":"file:///a"},"position":{"line":-1,"character":0}}"#),
            Some(params),
        ),
        (framed(br#"{"id":7,"method":"workspace/executeCommand","params":[]}"#), Some(params)),
        (framed(br#"{"id":7,"method":"initialize","params":{"capabilities":{}}}"#), Some(request)),
        (framed(br#"{"id":{"a":1},"method":"shutdown"}"#), Some(request)),
        (framed(br#"{"id":7,"method":7}"#), Some(request)),
        (framed(br#"[{"id":3,"method":"shutdown"}]"#), Some(request)),
        (framed(b"{\"id\":7,\"method\":\"\xff\"}"), Some(parse)),
        (framed(deep.as_bytes()), Some(parse)),
        (framed(b""), Some(parse)),
        (b"Content-Length: -1\r\n\r\n".to_vec(), Some(parse)),
        (b"Content-Length: 99999999999999999999999999\r\n\r\n".to_vec(), Some(parse)),
        (b"X: 1\r\n\r\n".to_vec(), Some(parse)),
        ([&b"A".repeat(1 << 20)[..], b"\r\n\r\n"].concat(), Some(parse)),
        (framed(&b" ".repeat((64 << 20) + 1)), Some(request)),
        (nasty, None),
        // Notifications have no answers.
        (framed(br#"{"method":"textDocument/didOpen","params":{}}"#), None),
        (framed(br#"{"method":"textDocument/didChange","params":{"a":1}}"#), None),
        (framed(br#"{"method":"textDocument/didSave"}"#), None),
        (framed(br#"{"method":"nothing/known","params":[]}"#), None),
        (framed(br#"{"id":55,"result":null}"#), None),
    ];
    for (bytes, wanted) in cases {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
        let (answers, code) = session(&bytes);
        let codes: Vec<_> =
            answers.iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
        assert_eq!(codes, wanted.map(i64::from).into_iter().collect::<Vec<_>>(), "{shown}");
        let ids: Vec<_> = answers.iter().filter_map(|answer| answer["id"].as_i64()).collect();
        assert!(ids.ends_with(&[98, 99]), "{shown}: {answers:?}");
        assert_eq!(code, 0, "{shown}");
    }
}

#[test]
fn a_length_alone_takes_no_memory_and_an_end_is_an_end() {
    for input in [
        &b"Content-Length: 999999999999999999\r\n\r\n{}"[..],
        b"Content-Length: 4000000000\r\n\r\n{}",
        b"Content-Length: 60000000\r\n\r\n{}",
        b"Content-Le",
        b"",
        b"\0\0\0",
    ] {
        let mut out = Vec::new();
        assert_eq!(serve(&mut Cursor::new(input), &mut out).unwrap(), 0);
    }
    let mut out = Vec::new();
    let exit = framed(br#"{"method":"exit"}"#);
    assert_eq!(serve(&mut Cursor::new(exit), &mut out).unwrap(), 1);
    let early = framed(br#"{"id":1,"method":"shutdown"}"#);
    serve(&mut Cursor::new(early), &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("-32002"));
}

/// Editors' clients add the flag by themselves.
#[test]
fn the_flag_for_standard_streams_is_accepted() {
    for flags in [&["clrsim", "lsp"][..], &["clrsim", "lsp", "--stdio"]] {
        let args = flags.iter().map(Into::into).collect();
        assert!(Cli::parse_within(args, 100).is_ok(), "{flags:?}");
    }
    let other = ["clrsim", "lsp", "--socket=5"].map(Into::into).to_vec();
    assert!(Cli::parse_within(other, 100).is_err());
}
