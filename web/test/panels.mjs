// The panels that are the same for every machine: messages field by field, a layout of one's own.
// Against made-up data. `node panels.mjs FOLDER`, with the page bundled there.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { check, launch, open, PHONE, said, shoot, until } from "./browser.mjs";
import * as fake from "./fake.mjs";

const server = await fake.serve(process.argv[2]);
fake.run(server);
const address = `http://127.0.0.1:${server.address().port}/#token=${fake.TOKEN}`;
const browser = await launch();

const live = (page) => until("the page is connected", async () => (await said(page, "#link")) === "connected");
const rows = (page) => page.locator("#messages-table tr:visible").allInnerTexts();
const row = async (page, word) => (await rows(page)).find((text) => text.includes(word)) ?? "";
/** The titles of the panels that are seen, in the order in which they stand. */
const panels = (page) => page.locator("[data-panel]:visible").evaluateAll((all) => all.map(({ dataset }) => dataset.panel));
const kept = (page) => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("sinew-layout:")));

await check("every field of every message is shown, with unit, age and state", async () => {
  const page = await open(browser, address);
  await live(page);
  await until("values come", async () => (await row(page, "ik.out")).includes("new"));
  assert.match(await row(page, "position_rad"), /\[[−0-9., ]+\]\s+rad/);
  assert.match(await row(page, "speed_m_per_s"), /0\.25\s+m\/s/);
  assert.match(await row(page, "drives.in"), /−1\.5\s+V\s+■ safe value 2\.3 s old/);
  assert.match(await row(page, "planner.command"), /never written/);
  assert.match(await row(page, "many"), /–/);
  await until("signals come", async () => /rad\/s/.test(await row(page, "velocity_rad_per_s")));
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("a filter leaves what has its words, a port with all its fields", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.fill("#messages-filter", "IK.OUT");
  assert.equal((await rows(page)).length, 4, "the heads of the table and of the port, and two fields");
  await page.fill("#messages-filter", "m/s");
  assert.match((await rows(page)).join("\n"), /ik\.out[^]*speed_m_per_s/);
  assert.equal(await row(page, "position_rad"), "");
  await page.fill("#messages-filter", "there is no such word");
  assert.equal(await said(page, "#messages-says"), "0 of 13 fields");
  await page.close();
});

await check("ports that are not shown are counted", async () => {
  const greet = server.greet;
  server.greet = (tell) => [{ ...fake.hello(), ports_left_out: 41 }, fake.status()].forEach(tell);
  const page = await open(browser, address);
  await live(page);
  assert.match(await said(page, "#messages-left-out"), /^41 more ports are not shown/);
  server.greet = greet;
  await page.close();
});

await check("values are asked for only while they are seen", async () => {
  const page = await open(browser, address);
  await live(page);
  await until("they are asked for", () => server.wants?.values);
  await page.click("#layout-open");
  await page.uncheck("#layout-shown-messages");
  await until("they are not asked for", () => server.wants?.values === false);
  await page.check("#layout-shown-messages");
  await until("they are asked for again", () => server.wants?.values);
  await page.click("#layout-reset");
  await page.close();
});

await check("a layout is people's own: hidden, moved by keyboard, wide; kept over a reload; reset", async () => {
  const page = await open(browser, address);
  await live(page);
  const first = await panels(page);
  assert.ok(first.includes("drives") && first.indexOf("arm") === 0, first.join());
  await page.click("#layout-open");
  await page.uncheck("#layout-shown-drives");
  await page.focus("#layout-down-arm");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate("document.activeElement.id"), "layout-down-arm", "the focus goes with it");
  await page.keyboard.press("Alt+ArrowDown");
  await page.click("#layout-wide-camera");
  const own = await panels(page);
  assert.ok(!own.includes("drives") && own.indexOf("arm") === 1, `two places on, one of them hidden: ${own.join()}`);
  assert.equal(await page.getAttribute("#camera", "data-wide"), "yes");
  await shoot(page, "layout");
  await page.reload();
  await live(page);
  assert.deepEqual(await panels(page), own);
  assert.equal((await kept(page)).length, 1);
  await page.click("#layout-open");
  await page.click("#layout-reset");
  assert.deepEqual(await panels(page), first);
  assert.deepEqual(await kept(page), []);
  await page.close();
});

