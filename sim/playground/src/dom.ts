/** Elements, made of texts that are never read as HTML. */

type Child = Node | string;

/** Makes an element. Attributes that are functions listen to the event of that name. */
export function make<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Record<string, string | boolean | ((event: Event) => void)> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (typeof value === "boolean") element.toggleAttribute(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** Characters of a text that are shown. */
const MOST = 200_000;

/** Shows a text as it is, or its beginning. */
export function plain(text: string): HTMLElement {
  const shown = make("pre", { tabindex: "0" }, text.slice(0, MOST));
  if (text.length <= MOST) return shown;
  const left = make("p", { class: "note" }, `The first ${MOST} of ${text.length} characters: clrsim on your computer shows all.`);
  return make("div", {}, shown, left);
}
