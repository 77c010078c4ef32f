// The page against a real run of graphs/axis: a machine that is not an arm, seen field by field, on
// the scope, and tuned. `node axis.mjs ADDRESS`, as `sinew run` printed it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { accessible } from "./access.mjs";
import { check, launch, open, said, shoot, until } from "./browser.mjs";

const address = process.argv[2];
const browser = await launch();
const page = await open(browser, address);
const field = '[id="parameter-pid.kp"]';
const row = async (table, word) => (await page.locator(`${table} tr:visible`).allInnerTexts()).find((text) => text.includes(word)) ?? "";

await check("there is no panel of an arm, and its place is taken", async () => {
  await until("it is connected", async () => (await said(page, "#link")) === "connected");
  assert.ok((await page.isHidden("#arm")) && (await page.isHidden("#drives-panel")) && (await page.isHidden("#camera")));
  assert.ok(await page.locator("#first #messages").isVisible());
});

await check("every message has its value and unit", async () => {
  await until("the motor's place comes", async () => /motor\.position[^]*-?[−0-9.]+\s+rad[^]*● new/.test(await row("#messages-table", "motor.position")));
  assert.match(await row("#messages-table", "pid.out"), /\sV\s/);
  const before = await row("#messages-table", "path.position");
  await until("it moves", async () => (await row("#messages-table", "path.position")) !== before);
});

await check("the scope shows it at full rate, and gives it away as a file", async () => {
  for (const name of ["path.position", "motor.position"]) {
    await page.fill("#scope-name", name);
    await page.press("#scope-name", "Enter");
  }
  await until("it has figures", async () => /motor\.position, rad\s+[−0-9.]+/.test(await row("#scope-traces", "motor.position")));
  await page.selectOption("#scope-mode", "bode");
  await until("a figure or the reason why not is read", async () => (await said(page, "#scope-reads")).length > 10);
  await page.selectOption("#scope-mode", "time");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#scope-csv")]);
  const lines = (await readFile(await download.path(), "utf8")).split("\n");
  assert.equal(lines[0], "time_s,path.position (rad),motor.position (rad),missing_cycles,life");
  assert.ok(lines.length > 100, `${lines.length} lines`);
  await shoot(page, "axis");
});

await check("a parameter is set while it runs; one beyond its limit is refused beside its field", async () => {
  await until("parameters are seen", () => page.isVisible("#parameters"));
  await page.fill(field, "7");
  await page.press(field, "Enter");
  await until("it is set", async () => /pid\.kp\s+7\s/.test(await row("#parameters-table", "pid.kp")));
  await page.fill(field, "nonsense");
  await page.press(field, "Enter");
  await until("it is refused", async () => /▲/.test(await row("#parameters-table", "pid.kp")));
  assert.match(await row("#parameters-table", "pid.kp"), /pid\.kp\s+7\s/);
  await page.click("#parameters-undo");
});

await accessible(browser, address, "a real run", async (page) => {
  await until("it is connected", async () => (await said(page, "#link")) === "connected");
  await until("parameters are seen", () => page.isVisible("#parameters"));
  await page.fill("#scope-name", "path.position");
  await page.press("#scope-name", "Enter");
  await until("it has figures", async () => /path\.position, rad/.test(await said(page, "#scope-traces")));
});

await check("a scope says that the core has stopped", async () => {
  await page.keyboard.press("Escape");
  await until("it is said", async () => /▲ the core has stopped/.test(await said(page, "#scope-ended")));
});

await browser.close();
process.exit(0);
