/** The editor of a text. */

import { type CompletionContext, type CompletionResult, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, linter } from "@codemirror/lint";
import { EditorState, type Text } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { make } from "./dom";
import { kdl } from "./kdl";
import type { Item, Position, Server } from "./lsp";

/** Milliseconds without a key after which the text is checked. */
const PAUSE = 400;

const colors = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.keyword, color: "var(--accent)" },
  { tag: tags.propertyName, color: "var(--inside)" },
  { tag: [tags.number, tags.atom], color: "var(--number)" },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--paper)", color: "var(--ink)", height: "100%", fontSize: "13px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--grid)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "& .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--selected)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", maxWidth: "min(32rem, 90vw)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--paper)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--grid)", outline: "1px solid var(--quiet)" },
});

function offset(text: Text, { line, character }: Position): number {
  if (line >= text.lines) return text.length;
  const found = text.line(line + 1);
  return Math.min(found.to, found.from + character);
}

function position(text: Text, at: number): Position {
  const line = text.lineAt(at);
  return { line: line.number - 1, character: at - line.from };
}

/** Asks for problems. If the server gives no answer, there are none: the verbs say why. */
function problems(server: Server) {
  return async (view: EditorView): Promise<Diagnostic[]> => {
    const text = view.state.doc;
    const found = await server.problems(text.toString()).catch(() => []);
    return found.map((it) => {
      const from = offset(text, it.range.start);
      const severity = it.severity === 1 ? "error" : it.severity === 2 ? "warning" : "info";
      return { from, to: Math.max(from, offset(text, it.range.end)), severity, message: it.message };
    });
  };
}

function documentation(item: Item): string | undefined {
  return typeof item.documentation === "string" ? item.documentation : item.documentation?.value;
}

function completions(server: Server) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(/[\w.-]*/);
    const before = context.state.sliceDoc(Math.max(0, context.pos - 1), context.pos);
    if (!context.explicit && word?.from === context.pos && !/[="]/.test(before)) return null;
    const text = context.state.doc;
    const items = await server.completions(text.toString(), position(text, context.pos)).catch(() => []);
    if (context.aborted || items.length === 0) return null;
    return {
      from: word?.from ?? context.pos,
      options: items.map((item) => {
        const { textEdit } = item;
        const info = documentation(item);
        return {
          label: item.label,
          detail: item.detail,
          info: info ? () => make("div", { class: "said" }, info) : undefined,
          apply: textEdit
            ? (view: EditorView, _: unknown, _from: number, to: number) => {
                const from = offset(view.state.doc, textEdit.range.start);
                view.dispatch({ changes: { from, to, insert: textEdit.newText }, selection: { anchor: from + textEdit.newText.length } });
              }
            : (item.insertText ?? item.label),
        };
      }),
    };
  };
}

function hover(server: Server) {
  return hoverTooltip(async (view, at) => {
    const text = view.state.doc;
    const said = await server.hover(text.toString(), position(text, at)).catch(() => undefined);
    return said ? { pos: at, create: () => ({ dom: make("div", { class: "said" }, said) }) } : null;
  });
}

/** An editor in a shadow tree, where its styles need no permission of the page's policy. */
export class Editor {
  readonly view: EditorView;

  constructor(root: ShadowRoot, parent: HTMLElement, text: string, server: Server, changed: () => void, run: () => void) {
    const extensions = [
      // First, so that it comes before the key's usual meaning. Tab is not taken: it leaves the editor.
      keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }]),
      lineNumbers(), highlightSpecialChars(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      kdl, syntaxHighlighting(colors), theme, EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "Text of a scenario" }),
      autocompletion({ override: [completions(server)] }), hover(server), lintGutter(), linter(problems(server), { delay: PAUSE }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) changed();
      }),
    ];
    this.view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent, root });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  }
}
