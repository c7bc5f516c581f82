/** What a playground begins with. */
export interface Options {
  /** The text; what the element contains, if there is none. */
  text?: string;
  /** What is asked first: `matrix` (the default), `compare`, `explain`, `explore`, `timeline`, `run` or `minimize`. */
  verb?: string;
  /** The runtimes by their names; none are all, or those that the text is for. */
  runtimes?: string[];
  /** The address of clr-sim's site, for links to rules; without it they are words. */
  site?: string | URL;
  /** The folder of `worker.js` and `clrsim.wasm`; that of the script, if there is none. */
  base?: string | URL;
  /** Limits of each command: seconds (10) and bytes of memory (512 MiB, of which it has no more). */
  limits?: { seconds?: number; bytes?: number };
  /** Asks at once, which is the default, or when somebody wants it. */
  start?: boolean;
}

/** A playground. It tells of another text, verb or choice of runtimes by the event `change`. */
export interface Playground extends EventTarget {
  text: string;
  verb: string;
  /** The chosen runtimes. */
  on: string[];
  /** Asks what is chosen of the text. */
  ask(): Promise<void>;
  /** Ends what is going on. */
  stop(): void;
}

/** Puts a playground into an element, in a shadow tree of its own. */
export function mount(element: HTMLElement, options?: Options): Playground;
