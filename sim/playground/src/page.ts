/** The page of the playground: examples, links, the theme, and what is needed without a network. */

import { make } from "./dom";
import { mount } from "./index";
import { BadLink, fragment, read } from "./link";

interface Example {
  file: string;
  shows: string;
  verb: string;
  text: string;
}

interface Chapter {
  name: string;
  texts: Example[];
}

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

function tell(text: string, wrong = false): void {
  const told = element("told");
  told.textContent = text;
  told.classList.toggle("wrong", wrong);
}

/** The theme that the site's other pages have, too: their key in the browser's memory. */
function theme(): void {
  const names = { auto: "as the system", light: "light", dark: "dark" };
  type Theme = keyof typeof names;
  const stored = (() => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  })();
  let now: Theme = stored === "light" || stored === "dark" ? stored : "auto";
  const button = element("theme");
  const show = () => {
    document.documentElement.dataset.theme = now;
    button.textContent = `Theme: ${names[now]}`;
  };
  button.addEventListener("click", () => {
    now = now === "auto" ? "light" : now === "light" ? "dark" : "auto";
    try {
      localStorage.setItem("theme", now);
    } catch {
      // It is kept for this page alone.
    }
    show();
  });
  show();
}

async function examples(): Promise<Chapter[]> {
  const answer = await fetch("examples.json");
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return (await answer.json()) as Chapter[];
}

async function begin(): Promise<void> {
  theme();
  const chapters = await examples().catch((error: unknown) => {
    tell(`The examples cannot be loaded: ${error instanceof Error ? error.message : String(error)}.`, true);
    return [] as Chapter[];
  });
  const all = chapters.flatMap((it) => it.texts);
  const first = all[0];
  const playground = mount(element("playground"), { text: "", base: ".", site: "..", start: false });
  element("waits").remove();
  element("controls").hidden = chapters.length === 0;
  const chapter = element<HTMLSelectElement>("chapter");
  const example = element<HTMLSelectElement>("example");
  let shown: Example | undefined;

  const list = (name: string) => {
    chapter.value = name;
    const texts = chapters.find((it) => it.name === name)?.texts ?? [];
    example.replaceChildren(...texts.map((it) => make("option", { value: it.file }, it.file.replace(/^.*\/|\.kdl$/g, ""))));
  };
  const show = (one: Example) => {
    shown = one;
    list(chapters.find((it) => it.texts.includes(one))!.name);
    example.value = one.file;
    element("shows").textContent = one.shows;
    playground.text = one.text;
    playground.verb = one.verb;
    void playground.ask();
  };

  // The fragment that was read or written last. Another one is to be read, and not to be written over.
  let known = location.hash;
  const put = (hash: string) => {
    if (location.hash !== known) return;
    history.replaceState(null, "", hash || location.pathname);
    known = location.hash;
  };
  const load = async () => {
    known = location.hash;
    const named = /^#example=([\w./-]+)$/.exec(location.hash)?.[1];
    try {
      const linked = await read(location.hash);
      const one = all.find((it) => it.file === named) ?? (linked ? undefined : first);
      if (named && one?.file !== named) tell(`There is no example ${named}.`, true);
      if (one) {
        show(one);
      } else if (linked) {
        shown = undefined;
        element("shows").textContent = "";
        playground.text = linked.text;
        playground.on = linked.runtimes;
        if (linked.verb) playground.verb = linked.verb;
        void playground.ask();
      }
    } catch (error) {
      if (!(error instanceof BadLink)) throw error;
      if (first) show(first);
      tell(`${error.message}. An example is shown instead.`, true);
    }
  };

  // The address says what is there: an example by its name, any other text by itself.
  const address = async () => {
    const plain = shown && playground.text === shown.text && playground.verb === shown.verb && playground.on.length === 0;
    return plain ? `#example=${shown!.file}` : await fragment({ text: playground.text, verb: playground.verb, runtimes: playground.on });
  };
  let timer = 0;
  playground.addEventListener("change", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void address().then((it) => put(it ?? "")), 300);
  });
  element("share").addEventListener("click", () => {
    void address().then(async (it) => {
      if (it === undefined) return tell("The text is too long for a link.", true);
      put(it);
      const copied = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
      tell(copied ? "The link is copied. It holds the text; no server sees it." : "The link is in the address bar now. It holds the text; no server sees it.");
    });
  });
  chapter.replaceChildren(...chapters.map((it) => make("option", { value: it.name }, it.name)));
  chapter.addEventListener("change", () => {
    const one = chapters.find((it) => it.name === chapter.value)?.texts[0];
    if (one) show(one);
  });
  example.addEventListener("change", () => {
    const one = all.find((it) => it.file === example.value);
    if (one) show(one);
  });
  window.addEventListener("hashchange", () => void load());
  await load();
  if ("serviceWorker" in navigator) await navigator.serviceWorker.register("offline.js").catch(() => undefined);
}

void begin();
