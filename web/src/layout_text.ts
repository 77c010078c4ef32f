// A layout as text: how a browser keeps it, and how people take it from one browser to another. A
// file may contain anything.

/** One panel: whether it is shown, and whether it takes two columns. */
export interface Place {
  panel: string;
  shown: boolean;
  wide: boolean;
}

/** Longest file that is read as a layout, bytes; a layout of all panels takes about 1000. */
export const TEXT_LEN_MAX = 65_536;
/** Most panels in a layout; a page has about a dozen. */
const PLACES_MAX = 100;
/** The longest name that is shown. */
const NAME_LEN_MAX = 40;
const VERSION = 1;

/** The layout as text. */
export function write(graph: string, panels: Place[]): string {
  return JSON.stringify({ sinew_layout: VERSION, graph, panels }, null, 1);
}

/** A layout that was read: places for all of `names`, and what of it does not fit this page. */
export interface ReadLayout {
  panels: Place[];
  misfits: string[];
}

/** Reads a layout for a page with the panels `names`; throws a sentence if the text is not a
 * layout. Panels that it does not name come after those that it names, unchanged. */
export function read(text: string, graph: string, names: Place[]): ReadLayout {
  if (text.length > TEXT_LEN_MAX) throw new Error(`this is no layout: it has ${text.length} bytes, and a layout has ${TEXT_LEN_MAX} at most`);
  const kept = object(parse(text));
  if (kept?.["sinew_layout"] !== VERSION) {
    throw new Error(`this is no layout: expected a JSON object with "sinew_layout": ${VERSION}, as 'Export' writes it`);
  }
  const listed = kept["panels"];
  if (!Array.isArray(listed)) throw new Error(`the layout has no list 'panels'; export it again`);
  if (listed.length > PLACES_MAX) throw new Error(`the layout lists ${listed.length} panels, expected ${PLACES_MAX} at most`);
  const found = listed.map(place);
  const misfits: string[] = [];
  if (kept["graph"] !== graph) misfits.push(`it is of graph ${quoted(kept["graph"])}, this is '${graph}'`);
  const panels: Place[] = [];
  for (const at of found) {
    if (panels.some(({ panel }) => panel === at.panel)) misfits.push(`${quoted(at.panel)} stands there twice; the first one counts`);
    else if (names.some(({ panel }) => panel === at.panel)) panels.push(at);
    else misfits.push(`this page has no panel ${quoted(at.panel)}`);
  }
  if (panels.length === 0 && names.length > 0) throw new Error(`nothing of this layout fits: ${misfits.join("; ") || "it lists no panel"}`);
  const rest = names.filter(({ panel }) => !panels.some((known) => known.panel === panel));
  if (rest.length > 0) misfits.push(`it does not name ${rest.map(({ panel }) => `'${panel}'`).join(", ")}: last, as they are`);
  return { panels: [...panels, ...rest], misfits };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`this is no layout: it is no JSON (${(error as Error).message.slice(0, 80)}); expected a file that 'Export' wrote`);
  }
}

function place(value: unknown, at: number): Place {
  const { panel, shown, wide } = object(value) ?? {};
  if (typeof panel !== "string" || typeof shown !== "boolean" || typeof wide !== "boolean") {
    throw new Error(`entry ${at + 1} of 'panels' is wrong: expected such as {"panel": "graph", "shown": true, "wide": false}`);
  }
  return { panel, shown, wide };
}

function object(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
}

function quoted(value: unknown): string {
  const text = typeof value === "string" ? value : "of no name";
  return `'${text.length > NAME_LEN_MAX ? `${text.slice(0, NAME_LEN_MAX)}…` : text}'`;
}

/** The name under which a layout is kept. Another graph, or a graph with other panels, has another
 * name. The number is FNV-1a, 32 bit. */
export function key(graph: string, names: string[]): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode([...names].sort().join("\n"))) hash = Math.imul(hash ^ byte, 0x01000193);
  return `sinew-layout:${graph}:${(hash >>> 0).toString(16)}`;
}
