// The page against a real run: people see the arm move, stop it, see the brakes close, start it
// again, and lose and regain the dashboard. `node dashboard.mjs ADDRESS`, as `sinew run` printed it.

import assert from "node:assert/strict";
import { check, DESKTOP, launch, open, PHONE, pixels, said, shoot, until } from "./browser.mjs";

const address = process.argv[2];
const browser = await launch();
const page = await open(browser, address);

const phase = (word) => until(`the core is ${word}`, async () => (await said(page, "#phase")) === word);
const brakes = () => page.locator(".brake").allTextContents();
const drives = () => page.locator("#drives tbody").innerText();

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

const size = await page.evaluate(() => {
  const bytes = (entry) => entry.decodedBodySize;
  const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return { bytes: files.map(bytes).reduce((a, b) => a + b, 0), moving_ms: performance.getEntriesByName("moving")[0]?.startTime };
});
console.log(`measured: page and scripts ${size.bytes} bytes, first moving frame after ${size.moving_ms?.toFixed(0)} ms`);

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
