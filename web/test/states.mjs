// States that no real run shows on demand: hostile words, old data, lost connections, a browser
// without WebGL. Against made-up data, in a real browser. `node states.mjs FOLDER`, with the page
// bundled there.

import assert from "node:assert/strict";
import { accessible } from "./access.mjs";
import { check, launch, open, PHONE, pixels, said, until } from "./browser.mjs";
import * as fake from "./fake.mjs";

const server = await fake.serve(process.argv[2]);
const silence = fake.run(server);
const root = `http://127.0.0.1:${server.address().port}/`;
const address = `${root}#token=${fake.TOKEN}`;
const browser = await launch();

const live = (page) => until("the page is connected", async () => (await said(page, "#link")) === "connected");

await check("the token leaves the address bar", async () => {
  const page = await open(browser, address);
  await live(page);
  assert.equal(page.url(), root);
  await page.reload();
  await live(page);
  assert.equal(await page.isDisabled("#stop"), false, "the token is kept for this tab");
  await page.close();
});

await check("without a token orders are disabled, and a sentence says where it is", async () => {
  const page = await open(browser, root);
  await live(page);
  assert.ok(await page.isDisabled("#stop"));
  assert.ok(await page.isDisabled("#path"));
  assert.match(await said(page, "#notice"), /sinew run/);
  await page.keyboard.press("Escape");
  assert.equal(await said(page, "#phase"), "running");
  await page.close();
});

await check("a token of another run is forgotten", async () => {
  const page = await open(browser, `${root}#token=wrong`);
  await until("the notice is seen", () => page.isVisible("#notice"));
  assert.ok(await page.isDisabled("#stop"));
  await page.close();
});

await check("whatever the server says stays text", async () => {
  const hostile = `<img src=x onerror="window.owned=1"><script>window.owned=1</script>`;
  const greet = server.greet;
  server.greet = (tell) => {
    const hello = fake.hello();
    hello.graph = hello.arm.name = hello.picture.nodes[0].name = hello.picture.domains[0].name = hostile;
    hello.signals[3].labels = Array(6).fill(hostile);
    const status = fake.status();
    status.status.domains.forEach((domain) => (domain.last_reason = hostile));
    [hello, status, { type: "events", events: [fake.event(1, "output", hostile, hostile)], missed: 0 }].forEach(tell);
  };
  const page = await open(browser, address);
  await until("the event is seen", async () => (await said(page, "#events")).includes(hostile));
  assert.equal(await page.evaluate("window.owned"), undefined);
  assert.equal(await page.evaluate("document.querySelectorAll('main img, main script').length"), 0);
  assert.deepEqual(page.wrongs, []);
  server.greet = greet;
  await page.close();
});

await check("a message that cannot be read is said to be so, and the page goes on", async () => {
  const page = await open(browser, address);
  await live(page);
  server.tell(Buffer.from("\u0001\u0001garbage that is no frame"));
  await until("the page says so", async () => (await said(page, "#stop-report")).includes("cannot read"));
  const before = await said(page, "#tool");
  await until("the arm moves on", async () => (await said(page, "#tool")) !== before);
  await page.close();
});

await check("a lost connection is said, nothing pretends to be live, and it comes back", async () => {
  const page = await open(browser, address);
  await live(page);
  server.away = true;
  server.drop();
  await until("the page says so", async () => /Disconnected/.test(await said(page, "#banner")));
  assert.ok(await page.isDisabled("#stop"));
  server.away = false;
  await live(page);
  await until("orders are possible again", () => page.isEnabled("#stop"));
  await page.close();
});

await check("a stop of the past is not told of a core that runs", async () => {
  const greet = server.greet;
  const stop = { type: "stop", reason: "long ago", asked_ms: 1, safe_output_us: 1100, brakes_closed_us: 43000, at_rest_us: 51000 };
  server.greet = (tell) => [fake.hello(), stop, fake.status()].forEach(tell);
  const page = await open(browser, address);
  await until("the core runs", async () => (await said(page, "#phase")) === "running");
  assert.equal(await page.isVisible("#stop-report"), false);
  server.greet = greet;
  await page.close();
});

await check("events that are missing are counted, and no others", async () => {
  const greet = server.greet;
  const events = (...numbers) => ({ type: "events", events: numbers.map((n) => fake.event(n, "output", "log", `line ${n}.`)), missed: 70 });
  const log = () => said(page, "#events");
  server.greet = (tell) => [fake.hello(), fake.status(), events(71, 72)].forEach(tell);
  const page = await open(browser, address);
  await until("the events are seen", async () => (await log()).includes("line 72."));
  assert.match(await log(), /^70 earlier events are not shown/);
  server.greet = (tell) => [fake.hello(), fake.status(), events(72, 73)].forEach(tell);
  server.drop();
  await until("the next one is seen", async () => (await log()).includes("line 73."));
  assert.doesNotMatch(await log(), /kept no more/);
  server.tell(events(80));
  await until("it is said", async () => (await log()).includes("6 events are kept no more"));
  server.greet = greet;
  await page.close();
});

await check("a browser without WebGL shows the arm flat and says so", async () => {
  const before = () => {
    const real = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind.startsWith("webgl") ? null : real.call(this, kind, ...rest);
    };
  };
  const page = await open(browser, address, { before });
  await until("the page says so", async () => /no WebGL/.test(await said(page, "#arm-notice")));
  const first = await pixels(page);
  await until("the arm moves", async () => (await pixels(page)) !== first);
  await page.close();
});

