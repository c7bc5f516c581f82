//! The requests of a session, and their answers.

use super::{
    RUN, RUN_AT, Server, actions, command, complete, hover, invalid, names, read, symbols,
};
use crate::render::error::CliError;
use clr_explore::visible;
use clr_scenario::format_text;
use lsp_server::{ErrorCode, RequestId, Response};
use lsp_types::request::{
    CodeActionRequest, CodeLensRequest, Completion, DocumentSymbolRequest, ExecuteCommand,
    Formatting, GotoDefinition, HoverRequest, PrepareRenameRequest, References, Rename,
    Request as _,
};
use lsp_types::{
    CodeLens, CompletionResponse, DocumentSymbolResponse, GotoDefinitionResponse, RenameParams,
    TextEdit,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

impl Server<'_> {
    /// Answers a request in a session.
    pub(super) fn serve(
        &mut self,
        id: RequestId,
        method: &str,
        params: Value,
    ) -> Result<(), CliError> {
        match method {
            Completion::METHOD => self.answer::<Completion>(id, params, |server, params| {
                let place = params.text_document_position;
                let document = server.document(&place.text_document.uri)?;
                let items = complete::completions(document, place.position);
                Some(CompletionResponse::Array(items))
            }),
            HoverRequest::METHOD => self.answer::<HoverRequest>(id, params, |server, params| {
                let place = params.text_document_position_params;
                let document = server.document(&place.text_document.uri)?;
                hover::hover(document, place.position)
            }),
            Formatting::METHOD => self.answer::<Formatting>(id, params, |server, params| {
                let document = server.document(&params.text_document.uri)?;
                let text = format_text(&document.text).ok()?;
                Some(vec![TextEdit::new(document.whole(), text)])
            }),
            CodeActionRequest::METHOD => {
                self.answer::<CodeActionRequest>(id, params, |server, params| {
                    let document = server.document(&params.text_document.uri)?;
                    Some(actions::actions(document, &params, server.has_literals))
                })
            }
            CodeLensRequest::METHOD => {
                self.answer::<CodeLensRequest>(id, params, |server, params| {
                    let uri = &params.text_document.uri;
                    let document = server.document(uri)?;
                    let lines = document.text.lines().zip(1..).filter(|(line, _)| {
                        RUN_AT.iter().any(|node| line.split([' ', '{']).next() == Some(node))
                    });
                    let lens = |(_, line)| CodeLens {
                        range: document.line(line),
                        command: Some(command("run on all runtimes", RUN, uri)),
                        data: None,
                    };
                    Some(lines.map(lens).collect())
                })
            }
            ExecuteCommand::METHOD => match read::<lsp_types::ExecuteCommandParams>(params) {
                Ok(params) => {
                    let uri = params.arguments.first().and_then(Value::as_str);
                    self.execute(&params.command, uri.unwrap_or_default())?;
                    self.send(Response::new_ok(id, Value::Null))
                }
                Err(why) => self.send(invalid(id, method, &why)),
            },
            _ => self.find(id, method, params),
        }
    }

    /// Answers a request about what a text names.
    fn find(&mut self, id: RequestId, method: &str, params: Value) -> Result<(), CliError> {
        match method {
            DocumentSymbolRequest::METHOD => {
                self.answer::<DocumentSymbolRequest>(id, params, |server, params| {
                    let document = server.document(&params.text_document.uri)?;
                    Some(DocumentSymbolResponse::Nested(symbols::symbols(document)))
                })
            }
            GotoDefinition::METHOD => {
                self.answer::<GotoDefinition>(id, params, |server, params| {
                    let place = params.text_document_position_params;
                    let document = server.document(&place.text_document.uri)?;
                    let place = names::definition(document, &place)?;
                    Some(GotoDefinitionResponse::Scalar(place))
                })
            }
            References::METHOD => self.answer::<References>(id, params, |server, params| {
                let place = params.text_document_position;
                let document = server.document(&place.text_document.uri)?;
                Some(names::uses(document, &place, params.context.include_declaration))
            }),
            PrepareRenameRequest::METHOD => {
                self.answer::<PrepareRenameRequest>(id, params, |server, place| {
                    names::prepare(server.document(&place.text_document.uri)?, &place)
                })
            }
            Rename::METHOD => match read::<RenameParams>(params) {
                Ok(params) => {
                    let place = &params.text_document_position;
                    let document = self.document(&place.text_document.uri);
                    let edit = document.map(|it| names::rename(it, place, &params.new_name));
                    let response = match edit.transpose() {
                        Ok(edit) => Response::new_ok(id, edit),
                        Err(why) => {
                            let why = visible(&why.to_string());
                            Response::new_err(id, ErrorCode::RequestFailed as i32, why)
                        }
                    };
                    self.send(response)
                }
                Err(why) => self.send(invalid(id, method, &why)),
            },
            _ => {
                let what = format!("clrsim lsp has no {}", visible(method));
                self.send(Response::new_err(id, ErrorCode::MethodNotFound as i32, what))
            }
        }
    }

    /// Answers a request; with null if there is nothing to say, and with an error if its parameters are others.
    fn answer<R: lsp_types::request::Request>(
        &mut self,
        id: RequestId,
        params: Value,
        answer: impl FnOnce(&Self, R::Params) -> R::Result,
    ) -> Result<(), CliError>
    where
        R::Params: DeserializeOwned,
        R::Result: Serialize,
    {
        let response = match read(params) {
            Ok(params) => Response::new_ok(id, answer(self, params)),
            Err(why) => invalid(id, R::METHOD, &why),
        };
        self.send(response)
    }
}