await check("panels are dragged to their place, in the list and on the page", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.click("#layout-open");
  await page.dragAndDrop('[data-of="events"] .grip', '[data-of="arm"]');
  assert.equal((await panels(page))[0], "events");
  await page.dragAndDrop('[data-panel="graph"] h2', '[data-panel="events"] h2');
  assert.equal((await panels(page))[0], "graph");
  await page.click("#layout-reset");
  await page.close();
});

/** Hands a file with a layout to the page; what it says. */
async function give(page, text, name = "layout.json") {
  await page.evaluate(() => (document.querySelector("#layout-said").textContent = ""));
  await page.setInputFiles("#layout-file", { name, mimeType: "application/json", buffer: Buffer.from(text) });
  return until("it is answered", () => said(page, "#layout-said"));
}

await check("a layout goes from one browser to another as a file", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.click("#layout-open");
  await page.uncheck("#layout-shown-jitter");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#layout-export")]);
  assert.equal(download.suggestedFilename(), "robot-layout.json");
  const text = await readFile(await download.path(), "utf8");
  await page.click("#layout-reset");
  assert.ok((await panels(page)).includes("jitter"));
  assert.equal(await give(page, text), "the layout is taken");
  assert.ok(!(await panels(page)).includes("jitter"));
  await page.click("#layout-reset");
  await page.close();
});

await check("of another graph's layout is taken what fits, and said what does not", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.click("#layout-open");
  const place = (panel, shown = true, wide = false) => ({ panel, shown, wide });
  const other = { sinew_layout: 1, graph: "crane", panels: [place("pendulum"), place("events"), place("arm", false), place("events", false)] };
  const text = await give(page, JSON.stringify(other));
  assert.match(text, /of graph 'crane', this is 'robot'.*no panel 'pendulum'.*'events' stands there twice.*does not name 'drives'/);
  const own = await panels(page);
  assert.ok(own[0] === "events" && !own.includes("arm") && own.includes("drives"), own.join());
  await page.click("#layout-reset");
  await page.close();
});

await check("what is no layout is refused in words, and changes nothing", async () => {
  const page = await open(browser, address);
  await live(page);
  const before = await panels(page);
  await page.click("#layout-open");
  const panel = { panel: "graph", shown: true, wide: false };
  const layout = (panels) => JSON.stringify({ sinew_layout: 1, graph: "robot", panels });
  for (const [text, expected] of [
    ["", /no JSON/], ["\u0000\uffff{", /no JSON/], ["null", /sinew_layout/], ["[]", /sinew_layout/], ['{"sinew_layout":2}', /"sinew_layout": 1/],
    ['{"sinew_layout":1}', /no list 'panels'/], [layout([]), /nothing of this layout fits/], [layout([null]), /entry 1 of 'panels'/],
    [layout([panel, { ...panel, shown: "yes" }]), /entry 2 of 'panels'/], [layout(Array(101).fill(panel)), /101 panels, expected 100/],
    [layout([{ ...panel, panel: "<img src=x>" }]), /no panel '<img src=x>'/], ["x".repeat(70_000), /70000 bytes, and a layout has 65536/],
    [`${"[".repeat(30_000)}`, /no JSON/],
  ]) {
    assert.match(await give(page, text), expected);
    assert.deepEqual(await panels(page), before);
  }
  assert.deepEqual(await kept(page), []);
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("what the browser kept and is no layout any more does no harm", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.click("#layout-open");
  await page.click("#layout-wide-events");
  await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("sinew-layout:")).forEach((key) => localStorage.setItem(key, "{}")));
  await page.reload();
  await live(page);
  assert.ok((await panels(page)).length > 5);
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("on a phone a layout of one's own is not wider than the screen", async () => {
  const page = await open(browser, address, { viewport: PHONE });
  await live(page);
  await page.click("#layout-open");
  await page.click("#layout-wide-events");
  await until("it fits", () => page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
  await shoot(page, "layout-phone");
  await page.close();
});

await browser.close();
server.close();
server.closeAllConnections();
process.exit(0);
