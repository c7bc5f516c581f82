/** The story of a snapshot on runtimes that give the same. */

import type { Desk } from "./desk";
import { make } from "./dom";

/** An object of `clrsim explain --json`. */
export interface Story {
  snapshot: number;
  title: string | null;
  call: string;
  runtimes: string[];
  story: { kind: string; depth: number; text: string; clauses: string[] }[];
}

/** Returns the stories, the first one open. */
export function story(all: Story[], desk: Desk): Node {
  const parts = all.map((one, at) => {
    const steps = one.story.map((it) => {
      const step = make("li", { class: it.kind }, it.text, " ", ...desk.rules(it.clauses));
      step.style.marginInlineStart = `${it.depth}em`;
      return step;
    });
    const title = `Snapshot ${one.snapshot}${one.title ? `, ${one.title}` : ""}, ${one.call}: ${one.runtimes.join(", ")}`;
    return make("details", { open: at === 0 }, make("summary", {}, title), make("ol", { class: "steps" }, ...steps));
  });
  return make("div", {}, ...parts);
}
