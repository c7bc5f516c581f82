/** What a verb works with. */

import { make, plain } from "./dom";
import type { Answer, Files } from "./protocol";

/** The name that a text has for the tool. */
export const FILE = "text.kdl";

/** What a verb may use. */
export interface Desk {
  /** The text under its name. */
  files: Files;
  /** The chosen runtimes as arguments. */
  on: string[];
  /** Runs a command, and shows its command line. */
  run(args: string[]): Promise<Answer>;
  /** Returns ids of rules, as links where they lead somewhere. */
  rules(ids: string[]): Node[];
  /** Puts another text into the editor. */
  take(text: string): void;
  /** Does something else that takes time, in place of the result. */
  then(work: () => Promise<Node>): void;
}

/** Returns what the tool says of an answer that has no result. */
export function refused(answer: Answer): Node {
  return make("div", { class: "refused", role: "alert" }, plain(answer.err.trim() || answer.out.trim() || `exit code ${answer.code}`));
}

/** Returns the page that `replay --html` writes. Its scripts run in a frame that has no origin, and reach nothing. */
export async function timeline(desk: Desk, args: string[]): Promise<Node> {
  const page = "timeline.html";
  const answer = await desk.run(["replay", ...args, "--html", page]);
  const html = answer.files[page];
  if (html === undefined) return refused(answer);
  return make("iframe", { class: "drawn", sandbox: "allow-scripts", title: "The interleaving, turn by turn", srcdoc: html });
}
