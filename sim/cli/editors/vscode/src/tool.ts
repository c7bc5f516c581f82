/** The program `clrsim`, and what its objects say. It knows nothing of the editor. */

import { execFile } from "child_process";
import { mkdtemp, readFile, rm } from "fs/promises";
import { tmpdir } from "os";
import { join } from "path";

/** A reason of a result, with the clauses that say it. */
export interface Why {
  text: string;
  clauses: string[];
}

/** A result that some runtimes have in common. */
export interface Column {
  runtimes: string[];
  result: string;
  as_expected: boolean | null;
  why: Why | null;
}

/** A snapshot on all runtimes: an object of `clrsim matrix --json`. */
export interface Matrix {
  snapshot: number;
  title: string | null;
  call: string;
  columns: Column[];
}

/** An interleaving that fails, as `clrsim explore --json` names it. */
export interface Failing {
  runtime: string;
  replay: string;
  flags: string[];
}

/** Largest output of a command, in bytes. */
const MOST = 64 << 20;

export class Tool {
  constructor(readonly path: string) {}

  async matrices(file: string): Promise<Matrix[]> {
    const objects = await this.objects(["matrix", "--json", file]);
    return objects.filter((it) => it.kind === "matrix") as unknown as Matrix[];
  }

  /** Returns what a search finds on each runtime. `onStop` is given a function that ends the search. */
  async failing(file: string, onStop: (stop: () => void) => void): Promise<Failing[]> {
    const objects = await this.objects(["explore", "--json", file], onStop);
    const found = objects.filter((it) => it.kind === "explored" && typeof it.replay === "string");
    return found.map((it) => ({
      runtime: String(it.generation),
      replay: String(it.replay),
      flags: Array.isArray(it.replay_flags) ? it.replay_flags.map(String) : [],
    }));
  }

  /** Returns the page of an interleaving. */
  async drawing(failing: Failing): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "clrsim-"));
    try {
      const page = join(folder, "drawing.html");
      await this.run(["replay", ...failing.flags, failing.replay, "--html", page]);
      return await readFile(page, "utf8");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  private async objects(args: string[], onStop?: (stop: () => void) => void): Promise<Record<string, unknown>[]> {
    const lines = (await this.run(args, onStop)).split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Runs a command. Exit code 1 says that something failed in the scenario, which the output says, too. */
  private run(args: string[], onStop?: (stop: () => void) => void): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = execFile(this.path, args, { maxBuffer: MOST }, (error, out, err) => {
        if (!error || error.code === 1) {
          resolve(out);
        } else if (error.code === "ENOENT") {
          reject(new Error(`there is no program ${this.path}: install clrsim, or set clrsim.path`));
        } else {
          reject(new Error(errorIn(out) ?? (err.trim() || error.message)));
        }
      });
      // The tool prints what it has found so far.
      onStop?.(() => child.kill("SIGINT"));
    });
  }
}

/** Returns the message of an object that says why a command failed. */
function errorIn(out: string): string | undefined {
  for (const line of out.split("\n")) {
    try {
      const object = JSON.parse(line) as Record<string, unknown>;
      if (object.kind === "error" && typeof object.message === "string") {
        return object.message;
      }
    } catch {
      // A line that is no object says nothing of errors.
    }
  }
  return undefined;
}
