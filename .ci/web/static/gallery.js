// Filters the list of all texts. An address may have the filters: index.html?hazard=H-08.
"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const runtimes = [...form.runtime.options].map((it) => it.value).filter(Boolean);
  const texts = [...document.querySelectorAll("#texts li")].map((node) => ({
    node,
    found: node.dataset.found.split(";").filter(Boolean).map((it) => [it.slice(0, it.lastIndexOf(":")), parseInt(it.slice(it.lastIndexOf(":") + 1), 16)]),
    tags: new Set(node.dataset.tags.split(" ")),
    text: `${node.textContent} ${node.dataset.tags}`.toLowerCase(),
  }));
  const filter = () => {
    const on = form.runtime.value ? 1 << runtimes.indexOf(form.runtime.value) : -1;
    const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { node, found, tags, text } of texts) {
      const fits = found.some(([result, where]) => (!form.result.value || result === form.result.value) && where & on);
      const shown = (fits || !(form.result.value || form.runtime.value))
        && [form.hazard.value, form.tag.value].every((it) => !it || tags.has(it))
        && (!form.chapter.value || node.dataset.chapter === form.chapter.value) && words.every((word) => text.includes(word));
      node.hidden = !shown;
      count += shown;
    }
    document.getElementById("filtered").textContent = `${count} of ${texts.length} texts`;
  };
  for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) form.elements[name].value = value;
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
