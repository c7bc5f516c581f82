/** The stack at a stop as a picture: the frames in memory, and who sees which. */

import { make } from "./dom";

/** An object of `clrsim compare --json`. */
export interface Comparison {
  stop: number;
  place: string;
  runtimes: string[];
  columns: { policy: string; profiler: string; result: string | null; complete: string; gaps: { text: string }[] }[];
  rows: { code: string; frame: string; rsp: string; is_there: boolean; seen_by: (string | null)[] }[];
  error: string | null;
}

/** What the marks of a frame mean. */
const SEEN: Record<string, [string, string]> = {
  runtime: ["R", "by the runtime's walk"],
  unwinder: ["U", "by the profiler's unwinder"],
  both: ["RU", "by both: the runtime's walk begins or goes on where the unwinder is"],
};

/** Height of a frame in pixels: more for more memory, but a frame of a page is no page. */
const height = (bytes: number) => 26 + Math.round(6 * Math.log2(1 + Math.max(0, bytes) / 16));

function picture(one: Comparison): Node {
  const letters = one.columns.map((_, at) => String.fromCharCode(65 + at));
  const head = make("tr", {}, make("th", { scope: "col" }, "rsp"), make("th", { scope: "col" }, "frame, leaf first"),
    ...letters.map((it, at) => make("th", { scope: "col", title: one.columns[at]!.profiler }, it)));
  const rows = one.rows.map((row, at) => {
    const next = one.rows[at + 1];
    const bytes = next ? Number(BigInt(next.rsp) - BigInt(row.rsp)) : 0;
    const size = next && bytes > 0 ? `${bytes} bytes` : "";
    const box = make("div", { class: `frame ${row.code}` }, make("b", {}, row.frame), make("span", {}, [row.code, size].filter(Boolean).join(", ")));
    box.style.minHeight = `${height(bytes)}px`;
    const seen = row.seen_by.map((it) => {
      const [mark, meaning] = (it && SEEN[it]) || ["", "not seen"];
      return make("td", { class: it ? "seen" : "unseen", title: meaning }, mark || "·");
    });
    const wrong = row.is_there ? "" : " (is not there)";
    return make("tr", {}, make("td", { class: "address" }, row.rsp + wrong), make("td", {}, box), ...seen);
  });
  const legend = one.columns.map((column, at) => make("li", {},
    make("b", {}, `${letters[at]} ${column.policy}`), `: ${column.profiler}`,
    make("span", { class: "note" }, `: ${[column.result ?? "", ...column.gaps.map((it) => it.text)].filter(Boolean).join("; ")}`)));
  const meaning = Object.values(SEEN).map(([mark, text]) => `${mark} ${text}`).join("; ");
  const table = make("table", { class: "stack" }, make("caption", {}, `${one.place} on ${one.runtimes.join(", ")}`), head, ...rows);
  return make("section", {},
    one.error ? make("p", { class: "refused" }, one.error) : "",
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": one.place }, table),
    make("p", { class: "note" }, `Seen ${meaning}; · not seen. The stack grows upwards, to lower addresses.`),
    make("ul", { class: "legend" }, ...legend));
}

/** Returns a choice of stops and runtimes, and the picture of the one that is chosen. */
export function stacks(all: Comparison[]): Node {
  const shown = make("div");
  const show = (at: number) => shown.replaceChildren(picture(all[at]!));
  const names = all.map((it, at) => make("option", { value: String(at) }, `${it.place}, ${it.runtimes.join(", ")}`));
  const choice = make("select", { "aria-label": "Stop and runtimes", change: (event) => show(Number((event.target as HTMLSelectElement).value)) }, ...names);
  show(0);
  return make("div", {}, all.length > 1 ? make("label", { class: "choice" }, "Stop ", choice) : "", shown);
}
