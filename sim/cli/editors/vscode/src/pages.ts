/** Pages that are shown beside a text. They have no script, and load nothing. */

import type { Column, Matrix } from "./tool";

const HEAD = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font-family: var(--vscode-font-family); color: var(--vscode-foreground); }
table { border-collapse: collapse; margin-bottom: 2em; }
caption { text-align: left; font-weight: bold; padding: .3em 0; }
th, td { border: 1px solid var(--vscode-panel-border, gray); padding: .3em .6em; text-align: left; vertical-align: top; }
.wrong { color: var(--vscode-errorForeground); }
</style></head><body>`;

/** Returns the page of the snapshots of a scenario. */
export function matrixPage(matrices: Matrix[]): string {
  const none = "<p>The scenario has no snapshot.</p>";
  return HEAD + (matrices.length === 0 ? none : matrices.map(table).join("")) + "</body></html>";
}

/** Returns a page with a text alone. */
export function textPage(text: string): string {
  return `${HEAD}<pre>${escaped(text)}</pre></body></html>`;
}

function table(matrix: Matrix): string {
  const title = matrix.title ? `${matrix.title}, ` : "";
  const caption = `Snapshot ${matrix.snapshot}: ${title}${matrix.call}`;
  const head = "<tr><th scope=\"col\">Runtimes</th><th scope=\"col\">Result</th><th scope=\"col\">Why</th></tr>";
  return `<table><caption>${escaped(caption)}</caption>${head}${matrix.columns.map(row).join("")}</table>`;
}

function row(column: Column): string {
  const expected = column.as_expected === null ? "nothing is expected" : column.as_expected ? "as expected" : "not as expected";
  const style = column.as_expected === false ? ' class="wrong"' : "";
  const why = column.why ? `${column.why.text} [${column.why.clauses.join(", ")}]` : "";
  const result = `${escaped(column.result)}<br>${expected}`;
  return `<tr><td>${escaped(column.runtimes.join(", "))}</td><td${style}>${result}</td><td>${escaped(why)}</td></tr>`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
