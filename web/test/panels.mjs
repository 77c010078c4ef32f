// The panels that are the same for every machine: messages field by field, and a layout of one's
// own. Against made-up data. `node panels.mjs FOLDER`, with the page bundled there.

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
/** The titles of the visible panels, in their order. */
const panels = (page) => page.locator("[data-panel]:visible").evaluateAll((all) => all.map(({ dataset }) => dataset.panel));
const kept = (page) => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("sinew-layout:")));

await check("every field of every message is shown, with unit, age and state", async () => {
  const page = await open(browser, address);
  await live(page);
  await until("values come", async () => (await row(page, "ik.out")).includes("new"));
  assert.match(await row(page, "position_rad"), /\[[−0-9., ]+\]\s+rad/);
  assert.match(await row(page, "speed_m_per_s"), /0\.25\s+m\/s/);
  assert.match(await row(page, "modes"), /\[Heat, 1, 9\]/, "words of an enum, numbers that have none");
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
  assert.equal((await rows(page)).length, 5, "the heads of the table and of the port, and three fields");
  await page.fill("#messages-filter", "m/s");
  assert.match((await rows(page)).join("\n"), /ik\.out[^]*speed_m_per_s/);
  assert.equal(await row(page, "position_rad"), "");
  await page.fill("#messages-filter", "there is no such word");
  assert.equal(await said(page, "#messages-says"), "0 of 14 fields");
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

/** Hands a file with a layout to the page; returns what the page says. */
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

/** What is on the scope's canvas. */
const drawn = (page) => page.locator("#scope-canvas").screenshot().then((png) => png.toString("base64"));
async function trace(page, name) {
  await page.fill("#scope-name", name);
  await page.press("#scope-name", "Enter");
}

await check("a trace is chosen by name or beside its message, shown with unit and figures, and kept", async () => {
  const page = await open(browser, address);
  await live(page);
  assert.ok(await page.isHidden("#scope-settings"), "nothing to set without a trace");
  await trace(page, "drives.position_rad[0]");
  await page.click('[aria-label="Show drives.in on the scope"]');
  await until("both are asked for", () => server.scope?.traces.length === 2);
  assert.deepEqual(server.scope.traces, ["drives.position_rad[0]", "drives.in"]);
  await until("the figures are seen", async () => (await said(page, "#scope-traces")).includes("drives.in, V"));
  assert.match(await page.locator("#scope-traces tbody tr").first().innerText(), /1\.1/);
  assert.equal(await page.getAttribute("#scope-csv", "href"), "scope/7.csv");
  await shoot(page, "scope");
  await page.reload();
  await live(page);
  await until("both are asked for again", () => server.scope?.traces.length === 2);
  await trace(page, "drives.in");
  assert.match(await said(page, "#scope-said"), /shown already/);
  for (let i = 0; i < 6; i++) await trace(page, `drives.torque_n_m[${i}]`);
  await trace(page, "planner.paused");
  assert.match(await said(page, "#scope-said"), /8 traces at most/);
  await page.close();
});

await check("the answer to an earlier order does not clear what the page refuses", async () => {
  const page = await open(browser, address);
  await live(page);
  const hear = server.hear;
  let late = null;
  server.hear = (order, answer) => (order.do === "scope" ? (late = () => hear(order, answer)) : hear(order, answer));
  await trace(page, "drives.in");
  await until("it is asked for", () => late);
  await trace(page, "drives.in");
  assert.match(await said(page, "#scope-said"), /shown already/);
  server.hear = hear;
  late();
  await until("the answer and the figures have come", async () => (await said(page, "#scope-traces")).includes("drives.in, rad"));
  assert.match(await said(page, "#scope-said"), /shown already/);
  await page.close();
});

await check("what the dashboard refuses is said beside the scope", async () => {
  const page = await open(browser, address);
  await live(page);
  await trace(page, "nonsense");
  await until("it is said", async () => /'nonsense' is no trace/.test(await said(page, "#scope-said")));
  await page.click('[aria-label="Take nonsense away"]');
  await trace(page, "drives.in");
  await until("it is gone", async () => (await said(page, "#scope-said")) === "");
  await page.fill("#scope-window", "");
  await until("a setting that is missing is said", async () => /missing or beyond/.test(await said(page, "#scope-said")));
  await page.close();
});

await check("trigger, window, cursors, zoom and freezing go to the dashboard, by keyboard alone", async () => {
  const page = await open(browser, address);
  await live(page);
  await trace(page, "drives.position_rad[0]");
  await page.selectOption("#scope-sweep", "single");
  for (const [id, value] of [["window", "0.5"], ["level", "1.5"], ["hysteresis", "0.1"], ["pre", "25"]]) await page.fill(`#scope-${id}`, value);
  await page.selectOption("#scope-slope", "falling");
  await until("it is set", () => server.scope?.settings.trigger.slope === "falling" && server.scope.settings.pre === 0.25);
  assert.deepEqual(server.scope.settings, {
    window_ns: 500_000_000, pre: 0.25, sweep: "single", trigger: { trace: 0, slope: "falling", level: 1.5, hysteresis: 0.1 },
  });
  await until("it is drawn", async () => (await said(page, "#scope-doing")).includes("rolling"));
  const before = await drawn(page);
  await page.focus("#scope-canvas");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowLeft");
  await until("the cursors are read", async () => /A 1?.* apart 0\.5 s, 2 Hz/.test(await said(page, "#scope-reads")));
  assert.notEqual(await drawn(page), before);
  await page.keyboard.press("+");
  await until("it is zoomed", () => server.scope?.look.span_s);
  await page.keyboard.press("Home");
  await until("the cursors are gone", () => server.scope && !server.scope.look.cursors_s);
  await page.focus("#scope-freeze");
  await page.keyboard.press("Space");
  await until("it is frozen", () => server.scope?.frozen);
  assert.equal(await page.getAttribute("#scope-freeze", "aria-pressed"), "true");
  await page.click("#scope-arm");
  await until("it goes on", () => server.scope && !server.scope.frozen);
  await page.close();
});

// A scope out of sight is closed, and opened again when it is scrolled into sight; the waits allow
// for that.
await check("XY, spectrum, step response and Bode are drawn and read", async () => {
  const page = await open(browser, address);
  await live(page);
  await trace(page, "drives.position_rad[0]");
  await trace(page, "drives.in");
  await until("it is drawn", () => page.isVisible("#scope-canvas"));
  const pictures = new Set();
  for (const [mode, asked, words] of [
    ["xy", ({ xy }) => xy?.join() === "0,1", /^$/],
    ["spectrum", ({ spectrum }) => spectrum === 0, /peaks 12\.5 Hz: 3 rad.*resolution 0\.5 Hz/],
    ["step", ({ step }) => step?.input === 0 && step.output === 1, /rise 12 ms · overshoot 4\.5 % · settled within 2 % after 50 ms/],
    ["bode", ({ bode }) => bode?.join() === "0,1", /3 frequencies from 1 to 100 Hz/],
  ]) {
    await page.selectOption("#scope-mode", mode);
    await until(`${mode} is asked for`, () => server.scope && asked(server.scope.look));
    await until(`${mode} is read`, async () => words.test(await said(page, "#scope-reads")));
    await shoot(page, `scope-${mode}`);
    pictures.add(await drawn(page));
  }
  assert.equal(pictures.size, 4, "each is another picture");
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("a scope whose core ended, and a figure that is not shown, say so", async () => {
  const page = await open(browser, address);
  await live(page);
  server.scope_says = { ended: "the core has stopped; what is shown is its last", step: { Err: "the input '<b>' has no step" }, life: 1, lost: 12 };
  await trace(page, "drives.in");
  await until("the end is said", async () => /▲ the core has stopped/.test(await said(page, "#scope-ended")));
  assert.match(await said(page, "#scope-doing"), /12 cycles missing · life 2 of the core/);
  assert.equal(await said(page, "#scope-reads"), "not shown: the input '<b>' has no step");
  server.scope_says = {};
  await page.close();
});

await check("a scope that nobody sees is closed", async () => {
  const page = await open(browser, address);
  await live(page);
  await trace(page, "drives.in");
  await until("it is open", () => server.scope);
  await page.click("#layout-open");
  await page.uncheck("#layout-shown-scope");
  await until("it is closed", () => server.scope === null);
  await page.check("#layout-shown-scope");
  await until("it is open again", () => server.scope);
  await page.close();
});

const field = (name) => `[id="parameter-${name}"]`;
const parameter = (page, name) => page.locator("#parameters-table tr", { has: page.locator(field(name)) }).innerText();

await check("parameters show value, unit and limits, and are set together by keyboard", async () => {
  const page = await open(browser, address);
  await live(page);
  await until("they are seen", () => page.isVisible("#parameters"));
  assert.match(await parameter(page, "pid.kp"), /pid\.kp\s+6\s[^]*V\/rad[^]*a number from 0 to 100 · what kp does/);
  assert.ok(await page.isDisabled("#parameters-apply"), "nothing is changed");
  await page.fill(field("pid.kp"), "7.5");
  await page.selectOption(field("gate.open"), "false");
  assert.equal(await said(page, "#parameters-apply"), "Apply 2");
  await page.focus(field("pid.kp"));
  await page.keyboard.press("Enter");
  await until("they are set", async () => /7\.5/.test(await page.locator("#parameters-table td.number").first().innerText()));
  assert.match(await parameter(page, "gate.open"), /false/);
  assert.ok(await page.isDisabled("#parameters-apply"));
  await shoot(page, "parameters");
  await page.close();
});

await check("a value that is refused is said beside its field, and nothing is set", async () => {
  const page = await open(browser, address);
  await live(page);
  await until("they are seen", () => page.isVisible("#parameters"));
  await page.fill(field("pid.ki"), "5000");
  await page.fill(field("pid.kp"), "8");
  await page.click("#parameters-apply");
  await until("it is said", async () => /▲ 'pid\.ki' is 5000; expected/.test(await parameter(page, "pid.ki")));
  assert.equal(await page.getAttribute(field("pid.ki"), "aria-invalid"), "true");
  assert.equal(await page.evaluate("document.activeElement.id"), "parameter-pid.ki");
  assert.match(await parameter(page, "pid.kp"), /7\.5/);
  server.tell(fake.tunables());
  assert.equal(await page.inputValue(field("pid.kp")), "8", "what people wrote stays");
  await page.click("#parameters-undo");
  assert.equal(await page.inputValue(field("pid.kp")), "7.5");
  await page.check("#parameters-save");
  await page.fill(field("pid.ki"), "61");
  await page.click("#parameters-apply");
  await until("it is saved", async () => (await said(page, "#parameters-said")) === "pid.ki=61 written to 'robot.yaml'");
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("without a token parameters are shown and cannot be set", async () => {
  const page = await open(browser, address.split("#")[0]);
  await live(page);
  await until("they are seen", () => page.isVisible("#parameters"));
  assert.ok((await page.isDisabled(field("pid.kp"))) && (await page.isDisabled("#parameters-apply")));
  await page.close();
});

for (const [name, viewport, colorScheme] of [["dark", undefined, "dark"], ["phone", PHONE, "light"]]) {
  await check(`the scope fits (${name})`, async () => {
    const page = await open(browser, address, { colorScheme, ...(viewport ? { viewport } : {}) });
    await live(page);
    await trace(page, "drives.position_rad[0]");
    await trace(page, "drives.in");
    await page.selectOption("#scope-sweep", "auto");
    await until("it is drawn", async () => (await said(page, "#scope-traces")).includes("drives.in, V"));
    await until("it fits", () => page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
    await page.locator("#scope").scrollIntoViewIfNeeded();
    await shoot(page, `scope-${name}`);
    await page.close();
  });
}

await browser.close();
server.close();
server.closeAllConnections();
process.exit(0);
