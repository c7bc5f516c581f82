/** What can be asked of a text: each verb runs commands, and makes an element of what they print. */

import { type Desk, FILE, refused, timeline } from "./desk";
import { make, plain } from "./dom";
import { type Story, story } from "./explanation";
import { type Matrix, matrix } from "./matrix";
import type { Answer } from "./protocol";
import { type Found, found } from "./search";
import { type Comparison, stacks } from "./stack";

export interface Verb {
  name: string;
  title: string;
  /** What it shows, in a sentence. */
  about: string;
  run(desk: Desk): Promise<Node>;
}

/** Returns the objects that a command printed, or nothing if it could not do what was asked. */
function objects<T>(answer: Answer, kind: string): T[] | undefined {
  if (answer.code === null || answer.code >= 2) return undefined;
  const all = answer.out.split("\n").filter(Boolean).map((line) => JSON.parse(line) as T & { kind: string });
  return all.filter((it) => it.kind === kind);
}

/** Makes a verb whose command prints objects of a kind. */
async function drawn<T>(desk: Desk, args: string[], kind: string, draw: (all: T[], desk: Desk) => Node): Promise<Node> {
  const answer = await desk.run([...args, FILE, ...desk.on, "--json"]);
  const all = objects<T>(answer, kind);
  if (!all) return refused({ ...answer, out: "" });
  return all.length > 0 ? draw(all, desk) : make("p", { class: "note" }, answer.err.trim() || "Nothing to show.");
}

async function smaller(desk: Desk): Promise<Node> {
  const made = "smaller.kdl";
  const answer = await desk.run(["minimize", FILE, "-o", made, ...desk.on]);
  const text = answer.files[made];
  if (text === undefined) return refused(answer);
  const take = make("button", { type: "button", click: () => desk.take(text) }, "Take it into the editor");
  return make("div", {}, make("p", { class: "note" }, answer.out.trim()), take, plain(text));
}

export const VERBS: Verb[] = [
  {
    name: "matrix", title: "Results", about: "What the snapshots give on each runtime, and why.",
    run: (desk) => drawn<Matrix>(desk, ["matrix"], "matrix", matrix),
  },
  {
    name: "compare", title: "Stack", about: "The stack at each stop: its frames in memory, and what each kind of profiler sees of it.",
    run: (desk) => drawn<Comparison>(desk, ["compare"], "comparison", stacks),
  },
  {
    name: "explain", title: "Explanation", about: "Each decision of the runtime, with the rules that say so.",
    run: (desk) => drawn<Story>(desk, ["explain"], "story", story),
  },
  {
    name: "explore", title: "Search", about: "A search of the orders of all threads for one that hangs, crashes, or breaks a rule.",
    run: (desk) => drawn<Found>(desk, ["explore"], "explored", found),
  },
  {
    name: "timeline", title: "Timeline", about: "The first order of threads that fails, or one that does not, turn by turn.",
    run: (desk) => timeline(desk, [FILE, ...desk.on]),
  },
  {
    name: "run", title: "Check", about: "Whether the text's expectations come out.",
    run: async (desk) => {
      const answer = await desk.run(["run", FILE, ...desk.on]);
      return answer.code !== null && answer.code < 2 ? plain(`${answer.out}${answer.err}`.trim()) : refused(answer);
    },
  },
  {
    name: "minimize", title: "Smaller", about: "The smallest text that still fails as this one does.",
    run: smaller,
  },
];
