/** A text in the fragment of an address: no server sees it. */

/** What a link says. */
export interface Linked {
  text: string;
  verb?: string;
  runtimes: string[];
}

/** Characters of a fragment, and of its text, that are read. */
const MOST = { fragment: 64 << 10, text: 256 << 10 };

/** A fragment that says nothing, with a sentence for people. */
export class BadLink extends Error {}

async function through(bytes: Uint8Array, stream: GenericTransformStream, most: number): Promise<Uint8Array> {
  const reader = (new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>)).getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new BadLink("the text of this link is too long to be shown");
    }
    pieces.push(value);
  }
  return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
}

/** Returns the fragment that holds a text, or nothing if that is too long for a link. */
export async function fragment({ text, verb, runtimes }: Linked): Promise<string | undefined> {
  const packed = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"), MOST.text);
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  const words = btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const parts = [`text=${words}`, verb ? `verb=${verb}` : "", runtimes.length ? `on=${runtimes.join("+")}` : ""];
  const made = `#${parts.filter(Boolean).join("&")}`;
  return made.length <= MOST.fragment && text.length <= MOST.text ? made : undefined;
}

/** Reads a fragment. Returns nothing if it holds no text. */
export async function read(hash: string): Promise<Linked | undefined> {
  const words = new Map(hash.slice(1).split("&").map((it) => it.split("=", 2) as [string, string]));
  const packed = words.get("text");
  if (packed === undefined) return undefined;
  if (hash.length > MOST.fragment) throw new BadLink("this link is too long to be read");
  if (!/^[\w-]*$/.test(packed)) throw new BadLink("this link is damaged: its text cannot be read");
  let text: string;
  try {
    const binary = atob(packed.replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = await through(Uint8Array.from(binary, (it) => it.charCodeAt(0)), new DecompressionStream("deflate-raw"), MOST.text);
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof BadLink) throw error;
    throw new BadLink("this link is damaged: its text cannot be read");
  }
  const runtimes = (words.get("on") ?? "").split("+").filter((it) => /^[\w.-]+$/.test(it));
  return { text, verb: words.get("verb"), runtimes };
}
