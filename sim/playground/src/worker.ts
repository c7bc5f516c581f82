/** The worker in which `clrsim` runs: one command after the other, each in an instance of its own. */

import { ConsoleStdout, Fd, File, OpenFile, PreopenDirectory, WASI, WASIProcExit, wasi } from "@bjorn3/browser_wasi_shim";
import type { Answer, FromWorker, ToWorker } from "./protocol";

/** Why a command was given up: its memory has grown beyond the limit. */
class TooMuchMemory extends Error {}

/** A file that takes what is written, and hands on each line of it, as a terminal would: the tool then tells of its progress. */
class Progress extends ConsoleStdout {
  fd_fdstat_get() {
    const stat = new wasi.Fdstat(wasi.FILETYPE_CHARACTER_DEVICE, 0);
    stat.fs_rights_base = BigInt(wasi.RIGHTS_FD_WRITE);
    return { ret: wasi.ERRNO_SUCCESS, fdstat: stat };
  }
}

const post = (message: FromWorker) => self.postMessage(message);

/** Joins pieces of UTF-8. */
function joined(pieces: Uint8Array[]): string {
  const all = new Uint8Array(pieces.reduce((sum, it) => sum + it.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return new TextDecoder().decode(all);
}

/** Runs a command. A trap is an answer without an exit code. */
function run(module: WebAssembly.Module, { id, args, files, stdin, most }: ToWorker & { kind: "run" }): Answer {
  const utf8 = new TextEncoder();
  const out: Uint8Array[] = [];
  let err = "";
  const folder = new PreopenDirectory(".", new Map(Object.entries(files).map(([name, text]) => [name, new File(utf8.encode(text))])));
  const reading = new OpenFile(new File(utf8.encode(stdin)));
  // Lines of progress begin with a carriage return. A line may come in pieces.
  const decoder = new TextDecoder();
  const line = (text: string) => {
    if (text.startsWith("\r")) post({ kind: "progress", id, line: text.trim() });
    else err += text;
  };
  let begun = "";
  const writing = new Progress((bytes) => {
    const lines = (begun + decoder.decode(bytes, { stream: true })).split(/(?<=\n)/);
    begun = lines.at(-1)?.endsWith("\n") ? "" : (lines.pop() ?? "");
    lines.forEach(line);
  });
  const fds: Fd[] = [reading, new ConsoleStdout((bytes) => out.push(bytes.slice())), writing, folder];
  const system = new WASI(["clrsim", ...args], ["NO_COLOR=1", "COLUMNS=100"], fds, { debug: false });
  let memory: WebAssembly.Memory | undefined;
  const calls = Object.entries(system.wasiImport).map(([name, call]) => [name, (...values: unknown[]) => {
    if (memory && memory.buffer.byteLength > most) throw new TooMuchMemory();
    return (call as (...values: unknown[]) => unknown)(...values);
  }]);
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: Object.fromEntries(calls) });
  memory = instance.exports.memory as WebAssembly.Memory;
  let code: number | null = null;
  let ended: Answer["ended"] = "exit";
  try {
    code = system.start(instance as Parameters<WASI["start"]>[0]);
  } catch (error) {
    if (error instanceof WASIProcExit) code = error.code;
    else if (error instanceof TooMuchMemory || memory.buffer.byteLength > most || /memory allocation of \d+ bytes failed/.test(err + begun)) ended = "memory";
    else ended = "trap";
  }
  line(begun + decoder.decode());
  const left: Record<string, string> = {};
  for (const [name, file] of folder.dir.contents) if (file instanceof File) left[name] = new TextDecoder().decode(file.data);
  return { code, ended, out: joined(out), err, files: left, memory: memory.buffer.byteLength };
}

let module: WebAssembly.Module | undefined;

self.addEventListener("message", (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.kind === "start") module = message.module;
  else if (module) post({ kind: "done", id: message.id, answer: run(module, message) });
});
