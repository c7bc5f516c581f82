/** The program `clrsim` in a worker, with limits. */

import type { Answer, Files, FromWorker, ToWorker } from "./protocol";

/** The limits of a command. */
export interface Limits {
  /** Seconds that it may take. */
  seconds: number;
  /** Bytes of memory that it may have. */
  bytes: number;
}

/** The limits, unless others are wanted. The program itself has no more memory than this. */
export const LIMITS: Limits = { seconds: 10, bytes: 512 << 20 };

/** A command that gave no answer, with a sentence for people. */
export class NoAnswer extends Error {}

/** A command that somebody has stopped. */
export class Stopped extends NoAnswer {}

interface Waiting {
  id: number;
  resolve: (answer: Answer) => void;
  reject: (why: Error) => void;
  progress: (line: string) => void;
  timer: number;
}

const modules = new Map<string, Promise<WebAssembly.Module>>();

/** Loads and compiles the program once for all its workers. */
function compiled(address: URL): Promise<WebAssembly.Module> {
  let found = modules.get(address.href);
  if (!found) {
    found = WebAssembly.compileStreaming(fetch(address)).catch((error: unknown) => {
      modules.delete(address.href);
      throw new NoAnswer(`the simulator cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
    });
    modules.set(address.href, found);
  }
  return found;
}

/** A worker: it runs one command at a time, those that come meanwhile afterwards. */
export class Tool {
  private worker: Worker | undefined;
  private running: Waiting | undefined;
  private last: Promise<unknown> = Promise.resolve();
  private ids = 0;
  private epoch = 0;

  /** `base` is the folder of the worker's script and of the program. */
  constructor(private readonly base: URL, private readonly limits: Limits) {}

  /** Runs a command, after those that were asked for before. */
  run(args: string[], files: Files, stdin = "", progress: (line: string) => void = () => {}): Promise<Answer> {
    const epoch = this.epoch;
    const made = this.last.then(() => {
      if (epoch !== this.epoch) throw new Stopped("stopped");
      return this.start(args, files, stdin, progress);
    });
    this.last = made.catch(() => undefined);
    return made;
  }

  /** Ends the command that runs, and forgets those that wait. */
  stop(): void {
    this.epoch += 1;
    this.end(new Stopped("stopped"));
  }

  private end(why: Error): void {
    const running = this.running;
    if (!running) return;
    this.worker?.terminate();
    this.worker = undefined;
    this.running = undefined;
    clearTimeout(running.timer);
    running.reject(why);
  }

  private async ready(): Promise<Worker> {
    if (this.worker) return this.worker;
    const module = await compiled(new URL("clrsim.wasm", this.base));
    const worker = new Worker(new URL("worker.js", this.base), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => this.hear(event.data));
    worker.addEventListener("error", (event) => this.end(new NoAnswer(`the worker has failed: ${event.message}`)));
    worker.postMessage({ kind: "start", module } satisfies ToWorker);
    this.worker = worker;
    return worker;
  }

  private async start(args: string[], files: Files, stdin: string, progress: (line: string) => void): Promise<Answer> {
    const epoch = this.epoch;
    const worker = await this.ready();
    if (epoch !== this.epoch) throw new Stopped("stopped");
    return new Promise((resolve, reject) => {
      const id = ++this.ids;
      const { seconds, bytes } = this.limits;
      const late = () => this.end(new NoAnswer(`not done after ${seconds} seconds, which is the limit here: ask for less, or take clrsim on your computer`));
      this.running = { id, resolve, reject, progress, timer: window.setTimeout(late, seconds * 1000) };
      worker.postMessage({ kind: "run", id, args, files, stdin, most: bytes } satisfies ToWorker);
    });
  }

  private hear(message: FromWorker): void {
    const running = this.running;
    if (!running || running.id !== message.id) return;
    if (message.kind === "progress") {
      running.progress(message.line);
      return;
    }
    clearTimeout(running.timer);
    this.running = undefined;
    const { answer } = message;
    if (answer.ended === "memory") {
      running.reject(new NoAnswer(`it needs more than ${Math.min(this.limits.bytes, LIMITS.bytes) >> 20} MB of memory, which is the limit here: ask for less, or take clrsim on your computer`));
    } else if (answer.ended === "trap") {
      running.reject(new NoAnswer(`the simulator has failed, which is a mistake of it: ${answer.err.trim() || "it says nothing"}`));
    } else {
      running.resolve(answer);
    }
  }
}
