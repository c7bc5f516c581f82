// The selected moment in words.

const badge = (kind, text) => make("span", `badge b-${kind}`, text);
const sentence = ({ from, to, text }) => {
  const line = make("li");
  line.append(make("b", "thread-name", names[from]), ` ${text} `, make("b", "thread-name", names[to]));
  return line;
};

const drawCard = (lane) => {
  const now = standing(moment, lane);
  const before = moment > 0 ? standing(moment - 1, lane) : null;
  const runsNow = slices[moment].thread === lane;
  const card = make("section", "card");
  card.dataset.lane = lane;
  if (runsNow) card.classList.add("runs");
  if (suspended(now)) card.classList.add("is-suspended");
  else if (waits(now)) card.classList.add("is-waiting");
  if (!alive(now)) card.classList.add("gone");
  if (lane === marked) card.classList.add("marked");
  const title = make("h3");
  title.id = `card-${lane}`;
  title.append(make("b", "", names[lane]), make("span", "", KINDS[lanes[lane].kind] || ""));
  card.setAttribute("aria-labelledby", title.id);
  const badges = make("p", "badges");
  if (runsNow) badges.append(badge("run", "has this turn"));
  if (now.life === "before") badges.append(badge("quiet", "has not begun"));
  if (now.life === "ended") badges.append(badge("quiet", "has ended"));
  if (suspended(now)) {
    const times = new Map();
    for (const by of now.by) times.set(by, (times.get(by) || 0) + 1);
    for (const [by, often] of times) {
      badges.append(badge("suspended", `suspended by ${names[by]}${often > 1 ? `, ${often} times` : ""}`));
    }
  }
  if (waits(now)) badges.append(badge("waits", strings[now.waits]));
  if (alive(now) && !runsNow && !waits(now) && !suspended(now)) badges.append(badge("quiet", "could run"));
  for (const what of now.inside) badges.append(badge("inside", `in ${strings[what]}`));
  for (const lock of now.holds) badges.append(badge("holds", `owns ${strings[lock]}`));
  if (now.cooperative !== null && alive(now)) {
    badges.append(badge("quiet", now.cooperative ? "cooperative" : "preemptive"));
  }
  card.append(title, badges);
  if (now.stack.length) {
    const stack = make("ol", "stack");
    stack.setAttribute("aria-label", `Stack of ${names[lane]}, leaf first`);
    if (now.stack.length > 16) stack.tabIndex = 0;
    let same = 0;
    const [own, old] = [now.stack, before ? before.stack : now.stack];
    while (same < own.length && same < old.length
      && own[own.length - 1 - same] === old[old.length - 1 - same]) same++;
    own.forEach((frame, index) => {
      const isNew = index < own.length - same;
      const line = make("li", isNew ? "new" : "", strings[frame]);
      if (isNew) line.title = "Not there before this turn";
      stack.append(line);
    });
    card.append(stack);
  } else if (alive(now)) {
    card.append(make("span", "stack-title", "no frames"));
  }
  return card;
};

const drawWords = () => {
  const { at, thread } = slices[moment];
  $("turn").textContent = `Turn ${moment + 1} of ${count} · ${at} µs · ${names[thread]}`;
  const told = words(moment);
  $("does").replaceChildren(...(told.length ? told : ["nothing"]).map((text) => make("li", "", text)));
  const between = relations(moment);
  $("relations").replaceChildren();
  if (between.length) {
    const list = make("ul");
    list.append(...between.map(sentence));
    $("relations").append(make("h3", "", "Waits and suspensions after this turn"), list);
  }
  $("cards").replaceChildren(...lanes.map((_, lane) => drawCard(lane)));
  const slider = $("slider");
  slider.value = String(moment + 1);
  slider.setAttribute("aria-valuetext",
    `Turn ${moment + 1} of ${count}, ${at} µs, ${names[thread]}: ${told.join(", ") || "nothing"}`);
};

// ---- the list of turns: only the visible part exists ----

const LINE = 22;
const drawList = () => {
  const list = $("list");
  const first = clamp(Math.floor(list.scrollTop / LINE) - 4, 0, count);
  const end = clamp(first + Math.ceil(list.clientHeight / LINE) + 8, 0, count);
  const lines = [];
  for (let turn = first; turn < end; turn++) {
    const line = make("div", isDull(turn) ? "turn dull" : "turn");
    line.id = `turn-${turn + 1}`;
    line.dataset.turn = turn;
    line.style.top = `${turn * LINE}px`;
    line.setAttribute("role", "option");
    line.setAttribute("aria-selected", String(turn === moment));
    line.setAttribute("aria-posinset", String(turn + 1));
    line.setAttribute("aria-setsize", String(count));
    const text = words(turn).join(" · ");
    line.title = text;
    line.append(make("span", "number", String(turn + 1)), make("b", "", names[slices[turn].thread]),
      make("span", "", text));
    lines.push(line);
  }
  $("list-space").replaceChildren(...lines);
  if (moment >= first && moment < end) list.setAttribute("aria-activedescendant", `turn-${moment + 1}`);
  else list.removeAttribute("aria-activedescendant");
};
const showInList = () => {
  const list = $("list");
  const top = moment * LINE;
  if (top < list.scrollTop || top + LINE > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - Math.floor(list.clientHeight / LINE / 2) * LINE;
  }
  drawList();
};
