/**
 * Tests the page of the playground in Chromium: node test/page.mjs SITE CLRSIM [SCREENSHOTS]. CLRSIM is the program for this system, whose
 * answers are those of the page. Prints what was looked at, and figures as lines of name and value.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answered, ask, browser, open, packed, write } from "./browser.mjs";
import { serve } from "./serve.mjs";

const [site, clrsim, pictures] = process.argv.slice(2);
const chapters = JSON.parse(readFileSync(join(site, "playground/examples.json"), "utf8"));
const texts = chapters.flatMap((it) => it.texts);
const scratch = mkdtempSync(join(tmpdir(), "playground-"));
const server = await serve(site);
const at = `${server.address}playground/`;
const chromium = await browser();
if (pictures) mkdirSync(pictures, { recursive: true });
let passed = 0;

async function test(name, look) {
  const before = Date.now();
  try {
    await look();
  } catch (error) {
    console.error(`failed: ${name}`);
    throw error;
  }
  passed += 1;
  console.log(`ok: ${name} (${((Date.now() - before) / 1000).toFixed(1)} s)`);
}

/** Returns what the program for this system prints of a text. */
function native(text, ...args) {
  writeFileSync(join(scratch, "text.kdl"), text);
  try {
    return execFileSync(clrsim, args, { cwd: scratch, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], env: { NO_COLOR: "1", COLUMNS: "100" } });
  } catch (error) {
    return error.stdout;
  }
}

const objects = (printed) => printed.split("\n").filter(Boolean).map((it) => JSON.parse(it));
const short = (result) => result.replace(/^CORPROF_E_(STACKSNAPSHOT_)?/, "");

/** Asserts that the table of results is what the program prints. */
async function sameMatrix(page, text) {
  const matrices = objects(native(text, "matrix", "--json", "text.kdl"));
  const rows = await page.locator(".matrix tr:has(td)").evaluateAll((all) => all.map((row) => [...row.children].map((it) => it.textContent.replace(/^[✓✗] /, ""))));
  assert.ok(rows.length > 0, "no row");
  for (const [runtime, ...cells] of rows) {
    const found = matrices.map((it) => it.columns.find((column) => column.runtimes.includes(runtime))).map((it) => (it ? short(it.result) : "–"));
    assert.deepEqual(cells, found, runtime);
  }
}

/** Asserts that the stories of a search are what the program prints. */
async function sameSearch(page, text) {
  const all = objects(native(text, "explore", "--json", "text.kdl")).filter((it) => it.kind === "explored");
  const told = await page.locator(".found pre").allTextContents();
  const stories = new Set(all.filter((it) => it.story?.length).map((it) => it.story.join("\n")));
  assert.deepEqual(new Set(told), stories);
  assert.equal(await page.locator(".found").count() > 0, true, "nothing is shown");
}

/** The README's example, and ten of the gallery: of each chapter the first text that has a snapshot or a search. */
const tried = [texts[0], ...chapters.slice(1).map((it) => it.texts.find((one) => one.verb === "matrix" || one.verb === "explore")).filter(Boolean).slice(0, 10)];

await test(`the README's example and ${tried.length - 1} of the gallery give what clrsim gives`, async () => {
  assert.equal(tried.length, 11);
  const { page, context, complaints, requests } = await open(chromium, at);
  for (const one of tried) {
    await page.goto(`${at}#example=${one.file}`);
    await page.locator(`#example >> option[value="${one.file}"]:checked`).waitFor({ state: "attached" });
    assert.match(await answered(page), /^Done/, one.file);
    await (one.verb === "matrix" ? sameMatrix : sameSearch)(page, one.text);
  }
  assert.deepEqual(complaints, []);
  for (const request of requests) assert.ok(request.startsWith(server.address), request);
  await context.close();
});

await test("a search has its story, and is replayed turn by turn", async () => {
  const { page, context, complaints } = await open(chromium, at);
  await answered(page);
  assert.match(await ask(page, "explore"), /^Done/);
  await sameSearch(page, texts[0].text);
  await page.getByRole("button", { name: "Replay it turn by turn" }).first().click();
  await answered(page);
  const drawn = page.frameLocator("iframe.drawn");
  await drawn.locator("svg, canvas, .row").first().waitFor();
  assert.match(await drawn.locator("body").innerText(), /sampler/);
  assert.deepEqual(complaints, []);
  await context.close();
});