await accessible(browser, address, "the robot", async (page) => {
  await live(page);
  await page.fill("#scope-name", "drives.in");
  await page.press("#scope-name", "Enter");
  await until("figures of the trace come", async () => (await said(page, "#scope-traces")).includes("drives.in, rad"));
  await until("parameters come", () => page.isVisible("#parameters"));
  await page.click("#layout-open");
});

await check("the keyboard stops the core and turns the view of the arm", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.keyboard.press("Escape");
  await until("it is held", async () => (await said(page, "#phase")) === "held");
  assert.match(await until("the times are there", () => said(page, "#stop-report")), /safe outputs after 1.10 ms, brakes closed after 43.0 ms/);
  const still = await until("the arm stands still", async () => {
    const [one, other] = [await pixels(page), await pixels(page)];
    return one === other && one;
  });
  await page.focus("#arm-canvas");
  await page.keyboard.press("ArrowLeft");
  await until("the view turns", async () => (await pixels(page)) !== still);
  await page.click("#reset");
  await until("it runs", async () => (await said(page, "#phase")) === "running");
  await page.close();
});

await check("on a phone nothing is wider than the screen", async () => {
  const page = await open(browser, address, { viewport: PHONE });
  await live(page);
  await until("it fits", () => page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
  await page.close();
});

await check("of events only what went wrong is read aloud, and not what was there before", async () => {
  const page = await open(browser, address);
  await live(page);
  const aloud = () => said(page, "#events-aloud");
  await until("the events are seen", async () => (await said(page, "#events")).includes("restarting"));
  assert.equal(await aloud(), "");
  const newest = 6;
  server.tell({ type: "events", events: [fake.event(newest + 1, "output", "log", "a line")], missed: 0 });
  const wrong = [fake.event(newest + 2, "alarm", "monitor", "too hot"), fake.event(newest + 3, "output", "log", "another")];
  server.tell({ type: "events", events: wrong, missed: 0 });
  await until("the alarm is read", async () => (await aloud()) === "monitor alarm: too hot");
  server.tell({ type: "events", events: [fake.event(newest + 4, "alarm", "monitor", "hotter")], missed: 0 });
  await until("it is seen", async () => (await said(page, "#events")).includes("hotter"));
  assert.equal(await aloud(), "monitor alarm: too hot", "many in a row are not read one by one");
  await page.close();
});

await check("while everything moves nothing is read aloud again and again", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.evaluate(() => {
    [window.aloud, window.moves] = [[], 0];
    new MutationObserver((changes) => {
      for (const { target } of changes) {
        const it = target instanceof Element ? target : target.parentElement;
        if (it?.closest("#tool")) window.moves += 1;
        const live = it?.closest("[aria-live], [role=status], [role=alert], [role=log], output");
        if (live && live.getAttribute("aria-live") !== "off") window.aloud.push(live.id);
      }
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
  });
  await until("the arm has moved on", () => page.evaluate("window.moves > 60"));
  assert.deepEqual(await page.evaluate("window.aloud"), []);
  await page.close();
});

/** Relative luminance by WCAG 2.1. */
function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

for (const colorScheme of ["light", "dark"]) {
  await check(`in the ${colorScheme} theme every text has the contrast of WCAG AA`, async () => {
    const page = await open(browser, address, { colorScheme });
    const style = (name) => page.evaluate((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(), name);
    const inks = ["--ink", "--muted", "--good", "--busy", "--warn", "--bad"];
    const pairs = inks.flatMap((ink) => ["--panel", "--well"].map((on) => [ink, on, 4.5]));
    pairs.push(["--bad", "--bad-well", 4.5], ["--warn", "--warn-well", 4.5], ["--stop-ink", "--stop", 4.5]);
    for (const series of [1, 2, 3, 4, 5, 6, 7, 8]) pairs.push([`--series-${series}`, "--panel", 3]);
    for (const [ink, on, least] of pairs) {
      const got = contrast(await style(ink), await style(on));
      assert.ok(got >= least, `${ink} on ${on}: ${got.toFixed(2)}, expected ${least}`);
    }
    await page.close();
  });
}

await check("what came of an order goes again", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.click("#pause");
  await until("the answer is shown", async () => (await said(page, "#planner-said")) === "pause: done");
  await until("it is gone", async () => (await said(page, "#planner-said")) === "");
  await page.close();
});

await check("old data is called old: read aloud once, its age shown all the time", async () => {
  const page = await open(browser, address);
  await live(page);
  await page.evaluate(() => {
    window.aloud = [];
    const says = document.querySelector("#banner [role=alert]");
    new MutationObserver(() => window.aloud.push(says.textContent)).observe(says, { childList: true, characterData: true, subtree: true });
  });
  silence();
  await until("the page says so", async () => /The data is old/.test(await said(page, "#banner")));
  const ages = new Set();
  await until("its age is shown anew", async () => ages.add(await said(page, "#banner-age")).size > 4);
  assert.deepEqual(await page.evaluate("window.aloud"), ["▲ The data is old. What you see is not the machine as it is."]);
  await page.close();
});

await browser.close();
server.close();
server.closeAllConnections();
process.exit(0);
