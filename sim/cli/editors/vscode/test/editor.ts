/** The test inside the editor: it runs in the extension host, and asks the editor as a person would. */

import * as assert from "assert";
import { writeFile } from "fs/promises";
import { join } from "path";
import * as vscode from "vscode";
import type { Api } from "../src/extension";

const WRONG = `function "App.Main" kind="jti" { body { new } }
stop callback="ObjectAllocated" {
    snapshot by="native-walker" { expect on="windows" { result "S_OK" } }
}
`;

/** Waits until something holds. */
async function until<T>(what: string, holds: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let tries = 0; tries < 300; tries++) {
    const found = await holds();
    if (found) {
      return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${what}: not within 30 s`);
}

async function open(name: string, content?: string): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0].uri;
  assert.ok(folder);
  const uri = vscode.Uri.joinPath(folder, name);
  if (content !== undefined) {
    await vscode.workspace.fs.writeFile(uri, Buffer.from(content));
  }
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
}

const steps: [string, () => Promise<void>][] = [
  ["a problem has a correction, which is applied", async () => {
    const { document } = await open("wrong.kdl", WRONG);
    const problem = await until("a problem", () =>
      vscode.languages.getDiagnostics(document.uri).find((it) => it.message.includes("did you mean `jit`")));
    assert.strictEqual(problem.source, "clrsim");
    const fixes = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider", document.uri, problem.range, vscode.CodeActionKind.QuickFix.value);
    const fix = fixes.find((it) => it.title === "change to `jit`");
    assert.ok(fix?.edit, JSON.stringify(fixes));
    await vscode.workspace.applyEdit(fix.edit);
    await until("no problem", () => vscode.languages.getDiagnostics(document.uri).length === 0);
    await document.save();
  }],
  ["hover, symbols, definition and rename are answered", async () => {
    const { document } = await open("wrong.kdl");
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
      "vscode.executeHoverProvider", document.uri, new vscode.Position(1, 1));
    const text = hovers.flatMap((it) => it.contents).map((it) => (it as vscode.MarkdownString).value).join();
    assert.ok(text.includes("**stop** in text") && text.includes("```kdl"), text);
    const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[]>(
      "vscode.executeDocumentSymbolProvider", document.uri);
    assert.deepStrictEqual(symbols.map((it) => it.name), ["App.Main", "stop"]);
    const edit = await vscode.commands.executeCommand<vscode.WorkspaceEdit>(
      "vscode.executeDocumentRenameProvider", document.uri, new vscode.Position(0, 12), "App.Start");
    assert.strictEqual(edit.get(document.uri).length, 1);
  }],
  ["the results of all runtimes are shown beside the text", async () => {
    await open("wrong.kdl");
    await vscode.commands.executeCommand("clrsim.showMatrix");
    const page = (await api()).shown() ?? "";
    assert.ok(page.includes("CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX") && page.includes("net9-windows"), page);
    assert.ok(page.includes("not as expected") && page.includes("C-044"), page);
    const labels = () => vscode.window.tabGroups.all.flatMap((it) => it.tabs).map((it) => it.label);
    await until("the page's tab", () => labels().includes("Results: wrong.kdl"));
  }],
  ["a search finds an interleaving, which is drawn", async () => {
    await open("hazard.kdl");
    const { shown } = await api();
    const running = vscode.commands.executeCommand("clrsim.runSchedule");
    // It asks which of the runtimes; the first one is taken.
    const page = await until("the drawing", async () => {
      await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
      return shown()?.includes("<svg") ? shown() : undefined;
    });
    await running;
    assert.ok(page.includes("suspend each other"), page.slice(0, 300));
  }],
];

async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("clr-sim.clrsim");
  assert.ok(extension);
  return extension.activate();
}

export async function run(): Promise<void> {
  // The editor's own log is not for reading: the results are a file beside the test.
  const results: string[] = [];
  const write = () => writeFile(join(__dirname, "results.txt"), results.join("\n") + "\n");
  for (const [what, step] of steps) {
    try {
      await step();
      results.push(`ok: ${what}`);
    } catch (error) {
      results.push(`FAILED: ${what}: ${error instanceof Error ? error.stack : error}`.replace(/\n/g, " "));
    }
  }
  results.push("end");
  await write();
}
