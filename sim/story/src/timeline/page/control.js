// Selection of a moment, and initialization of the page.

let saying = 0;
let ready = false;
const remember = () => {
  if (!ready) return;
  const hash = `#turn=${moment + 1}&thread=${marked + 1}`;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // A page without an address cannot be linked to.
  }
};
const choose = (turn) => {
  moment = clamp(turn, 0, count - 1);
  drawMoment();
  view();
  drawWords();
  showInList();
  remember();
  clearTimeout(saying);
  saying = setTimeout(() => {
    $("said").textContent = $("slider").getAttribute("aria-valuetext");
  }, 150);
};
const mark = (lane) => {
  marked = clamp(lane, 0, lanes.length - 1);
  $("marked").textContent = names[marked];
  [...$("names").children].forEach((button, index) =>
    button.setAttribute("aria-pressed", String(index === marked)));
  [...$("rows").children].forEach((row, index) => row.classList.toggle("marked", index === marked));
  [...$("cards").children].forEach((card, index) => card.classList.toggle("marked", index === marked));
  remember();
};
const fromHash = () => {
  const wish = new URLSearchParams(location.hash.slice(1));
  const thread = Number.parseInt(wish.get("thread"), 10);
  const turn = Number.parseInt(wish.get("turn"), 10);
  if (thread >= 1 && thread <= lanes.length) mark(thread - 1);
  if (turn >= 1 && turn <= count) choose(turn - 1);
  return turn >= 1 && turn <= count;
};

const acts = {
  first: () => choose(0),
  back: () => choose(moment - 1),
  on: () => choose(moment + 1),
  last: () => choose(count - 1),
  next: () => {
    const turn = happenings[marked].find((turn) => turn > moment);
    if (turn !== undefined) choose(turn);
  },
  previous: () => {
    const turn = happenings[marked].findLast((turn) => turn < moment);
    if (turn !== undefined) choose(turn);
  },
  far: () => choose(moment + 10),
  near: () => choose(moment - 10),
  up: () => mark(marked - 1),
  down: () => mark(marked + 1),
  in: () => zoom(1.5),
  out: () => zoom(1 / 1.5),
  fit: () => {
    wanted = "fit";
    layout();
  },
};
const KEYS = {
  ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", n: "next", p: "previous",
  ArrowUp: "up", ArrowDown: "down", PageUp: "near", PageDown: "far",
  "+": "in", "=": "in", "-": "out", 0: "fit",
};
const onKey = (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
  const target = event.target instanceof Element ? event.target : document.body;
  let act = KEYS[event.key];
  // Scrolling stacks keep their keys, and so does the page except for keys that select turns and threads.
  if (target.closest(".stack")) return;
  // A slider has its own use for the vertical keys.
  const vertical = act === "up" || act === "down";
  const pages = act === "near" || act === "far";
  if (target.closest("#list")) {
    if (vertical) act = act === "up" ? "back" : "on";
  } else if (vertical && target.closest("#slider") || pages && !target.closest(".chart")) {
    return;
  }
  event.preventDefault();
  acts[act]();
  if (vertical && target.closest("#names")) $("names").children[marked].focus();
};
const pointed = (event) => {
  const box = $("tracks").getBoundingClientRect();
  choose(Math.floor((event.clientX - box.left) / width));
  const row = event.target.closest?.(".row");
  if (row) mark([...$("rows").children].indexOf(row));
};

// ---- light and dark ----

const THEMES = ["system", "light", "dark"];
const setTheme = (theme) => {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Theme: ${theme}`;
  try {
    localStorage.setItem("clrsim-theme", theme);
  } catch {
    // Without storage the choice is not remembered.
  }
};
let theme = "system";
try {
  theme = localStorage.getItem("clrsim-theme") ?? theme;
} catch {
  // As above.
}
setTheme(THEMES.includes(theme) ? theme : "system");
$("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "system";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});

// ---- the end, and the first drawing ----

if (data.ending) {
  $("ending").hidden = false;
  const [first, ...more] = data.ending.split("\n");
  $("ending-words").textContent = first;
  $("ending-more").textContent = more.join("\n");
  $("ending-more").hidden = !more.length;
  $("cycle").replaceChildren(...data.edges.map(({ waits: from, why, for: to }) =>
    sentence({ from, to, text: why })));
}
if (data.replay !== null) {
  $("ending").hidden = false;
  if (!data.ending) {
    $("ending").classList.add("well");
    $("ending-words").textContent = "The history ended without a failure.";
  }
  $("replay").hidden = false;
  $("replay").querySelector("code").textContent = data.replay;
  $("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(data.replay);
      $("copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("replay").querySelector("code"));
      $("copy").textContent = "Selected";
    }
  });
}
const time = count ? `, ${slices[count - 1].at} µs of virtual time` : "";
$("size").textContent = `${lanes.length} threads, ${count} turns${time}`;
document.querySelector("main").hidden = false;
$("facts").hidden = data.facts.length === 0;
$("facts").append(...data.facts.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text)]));

const listen = () => {
  document.addEventListener("keydown", onKey);
  for (const button of document.querySelectorAll("[data-do]")) {
    button.addEventListener("click", () => acts[button.dataset.do]());
  }
  $("slider").addEventListener("input", () => choose(Number($("slider").value) - 1));
  let down = false;
  $("tracks").addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down = true;
    pointed(event);
  });
  addEventListener("pointermove", (event) => {
    if (down && event.buttons & 1) pointed(event);
    else down = false;
  });
  $("overview").addEventListener("click", (event) => {
    const box = $("overview").getBoundingClientRect();
    choose(Math.floor((event.clientX - box.left) / box.width * count));
  });
  $("scroll").addEventListener("scroll", view);
  $("list").addEventListener("scroll", drawList);
  $("list").addEventListener("click", (event) => {
    const line = event.target.closest(".turn");
    if (line) choose(Number(line.dataset.turn));
  });
  $("cards").addEventListener("click", (event) => {
    const card = event.target.closest(".card");
    if (card) mark(Number(card.dataset.lane));
  });
  addEventListener("hashchange", fromHash);
  addEventListener("resize", layout);
};

if (count) {
  $("slider").max = String(count);
  $("list-space").style.height = `${count * LINE}px`;
  $("corner").textContent = "all turns";
  drawChart();
  mark(slices[count - 1].thread);
  layout();
  if (!fromHash()) choose(data.ending ? count - 1 : 0);
  ready = true;
  listen();
} else {
  document.querySelector(".timeline").hidden = true;
  document.querySelector(".moment").hidden = true;
}
