// The search: sections of pages by words, by parts of names, and by what others call the same. It asks no server.
"use strict";
(() => {
  const { pages, sections, synonyms } = globalThis.SEARCH;
  const stemmer = new EnglishStemmer();
  // What is no letter may be a part of a word: c++, p/invoke, H-08, StackWalk::Next, 0x80131360.
  const CHUNK = /[\p{L}\p{N}_][\p{L}\p{N}_+#]*(?:[-/.:@]+[\p{L}\p{N}_][\p{L}\p{N}_+#]*)*/gu;
  const PART = /\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+/gu;
  const HEX = /^0x[0-9a-f]+$|^[0-9a-f]{8,16}$/i;
  // Where more than one section has all words, the book is worth more than one of 750 texts.
  const WORTH = { book: 1.6, rules: 1.5, contract: 1.3, reference: 1.1, runtimes: 0.9, gallery: 0.7, project: 0.8 };

  // Returns the words of a chunk beside the chunk itself: its pieces, and those of names in camel case.
  const within = (chunk) => {
    if (HEX.test(chunk)) return [];
    const pieces = chunk.split(/[-/.:@_]+/).filter(Boolean);
    const found = pieces.flatMap((piece) => [piece, ...(piece.match(PART) ?? [])]);
    return [...new Set(found)].filter((word) => word !== chunk);
  };
  const stem = (word) => (/^\p{L}+$/u.test(word) ? stemmer.stemWord(word.toLowerCase()) : word.toLowerCase());
  const words = (text) => (text.match(CHUNK) ?? []).flatMap((chunk) => [chunk, ...within(chunk)]);

  // What this project has for the words of others. Case, blanks and signs do not count.
  const bare = (word) => [...word.toLowerCase()].filter((it) => /[\p{L}\p{N}+#]/u.test(it)).join("");
  const meanings = new Map(synonyms.flatMap(([names, here, find]) => names.map((name) => [bare(name), { here, find }])));

  const index = new MiniSearch({
    fields: ["title", "page", "text"], storeFields: [], tokenize: words, processTerm: stem,
    extractField: (section, field) => (field === "id" ? section : field === "text" ? sections[section][3]
      : field === "title" ? sections[section][2] || pages[sections[section][0]][1] : pages[sections[section][0]][1]),
    searchOptions: {
      boost: { title: 4, page: 1.5 }, tokenize: (word) => [word],
      boostDocument: (section) => WORTH[pages[sections[section][0]][0].split("/")[0]] ?? 1,
    },
  });

  // Returns what finds the words of this project for one of others.
  const others = (word) => (meanings.get(bare(word))?.find ?? [])
    .map((it) => ({ combineWith: "AND", queries: it.match(CHUNK).map((chunk) => query(chunk, false)) }));

  // Returns what finds a chunk: the word as a whole or its beginning, all of its parts, or what others call it.
  const query = (chunk, related = true) => {
    const parts = within(chunk).filter((part) => !/[-/.:@_]/.test(part));
    const smallest = parts.filter((part) => !parts.some((other) => other !== part && part.includes(other)));
    // What was typed counts more than its parts, and than what means the same.
    const less = { title: 1, page: 0.4, text: 0.4 }, boost = related ? { title: 8, page: 3, text: 3 } : less;
    const ways = [{ queries: [chunk], prefix: chunk.length > 2, boost }];
    if (related && smallest.length > 1) ways.push({ combineWith: "AND", queries: smallest, prefix: false, boost: less });
    if (related) ways.push(...others(chunk));
    return { combineWith: "OR", queries: ways };
  };

  // Returns the sections that a line of words finds, best first, and how they were found.
  const search = (line) => {
    const chunks = line.match(CHUNK) ?? [];
    if (!chunks.length) return { found: [], how: "" };
    const all = { combineWith: "AND", queries: chunks.map((it) => query(it)) };
    // A line may be one name: "loader lock" is.
    let found = index.search({ combineWith: "OR", queries: [all, ...(chunks.length > 1 ? others(line) : [])] });
    if (found.length) return { found, how: "" };
    found = index.search({ ...all, fuzzy: (word) => (word.length > 4 ? 0.25 : false) });
    if (found.length) return { found, how: " with words that are written similarly" };
    if (chunks.length > 1) found = index.search({ combineWith: "OR", queries: chunks.map((it) => query(it)) });
    return { found, how: found.length ? ", none with all of these words" : "" };
  };

  // Returns the part of a text with most of the words that were found, as pieces: text, and true if it was found.
  const excerpt = (text, terms) => {
    const hits = [];
    for (const chunk of text.matchAll(CHUNK)) {
      const inside = within(chunk[0]).filter((part) => terms.has(stem(part)));
      if (terms.has(stem(chunk[0]))) hits.push([chunk.index, chunk.index + chunk[0].length, stem(chunk[0])]);
      else if (inside.length) {
        const at = chunk.index + chunk[0].indexOf(inside[0]);
        hits.push([at, at + inside[0].length, stem(inside[0])]);
      }
    }
    const different = (first) => new Set(hits.filter((it) => it[0] >= first[0] && it[1] <= first[0] + 200).map((it) => it[2])).size;
    const best = hits.reduce((most, it) => (different(it) > most[1] ? [it, different(it)] : most), [[0, 0], 0])[0];
    const [from, to] = [Math.max(0, best[0] - 60), Math.min(text.length, best[0] + 200)];
    const pieces = [[from ? "… " : "", false]];
    let at = from && text.indexOf(" ", from) + 1;
    for (const [begin, end] of hits.filter((it) => it[0] >= at && it[1] <= to)) {
      pieces.push([text.slice(at, begin), false], [text.slice(begin, end), true]);
      at = end;
    }
    pieces.push([text.slice(at, to), false], [to < text.length ? " …" : "", false]);
    return pieces;
  };

  const make = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);
  const shown = ({ id, match }) => {
    const [page, anchor, title, text] = sections[id], [name, pageTitle] = pages[page];
    const item = make("li", ""), told = make("p", "", { className: "excerpt" });
    item.append(make("a", title || pageTitle, { href: `${name}.html${anchor && `#${anchor}`}` }));
    item.append(make("span", [...name.split("/").slice(0, -1), ...(title ? [pageTitle] : [])].join(" / "), { className: "place" }), told);
    for (const [piece, found] of excerpt(text, new Set(Object.keys(match)))) told.append(found ? make("mark", piece) : piece);
    return item;
  };

  const line = new URLSearchParams(location.search).get("q") ?? "";
  const summary = document.getElementById("search-summary"), list = document.getElementById("search-results");
  const more = document.getElementById("search-more");
  document.querySelector("#search input").value = line;
  if (!line.trim()) return;
  index.addAll(sections.map((_, section) => section));
  const { found, how } = search(line);
  summary.textContent = found.length ? `${found.length} section${found.length === 1 ? "" : "s"}${how}` : "Nothing is found.";
  const here = meanings.get(bare(line))?.here;
  if (here) document.getElementById("search-here").append("Here: ", ...here.split("`").map((it, i) => (i % 2 ? make("code", it) : it)), ".");
  let next = 0;
  more.onclick = () => {
    const first = found.slice(next, next += 20).map(shown);
    list.append(...first);
    more.hidden = next >= found.length;
    // The button goes away or moves: what it has brought is where to go on.
    if (next > 20) first[0]?.querySelector("a").focus();
  };
  more.onclick();
  // The documentation of the crates has a search of its own.
  summary.append(" ", make("a", "Search the crates for it.", { href: `api/clr_sim/index.html?search=${encodeURIComponent(line)}` }));
})();
