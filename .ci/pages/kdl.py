"""Texts of the gallery as HTML, with marks for the parts of KDL."""

import html
import re

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<word>\#[a-z]+)
  | (?P<property>[A-Za-z][\w-]*(?==))
  | (?P<node>(?:(?<=\n)|(?<=[{;])|\A)[ \t]*[A-Za-z][\w-]*)
  | (?P<number>(?<![\w-])-?(?:0x[0-9A-Fa-f_]+|\d[\d_]*)(?![\w]))
""", re.X | re.S)


def highlighted(text, ids):
    """Returns a text as HTML, with links of the ids in it."""
    parts, end = [], 0
    for token in TOKEN.finditer(text):
        parts.append(html.escape(text[end:token.start()], quote=False))
        kind, it = token.lastgroup, token[0]
        inner = html.escape(it, quote=False)
        if kind in ("comment", "string"):
            inner = ids.linked(inner)
        # The spaces before a node are no part of it.
        space = it[:len(it) - len(it.lstrip())]
        parts.append(f'{space}<span class="k-{kind}">{inner.lstrip()}</span>')
        end = token.end()
    parts.append(html.escape(text[end:], quote=False))
    return "".join(parts)
