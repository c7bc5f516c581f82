/** An editor, and beside it what the simulator says of its text. */

import { type Desk, FILE } from "./desk";
import { make } from "./dom";
import { Editor } from "./editor";
import { Server } from "./lsp";
import type { Answer } from "./protocol";
import style from "./style.css";
import { LIMITS, type Limits, NoAnswer, Stopped, Tool } from "./tool";
import { VERBS, type Verb } from "./verbs";

/** What a playground begins with. */
export interface Options {
  /** The text; what the element contains, if there is none. */
  text?: string;
  /** What is asked first: the name of a command of clrsim; `matrix`, if there is none. */
  verb?: string;
  /** The runtimes by their names; none are all, or those that the text is for. */
  runtimes?: string[];
  /** The address of the site, for links to rules; without it they are words. */
  site?: string | URL;
  /** The folder of `worker.js` and `clrsim.wasm`; that of the script, if there is none. */
  base?: string | URL;
  limits?: Partial<Limits>;
  /** Asks at once, which is the default, or when somebody wants it. */
  start?: boolean;
}

/** The pages of rules by their ids. */
const RULES: [RegExp, string][] = [[/^C-/, "clauses"], [/^H-/, "hazards"], [/^D-/, "documentation"], [/^E-/, "stacks"], [/^G/, "field-bugs"]];