await test("each verb gives an answer, and what it prints", async () => {
  const { page, context, complaints } = await open(chromium, at);
  await answered(page);
  for (const verb of ["compare", "explain", "timeline", "run", "minimize"]) assert.match(await ask(page, verb), /^Done/, verb);
  await ask(page, "run");
  assert.equal(await page.locator(".output pre").textContent(), native(texts[0].text, "run", "text.kdl").trim());
  await write(page, 'function "App.Main"   kind="jit"\n\n\n\nshows "A."\n');
  await page.getByRole("button", { name: "Format" }).click();
  await page.locator(".status", { hasText: "is laid out" }).waitFor();
  assert.match(await page.locator(".cm-content").innerText(), /^function "App\.Main" kind="jit"/m);
  assert.deepEqual(complaints, []);
  await context.close();
});

await test("the reason of a cell is shown on a click, with its rules", async () => {
  const { page, context } = await open(chromium, at);
  await answered(page);
  const [first] = objects(native(texts[0].text, "matrix", "--json", "text.kdl"));
  await page.locator(".cell").first().click();
  const why = await page.locator(".why").innerText();
  assert.ok(why.includes(first.columns[0].why.text), why);
  assert.equal(await page.locator(".why a.rule").first().getAttribute("href"), `${server.address}rules/clauses.html#${first.columns[0].why.clauses[0].toLowerCase()}`);
  await context.close();
});

await test("problems, completions and meanings come from the language server", async () => {
  const { page, context, complaints } = await open(chromium, at);
  await answered(page);
  await write(page, 'shows "A."\nfunktion "App.Main" kind="jit"\n');
  await page.locator(".cm-lintRange-error").first().hover();
  await page.locator(".cm-tooltip-lint", { hasText: "function" }).waitFor();
  await write(page, 'function "App.Main" kind="jit" {\n    push "rbx"\n}\n');
  await page.mouse.move(0, 0);
  await page.locator(".cm-lintRange-error").waitFor({ state: "detached" });
  await page.getByText("push", { exact: false }).first().hover();
  await page.locator(".cm-tooltip-hover .said").waitFor();
  await page.mouse.move(0, 0);
  await page.keyboard.press("Control+End");
  await page.keyboard.type("sna");
  await page.keyboard.press("Control+Space");
  await page.locator(".cm-tooltip-autocomplete").waitFor();
  assert.deepEqual(complaints, []);
  await context.close();
});

