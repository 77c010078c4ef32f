// The page of a graph of flows without a core, against made-up data: `node flows.mjs FOLDER`, with
// the page bundled there.

import assert from "node:assert/strict";
import { accessible } from "./access.mjs";
import { check, DESKTOP, launch, open, PHONE, said, shoot, until } from "./browser.mjs";
import * as fake from "./fake.mjs";
import * as flows from "./fake_flows.mjs";

const server = await fake.serve(process.argv[2]);
const root = `http://127.0.0.1:${server.address().port}/`;
const address = `${root}#token=${fake.TOKEN}`;
const browser = await launch();

const graph = flows.hello();
const busy = { packets: 5000, packets_per_s: 120, time_ns_p50: 90_000, time_ns_p99: 1_230_000, time_ns_max: 9e6 };
let figures = { listener: busy, router: busy, check_3: { ...busy, packets_per_s: 40, errors: 7 } };
let orders = [];

server.greet = (tell) => [graph, flows.status(graph, figures), flows.noCycles].forEach(tell);
server.hear = (order, answer) => {
  if (order.do === "ping") return answer({ type: "pong", at: order.at });
  if (order.do === "view") return;
  if (order.do !== "check") orders.push(order);
  answer({ type: "done", id: order.id, text: "done" });
};
let frames = 0;
const motion = () => {
  const frame = Buffer.alloc(18);
  frame[0] = frame[1] = 1;
  frame.writeUInt32LE((frames += 1), 4);
  return frame;
};
setInterval(() => server.tell(motion()), 33);
setInterval(() => server.tell(flows.status(graph, figures)), 500);

const live = (page) => until("the page is connected", async () => (await said(page, "#link")) === "connected");
const node = (page, name) => page.locator(`.flow-node[data-node="${name}"]`);
const met = (page, what) => page.locator(`.${what}[data-met="yes"]`).evaluateAll((all) => all.map((one) => one.querySelector("title").textContent.split(/[:,]/)[0]));
const tell = (...lines) => lines.flat().forEach(server.tell);

await check("a page without a core has no empty panel and says no word of one", async () => {
  const page = await open(browser, address);
  await live(page);
  const titles = await page.locator(".panel:visible h2").allTextContents();
  assert.deepEqual(titles, ["Graph", "Domains", "Events"]);
  assert.doesNotMatch(await page.locator("body").innerText(), /\b(core|stop|reset|arm|drives|cycles?|overruns|machine)\b/i);
  assert.equal(await page.isVisible("#stop"), false);
  await page.keyboard.press("Escape");
  assert.deepEqual(orders, [], "the key has nothing to stop");
  await page.close();
});

