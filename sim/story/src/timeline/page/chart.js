// The chart: a lane for each thread, a column for each turn.

let width = 8;
let moment = 0;
let marked = 0;
const BAND = 18;
const BAR = 14;
const heights = [];
const middles = [];

const place = (element, first, end) => {
  element.style.left = `calc(var(--turn) * ${first})`;
  element.style.width = `calc(var(--turn) * ${end - first})`;
};
const bar = (row, className, top, first, end, text) => {
  const element = make("div", className);
  element.style.top = `${top}px`;
  place(element, first, end);
  if (text) {
    element.append(make("span", "", text.replace(/^(waits for )?(the )?(profiler's lock (?="))?/, "")));
    element.title = text;
  }
  row.append(element);
};

/** Bars for lists that grow and shrink: each item keeps its line while it is in the list. */
const bars = (listOf) => {
  const found = [];
  let open = [];
  for (let turn = 0; turn <= count; turn++) {
    const list = turn < count ? [...listOf(turn)] : [];
    const kept = [];
    for (const item of open) {
      const index = list.indexOf(item.key);
      if (index >= 0) {
        list.splice(index, 1);
        kept.push(item);
      } else {
        item.end = turn;
      }
    }
    for (const key of list) {
      let line = 0;
      while (kept.some((item) => item.line === line)) line++;
      const item = { key, line, first: turn, end: turn };
      kept.push(item);
      found.push(item);
    }
    open = kept;
  }
  return { found, lines: found.reduce((most, item) => Math.max(most, item.line + 1), 0) };
};

const drawLane = (lane) => {
  const inside = bars((turn) => standing(turn, lane).inside);
  const holds = bars((turn) => standing(turn, lane).holds);
  const band = 5 + inside.lines * BAR;
  const height = Math.max(38, band + BAND + 3 + holds.lines * BAR + 3);
  const row = make("div", "row");
  row.style.height = `${height}px`;
  for (const { key, line, first, end } of inside.found) {
    bar(row, "inside", 3 + line * BAR, first, end, strings[key]);
  }
  for (const { key, line, first, end } of holds.found) {
    bar(row, "holds", band + BAND + 3 + line * BAR, first, end, strings[key]);
  }
  const runsAt = (turn) => slices[turn].thread === lane;
  // The status of a thread during the turn of another one.
  const resting = (turn) => {
    const now = standing(turn, lane);
    return alive(now) && !runsAt(turn) ? stateKey(now) : null;
  };
  runs(resting, (first, end, key) => {
    const [by, what] = JSON.parse(key);
    const both = by !== null && what !== null ? " both" : "";
    if (what !== null) bar(row, `waits${both}`, band + (both ? BAND / 2 : 0), first, end, what);
    if (by !== null) bar(row, `suspended${both}`, band, first, end, by);
    if (by === null && what === null) bar(row, "ready", band + BAND / 2 - 1, first, end);
  });
  runs((turn) => (runsAt(turn) ? (isDull(turn) ? "run dull" : "run") : null), (first, end, key) =>
    bar(row, key, band, first, end));
  heights.push(height);
  middles.push(heights.slice(0, -1).reduce((sum, one) => sum + one, 22) + band + BAND / 2);
  return row;
};
const stateKey = (standing) => JSON.stringify([
  standing.by.length ? `by ${standing.by.map((by) => names[by]).join(", ")}` : null,
  standing.waits !== null ? strings[standing.waits] : null,
]);

const drawChart = () => {
  lanes.forEach((lane, index) => {
    $("rows").append(drawLane(index));
    const button = make("button");
    button.type = "button";
    button.style.height = `${heights[index]}px`;
    button.append(make("b", "", names[index]), make("span", "", KINDS[lane.kind] || ""));
    button.title = `${names[index]} (${KINDS[lane.kind] || ""}, thread ${lane.os})`;
    button.addEventListener("click", () => mark(index));
    $("names").append(button);
  });
  for (let turn = 1; turn < count; turn++) {
    const pause = slices[turn].at - slices[turn - 1].at - 1;
    if (pause > 0) {
      const line = make("i");
      line.style.left = `calc(var(--turn) * ${turn})`;
      line.title = `${pause} µs in which no thread could run`;
      $("axis").append(line);
    }
  }
  drawOverview();
};

const drawOverview = () => {
  const overview = $("overview");
  overview.setAttribute("viewBox", `0 0 ${Math.max(count, 1)} ${lanes.length * 4}`);
  overview.style.height = `${clamp(lanes.length * 5, 10, 60)}px`;
  lanes.forEach((_, lane) => runs((turn) => {
    if (slices[turn].thread === lane) return "o-run";
    const now = standing(turn, lane);
    if (!alive(now)) return null;
    return suspended(now) ? "o-suspended" : waits(now) ? "o-waits" : "o-ready";
  }, (first, end, key) => {
    const thin = key === "o-ready";
    overview.append(svg("rect", {
      class: key, x: first, width: end - first, y: lane * 4 + (thin ? 1.5 : 0.5), height: thin ? 1 : 3,
    }));
  }));
  overview.append(svg("rect", { id: "view", class: "view", y: 0, height: lanes.length * 4 }));
};

const drawAxis = () => {
  for (const label of $("axis").querySelectorAll("span")) label.remove();
  let step = 1;
  for (const factor of [2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2]) {
    if (step * width >= 64) break;
    step = Math.round(step * factor);
  }
  const labels = document.createDocumentFragment();
  for (let turn = 0; turn < count; turn += step) {
    const label = make("span", "", `${slices[turn].at} µs`);
    label.style.left = `calc(var(--turn) * ${turn})`;
    labels.append(label);
  }
  $("axis").append(labels);
};

// Arrows are to the right of the selected moment, even of the last one.
const ARROWS = 72;
const room = () => Math.max($("scroll").clientWidth - 1 - ARROWS, 100);
const fitting = () => room() / Math.max(count, 1);
let wanted = null;
const layout = () => {
  width = wanted === "fit" ? fitting() : wanted ?? clamp(fitting(), 8, 60);
  document.documentElement.style.setProperty("--turn", `${width}px`);
  $("tracks").style.width = `${width * count + ARROWS}px`;
  $("tracks").classList.toggle("tiny", width < 3);
  const fits = width * count <= room() + 1;
  $("overview").style.display = fits ? "none" : "block";
  // The handle is below the selected turn if all turns are visible.
  $("slider").style.width = fits ? `${width * (count - 1) + 16}px` : "100%";
  $("slider").style.marginLeft = fits ? `${Math.max(width / 2 - 8, 0)}px` : "0";
  drawAxis();
  drawMoment();
  view();
};
const view = () => {
  const scroll = $("scroll");
  $("view").setAttribute("x", scroll.scrollLeft / width);
  $("view").setAttribute("width", scroll.clientWidth / width);
};
const zoom = (factor) => {
  wanted = clamp(width * factor, Math.min(fitting(), 8), 64);
  layout();
};

/** Draws the position of the selected moment, and the waits between threads in it. */
const drawMoment = () => {
  const cursor = $("cursor");
  const left = moment * width;
  const thick = Math.max(width, 3);
  cursor.style.left = `${left - (thick - width) / 2}px`;
  cursor.style.width = `${thick}px`;
  const scroll = $("scroll");
  const margin = Math.min(ARROWS, scroll.clientWidth / 4);
  if (left < scroll.scrollLeft + margin) scroll.scrollLeft = left - margin;
  const right = left + width;
  if (right > scroll.scrollLeft + scroll.clientWidth - margin) {
    scroll.scrollLeft = right - scroll.clientWidth + margin;
  }
  $("edges").style.left = `${right}px`;
  $("arcs").replaceChildren();
  relations(moment).forEach(({ from, to, kind }, index) => {
    const out = clamp(16 + Math.abs(middles[from] - middles[to]) / 4 + index * 8, 16, ARROWS);
    // Side by side: there may be one in each direction between the same threads.
    const [start, end] = [middles[from] + (index % 3) * 4 - 4, middles[to] + (index % 3) * 4 - 4];
    const path = `M0 ${start}C${out} ${start} ${out} ${end} 2 ${end}`;
    $("arcs").append(svg("path", { class: "halo", d: path }), svg("path", {
      class: `arc ${kind}`, d: path, "marker-end": `url(#head-${kind})`,
    }));
  });
};
