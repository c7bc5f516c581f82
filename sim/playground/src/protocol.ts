/** What a page and its worker say to each other. */

/** Files by name. */
export type Files = Record<string, string>;

/** What came of a command. */
export interface Answer {
  /** The exit code; none after a trap. */
  code: number | null;
  /** Whether the command has ended by itself. */
  ended: "exit" | "trap" | "memory";
  out: string;
  err: string;
  /** The files afterwards. */
  files: Files;
  /** Bytes of the command's memory in the end. */
  memory: number;
}

export type ToWorker =
  | { kind: "start"; module: WebAssembly.Module }
  | { kind: "run"; id: number; args: string[]; files: Files; stdin: string; most: number };

export type FromWorker = { kind: "progress"; id: number; line: string } | { kind: "done"; id: number; answer: Answer };
