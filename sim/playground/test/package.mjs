/** Tests the packed package in Chromium: node test/package.mjs PACKED. A page of somebody else's has a text, and one is mounted. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answered, browser, open } from "./browser.mjs";
import { serve } from "./serve.mjs";

const [packed] = process.argv.slice(2);
const project = mkdtempSync(join(tmpdir(), "embeds-"));
writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", "--offline", packed], { cwd: project });
const text = 'function "App.Main" kind="jit" { body { new; }; }\nstop at="AllocateObject" { snapshot by="native-walker"; }\n';
const entry = "node_modules/@clr-sim/playground/dist/index.js";
writeFileSync(join(project, "element.html"), `<!doctype html><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">
<script type="module" src="${entry}"></script>
<clrsim-text verb="matrix" runtimes="net10-windows net10-unix">
${text}</clrsim-text>`);
writeFileSync(join(project, "mount.js"), `import { mount } from "./${entry}";
const limits = location.hash === "#small" ? { bytes: 1 << 20 } : undefined;
const playground = mount(document.getElementById("here"), { text: ${JSON.stringify(text)}, verb: "explain", limits });
playground.addEventListener("change", () => (document.title = playground.text.length + " characters"));
globalThis.playground = playground;
`);
writeFileSync(join(project, "mount.html"), `<!doctype html><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">
<div id="here"></div><script type="module" src="mount.js"></script>`);
// The types are those of the package, as a program of somebody else's sees them.
writeFileSync(join(project, "uses.ts"), 'import { mount, type Options } from "@clr-sim/playground";\nconst options: Options = { verb: "matrix", runtimes: [] };\nvoid mount(document.body, options).ask();\n');
execFileSync("npx", ["--no-install", "tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom", join(project, "uses.ts")], { stdio: "inherit" });

const server = await serve(project);
const chromium = await browser();
{
  const { page, complaints } = await open(chromium, `${server.address}element.html`);
  assert.match(await answered(page), /^Done/);
  assert.deepEqual(await page.locator(".matrix th[scope=row]").allTextContents(), ["net10-windows", "net10-unix"]);
  assert.deepEqual(await page.locator(".cell").allTextContents(), ["UNMANAGED_CTX", "E_NOTIMPL"]);
  assert.deepEqual(complaints, []);
}
{
  const { page, complaints } = await open(chromium, `${server.address}mount.html`);
  assert.match(await answered(page), /^Done/);
  assert.match(await page.locator(".output").innerText(), /DoStackSnapshot/);
  await page.evaluate(() => { globalThis.playground.text = "nothing"; });
  assert.equal(await page.title(), "7 characters");
  assert.deepEqual(complaints, []);
}
{
  const { page } = await open(chromium, `${server.address}mount.html#small`);
  assert.match(await answered(page), /^No answer: it needs more than 1 MB of memory/);
}
await chromium.close();
await server.close();
rmSync(project, { recursive: true });
console.log("ok: the package, in pages of somebody else's\n3 passed, 0 failed");
