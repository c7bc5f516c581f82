/** The language server, `clrsim lsp`: each question is a session of its own, all messages at once. */

import type { Tool } from "./tool";

export interface Position {
  /** From 0. */
  line: number;
  /** UTF-16 units from 0. */
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export interface Problem {
  range: Range;
  severity?: number;
  message: string;
}

export interface Item {
  label: string;
  detail?: string;
  documentation?: string | { value: string };
  insertText?: string;
  textEdit?: { newText: string; range: Range };
}

const URI = "file:///text.kdl";

function message(object: object): string {
  const text = JSON.stringify({ jsonrpc: "2.0", ...object });
  return `Content-Length: ${new TextEncoder().encode(text).length}\r\n\r\n${text}`;
}

/** Returns the messages of a stream: lengths are in bytes. */
function messages(stream: string): Record<string, unknown>[] {
  const bytes = new TextEncoder().encode(stream);
  const decoder = new TextDecoder();
  const found: Record<string, unknown>[] = [];
  for (let at = 0; at < bytes.length; ) {
    const head = /^Content-Length: (\d+)\r\n\r\n/.exec(decoder.decode(bytes.subarray(at, at + 64)));
    if (!head) break;
    const begin = at + head[0].length;
    at = begin + Number(head[1]);
    found.push(JSON.parse(decoder.decode(bytes.subarray(begin, at))) as Record<string, unknown>);
  }
  return found;
}

/** Asks about a text. `question` has a method and what it needs beside the text. */
async function session(tool: Tool, text: string, question?: { method: string; params: object }): Promise<Record<string, unknown>[]> {
  const textDocument = { uri: URI };
  const input = [
    message({ id: 1, method: "initialize", params: { capabilities: {} } }),
    message({ method: "initialized", params: {} }),
    message({ method: "textDocument/didOpen", params: { textDocument: { ...textDocument, languageId: "kdl", version: 1, text } } }),
    question ? message({ id: 2, method: question.method, params: { textDocument, ...question.params } }) : "",
    message({ id: 3, method: "shutdown" }),
    message({ method: "exit" }),
  ];
  return messages((await tool.run(["lsp"], {}, input.join(""))).out);
}

/** What an editor asks. */
export class Server {
  constructor(private readonly tool: Tool) {}

  async problems(text: string): Promise<Problem[]> {
    const said = (await session(this.tool, text)).filter((it) => it.method === "textDocument/publishDiagnostics");
    return said.length === 0 ? [] : (said[said.length - 1]!.params as { diagnostics: Problem[] }).diagnostics;
  }

  async completions(text: string, position: Position): Promise<Item[]> {
    const result = await this.answer(text, "textDocument/completion", { position });
    return Array.isArray(result) ? (result as Item[]) : ((result as { items?: Item[] } | null)?.items ?? []);
  }

  async hover(text: string, position: Position): Promise<string | undefined> {
    const result = (await this.answer(text, "textDocument/hover", { position })) as { contents?: { value?: string } | string } | null;
    return typeof result?.contents === "string" ? result.contents : result?.contents?.value;
  }

  /** Returns the text in the usual form; nothing if it cannot be read. */
  async laidOut(text: string): Promise<string | undefined> {
    const edits = await this.answer(text, "textDocument/formatting", { options: { tabSize: 4, insertSpaces: true } });
    if (!Array.isArray(edits)) return undefined;
    const lines = text.split("\n");
    const at = ({ line, character }: Position) => lines.slice(0, line).reduce((sum, it) => sum + it.length + 1, 0) + character;
    return (edits as { range: Range; newText: string }[])
      .sort((one, other) => at(other.range.start) - at(one.range.start))
      .reduce((made, it) => made.slice(0, at(it.range.start)) + it.newText + made.slice(Math.min(made.length, at(it.range.end))), text);
  }

  private async answer(text: string, method: string, params: object): Promise<unknown> {
    return (await session(this.tool, text, { method, params })).find((it) => it.id === 2)?.result ?? null;
  }
}
