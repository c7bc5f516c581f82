/** The colors of KDL, as far as scenarios use it. */

import { StreamLanguage } from "@codemirror/language";

interface State {
  /** True inside a comment of several lines. */
  comment: boolean;
  /** True where a node's name may stand. */
  begins: boolean;
}

export const kdl = StreamLanguage.define<State>({
  name: "kdl",
  startState: () => ({ comment: false, begins: true }),
  token(stream, state) {
    if (stream.sol()) state.begins = true;
    if (state.comment) {
      if (stream.skipTo("*/")) {
        stream.match("*/");
        state.comment = false;
      } else {
        stream.skipToEnd();
      }
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.comment = true;
      return "comment";
    }
    if (stream.match("/-")) return "comment";
    if (stream.match(/^[{};]/)) {
      state.begins = true;
      return "punctuation";
    }
    if (stream.match(/^"(?:\\.|[^"\\])*"?/)) return "string";
    if (stream.match(/^#(?:true|false|null)\b/)) return "atom";
    if (stream.match(/^[+-]?(?:0x[0-9a-fA-F_]+|[0-9][0-9_]*)\b/)) return "number";
    if (stream.match(/^[\w.-]+(?==)/)) return "propertyName";
    if (stream.match(/^[\w.-]+/)) {
      const name = state.begins;
      state.begins = false;
      return name ? "keyword" : null;
    }
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["{", '"'] } },
});
