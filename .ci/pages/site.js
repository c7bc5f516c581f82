// What each page does: the theme, the contents on small screens, keys for what scrolls.
"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["system", "light", "dark"];

  // A page that is opened as a file may have no storage.
  const stored = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }
  };
  const store = (theme) => {
    try { localStorage.setItem("theme", theme); } catch { /* the choice lasts as long as the page */ }
  };
  let theme = themes.includes(stored()) ? stored() : "system";
  const show = () => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    const button = document.getElementById("site-theme");
    if (button) button.textContent = `Theme: ${theme}`;
  };
  root.classList.add("with-script");
  show();

  // A part that scrolls gets a place in the order of Tab, and a name: that of the heading above it.
  const scrolls = () => {
    let heading = "";
    for (const part of document.querySelectorAll("main :is(h1, h2, h3, h4, pre, .scroll)")) {
      if (/^H/.test(part.tagName)) {
        heading = part.textContent;
      } else if (part.scrollWidth > part.clientWidth) {
        part.tabIndex = 0;
        part.setAttribute("role", "region");
        part.setAttribute("aria-label", `${heading}: ${part.tagName === "PRE" ? "text" : "table"}`);
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) part.removeAttribute(name);
      }
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("site-theme").addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      store(theme);
      show();
    });
    const menu = document.getElementById("site-menu");
    menu.addEventListener("click", () => {
      const open = root.classList.toggle("with-contents");
      menu.setAttribute("aria-expanded", String(open));
    });
    scrolls();
    addEventListener("resize", scrolls);
    // The slash goes to the search, except where it is written.
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, textarea, select, [contenteditable]")) return;
      event.preventDefault();
      document.getElementById("site-words").focus();
    });
  });
})();
