// A page that `sinew replay --page` made, opened from disk. `node recorded.mjs FILE`; the file
// axis.html has no arm, any other file has one.

import assert from "node:assert/strict";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { check, launch, open, pixels, said, shoot, until } from "./browser.mjs";

const file = process.argv[2];
const hasArm = basename(file) !== "axis.html";
const browser = await launch();
const page = await open(browser, pathToFileURL(file).href);

const at_s = async () => Number(await page.inputValue("#playback-at"));
const go = (s) => page.locator("#playback-at").evaluate((slider, to) => {
  slider.value = to;
  slider.dispatchEvent(new Event("input"));
}, String(s));
const cycles = async () => Number((await said(page, "#latency-figures tbody td")).replace(/\D/g, ""));

await check("the page says that it is a recording, of when and where, and plays", async () => {
  await until("it says so", async () => (await said(page, "#link")) === "recorded");
  assert.match(await said(page, "#playback-says"), /^20\d\d-\d\d-\d\d \d\d:\d\d UTC, on machine '.+'/);
  // A browser without a graphics card needs time to show a few seconds.
  await page.selectOption("#playback-speed", "0.1");
  await until("it plays", async () => (await at_s()) > 0.5);
});

await check(hasArm ? "the arm moves" : "there is no arm", async () => {
  assert.equal(await page.isVisible("#arm"), hasArm);
  if (!hasArm) return;
  const before = await until("the arm is drawn", () => pixels(page));
  await until("it stands otherwise", async () => (await pixels(page)) !== before);
});

await check("graph, histograms and messages have figures", async () => {
  await until("a link has a rate", async () => /\/s/.test(await page.locator("#graph").textContent()));
  await until("cycles are counted", async () => (await cycles()) > 100);
  await until("a message has a value", async () => /-?[−0-9.]+/.test(await said(page, "#messages-table tbody tr:nth-child(2) td")));
});

await check("the scope shows the traces of the recording, and others that are chosen", async () => {
  const figure = (name) => page.locator("#scope-traces tbody tr", { hasText: name }).first().locator("td").nth(1);
  await until("every cycle is shown", async () => /every cycle of/.test(await said(page, "#scope-doing")));
  await until("it has figures", async () => /\d/.test(await page.locator("#scope-traces tbody td").nth(1).textContent()));
  const other = await page.locator("#scope-names option").last().getAttribute("value");
  await page.fill("#scope-name", other);
  await page.press("#scope-name", "Enter");
  await until("the other one has figures", async () => /\d/.test(await figure(other).textContent()));
  await page.fill("#scope-name", "nobody.nothing");
  await page.press("#scope-name", "Enter");
  await until("an unknown one is refused", async () => /nobody\.nothing.* no number in this recording/.test(await said(page, "#scope-said")));
  await shoot(page, `recorded-${basename(file, ".html")}`);
});

await check("what needs a live run is out of reach", async () => {
  assert.ok(await page.isDisabled("#stop"));
  assert.match(await said(page, "#notice"), /plays a recording and reaches no machine/);
  for (const gone of ["#planner", "#parameters", "#reset", '[data-panel="domains"]', '[data-panel="events"]', "#scope-csv"]) {
    assert.ok(await page.isHidden(gone), gone);
  }
  assert.ok(await page.locator('#scope-mode option[value="bode"]').evaluate((option) => option.disabled));
});

await check("people pause it and go to another time", async () => {
  await page.click("#playback-play");
  assert.equal(await said(page, "#playback-play"), "Play");
  await go(await page.getAttribute("#playback-at", "max"));
  await until("it is at its end", async () => (await cycles()) > 100);
  const all = await cycles();
  await go(1);
  await until("fewer cycles are counted", async () => (await cycles()) < all);
  const stands = await at_s();
  await new Promise((later) => setTimeout(later, 300));
  assert.equal(await at_s(), stands, "it is paused");
  await page.selectOption("#playback-speed", "4");
  await page.click("#playback-play");
  await until("it goes on", async () => (await at_s()) > stands);
});

await check("nothing is loaded from elsewhere, and nothing is wrong", async () => {
  const asked = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  assert.deepEqual(asked.filter((url) => !/^(file|data|blob):/.test(url)), []);
  assert.deepEqual(page.wrongs, []);
});

await browser.close();
process.exit(0);
