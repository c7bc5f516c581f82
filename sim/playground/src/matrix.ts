/** The snapshots on all runtimes: a cell for each, with its reason and its frames on a click. */

import type { Desk } from "./desk";
import { make } from "./dom";

interface Why {
  text: string;
  clauses: string[];
}

interface Column {
  runtimes: string[];
  result: string;
  as_expected: boolean | null;
  why: Why | null;
  /** The runtimes that have another reason. */
  also: (Why & { runtimes: string[] })[];
}

interface Row {
  marker: boolean;
  place: string;
  registers: { register: string; value: string }[];
  /** In which callback each column has this row. */
  callbacks: (number | null)[];
}

/** An object of `clrsim matrix --json`. */
export interface Matrix {
  snapshot: number;
  title: string | null;
  call: string;
  columns: Column[];
  rows: Row[];
}

const PREFIX = /^CORPROF_E_(STACKSNAPSHOT_)?/;

function expected(column: Column): string {
  if (column.as_expected === null) return "nothing is expected";
  return column.as_expected ? "as expected" : "not as expected";
}

/** Says why a runtime gives a result, and draws what the walk has seen: leaf first, where each frame is in memory. */
function reason(matrix: Matrix, column: Column, runtime: string, desk: Desk): Node {
  const why = column.also.find((it) => it.runtimes.includes(runtime)) ?? column.why;
  const parts: Node[] = [
    make("h3", {}, `${runtime}: ${column.result}`),
    make("p", {}, `Snapshot ${matrix.snapshot}${matrix.title ? `, ${matrix.title}` : ""}, ${matrix.call}; ${expected(column)}.`),
  ];
  if (why) parts.push(make("p", {}, why.text, " ", ...desk.rules(why.clauses)));
  const at = matrix.columns.indexOf(column);
  const seen = matrix.rows.filter((it) => typeof it.callbacks[at] === "number");
  if (seen.length > 0) {
    const rows = seen.map((it) => make("tr", {},
      make("td", {}, String(it.callbacks[at])),
      make("td", { class: it.marker ? "native" : "managed" }, it.marker ? `marker: ${it.place}` : it.place),
      make("td", {}, it.registers.map((one) => `${one.register} ${one.value}`).join(", "))));
    const head = ["callback", "frame", "registers"].map((it) => make("th", { scope: "col" }, it));
    parts.push(make("table", { class: "frames" }, make("caption", {}, "What the walk gives, leaf first"), make("tr", {}, ...head), ...rows));
  }
  return make("div", { class: "reason" }, ...parts);
}

/** Returns a table: a row for each runtime, a column for each snapshot. */
export function matrix(all: Matrix[], desk: Desk): Node {
  const runtimes = [...new Set(all.flatMap((it) => it.columns.flatMap((column) => column.runtimes)))];
  const why = make("div", { class: "why", role: "status", "aria-live": "polite" });
  let pressed: HTMLElement | undefined;
  const cell = (runtime: string, one: Matrix) => {
    const column = one.columns.find((it) => it.runtimes.includes(runtime));
    if (!column) return make("td", {}, "–");
    const mark = column.as_expected === null ? "" : column.as_expected ? "✓ " : "✗ ";
    const style = `cell ${column.as_expected === false ? "wrong" : column.result === "S_OK" ? "good" : "other"}`;
    const button = make("button", {
      type: "button", class: style, "aria-pressed": "false", title: `${column.result}, ${expected(column)}`,
      click: () => {
        pressed?.setAttribute("aria-pressed", "false");
        pressed = button;
        button.setAttribute("aria-pressed", "true");
        why.replaceChildren(reason(one, column, runtime, desk));
        why.scrollIntoView({ block: "nearest" });
      },
    }, mark + column.result.replace(PREFIX, ""));
    return make("td", {}, button);
  };
  const head = all.map((it) => make("th", { scope: "col", title: it.call }, `${it.snapshot}${it.title ? `: ${it.title}` : ""}`));
  const rows = runtimes.map((runtime) => make("tr", {}, make("th", { scope: "row" }, runtime), ...all.map((it) => cell(runtime, it))));
  const table = make("table", { class: "matrix" }, make("tr", {}, make("th", { scope: "col" }, "snapshot"), ...head), ...rows);
  const hint = "Choose a result to see its reason. ✓ is as the text expects, ✗ is not; CORPROF_E_STACKSNAPSHOT_ is left out.";
  return make("div", {}, make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Results" }, table), make("p", { class: "note" }, hint), why);
}
