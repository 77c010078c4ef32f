// The scope: people choose traces, a trigger and a picture; the dashboard looks at every cycle and
// sends what is to be drawn.

import { byId, columnHead, make, say, setText } from "./dom";
import { NONE, number } from "./format";
import type { FreeOrder, Hello, ScopeOrder, ScopePicture, TracePicture } from "./protocol";
import { draw, reads, type Mode } from "./scope_plot";
import type { Box } from "./scope_draw";

/** The dashboard shows at most so many traces on one scope. */
const TRACES_MAX = 8;
/** Most names that are offered; others can be typed. */
const NAMES_MAX = 2000;
/** Changes within this time are sent as one, ms. */
const SETTLED_MS = 150;
/** Most columns that are asked for; the number depends on the width of the picture. */
const COLUMNS_MAX = 1000;
/** How far a key moves a cursor, as a part of the picture. */
const KEY_SHARE = 0.01;

const DOING: Record<ScopePicture["doing"], string> = {
  rolling: "● rolling", waiting: "◌ waits for the trigger", filling: "◌ triggered, filling", done: "■ captured", frozen: "■ frozen",
};

type Select = HTMLSelectElement;

export class ScopePanel {
  private readonly canvas = byId<HTMLCanvasElement>("scope-canvas");
  private readonly said = byId("scope-said");
  private readonly traces: { name: string; own: boolean }[] = [];
  private picture: ScopePicture | null = null;
  private cursors_s: [number, number] | null = null;
  private span_s: [number, number] | null = null;
  private frozen = false;
  private is_seen = false;
  private is_open = false;
  private timer = 0;
  private box: Box | null = null;
  private graph = "";
  private cells: HTMLElement[][] = [];
  /** How often the page itself refused. */
  private refusals = 0;

  constructor(private readonly ask: (order: FreeOrder) => Promise<string>) {
    byId("scope-add").addEventListener("submit", (event) => {
      event.preventDefault();
      const input = byId<HTMLInputElement>("scope-name");
      if (this.add(input.value.trim())) input.value = "";
    });
    const settings = byId<HTMLFormElement>("scope-settings");
    settings.addEventListener("submit", (event) => event.preventDefault());
    settings.addEventListener("input", () => this.changed());
    byId("scope-freeze").addEventListener("click", () => this.freeze(!this.frozen));
    byId("scope-arm").addEventListener("click", () => this.arm());
    byId("scope-in").addEventListener("click", () => this.zoom(0.5));
    byId("scope-out").addEventListener("click", () => this.zoom(2));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    new ResizeObserver(() => this.draw()).observe(byId("scope-plot"));
  }

  hello(hello: Hello): void {
    byId("scope").hidden = hello.threads.length === 0;
    const names = [
      ...hello.signals.flatMap(({ node, name, count }) => elements(`${node}.${name}`, count)),
      ...hello.ports.flatMap(({ port, fields }) => fields.flatMap(({ name, count }) => elements(name ? `${port}.${name}` : port, count))),
    ];
    byId("scope-names").replaceChildren(...names.slice(0, NAMES_MAX).map((value) => make("option", { value })));
    this.is_open = false;
    if (hello.graph !== this.graph) {
      this.graph = hello.graph;
      this.traces.splice(0, TRACES_MAX, ...kept(hello.graph));
    }
    this.list();
  }

  /** For a recorded run: disables what needs the dashboard, and shows these traces if no others
   * were chosen. */
  recorded(traces: string[]): void {
    const options = document.querySelectorAll<HTMLOptionElement>("#scope-mode option, #scope-sweep option");
    for (const option of options) option.disabled = option.value !== "time" && option.value !== "roll";
    if (this.traces.length > 0) return;
    this.traces.push(...traces.map((name) => ({ name, own: false })));
    this.list();
  }

  /** A scope that nobody sees is closed: the dashboard has only a few. */
  seen(is_seen: boolean): void {
    this.is_seen = is_seen;
    this.send();
  }

