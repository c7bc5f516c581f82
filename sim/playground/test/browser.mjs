/** Chromium with a page of the playground, for the tests. */

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

/** Starts the browser that `CLR_CHROMIUM` names, or one that is found on `PATH`. */
export async function browser() {
  const folders = process.env.PATH.split(delimiter);
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const executablePath = process.env.CLR_CHROMIUM ?? folders.flatMap((it) => names.map((name) => join(it, name))).find((it) => existsSync(it));
  if (!executablePath) throw new Error("there is no Chromium: CLR_CHROMIUM names one");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** Opens a page in a context of its own. Notes what the browser complains of and where requests go. */
export async function open(browser, address, settings = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...settings });
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (it) => complaints.push(`${it.text()} (${it.location().url}:${it.location().lineNumber}:${it.location().columnNumber})`));
  page.on("pageerror", (it) => complaints.push(it.message));
  page.on("dialog", (it) => { complaints.push(`dialog: ${it.message()}`); void it.dismiss(); });
  context.on("request", (it) => requests.push(it.url()));
  await page.goto(address);
  return { context, page, complaints, requests };
}

/** Waits until the page says that it has an answer, or none. Returns what it says. */
export async function answered(page, timeout = 60000) {
  await page.locator(".output:not([aria-busy])").waitFor({ state: "attached", timeout });
  const status = page.locator(".status", { hasText: /^(Done|No answer|Stopped)/ });
  await status.waitFor({ timeout });
  return status.textContent();
}

/** Asks by a tab. */
export async function ask(page, verb) {
  await page.locator(`[data-verb=${verb}]`).click();
  return answered(page);
}

/** Replaces the text in the editor, as somebody who pastes. (Typing over a selection makes Chromium itself try an inline style.) */
export async function write(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.locator(".cm-content").evaluate((node, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    node.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

/** Returns the fragment of a text, packed here and not by the page. */
export function packed(text) {
  return import("node:zlib").then(({ deflateRawSync }) => `#text=${deflateRawSync(Buffer.from(text)).toString("base64url")}`);
}