await check("it is not called old because nothing cycles", async () => {
  const page = await open(browser, address);
  await live(page);
  const seen = frames;
  await until("a second has passed", () => frames > seen + 30);
  assert.equal(await said(page, "#link"), "connected");
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("nodes of flows show their rate, P99 and errors, and the bar those of the graph", async () => {
  const page = await open(browser, address);
  await live(page);
  const text = async (name) => (await node(page, name).locator("text").allTextContents()).join("|");
  assert.equal(await text("router"), "router|120 /s · 1.23 ms|");
  assert.equal(await text("check_3"), "check_3|40 /s · 1.23 ms|✕ 7 errors");
  assert.equal(await text("answer_0"), "answer_0|0.0 /s|snippet");
  assert.match(await said(page, "#facts"), /flows120 \/s/);
  assert.equal(await node(page, "a_test").count(), 0, "a test has no part in the run");
  await page.close();
});

await check("an error since the last look is marked", async () => {
  const page = await open(browser, address);
  await live(page);
  const state = () => node(page, "check_3").getAttribute("data-state");
  assert.equal(await state(), "good");
  figures = { ...figures, check_3: { ...figures.check_3, errors: 8 } };
  await until("it is marked", async () => (await state()) === "bad");
  await until("the mark goes again", async () => (await state()) === "good");
  await page.close();
});

await check("a link says a rate only where no other leads to the same node", async () => {
  const page = await open(browser, address);
  await live(page);
  const titles = await page.locator(".flow-link title").allTextContents();
  const of = (link) => titles.find((title) => title.startsWith(link));
  assert.equal(of("router.out[3]"), "router.out[3] to check_3.in: 40 /s");
  assert.match(of("check_3.error"), /not known/);
  assert.equal(of("listener.out"), "listener.out to router.in: 120 /s", "a test, which also leads there, does not run");
  assert.deepEqual(await page.locator(".flow-link text").allTextContents().then((all) => all.filter((text) => text.includes("/s"))), ["[3] 40 /s"]);
  await page.close();
});

await check("thirty nodes of flows stand from left to right, and none upon another", async () => {
  const page = await open(browser, address);
  await live(page);
  const boxes = await page.locator(".flow-node .node").evaluateAll((all) => all.map((one) => one.getBBox()).map(({ x, y, width, height }) => ({ x, y, width, height })));
  assert.equal(boxes.length, 30);
  for (const [at, one] of boxes.entries()) {
    for (const other of boxes.slice(at + 1)) {
      const apart = one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y;
      assert.ok(apart, `${JSON.stringify(one)} and ${JSON.stringify(other)}`);
    }
  }
  const ends = await page.locator(".flow-link .link").evaluateAll((all) => all.map((one) => [one.getPointAtLength(0).x, one.getPointAtLength(one.getTotalLength()).x]));
  assert.ok(ends.every(([from, to]) => from < to));
  await shoot(page, "flows-30");
  await page.close();
});

await check("a click on a node shows the ways of packets, in a table and in the graph", async () => {
  const page = await open(browser, address);
  await live(page);
  orders = [];
  await node(page, "check_3").click();
  await until("a tap is asked for", () => orders.length > 0);
  const { do: what, domain, node: name, token } = orders[0];
  assert.deepEqual([what, domain, name, token], ["tap", "api", "check_3", fake.TOKEN]);
  assert.match(await said(page, "#flow-node-figures"), /errors8.*P991\.23 ms/);
  assert.match(await said(page, "#ways-says"), /Waiting for a packet/);
  const hostile = '{"name":"<img src=x onerror=window.owned=1>"}';
  tell(flows.way(17, ["router", "out[3]", "{}"], ["check_3", "error", '"no name"'], ["failed", "out", hostile]));
  await until("the way is there", async () => (await page.locator("#way tbody tr").count()) === 8);
  const rows = await page.locator("#way tbody tr").evaluateAll((all) => all.map((row) => row.innerText.split(/\s*\t\s*/).join("|")));
  assert.deepEqual(rows, ["0|listener|begins|–", '{"path":"/"}', "100 µs|router|in → out[3]|50.0 µs", "{}",
    "200 µs|check_3|✕ in → error|50.0 µs", '"no name"', "300 µs|failed|in → reply|50.0 µs", hostile]);
  assert.deepEqual(await met(page, "flow-node"), ["listener", "router", "failed", "check_3"]);
  assert.deepEqual(await met(page, "flow-link"), ["listener.out to router.in", "router.out[3] to check_3.in", "check_3.error to failed.in"]);
  assert.equal(await page.evaluate("window.owned"), undefined);
  await shoot(page, "flows-way");

  // A flow that does not come to the node is a late line of another tap.
  tell(flows.way(18, ["router", "out[1]", "{}"], ["check_1", "out", "{}"], ["answer_1", "out", "{}"]));
  tell(flows.way(19, ["router", "out[3]", "{}"], ["check_3", "out", "{}"], ["answer_3", "out", "{}"]));
  const ways = () => page.locator("#ways button").allTextContents();
  await until("the next is there", async () => (await ways()).length === 2);
  assert.deepEqual(await ways(), ["19 · 350 µs · 4 nodes", "✕ 17 · 350 µs · 4 nodes"]);
  await page.locator("#ways button").first().click();
  await until("it is the one that is marked", async () => (await met(page, "flow-link")).includes("check_3.out to answer_3.in"));

  for (let flow = 20; flow < 40; flow += 1) tell(flows.way(flow, ["check_3", "out", "{}"]));
  await until("the newest is there", async () => (await ways())[0]?.startsWith("39"));
  assert.equal((await ways()).length, 6, "no more are kept");
  assert.ok((await ways()).at(-1).startsWith("19"), "the chosen one stays");

  await page.click("#flow-node-close");
  await until("the tap ends", () => orders.at(-1).do === "untap");
  assert.equal(await page.isVisible("#flow-node"), false);
  await until("nothing is marked", async () => (await page.locator('[data-met="yes"]').count()) === 0);
  assert.deepEqual(page.wrongs, []);
  await page.close();
});

await check("the keyboard opens a node and closes it", async () => {
  const page = await open(browser, address);
  await live(page);
  orders = [];
  await node(page, "listener").focus();
  await page.keyboard.press("Enter");
  await until("a tap is asked for", () => orders.length > 0);
  assert.equal(orders[0].node, "listener");
  assert.equal(await node(page, "listener").getAttribute("aria-pressed"), "true");
  await page.keyboard.press("Escape");
  await until("it is closed", () => page.isHidden("#flow-node"));
  await page.close();
});

await check("a tap that ends says why, and is asked for again", async () => {
  const page = await open(browser, address);
  await live(page);
  orders = [];
  await node(page, "router").click();
  await until("a tap is asked for", () => orders.length === 1);
  tell({ type: "untapped", text: "the domain's process has ended" });
  await until("it says why", async () => (await said(page, "#ways-says")) === "the domain's process has ended");
  await until("it asks again", () => orders.length === 2);
  server.drop();
  await until("it asks again after a lost connection", () => orders.length === 3);
  assert.equal(orders[2].node, "router");
  await page.close();
});

await check("without a token no tap is asked for, and a sentence says so", async () => {
  const page = await open(browser, root);
  await live(page);
  orders = [];
  await node(page, "router").click();
  await until("it says so", async () => /those who have the token/.test(await said(page, "#ways-says")));
  assert.match(await said(page, "#flow-node-figures"), /rate/);
  assert.deepEqual(orders, []);
  await page.close();
});

for (const [name, viewport, colorScheme] of [["phone", PHONE, "light"], ["dark", DESKTOP, "dark"]]) {
  await check(`nothing is wider than the screen (${name})`, async () => {
    const page = await open(browser, address, { viewport, colorScheme });
    await live(page);
    await node(page, "check_3").click();
    tell(flows.way(17, ["router", "out[3]", "{}"], ["check_3", "error", `"${"long ".repeat(200)}"`], ["failed", "out", "{}"]));
    await until("the way is there", async () => (await page.locator("#way tbody tr").count()) === 8);
    assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
    await shoot(page, `flows-${name}`);
    await page.close();
  });
}

await accessible(browser, address, "flows", async (page) => {
  await live(page);
  await node(page, "check_3").click();
  tell(flows.way(18, ["router", "out[3]", "{}"], ["check_3", "error", '"no"'], ["failed", "out", "{}"]));
  await until("the way is there", async () => (await page.locator("#way tbody tr").count()) > 4);
});

await browser.close();
server.close();
server.closeAllConnections();
process.exit(0);