  /** Adds a trace; returns whether that was possible. */
  add(name: string): boolean {
    if (name === "") return false;
    if (this.traces.some((trace) => trace.name === name)) return this.no(`'${name}' is shown already`);
    if (this.traces.length >= TRACES_MAX) return this.no(`a scope has ${TRACES_MAX} traces at most; take one away first`);
    this.traces.push({ name, own: false });
    this.listed();
    return true;
  }

  show(picture: ScopePicture): void {
    if (!this.is_open) return;
    this.picture = picture;
    setText(byId("scope-doing"), `${DOING[picture.doing]}${picture.lost > 0 ? ` · ${picture.lost} cycles missing` : ""}${picture.life > 0 ? ` · life ${picture.life + 1} of the core` : ""}${picture.note ? ` · ${picture.note}` : ""}`);
    setText(byId("scope-ended"), picture.ended ? `▲ ${picture.ended}` : "");
    for (const end of ["csv", "mcap"]) {
      const link = byId<HTMLAnchorElement>(`scope-${end}`);
      link.hidden = false;
      const href = `scope/${picture.key}.${end}`;
      if (link.getAttribute("href") !== href) link.setAttribute("href", href);
    }
    setText(byId("scope-reads"), reads(picture, this.pair()));
    this.figures();
    this.draw();
  }

  recolour(): void {
    this.draw();
  }

  private no(text: string): false {
    this.refusals += 1;
    this.bad(text);
    return false;
  }

  private bad(text: string): void {
    say(this.said, text, "bad");
  }

  private value(id: string): string {
    return byId<HTMLInputElement | Select>(`scope-${id}`).value;
  }

  private mode(): Mode {
    return this.value("mode") as Mode;
  }

  private pair(): [number, number] {
    const place = (id: string) => Math.max(0, byId<Select>(`scope-${id}`).selectedIndex);
    return [place("first"), place("second")];
  }

  private listed(): void {
    localStorage.setItem(`sinew-scope:${this.graph}`, JSON.stringify(this.traces));
    this.freeze(false);
    this.list();
    this.changed();
  }

