// What the tests of the page share: a browser, limits, and a line for each check that holds.

import { chromium } from "playwright-core";

/** A wait that is longer than this is a hang. This says nothing of speed. */
const PATIENCE_MS = 60_000;
/** Time between two polls. */
const LOOK_MS = 50;
/** Chromium connects to nothing but the page, and may draw WebGL without a graphics card. How it
 * draws the rest of the page is its own choice: with SwiftShader, too, one picture takes half a
 * second. */
const FLAGS = [
  "--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--enable-unsafe-swiftshader",
];

export const DESKTOP = { width: 1440, height: 900 };
export const PHONE = { width: 390, height: 844 };

export function launch() {
  const sandbox = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.SINEW_TEST_BROWSER, args: [...FLAGS, ...sandbox] });
}

/** A page whose errors are failures; `before` changes what its scripts find. While the dashboard is
 * restarted nobody answers, and the page asks again. The browser is set to German: figures must
 * have a decimal point there, too, so code that formats by the browser's language fails a check. */
export async function open(browser, address, { viewport = DESKTOP, colorScheme = "light", touch = false, before } = {}) {
  const page = await browser.newPage({ viewport, colorScheme, hasTouch: touch, isMobile: touch, locale: "de-DE" });
  page.wrongs = [];
  page.on("pageerror", (error) => page.wrongs.push(error.stack));
  page.on("console", (message) => message.type() === "error" && page.wrongs.push(message.text()));
  if (before) await page.addInitScript(before);
  await until("the page answers", () => page.goto(address).then(() => true, (error) => {
    if (!error.message.includes("ERR_CONNECTION_REFUSED")) throw error;
  }));
  return page;
}

/** The page's marks on the way to its first moving picture, ms after the navigation began. */
export function marks(page) {
  return page.evaluate(() => Object.fromEntries(performance.getEntriesByType("mark").map(({ name, startTime }) => [name, startTime])));
}

/** The text of the element. */
export function said(page, selector) {
  return page.textContent(selector);
}

/** Waits until `condition` holds, and returns what it returned. */
export async function until(what, condition) {
  const since = Date.now();
  for (;;) {
    const got = await condition();
    if (got) return got;
    if (Date.now() - since > PATIENCE_MS) throw new Error(`waited ${PATIENCE_MS / 1000} s in vain until ${what}`);
    await new Promise((later) => setTimeout(later, LOOK_MS));
  }
}

/** One check; its name is a sentence that is true. */
export async function check(name, body) {
  try {
    await body();
  } catch (error) {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  }
  console.log(`holds: ${name}`);
}

/** Saves a picture for people, if SINEW_TEST_SHOTS names a folder. */
export async function shoot(page, name) {
  const folder = process.env.SINEW_TEST_SHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: page.viewportSize().width < 500 });
}

/** The pixels of the arm, to be compared. */
export function pixels(page) {
  return page.locator("#arm-canvas").screenshot().then((png) => png.toString("base64"));
}