await test("a link holds the text, the verb and the runtimes; a damaged one gives a sentence", async () => {
  const { page, context } = await open(chromium, at);
  await answered(page);
  const text = 'shows "é and 中."\nfunction "App.Main" kind="jit"\nthread "main" start="App.Main"\n';
  await write(page, text);
  await page.locator(".runtimes summary").click();
  await page.getByLabel("net10-windows", { exact: true }).check();
  await page.locator("[data-verb=run]").click();
  await answered(page);
  await page.getByRole("button", { name: "Copy a link" }).click();
  await page.locator("#told", { hasText: "holds the text" }).waitFor();
  const address = page.url();
  assert.match(address, /#text=[\w-]+&verb=run&on=net10-windows$/);
  const other = await open(chromium, address);
  await answered(other.page);
  assert.equal((await other.page.locator(".cm-line").allTextContents()).join("\n"), text);
  assert.equal(await other.page.locator("[aria-selected=true]").getAttribute("data-verb"), "run");
  assert.equal(await other.page.locator(".runtimes summary").textContent(), "Runtimes: 1");
  await other.context.close();
  await context.close();
  const bomb = await packed("x".repeat(1 << 20));
  for (const [hash, says] of [["#text=AAAA", "damaged"], ["#text=%%%", "damaged"], [bomb, "too long"], [`#text=${"A".repeat(70000)}`, "too long"], ["#example=no/such.kdl", "no example"]]) {
    const damaged = await open(chromium, at + hash);
    await damaged.page.locator("#told.wrong", { hasText: says }).waitFor();
    assert.match(await answered(damaged.page), /^Done/);
    await damaged.context.close();
  }
});

await test("names in a text are never read as HTML", async () => {
  const evil = '<img src=\\"/leak\\" onerror=\\"alert(1)\\"><script>alert(2)</script>';
  const hidden = "\u202e\u2066\u200b";
  const text = [
    `shows "${evil}${hidden}."`, `function "${evil}" kind="jit" { body { new; }; }`, `function "A${hidden}B" kind="jit"`,
    `stop at="AllocateObject" { snapshot "${evil}${hidden}" by="native-walker"; }`,
    `profiler { lock "${evil}"; thread "${evil}" { prepare; snapshot "main" { lock "${evil}"; }; }; on "JITCompilationFinished" { lock "${evil}"; }; }`,
    "explore", "",
  ].join("\n");
  for (const one of [text, text.replaceAll("\u202e", "\u0007\u001b[31m"), `${evil.replaceAll("\\", "")}\n<b>`]) {
    const { page, context, complaints, requests } = await open(chromium, at + (await packed(one)));
    await answered(page);
    for (const verb of ["matrix", "compare", "explain", "explore", "timeline", "run", "minimize"]) {
      await ask(page, verb);
      if (verb === "matrix" && (await page.locator(".cell").count()) > 0) await page.locator(".cell").first().click();
      assert.equal(await page.locator("img:not(.cm-widgetBuffer), [onerror], .output script, .output b:has(*), .output iframe:not(.drawn)").count(), 0, verb);
      for (const frame of page.frames().slice(1)) assert.equal(await frame.locator("img").count(), 0, `${verb}, in its frame`);
    }
    assert.deepEqual(complaints, []);
    for (const request of requests) assert.ok(request.startsWith(at) && !request.includes("leak"), request);
    await context.close();
  }
});

await test("a search that takes too long is stopped, by hand and by the limit", async () => {
  const long = texts[0].text.replace(/explore \{.*\}\n$/s, "explore schedules=100000000\n").replace('snapshot "main" { lock "names"; }', 'suspend "main" { sleep 1; }');
  const { page, context } = await open(chromium, `${at}${await packed(long)}&verb=explore`);
  await page.getByRole("button", { name: "Stop" }).click();
  assert.match(await answered(page), /^Stopped/);
  assert.match(await ask(page, "matrix"), /^Done/);
  assert.match(await ask(page, "explore"), /^No answer: not done after 10 seconds/);
  assert.match(await ask(page, "matrix"), /^Done/);
  await context.close();
});

await test("Tab leaves the editor, and the first link skips to it", async () => {
  const { page, context } = await open(chromium, at);
  await answered(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.locator(".cm-content").focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.querySelector("#playground").shadowRoot.activeElement.getAttribute("role")), "tab");
  await page.keyboard.press("ArrowRight");
  await answered(page);
  assert.equal(await page.locator("[aria-selected=true]").getAttribute("data-verb"), "compare");
  await page.locator(".cm-content").focus();
  await page.keyboard.press("Control+Enter");
  assert.match(await answered(page), /^Done/);
  await context.close();
});

await test("the page fits a phone, in both themes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of [[360, 740], [1280, 900]]) {
      const { page, context } = await open(chromium, at, { colorScheme, viewport: { width, height } });
      await answered(page);
      for (const verb of ["matrix", "compare", "explain", "explore", "timeline", "run"]) {
        await ask(page, verb);
        if (verb === "matrix") await page.locator(".cell").first().click();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${verb} at ${width}: ${wide} pixels too wide`);
        if (pictures) await page.screenshot({ path: join(pictures, `playground-${verb}-${width}-${colorScheme}.png`), fullPage: true });
      }
      await context.close();
    }
  }
});

await test("the first answer comes on a slow processor, too", async () => {
  for (const rate of [1, 4, 6]) {
    const context = await chromium.newContext({ viewport: { width: 360, height: 740 } });
    const page = await context.newPage();
    const protocol = await context.newCDPSession(page);
    await protocol.send("Emulation.setCPUThrottlingRate", { rate });
    await page.goto(at);
    await answered(page);
    const time = await page.evaluate(() => performance.getEntriesByName("clrsim-result")[0].startTime);
    console.log(`milliseconds until the first answer, processor slowed ${rate} times\t${Math.round(time)}`);
    await context.close();
  }
});

await test("without a network the page works, once it was loaded", async () => {
  const { page, context } = await open(chromium, at);
  await answered(page);
  await page.evaluate(() => navigator.serviceWorker.ready.then((it) => it.active.state));
  await server.close();
  await page.reload();
  assert.match(await answered(page), /^Done/);
  await page.selectOption("#chapter", "hazards");
  assert.match(await answered(page), /^Done/);
  await context.close();
});

await chromium.close();
rmSync(scratch, { recursive: true });
console.log(`${passed} passed, 0 failed`);
