// The page against a real run: people see the arm move, stop it, see the brakes close, start it
// again, and lose and regain the dashboard. `node dashboard.mjs ADDRESS`, as `sinew run` printed it.

import assert from "node:assert/strict";
import { check, DESKTOP, launch, marks, open, PHONE, pixels, said, shoot, until } from "./browser.mjs";

/** After its start a browser is busy with its own windows for a while. */
const SETTLE_MS = 2000;
/** Steps of the page, each after the one before: the code that draws is loaded beside the
 * connection. */
const WAYS = [
  ["script", "open", "hello", "context", "shaders", "drawn", "moving"],
  ["script", "code", "context"],
];

const address = process.argv[2];
const began = performance.now();
const browser = await launch();
console.log(`measured: the browser was there after ${(performance.now() - began).toFixed(0)} ms, which count for nothing`);
await new Promise((settled) => setTimeout(settled, SETTLE_MS));
const page = await open(browser, address);

const phase = (word) => until(`the core is ${word}`, async () => (await said(page, "#phase")) === word);
const brakes = () => page.locator(".brake").allTextContents();
const drives = () => page.locator("#drives tbody").innerText();

// This check is first, because every other look at the page costs the page time.
await check("the page marks its way to the first moving picture, in order", async () => {
  const at_ms = await until("the arm is drawn elsewhere", async () => {
    const found = await marks(page);
    return "moving" in found && found;
  });
  for (const way of WAYS) {
    const times = way.map((step) => at_ms[step]);
    assert.deepEqual(times, times.toSorted((a, b) => a - b), `the steps ${way.join(", ")} came at ${times.join(", ")}`);
  }
  console.log(`measured: ${Object.entries(at_ms).map(([step, ms]) => `${step} ${ms.toFixed(0)}`).join(", ")} ms after the navigation began`);
});

await check("the page says that it is connected and that the core runs", async () => {
  await until("it is connected", async () => (await said(page, "#link")) === "connected");
  await phase("running");
});

await check("the drives are enabled, the brakes open, and the arm moves", async () => {
  await until("all brakes are open", async () => (await brakes()).length === 6 && (await brakes()).every((word) => word === "open"));
  const [figures, picture] = [await drives(), await pixels(page)];
  await until("the joints' figures change", async () => (await drives()) !== figures);
  await until("the picture changes", async () => (await pixels(page)) !== picture);
});

await check("figures of links and cycles are there", async () => {
  await until("a link has a rate", async () => /k\/s/.test(await page.locator("#graph").textContent()));
  await until("cycles are counted", async () => /\d{3}/.test(await said(page, "#latency-figures")));
  // A cycle that crosses two processes takes more than a microsecond on any machine.
  const p50 = page.locator("#latency-figures tbody td").nth(1);
  await until("half of the latencies are known", async () => /[µm]s$/.test(await p50.textContent()));
});

const bytes = await page.evaluate(() => {
  const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return files.map(({ decodedBodySize }) => decodedBodySize).reduce((a, b) => a + b, 0);
});
console.log(`measured: page and scripts ${bytes} bytes`);

await check("the camera shows pictures", async () => {
  if (await page.isHidden("#camera")) return console.log("not there: the graph links no camera to the dashboard");
  await until("there is one", async () => (await said(page, "#camera-age")) === "live");
});

await shoot(page, "running-light");

await check("the stop key stops the core, the brakes close, and the page says how long it took", async () => {
  await page.keyboard.press("Escape");
  await until("all brakes are closed", async () => (await brakes()).every((word) => word === "closed"));
  await phase("held");
  await until("the times are there", async () => /safe outputs after .* brakes closed after/.test(await said(page, "#stop-report")));
  console.log(`measured: ${await said(page, "#stop-report")}`);
  await shoot(page, "held-light");
});

await check("reset starts the core again", async () => {
  await page.click("#reset");
  await phase("running");
  await until("the brakes are open", async () => (await brakes()).every((word) => word === "open"));
  const figures = await drives();
  await until("the arm moves", async () => (await drives()) !== figures);
});

await check("a killed dashboard is missed, and found again", async () => {
  const row = page.locator("#domains tr", { has: page.locator("th", { hasText: /^dashboard/ }) });
  const pid = Number(await row.locator("td").nth(1).textContent());
  assert.ok(pid > 1, `the table shows the process: ${pid}`);
  process.kill(pid, "SIGKILL");
  await until("the page says so", async () => /Disconnected/.test(await said(page, "#banner")));
  await until("it is connected again", async () => (await said(page, "#link")) === "connected");
  await until("it is another process", async () => Number(await row.locator("td").nth(1).textContent()) !== pid);
  await until("orders are possible", () => page.isEnabled("#stop"));
});

await check("a page that was lost for a while is not broken", async () => {
  const wrongs = page.wrongs.filter((wrong) => !wrong.includes("WebSocket"));
  assert.deepEqual(wrongs, []);
});

for (const [name, viewport, colorScheme] of [["dark", DESKTOP, "dark"], ["phone", PHONE, "light"], ["phone-dark", PHONE, "dark"]]) {
  const other = await open(browser, address, { viewport, colorScheme });
  await until("it is connected", async () => (await said(other, "#link")) === "connected");
  await until("it has figures", async () => /\d{3}/.test(await said(other, "#latency-figures")));
  await shoot(other, `running-${name}`);
  await other.close();
}

await browser.close();
process.exit(0);
