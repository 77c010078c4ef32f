// Builds elements. Text from the server only ever becomes text: nothing here parses markup.

export type Child = Node | string | null;

/** The element with this id. The page is part of this program, so a missing element is a bug. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no element '${id}'`);
  return found as T;
}

/** An element with attributes and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and children. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

/** The head of a column. Without words it is not a head but a plain cell. */
export function columnHead(text: string, attributes: Record<string, string> = {}): HTMLTableCellElement {
  return text === "" ? make("td", attributes) : make("th", { scope: "col", ...attributes }, text);
}

/** Sets a text, and touches the page only if it differs. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets a `data-` attribute that the style sheet reads. */
export function setState(element: HTMLElement | SVGElement, state: string): void {
  if (element.dataset["state"] !== state) element.dataset["state"] = state;
}

/** How long good news are shown; bad news stay until the next order. */
const SAID_MS = 6000;
const timers = new WeakMap<HTMLElement, number>();

/** Shows the result of an order beside a control. */
export function say(element: HTMLElement, text: string, state: "good" | "bad"): void {
  clearTimeout(timers.get(element));
  setText(element, text);
  setState(element, state);
  element.title = text;
  if (state === "good" && text !== "") timers.set(element, window.setTimeout(() => say(element, "", "good"), SAID_MS));
}

/** The value of a custom property of the style sheet, in the present theme. */
export function styled(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
