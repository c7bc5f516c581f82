/** The element `<clrsim-text>`, and `mount` for those who have an element. */

import { type Options, Playground } from "./playground";

export type { Options, Playground };

/** Puts a playground into an element, in a shadow tree of its own. */
export function mount(element: HTMLElement, options: Options = {}): Playground {
  const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  return new Playground(root, { ...options, text: options.text ?? (element.textContent ?? "").trim() + "\n" });
}

/** The element: its content is the text, `verb`, `runtimes`, `site` and `base` are as in `mount`. */
class TextElement extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return;
    const given = (name: string) => this.getAttribute(name) ?? undefined;
    // The content is there once the parser has gone on.
    const begin = () => mount(this, { verb: given("verb"), runtimes: given("runtimes")?.split(/[\s,]+/).filter(Boolean), site: given("site"), base: given("base") });
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin, { once: true });
    else begin();
  }
}

if (!customElements.get("clrsim-text")) customElements.define("clrsim-text", TextElement);
