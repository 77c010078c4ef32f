// The page against a real run of flows: people see what the nodes of an API do, and follow a packet
// through them. `node api.mjs ADDRESS`, as `sinew run` printed it.

import assert from "node:assert/strict";
import { check, DESKTOP, launch, open, PHONE, said, shoot, until } from "./browser.mjs";

/** Between two rounds of requests. */
const PAUSE_MS = 60;

const address = process.argv[2];
const browser = await launch();
const page = await open(browser, address);
const node = (page, name) => page.locator(`.flow-node[data-node="${name}"]`);

await until("it is connected", async () => (await said(page, "#link")) === "connected");
const api = await until("the API has an address", () => page.locator("#domains a").first().getAttribute("href").catch(() => null));

let isAsking = true;
const ask = (path, options) => fetch(api + path, options).then((answer) => answer.status);
const asking = (async () => {
  const seen = new Set();
  while (isAsking) {
    seen.add(await ask("/users/ada")).add(await ask("/users/bob")).add(await ask("/nowhere"));
    seen.add(await ask("/users", { method: "POST", body: '{"name":"eve"}', headers: { "content-type": "application/json" } }));
    await new Promise((later) => setTimeout(later, PAUSE_MS));
  }
  return [...seen].sort();
})();

await check("the page shows the API, and no panel that has nothing to show", async () => {
  assert.deepEqual(await page.locator(".panel:visible h2").allTextContents(), ["Graph", "Domains", "Events"]);
  assert.doesNotMatch(await page.locator("body").innerText(), /\b(core|stop|reset|arm)\b/i);
  assert.equal(await node(page, "finds_one").count(), 0, "tests have no part in a run");
});

await check("nodes show their packets and errors, and the bar the flows", async () => {
  await until("the router has a rate", async () => /[1-9]\d* \/s/.test(await node(page, "router").textContent()));
  await until("who fails counts it", async () => /✕ \d+ error/.test(await node(page, "nobody").textContent()));
  await until("the bar counts flows", async () => /flows[1-9]\d* \/s/.test(await said(page, "#facts")));
});

await check("a click on a node shows the way of a packet that came to it", async () => {
  await node(page, "nobody").click();
  const steps = () => page.locator("#way tbody tr:not(.below)").evaluateAll((all) => all.map((row) => row.cells[1].innerText + " " + row.cells[2].innerText));
  // The page draws what it has so far: the packet may still be under way.
  const rows = await until("a whole way is there", async () => {
    const seen = await steps();
    return seen.length === 4 && !seen.some((step) => step.endsWith("…")) && seen;
  });
  assert.deepEqual(rows, ["listener begins", "router in → out[1]", "is_known in → out[1]", "nobody ✕ in → error"]);
  assert.match(await page.locator("#way .packet").last().textContent(), /no user 'bob'/);
  const met = await page.locator('.flow-link[data-met="yes"] title').allTextContents();
  assert.deepEqual(met.map((title) => title.split(":")[0]), ["listener.out to router.in", "router.out[1] to is_known.in", "is_known.out[1] to nobody.in"]);
  await shoot(page, "api-light");
});

await check("from the source on every flow is a way", async () => {
  await node(page, "listener").click();
  const ends = () => page.locator("#ways button").allTextContents();
  await until("some ways are there", async () => (await ends()).length > 2);
});

for (const [name, viewport, colorScheme] of [["dark", DESKTOP, "dark"], ["phone", PHONE, "light"], ["phone-dark", PHONE, "dark"]]) {
  const other = await open(browser, address, { viewport, colorScheme });
  await until("it is connected", async () => (await said(other, "#link")) === "connected");
  await node(other, "created").click();
  await until("a way is there", async () => (await other.locator("#way tbody tr").count()) === 8);
  assert.ok(await other.evaluate("document.documentElement.scrollWidth <= innerWidth"), name);
  await shoot(other, `api-${name}`);
  await other.close();
}

await check("who asked got the answers of the API, and the page is not broken", async () => {
  isAsking = false;
  assert.deepEqual(await asking, [200, 201, 404]);
  assert.deepEqual(page.wrongs, []);
});

await browser.close();
process.exit(0);
