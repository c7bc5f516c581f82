// The page of the search. `index.js` has the pages as [address, title, group, about], and the words: a line
// each, with the numbers of pages, four times, plus the weight.
"use strict";
(() => {
  const most = 60;
  const lines = siteIndex.words.split("\n");

  // The same words as in search.py.
  const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+(?:-\d+)?/gu) ?? [];

  const first = (word) => {
    let [low, high] = [0, lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lines[middle] < word) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // Returns the score of each page that has a word with this beginning.
  const having = (word) => {
    const scores = new Map();
    for (let at = first(word); at < lines.length && lines[at].startsWith(word); at++) {
      const [whole, ...numbers] = lines[at].split(" ");
      let before = 0;
      for (const number of numbers) {
        before += parseInt(number, 36);
        const score = (1 << (2 * (before & 3))) * (whole === word ? 4 : 1);
        scores.set(before >> 2, Math.max(scores.get(before >> 2) ?? 0, score));
      }
    }
    return scores;
  };

  // A page or a part of it that is called so comes before all others: ids and names of texts are titles.
  const isCalled = (page, name) => siteIndex.pages[page][1].toLowerCase().split(": ").includes(name);

  const found = (text) => {
    const each = wordsOf(text).map(having);
    if (each.length === 0) return [];
    const name = text.trim().toLowerCase();
    const pages = [...each[0].keys()].filter((page) => each.every((scores) => scores.has(page)));
    const score = (page) => each.reduce((sum, scores) => sum + scores.get(page), isCalled(page, name) ? 10000 : 0);
    const scored = pages.map((page) => [page, score(page)]);
    return scored.sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([page]) => siteIndex.pages[page]);
  };

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  const show = (text) => {
    const pages = found(text);
    const list = document.getElementById("results");
    list.replaceChildren(...pages.slice(0, most).map(([address, title, group, about]) => {
      const item = document.createElement("li");
      const link = element("a", title);
      link.href = address;
      const place = element("span", ` ${group}`);
      place.className = "faint";
      item.append(link, place);
      if (about) item.append(document.createElement("br"), about);
      return item;
    }));
    const number = pages.length === 1 ? "1 page" : `${pages.length} pages`;
    const shown = pages.length > most ? `, the first ${most} are shown` : "";
    document.getElementById("count").textContent = text.trim() ? `${number}${shown}` : "";
  };

  document.addEventListener("DOMContentLoaded", () => {
    const input = document.getElementById("site-words");
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    input.addEventListener("input", () => show(input.value));
    show(input.value);
    if (!input.value) input.focus();
  });
})();