  /** Fills the table of the traces, and the lists from which one is chosen. */
  private list(): void {
    const none = this.traces.length === 0;
    byId("scope-settings").hidden = byId("scope-plot").hidden = none;
    byId("scope").dataset["empty"] = none ? "yes" : "no";
    this.picture = null;
    for (const id of ["first", "second", "trigger"]) {
      const select = byId<Select>(`scope-${id}`);
      const before = select.selectedIndex;
      select.replaceChildren(...this.traces.map(({ name }) => make("option", {}, name)));
      // When a second trace is added, a picture of two traces takes it.
      const isNew = id === "second" && this.traces.length === 2;
      select.selectedIndex = Math.min(isNew ? 1 : Math.max(before, 0), this.traces.length - 1);
    }
    const titles = ["trace", "now", "min", "max", "mean", "Hz", "A", "B", "B − A", "own scale", ""];
    this.cells = this.traces.map(() => Array.from({ length: 8 }, () => make("td", {}, NONE)));
    const rows = this.traces.map((trace, at) => {
      const swatch = make("i", { class: "swatch", "data-dash": String(at % 4) });
      swatch.style.borderTopColor = `var(--series-${at + 1})`;
      const own = make("input", { type: "checkbox", "aria-label": `${trace.name} has a separate scale` });
      own.checked = trace.own;
      own.addEventListener("change", () => {
        trace.own = own.checked;
        this.draw();
      });
      const away = make("button", { type: "button", class: "quiet", "aria-label": `Take ${trace.name} away` }, "✕");
      away.addEventListener("click", () => {
        this.traces.splice(at, 1);
        this.listed();
        byId("scope-name").focus();
      });
      return make("tr", {}, make("th", { scope: "row" }, swatch, trace.name), ...(this.cells[at] ?? []), make("td", {}, make("label", {}, own)), make("td", {}, away));
    });
    const heads = titles.map((title) => columnHead(title));
    byId("scope-traces").replaceChildren(...(none ? [] : [make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)]));
    if (none) {
      for (const id of ["doing", "ended", "reads"]) setText(byId(`scope-${id}`), "");
      for (const end of ["csv", "mcap"]) byId(`scope-${end}`).hidden = true;
      setText(byId("scope-doing"), "choose a trace here, or ∿ next to a message");
    }
    this.fit();
  }

  private figures(): void {
    this.picture?.traces.forEach((trace, at) => {
      const { figures, cursors, labels } = trace;
      const one = (value: number | null | undefined) => (value === null || value === undefined ? NONE : (labels[value] || number(value)));
      const [a, b] = cursors?.values ?? [null, null];
      const texts = [one(now(trace)), one(figures?.min), one(figures?.max), one(figures?.mean), one(figures?.frequency_hz), one(a), one(b), one(cursors?.difference)];
      this.cells[at]?.forEach((cell, column) => setText(cell, texts[column] ?? NONE));
      const head = this.cells[at]?.[0]?.previousElementSibling;
      if (head instanceof HTMLElement) head.title = `${trace.unit || "no unit"}; ${figures ? `${figures.cycles} cycles` : "no value in this window"}`;
      const name = head?.lastChild;
      if (name) name.textContent = trace.unit ? `${trace.name}, ${trace.unit}` : trace.name;
    });
    const apart = this.picture?.traces[0]?.cursors;
    if (apart && this.mode() === "time") {
      setText(byId("scope-reads"), `A ${number(apart.at_s[0])} s · B ${number(apart.at_s[1])} s · apart ${number(apart.apart_s)} s${apart.apart_hz === null ? "" : `, ${number(apart.apart_hz)} Hz`}`);
    }
  }

  /** Shows the controls that mean something now. */
  private fit(): void {
    const [mode, sweep] = [this.mode(), this.value("sweep")];
    for (const label of document.querySelectorAll<HTMLElement>("#scope-settings .trigger")) label.hidden = sweep === "roll";
    byId("scope-arm").hidden = sweep !== "single" || this.traces.length === 0;
    byId("scope-freeze").hidden = this.traces.length === 0;
    byId("scope-first-label").hidden = mode === "time";
    byId("scope-second-label").hidden = mode === "time" || mode === "spectrum";
    const [first, second] = { xy: ["x", "y"], bode: ["input", "output"], step: ["step of", "followed by"], spectrum: ["of", ""], time: ["", ""] }[mode];
    for (const [id, word] of [["first", first], ["second", second]]) {
      const label = byId(`scope-${id}-label`).firstChild;
      if (label) label.textContent = word ?? "";
    }
  }

  private changed(): void {
    this.fit();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.send(), SETTLED_MS);
  }

  /** Sends the dashboard what is wanted now. */
  private send(): void {
    if (!this.is_seen || this.traces.length === 0) {
      if (this.is_open) void this.ask({ do: "unscope" }).catch(() => undefined);
      this.is_open = false;
      return;
    }
    if (!byId<HTMLFormElement>("scope-settings").checkValidity()) {
      return void this.no("a setting is missing or beyond its limits; it is marked");
    }
    this.is_open = true;
    const refusals = this.refusals;
    this.ask({ do: "scope", ...this.order() }).then(
      // What the page refused after this order was sent stays.
      () => refusals === this.refusals && this.said.dataset["state"] === "bad" && say(this.said, "", "good"),
      (error: Error) => this.bad(error.message),
    );
  }

  private order(): ScopeOrder {
    const figure = (id: string) => Number(this.value(id));
    const [mode, pair] = [this.mode(), this.pair()];
    const columns = Math.min(Math.max(Math.round(this.canvas.clientWidth / 2), 100), COLUMNS_MAX);
    const look: ScopeOrder["look"] = { columns };
    if (this.span_s) look.span_s = this.span_s;
    if (this.cursors_s) look.cursors_s = this.cursors_s;
    if (mode === "xy") look.xy = pair;
    if (mode === "bode") look.bode = pair;
    if (mode === "spectrum") look.spectrum = pair[0];
    if (mode === "step") look.step = { input: pair[0], output: pair[1] };
    return {
      traces: this.traces.map(({ name }) => name),
      settings: {
        window_ns: Math.min(Math.max(Math.round(figure("window") * 1e9), 0), Number.MAX_SAFE_INTEGER),
        pre: figure("pre") / 100,
        sweep: this.value("sweep") as ScopeOrder["settings"]["sweep"],
        trigger: {
          trace: Math.max(0, byId<Select>("scope-trigger").selectedIndex),
          slope: this.value("slope") as ScopeOrder["settings"]["trigger"]["slope"],
          level: figure("level"),
          hysteresis: figure("hysteresis"),
        },
      },
      look,
      frozen: this.frozen,
    };
  }

  private freeze(frozen: boolean): void {
    if (this.frozen !== frozen) this.changed();
    this.frozen = frozen;
    byId("scope-freeze").setAttribute("aria-pressed", String(frozen));
  }

  private arm(): void {
    this.freeze(false);
    this.ask({ do: "arm" }).then((text) => say(this.said, text, "good"), (error: Error) => this.bad(error.message));
  }

  private draw(): void {
    const picture = this.picture;
    if (!picture) return;
    const waits = this.value("sweep") !== "roll";
    const level = { trace: Math.max(0, byId<Select>("scope-trigger").selectedIndex), level: Number(this.value("level")) };
    const scales = picture.traces.map(({ unit, name }) => (this.traces.find((trace) => trace.name === name)?.own ? `own ${name}` : `unit ${unit}`));
    this.box = draw(this.canvas, { picture, mode: this.mode(), pair: this.pair(), scales, cursors_s: this.cursors_s, level: waits ? level : null });
  }

  private span(): [number, number] {
    return this.span_s ?? this.picture?.window_s ?? [0, 1];
  }

  /** Zooms around cursor A, or around the middle. */
  private zoom(by: number): void {
    const [from, until] = this.span();
    const window_s = this.picture?.window_s ?? [0, 1];
    const width = (until - from) * by;
    const middle = this.cursors_s?.[0] ?? (from + until) / 2;
    if (width >= window_s[1] - window_s[0]) this.span_s = null;
    else this.span_s = [middle - width / 2, middle + width / 2];
    this.changed();
  }

  private point(event: PointerEvent): void {
    if (!this.box || this.mode() !== "time") return;
    const part = (event.offsetX - this.box.left) / this.box.width;
    const [from, until] = this.span();
    if (part >= 0 && part <= 1) this.put(event.shiftKey ? 1 : 0, from + part * (until - from));
  }

  private put(which: 0 | 1, at_s: number): void {
    const [from, until] = this.span();
    const now: [number, number] = this.cursors_s ?? [from + (until - from) / 3, from + ((until - from) * 2) / 3];
    now[which] = Math.min(Math.max(at_s, from), until);
    this.cursors_s = [...now];
    this.draw();
    this.changed();
  }

  private key(event: KeyboardEvent): void {
    const [from, until] = this.span();
    const which = event.shiftKey ? 1 : 0;
    const move = { ArrowLeft: -KEY_SHARE, ArrowRight: KEY_SHARE }[event.key];
    if (move !== undefined && this.mode() === "time") {
      const at = this.cursors_s?.[which] ?? (which === 0 ? from + (until - from) / 3 : from + ((until - from) * 2) / 3);
      this.put(which, at + move * (until - from));
    } else if (event.key === "Home") {
      this.cursors_s = null;
      this.draw();
      this.changed();
    } else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else return;
    event.preventDefault();
  }
}

/** The names of a signal's or field's numbers. */
function elements(name: string, count: number): string[] {
  return count === 1 ? [name] : Array.from({ length: Math.min(count, 32) }, (_, at) => `${name}[${at}]`);
}

/** The value in the last column that has one. */
function now({ max }: TracePicture): number | null {
  return max.filter((value) => value !== null).at(-1) ?? null;
}

/** The traces of this graph that this browser showed last. What is stored may be anything. */
function kept(graph: string): { name: string; own: boolean }[] {
  try {
    const rows: unknown = JSON.parse(localStorage.getItem(`sinew-scope:${graph}`) ?? "[]");
    const good = (row: unknown) => typeof (row as { name?: unknown } | null)?.name === "string";
    return Array.isArray(rows) ? rows.filter(good).slice(0, TRACES_MAX).map(({ name, own }) => ({ name, own: own === true })) : [];
  } catch {
    return [];
  }
}
