//! `clrsim lsp`: a language server for texts, on standard input and output.
//!
//! It checks a text while it is written and runs it when it is saved or asked for; corrects what a problem says how to
//! correct; completes nodes, properties and names; says what nodes mean, and the rule behind an id; lists, finds and renames
//! what a text names; lays out texts; and writes results of the simulator into expectations.

mod actions;
mod check;
mod complete;
mod document;
mod hover;
mod names;
mod requests;
mod scan;
mod symbols;
mod wire;

use crate::commands::bless::blessed;
use crate::input::Source;
use crate::input::program::ProgramFixture;
use crate::render::error::CliError;
use crate::{FAILED, PASSED};
use clr_explore::visible;
use clr_runtime::generation::Generations;
use document::Document;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Exit,
    Notification as _, PublishDiagnostics, ShowMessage,
};
use lsp_types::request::{ApplyWorkspaceEdit, Initialize, Request as _, Shutdown};
use lsp_types::{
    ApplyWorkspaceEditParams, Command, CompletionOptions, Diagnostic, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
    ExecuteCommandOptions, HoverProviderCapability, MessageType, OneOf, PublishDiagnosticsParams,
    RenameOptions, SaveOptions, ServerCapabilities, ShowMessageParams, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions, TextEdit, Uri,
    WorkDoneProgressOptions,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use wire::Received;

/// The command that runs a text.
const RUN: &str = "clrsim.run";
/// The command that writes results into expectations.
const BLESS: &str = "clrsim.bless";
/// Nodes over which a text offers to be run.
const RUN_AT: [&str; 4] = ["stop", "snapshot", "mixed-walk", "explore"];

/// Serves an editor on standard input and output. Returns the exit code.
pub(crate) fn lsp() -> Result<u8, CliError> {
    serve(&mut io::stdin().lock(), &mut io::stdout().lock())
}

/// Serves an editor until it says goodbye. Returns the exit code.
pub(crate) fn serve(input: &mut dyn BufRead, out: &mut dyn Write) -> Result<u8, CliError> {
    let mut server = Server {
        out,
        documents: BTreeMap::new(),
        sent: 0,
        stage: Stage::Begins,
        has_literals: false,
    };
    while let Some(received) = wire::receive(input).map_err(|error| unreadable(&error))? {
        match received {
            Received::Message(Message::Request(request)) => server.request(request)?,
            Received::Message(Message::Notification(it)) if it.method == Exit::METHOD => {
                let is_over = server.stage == Stage::Over;
                return Ok(if is_over { PASSED } else { FAILED });
            }
            Received::Message(Message::Notification(notification)) => {
                server.notification(notification)?;
            }
            Received::Message(Message::Response(_)) => {}
            Received::Bad(bad) => server.refuse(&bad.id, bad.code, &bad.why)?,
        }
    }
    Ok(PASSED)
}

fn unreadable(error: &io::Error) -> CliError {
    CliError::new("standard input", format_args!("cannot be read: {}", error.kind()))
}

fn capabilities() -> ServerCapabilities {
    let save = SaveOptions { include_text: Some(false) };
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::FULL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(save)),
            ..TextDocumentSyncOptions::default()
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([" ", "=", "\""].map(str::to_owned).into()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        code_action_provider: Some(true.into()),
        code_lens_provider: Some(lsp_types::CodeLensOptions { resolve_provider: Some(false) }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: [RUN, BLESS].map(str::to_owned).into(),
            ..ExecuteCommandOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The editor has not said what it can.
    Begins,
    Serves,
    /// The editor has said that it is going to end.
    Over,
}

/// The state of a session.
struct Server<'c> {
    out: &'c mut dyn Write,
    /// Open texts, by their addresses.
    documents: BTreeMap<String, Document>,
    /// Number of requests that were sent to the editor.
    sent: i32,
    stage: Stage,
    /// The editor knows actions that have their changes with them.
    has_literals: bool,
}

impl Server<'_> {
    fn request(&mut self, request: Request) -> Result<(), CliError> {
        let Request { id, method, params } = request;
        match (self.stage, &*method) {
            (Stage::Begins, Initialize::METHOD) => {
                self.stage = Stage::Serves;
                let literals = "/capabilities/textDocument/codeAction/codeActionLiteralSupport";
                self.has_literals = params.pointer(literals).is_some_and(|it| !it.is_null());
                let capabilities = json!({ "capabilities": capabilities() });
                self.send(Response::new_ok(id, capabilities))
            }
            (Stage::Begins, _) => {
                let what = "the session has not begun: initialize is missing";
                self.send(Response::new_err(
                    id,
                    ErrorCode::ServerNotInitialized as i32,
                    what.into(),
                ))
            }
            (Stage::Over, _) | (_, Initialize::METHOD) => {
                let what = format!("{} comes too late in a session", visible(&method));
                self.send(Response::new_err(id, ErrorCode::InvalidRequest as i32, what))
            }
            (Stage::Serves, Shutdown::METHOD) => {
                self.stage = Stage::Over;
                self.send(Response::new_ok(id, Value::Null))
            }
            (Stage::Serves, _) => self.serve(id, &method, params),
        }
    }

    /// Follows a notification. One that cannot be read has no answer, and changes nothing.
    fn notification(&mut self, notification: Notification) -> Result<(), CliError> {
        let Notification { method, params } = notification;
        if self.stage != Stage::Serves {
            return Ok(());
        }
        match &*method {
            DidOpenTextDocument::METHOD => match read::<DidOpenTextDocumentParams>(params) {
                Ok(opened) => self.set(&opened.text_document.uri, opened.text_document.text),
                Err(_) => Ok(()),
            },
            DidChangeTextDocument::METHOD => match read::<DidChangeTextDocumentParams>(params) {
                // Each change has the whole text.
                Ok(mut changed) => match changed.content_changes.pop() {
                    Some(change) => self.set(&changed.text_document.uri, change.text),
                    None => Ok(()),
                },
                Err(_) => Ok(()),
            },
            DidSaveTextDocument::METHOD => match read::<DidSaveTextDocumentParams>(params) {
                Ok(saved) => self.run(saved.text_document.uri.as_str(), false),
                Err(_) => Ok(()),
            },
            DidCloseTextDocument::METHOD => match read::<DidCloseTextDocumentParams>(params) {
                Ok(closed) => {
                    self.documents.remove(closed.text_document.uri.as_str());
                    self.publish(&closed.text_document.uri, Vec::new())
                }
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Sets a text and publishes its problems.
    fn set(&mut self, uri: &Uri, text: String) -> Result<(), CliError> {
        let document = Document { text };
        let problems = check::problems(&document);
        self.documents.insert(uri.as_str().to_owned(), document);
        self.publish(uri, problems)
    }

    fn document(&self, uri: &Uri) -> Option<&Document> {
        self.documents.get(uri.as_str())
    }

    fn execute(&mut self, command: &str, uri: &str) -> Result<(), CliError> {
        match command {
            RUN => self.run(uri, true),
            BLESS => self.bless(uri),
            _ => self.show(
                MessageType::ERROR,
                format!("clrsim lsp has no command {}", visible(command)),
            ),
        }
    }

    /// Runs a text, publishes what fails, and shows the result if `is_asked`.
    fn run(&mut self, uri: &str, is_asked: bool) -> Result<(), CliError> {
        let Some(document) = self.documents.get(uri) else { return Ok(()) };
        let Ok(address) = uri.parse::<Uri>() else { return Ok(()) };
        if !check::problems(document).is_empty() {
            return Ok(());
        }
        let (failures, kind, message) = match check::run(&check::name_of(uri), document) {
            Ok((failures, result)) => (failures, MessageType::INFO, result),
            Err(error) => (Vec::new(), MessageType::ERROR, error.to_string()),
        };
        self.publish(&address, failures)?;
        if is_asked || kind == MessageType::ERROR { self.show(kind, message) } else { Ok(()) }
    }

    /// Asks the editor to write results into the expectations of a text.
    fn bless(&mut self, uri: &str) -> Result<(), CliError> {
        let Some(document) = self.documents.get(uri) else { return Ok(()) };
        let Ok(address) = uri.parse::<Uri>() else { return Ok(()) };
        let source = Source::of_text(&check::name_of(uri), &document.text);
        let made = ProgramFixture::read(&source)
            .and_then(|fixture| blessed(&fixture, &source, Generations::ALL, check::LIMIT));
        let text = match made {
            Ok(text) if text == document.text => {
                return self.show(MessageType::INFO, "the expectations hold already".to_owned());
            }
            Ok(text) => text,
            Err(error) => return self.show(MessageType::ERROR, error.to_string()),
        };
        let edit = names::edit(address, vec![TextEdit::new(document.whole(), text)]);
        let params = ApplyWorkspaceEditParams { label: Some("bless".to_owned()), edit };
        self.sent += 1;
        let id = RequestId::from(self.sent);
        self.send(Request::new(id, ApplyWorkspaceEdit::METHOD.to_owned(), params))
    }

    fn publish(&mut self, uri: &Uri, diagnostics: Vec<Diagnostic>) -> Result<(), CliError> {
        let params = PublishDiagnosticsParams::new(uri.clone(), diagnostics, None);
        self.send(Notification::new(PublishDiagnostics::METHOD.to_owned(), params))
    }

    fn show(&mut self, typ: MessageType, message: String) -> Result<(), CliError> {
        let params = ShowMessageParams { typ, message };
        self.send(Notification::new(ShowMessage::METHOD.to_owned(), params))
    }

    fn send(&mut self, message: impl Into<Message>) -> Result<(), CliError> {
        let mut value = serde_json::to_value(message.into()).map_err(io::Error::from)?;
        if let Value::Object(fields) = &mut value {
            fields.insert("jsonrpc".to_owned(), "2.0".into());
        }
        Ok(wire::send(&mut self.out, &value)?)
    }

    /// Answers what is no message. The protocol has null for an id that nobody can read.
    fn refuse(&mut self, id: &Value, code: ErrorCode, why: &str) -> Result<(), CliError> {
        let error = json!({ "code": code as i32, "message": why });
        Ok(wire::send(&mut self.out, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))?)
    }
}

/// Returns the answer to a request with other parameters than it has.
fn invalid(id: RequestId, method: &str, why: &serde_json::Error) -> Response {
    let what = visible(&format!("{method} has other parameters: {why}"));
    Response::new_err(id, ErrorCode::InvalidParams as i32, what)
}

fn command(title: &str, name: &str, uri: &Uri) -> Command {
    let arguments = vec![Value::String(uri.as_str().to_owned())];
    Command::new(title.to_owned(), name.to_owned(), Some(arguments))
}

/// Reads the parameters of a message.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(params)
}