/** A playground in a shadow tree. */
export class Playground extends EventTarget {
  private readonly tool: Tool;
  private readonly helper: Tool;
  private readonly server: Server;
  private readonly editor: Editor;
  private readonly tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "What to ask" });
  private readonly about = make("p", { class: "about" });
  private readonly command = make("code", { class: "command" });
  private readonly status = make("p", { class: "status", role: "status" });
  private readonly output = make("div", { class: "output", role: "tabpanel", tabindex: "0" });
  private readonly go = make("button", { type: "button", class: "go", title: "Ask again (Ctrl+Enter)", click: () => void this.ask() }, "Run");
  private readonly halt = make("button", { type: "button", disabled: true, click: () => this.stop() }, "Stop");
  private readonly chosen = make("details", { class: "runtimes" });
  private readonly limits: Limits;
  private readonly site: URL | undefined;
  private shown: Verb;
  private wanted: string[];
  private asked = 0;

  constructor(root: ShadowRoot, options: Options) {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    const base = new URL(options.base ?? ".", options.base ? document.baseURI : import.meta.url);
    this.limits = { ...LIMITS, ...options.limits };
    this.site = options.site === undefined ? undefined : new URL(options.site, document.baseURI);
    this.tool = new Tool(base, this.limits);
    this.helper = new Tool(base, this.limits);
    this.server = new Server(this.helper);
    this.shown = VERBS.find((it) => it.name === options.verb) ?? VERBS[0]!;
    this.wanted = options.runtimes ?? [];
    const format = make("button", { type: "button", title: "Lay out the text as clrsim fmt does", click: () => void this.format() }, "Format");
    const field = make("div", { class: "field" });
    const left = make("section", { class: "left", "aria-label": "Text" }, make("div", { class: "bar" }, this.go, this.halt, format, this.chosen), field);
    const limits = make("p", { class: "note" }, `All is computed in this page, within ${this.limits.seconds} seconds and ${this.limits.bytes >> 20} MB.`);
    const right = make("section", { class: "right", "aria-label": "Results" }, this.tabs, this.about, this.status, this.output, this.command, limits);
    root.append(make("div", { class: "playground" }, left, right));
    this.editor = new Editor(root, field, options.text ?? "", this.server, () => this.changed(), () => void this.ask());
    this.tab();
    this.runtimes([]);
    void this.listRuntimes();
    if (options.start !== false) void this.ask();
  }

  get text(): string {
    return this.editor.text;
  }

  set text(text: string) {
    this.editor.text = text;
  }

  get verb(): string {
    return this.shown.name;
  }

  set verb(name: string) {
    const found = VERBS.find((it) => it.name === name);
    if (!found) return;
    this.shown = found;
    this.tab();
  }

  get on(): string[] {
    return [...this.wanted];
  }

  set on(names: string[]) {
    this.wanted = [...names];
    for (const box of this.chosen.querySelectorAll("input")) box.checked = this.wanted.includes(box.value);
    this.summary();
  }

  /** Ends what is going on. */
  stop(): void {
    this.tool.stop();
    this.helper.stop();
  }

  /** Asks what is chosen of the text. */
  ask(): Promise<void> {
    return this.work(async () => this.shown.run(this.desk()));
  }

  /** Shows what comes of something that takes time, unless something else is asked meanwhile. */
  private async work(make_: () => Promise<Node>): Promise<void> {
    this.tool.stop();
    const number = ++this.asked;
    const mine = () => number === this.asked;
    const begin = performance.now();
    this.output.setAttribute("aria-busy", "true");
    this.halt.disabled = false;
    this.say(`Running: ${this.limits.seconds} seconds at most.`);
    try {
      const made = await make_();
      if (!mine()) return;
      this.output.replaceChildren(made);
      this.say(`Done in ${((performance.now() - begin) / 1000).toFixed(2)} seconds.`);
      performance.mark("clrsim-result");
    } catch (error) {
      if (!mine()) return;
      this.output.replaceChildren();
      if (error instanceof Stopped) this.say("Stopped.");
      else if (error instanceof NoAnswer) this.say(`No answer: ${error.message}.`, true);
      else throw error;
    } finally {
      if (mine()) {
        this.output.removeAttribute("aria-busy");
        this.halt.disabled = true;
      }
    }
  }

  private desk(): Desk {
    const files = { [FILE]: this.editor.text };
    const shown = (args: string[]) => args.map((it) => (/^[\w.,=:@/+-]+$/.test(it) ? it : `'${it.replace(/'/g, "'\\''")}'`)).join(" ");
    return {
      files,
      on: this.wanted.length > 0 ? ["--on", this.wanted.join(",")] : [],
      run: (args) => {
        this.command.textContent = `clrsim ${shown(args)}`;
        return this.tool.run(args, files, "", (line) => this.say(line));
      },
      rules: (ids) => this.rules(ids),
      take: (text) => {
        this.editor.text = text;
      },
      then: (work) => void this.work(work),
    };
  }

  private rules(ids: string[]): Node[] {
    return ids.flatMap((id) => {
      const page = RULES.find(([begins]) => begins.test(id))?.[1];
      const to = this.site && page && /^[A-Z]-?\d+$/.test(id) ? new URL(`rules/${page}.html#${id.toLowerCase()}`, this.site) : undefined;
      const name = to ? make("a", { href: to.href, target: "_blank", rel: "noopener", class: "rule" }, id) : make("span", { class: "rule" }, id);
      return [name, document.createTextNode(" ")];
    });
  }

  /** Lays the text out. What a verb has shown stays. */
  private async format(): Promise<void> {
    try {
      const before = this.editor.text;
      const text = await this.server.laidOut(before);
      if (text === undefined) this.say("The text cannot be laid out before its problems are mended.", true);
      else if (text === before) this.say("The text has the usual form.");
      else {
        this.editor.text = text;
        this.say("The text is laid out.");
      }
    } catch (error) {
      if (error instanceof NoAnswer) this.say(`No answer: ${error.message}.`, true);
      else throw error;
    }
  }

  private changed(): void {
    this.helper.stop();
    this.dispatchEvent(new Event("change"));
  }

  private say(text: string, wrong = false): void {
    this.status.textContent = text;
    this.status.classList.toggle("refused", wrong);
  }

  /** Draws the tabs: arrow keys go from one to the next, as readers of screens expect. */
  private tab(): void {
    this.about.textContent = this.shown.about;
    this.output.setAttribute("aria-label", this.shown.title);
    if (this.tabs.childElementCount === 0) {
      const go = (at: number) => {
        this.verb = VERBS[(at + VERBS.length) % VERBS.length]!.name;
        void this.ask();
      };
      this.tabs.append(...VERBS.map((it, at) => make("button", {
        type: "button", role: "tab", "data-verb": it.name, title: it.about, click: () => go(at),
        keydown: (event) => {
          const { key } = event as KeyboardEvent;
          if (key !== "ArrowRight" && key !== "ArrowLeft") return;
          go(at + (key === "ArrowRight" ? 1 : -1));
          this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
        },
      }, it.title)));
    }
    for (const tab of this.tabs.children) {
      const here = (tab as HTMLElement).dataset.verb === this.shown.name;
      tab.setAttribute("aria-selected", String(here));
      tab.setAttribute("tabindex", here ? "0" : "-1");
    }
    this.dispatchEvent(new Event("change"));
  }

  private async listRuntimes(): Promise<void> {
    const ask = (): Promise<Answer | undefined> => this.helper.run(["runtimes", "--json"], {}).catch((error) => (error instanceof Stopped ? ask() : undefined));
    const answer = await ask();
    if (answer?.code !== 0) return;
    const names = answer.out.split("\n").filter(Boolean).map((it) => JSON.parse(it) as { name: string; title: string });
    this.runtimes(names);
  }

  private runtimes(names: { name: string; title: string }[]): void {
    const boxes = names.map(({ name, title }) => {
      const box = make("input", { type: "checkbox", value: name, change: () => this.choose() });
      box.checked = this.wanted.includes(name);
      return make("label", { title }, box, name);
    });
    const none = make("button", { type: "button", click: () => (this.on = [], this.choose()) }, "All");
    this.chosen.replaceChildren(make("summary"), make("div", { class: "list" }, ...boxes, none));
    this.chosen.hidden = names.length === 0;
    this.summary();
  }

  private choose(): void {
    const boxes = [...this.chosen.querySelectorAll("input")];
    this.wanted = boxes.filter((it) => it.checked).map((it) => it.value);
    this.summary();
    this.dispatchEvent(new Event("change"));
  }

  private summary(): void {
    const summary = this.chosen.querySelector("summary");
    if (summary) summary.textContent = this.wanted.length === 0 ? "Runtimes: all" : `Runtimes: ${this.wanted.length}`;
  }
}
