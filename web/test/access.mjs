// Whether people can use the page who see little, use a screen reader, or have only a keyboard or a
// phone. axe judges; what it does not check is checked here.

import assert from "node:assert/strict";
import axe from "axe-core";
import { check, DESKTOP, open, PHONE, shoot, until } from "./browser.mjs";

const SCREENS = { desktop: DESKTOP, phone: PHONE, "small phone": { width: 360, height: 640 } };
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/** More stops than any page has: if there are more, the focus does not come round. */
const STOPS_MAX = 300;

/** Checks a page on each screen, in both schemes; `ready` waits until everything is on it. */
export async function accessible(browser, address, name, ready) {
  for (const [screen, viewport] of Object.entries(SCREENS)) {
    for (const colorScheme of ["light", "dark"]) {
      await check(`the page of ${name} is for all, ${colorScheme}, on a ${screen}`, async () => {
        const page = await open(browser, address, { viewport, colorScheme, touch: viewport !== DESKTOP });
        await ready(page);
        await shoot(page, `access-${name}-${screen}-${colorScheme}`.replaceAll(" ", "-"));
        assert.deepEqual(await violations(page), []);
        const width = await page.evaluate("document.documentElement.scrollWidth");
        assert.ok(width <= viewport.width, `${width} px wide, the screen has ${viewport.width}`);
        assert.deepEqual(await tooSmall(page), [], "less than 24 px");
        await page.close();
      });
    }
  }
  await check(`a keyboard alone reaches every control of ${name}, in the order of the page`, async () => {
    const page = await open(browser, address);
    await ready(page);
    await walk(page);
    await page.close();
  });
}

/** What axe finds, a line each, on a page whose data is new: old data is faded on purpose. */
async function violations(page) {
  await page.evaluate(axe.source);
  const { violations, passes } = await until("axe has judged data that is new", async () => {
    const judge = async (values) => {
      const isLive = () => document.body.dataset.link === "live";
      if (!isLive()) return null;
      const found = await window.axe.run({ runOnly: { type: "tag", values } });
      return isLive() ? found : null;
    };
    return page.evaluate(judge, RULES);
  });
  assert.ok(passes.length > 10, `axe has looked at little: ${passes.length} rules`);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
}

/** Controls that are too small for a finger. A label counts as part of its control. */
function tooSmall(page) {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input, select")].filter((it) => it.id !== "skip" && it.checkVisibility({ visibilityProperty: true }));
    const sides = (it) => ["width", "height"].map((side) => Math.max(...[it, it.closest("label")].map((one) => one?.getBoundingClientRect()[side] ?? 0)));
    const named = all.map((it) => [it.id || it.getAttribute("aria-label") || it.textContent, ...sides(it).map((px) => Math.round(px * 10) / 10)]);
    return named.filter(([, width, height]) => width < 24 || height < 24);
  });
}

/** Goes round once by Tab. Whatever may have the focus gets it once, in sight and with an
 * outline. */
async function walk(page) {
  await page.evaluate(() => {
    // Starts at the top, wherever the focus was.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    // Elements are compared by a name, because the page may make them anew.
    window.placeOf = (it) => it.id || it.getAttribute("aria-label") || it.getAttribute("aria-labelledby") || it.textContent;
  });
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")];
    const seen = all.filter((it) => !it.disabled && it.checkVisibility({ visibilityProperty: true }));
    return seen.map(window.placeOf);
  });
  const reached = [];
  for (let stop = 0; stop < STOPS_MAX; stop++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const it = document.activeElement;
      if (!it || it === document.body) return null;
      const { left, top, width, height } = it.getBoundingClientRect();
      // Some of its points may be covered, but not all of them.
      const points = [[0.5, 0.5], [0.1, 0.1], [0.9, 0.9]].map(([x, y]) => document.elementFromPoint(left + x * width, top + y * height));
      const isSeen = points.some((found) => found && (it.contains(found) || found.contains(it)));
      const mark = it.matches("g") ? it.querySelector(".node") : it;
      const { outlineStyle, outlineWidth, strokeWidth } = getComputedStyle(mark);
      const isMarked = (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2) || (mark !== it && parseFloat(strokeWidth) >= 2);
      return { place: window.placeOf(it), isSeen, isMarked };
    });
    if (at === null || (at.place === reached[0]?.place && reached.length > 1)) break;
    reached.push(at);
  }
  const places = reached.map(({ place }) => place);
  assert.deepEqual(reached.filter(({ isSeen }) => !isSeen).map(({ place }) => place), [], "has the focus where nobody sees it");
  assert.deepEqual(reached.filter(({ isMarked }) => !isMarked).map(({ place }) => place), [], "has the focus without a mark");
  assert.deepEqual(wanted.filter((place) => !places.includes(place)), [], "is not reached");
  assert.deepEqual(places, wanted, "the order of the page");
}
