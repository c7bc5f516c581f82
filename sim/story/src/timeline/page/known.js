"use strict";
// The data of a history.

const data = JSON.parse(document.getElementById("data").textContent);
const { lanes, slices, strings, standings } = data;
const count = slices.length;
const $ = (id) => document.getElementById(id);
const names = lanes.map((lane) => lane.name || "(no name)");
const KINDS = { app: "program", profiler: "profiler", managed: "profiler, ran managed code" };
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/** Creates an element with a class and a text. */
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const svg = (tag, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

const standing = (turn, lane) => standings[slices[turn].stand[lane]];
const isDull = (turn) => slices[turn].does.every(([kind]) => kind === "executes");
const alive = (standing) => standing.life === "lives";
const waits = (standing) => alive(standing) && standing.waits !== null;
const suspended = (standing) => alive(standing) && standing.by.length > 0;
const words = (turn) => slices[turn].does.map(([, text]) => strings[text]);

/** For each thread, the turns with an event: its own, an effect of others, the end of a wait. */
const happenings = lanes.map((_, lane) => {
  const turns = [];
  for (let turn = 0; turn < count; turn++) {
    const own = slices[turn].thread === lane && !isDull(turn);
    const done = slices[turn].does.some(([, , target]) => target === lane);
    const last = turn > 0 && slices[turn - 1].stand.length ? standing(turn - 1, lane) : null;
    const now = standing(turn, lane);
    const changed = last !== null
      && (waits(last) !== waits(now) || last.by.length !== now.by.length || last.life !== now.life);
    if (own || done || changed) turns.push(turn);
  }
  return turns;
});

/** Runs of turns with the same key: calls `found(first, end, key)` for each that is not null. */
const runs = (keyOf, found) => {
  let first = 0;
  let key = count ? keyOf(0) : null;
  for (let turn = 1; turn <= count; turn++) {
    const next = turn < count ? keyOf(turn) : undefined;
    if (next !== key) {
      if (key !== null) found(first, turn, key);
      [first, key] = [turn, next];
    }
  }
};

/** Returns the waits and suspensions between threads. */
const relations = (turn) => {
  const found = [];
  lanes.forEach((_, from) => {
    const now = standing(turn, from);
    if (!alive(now)) return;
    for (const to of new Set(now.by)) {
      found.push({ from, to, kind: "suspended", text: "is suspended by" });
    }
    for (const [to, why] of now.edges) found.push({ from, to, kind: "waits", text: strings[why] });
  });
  return found.filter(({ from, to }) => from !== to);
};
