/** The extension: starts the language server, shows results of all runtimes beside a text, and draws interleavings. */

import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { Failing, Tool } from "./tool";
import { matrixPage, textPage } from "./pages";

/** What tests can look at. */
export interface Api {
  /** The page that was shown last, as HTML. */
  shown(): string | undefined;
}

let client: LanguageClient | undefined;
let panel: vscode.WebviewPanel | undefined;
let matrixOf: vscode.Uri | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Api> {
  const command = (name: string, run: () => Promise<void>) =>
    context.subscriptions.push(vscode.commands.registerCommand(name, () => run().catch(tell)));
  command("clrsim.showMatrix", async () => showMatrix(await savedText()));
  command("clrsim.runSchedule", async () => runSchedule(await savedText()));
  command("clrsim.restart", async () => (client ? client.restart() : start()));
  context.subscriptions.push(
    vscode.workspace.onDidSaveTextDocument((text) => {
      // A page beside the text follows it.
      if (panel && matrixOf?.toString() === text.uri.toString()) {
        showMatrix(text).catch(tell);
      }
    }),
  );
  await start().catch(tell);
  return { shown: () => panel?.webview.html };
}

export async function deactivate(): Promise<void> {
  if (client?.isRunning()) {
    await client.stop();
  }
}

function tool(): Tool {
  return new Tool(vscode.workspace.getConfiguration("clrsim").get("path", "clrsim"));
}

async function start(): Promise<void> {
  // Standard input and output are the server's only way: with a transport named, the client would add an option for it.
  const run = { command: tool().path, args: ["lsp"] };
  client = new LanguageClient("clrsim", "clr-sim", run, {
    documentSelector: [
      { scheme: "file", language: "kdl" },
      { scheme: "untitled", language: "kdl" },
    ],
  });
  await client.start();
}

/** Returns the text of the active editor, after it was saved: commands of the tool read files. */
async function savedText(): Promise<vscode.TextDocument> {
  const text = vscode.window.activeTextEditor?.document;
  if (!text || text.languageId !== "kdl") {
    throw new Error("no scenario is open");
  }
  if (!(await text.save()) || text.isUntitled) {
    throw new Error("the scenario is in no file");
  }
  return text;
}

async function showMatrix(text: vscode.TextDocument): Promise<void> {
  const matrices = await tool().matrices(text.uri.fsPath);
  show(text, "Results", matrixPage(matrices), false);
  matrixOf = text.uri;
}

async function runSchedule(text: vscode.TextDocument): Promise<void> {
  const title = `clr-sim searches ${vscode.workspace.asRelativePath(text.uri)}`;
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  const failing = await vscode.window.withProgress(options, (_, token) =>
    tool().failing(text.uri.fsPath, (stop) => token.onCancellationRequested(stop)),
  );
  const choice = await choose(failing);
  if (choice) {
    const page = await tool().drawing(choice);
    show(text, "Interleaving", page, true);
    matrixOf = undefined;
  }
}

/** Asks which interleaving is drawn, if there are several. */
async function choose(failing: Failing[]): Promise<Failing | undefined> {
  if (failing.length === 0) {
    throw new Error("no interleaving fails");
  }
  if (failing.length === 1) {
    return failing[0];
  }
  const items = failing.map((it) => ({ label: it.runtime, description: it.replay, it }));
  return (await vscode.window.showQuickPick(items, { title: "Interleavings that fail" }))?.it;
}

function show(text: vscode.TextDocument, what: string, html: string, scripts: boolean): void {
  if (!panel) {
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    panel = vscode.window.createWebviewPanel("clrsim", what, place, { enableScripts: true, localResourceRoots: [] });
    panel.onDidDispose(() => (panel = undefined));
  }
  panel.title = `${what}: ${vscode.workspace.asRelativePath(text.uri)}`;
  panel.webview.options = { enableScripts: scripts, localResourceRoots: [] };
  panel.webview.html = html;
}

function tell(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  if (panel) {
    panel.webview.html = textPage(message);
  }
  void vscode.window.showErrorMessage(`clr-sim: ${message}`);
}
