/** What searches find: how each ends, its story, and the interleaving to replay. */

import { type Desk, timeline } from "./desk";
import { make, plain } from "./dom";

/** An object of `clrsim explore --json`. */
export interface Found {
  generation: string;
  strategy: string;
  schedules: number;
  broken: { rule: string; replay: string; replay_flags: string[] }[];
  interrupted: boolean;
  timed_out: boolean;
  replay?: string;
  replay_flags?: string[];
  text?: string;
  hazard?: string | null;
  clauses?: string[];
  avoided_by?: string | null;
  story?: string[];
}

/** Returns the results by what is found: runtimes that find the same are together. */
export function found(all: Found[], desk: Desk): Node {
  const groups = new Map<string, Found[]>();
  for (const one of all) {
    const key = JSON.stringify([one.strategy, one.schedules, one.text, one.story, one.broken.map((it) => it.rule)]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return make("div", {}, ...[...groups.values()].map((group) => result(group, desk)));
}

function draw(desk: Desk, replay: string, flags: string[], title: string): Node {
  return make("button", { type: "button", click: () => desk.then(() => timeline(desk, [...flags, replay])) }, title);
}

function result(group: Found[], desk: Desk): Node {
  const one = group[0]!;
  const names = group.map((it) => it.generation).join(", ");
  const many = `${one.schedules} interleaving${one.schedules === 1 ? "" : "s"}, ${one.strategy}${one.timed_out || one.interrupted ? ", not all that were asked for" : ""}`;
  const parts: Node[] = [make("h3", {}, one.text ?? "no interleaving fails"), make("p", { class: "note" }, `${names}: ${many}`)];
  if (one.hazard) parts.push(make("p", {}, "Hazard ", ...desk.rules([one.hazard, ...(one.clauses ?? [])])));
  if (one.avoided_by) parts.push(make("p", {}, `What avoids it: ${one.avoided_by}.`));
  if (one.replay) {
    parts.push(draw(desk, one.replay, one.replay_flags ?? [], "Replay it turn by turn"), make("p", { class: "note" }, `clrsim replay ${one.replay.replace(/^[^@]*/, "text.kdl")}`));
  }
  for (const broken of one.broken) parts.push(make("p", {}, `A rule is broken: ${broken.rule} `, draw(desk, broken.replay, broken.replay_flags, "Replay it")));
  if (one.story?.length) parts.push(make("details", { open: true }, make("summary", {}, "The story"), plain(one.story.join("\n"))));
  return make("section", { class: "found" }, ...parts);
}
