// Arranges the page: by itself, for what the graph has, or as people want it. The browser keeps
// their own layout for each graph, and they can take it elsewhere as a file.

import { byId, make, say, setText } from "./dom";
import { key, read, TEXT_LEN_MAX, write, type Place } from "./layout_text";

/** Panels that are as wide as two columns, unless people say otherwise. */
const WIDE = ["graph", "scope", "messages"];

export class Layout {
  private readonly sheet = byId("layout");
  private readonly open = byId<HTMLButtonElement>("layout-open");
  private readonly list = byId<HTMLOListElement>("layout-panels");
  private readonly own = byId("own");
  private readonly said = byId("layout-said");
  private readonly all = [...document.querySelectorAll<HTMLElement>("[data-panel]")];
  /** The parent of each panel when the page arranges itself. */
  private readonly homes = this.all.map((panel) => panel.parentElement);
  private graph = "";
  /** The panels that this graph has, in order; `null`: the page arranges itself. */
  private places: Place[] | null = null;
  private automatic: Place[] = [];
  private dragged: string | null = null;

  constructor() {
    this.open.addEventListener("click", () => this.toggle(this.sheet.hidden === true));
    byId("layout-close").addEventListener("click", () => this.toggle(false));
    this.sheet.addEventListener("keydown", (event) => {
      // Escape stops the machine, and does nothing else here either.
      if (event.altKey) this.key(event);
    });
    byId("layout-reset").addEventListener("click", () => this.reset());
    byId("layout-export").addEventListener("click", () => this.export());
    const file = byId<HTMLInputElement>("layout-file");
    byId("layout-import").addEventListener("click", () => file.click());
    file.addEventListener("change", () => void this.import(file));
    this.own.addEventListener("dragover", (event) => this.over(event, this.own));
    this.list.addEventListener("dragover", (event) => this.over(event, this.list));
    for (const box of [this.own, this.list]) {
      box.addEventListener("drop", (event) => event.preventDefault());
      box.addEventListener("dragstart", (event) => this.drag(event));
      box.addEventListener("dragend", () => (this.dragged = null));
    }
  }

  /** Takes the panels that a graph has: those that are there now, and those that come `later`. */
  hello(graph: string, later: string[]): void {
    this.graph = graph;
    const has = this.all.filter((panel) => !panel.hidden || later.includes(name(panel)));
    this.arrangeItself();
    // In their order when the page arranges itself.
    has.sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    this.automatic = has.map((panel) => ({ panel: name(panel), shown: true, wide: WIDE.includes(name(panel)) }));
    this.places = null;
    const kept = localStorage.getItem(this.key_());
    if (kept !== null) this.take(kept);
    this.show();
  }

  private key_(): string {
    return key(this.graph, this.automatic.map(({ panel }) => panel));
  }

  /** Everything goes back to where it was when the page was made; other panels take the room of a
   * missing arm. */
  private arrangeItself(): void {
    for (const panel of this.all) {
      delete panel.dataset["off"];
      delete panel.dataset["wide"];
    }
    const [first, messages] = [byId("first"), byId("messages")];
    const isFree = this.all.every((panel, at) => this.homes[at] !== first || panel.hidden);
    const homes = this.homes.map((home, at) => (isFree && this.all[at] === messages ? first : home));
    for (const home of new Set(homes)) if (home) fill(home, this.all.filter((_, at) => homes[at] === home));
  }

  /** Puts the panels where they belong, and lists them. */
  private show(): void {
    document.body.dataset["layout"] = this.places ? "own" : "automatic";
    if (!this.places) this.arrangeItself();
    else fill(this.own, this.places.flatMap((place) => this.place(place)));
    const isOpen = !this.sheet.hidden;
    for (const panel of this.all) panel.querySelector("header")?.setAttribute("draggable", String(isOpen && this.places !== null));
    this.list.replaceChildren(...(this.places ?? this.automatic).map((place) => this.item(place)));
    dispatchEvent(new Event("layout"));
  }

  private place({ panel: wanted, shown, wide }: Place): HTMLElement[] {
    const panel = this.all.find((panel) => name(panel) === wanted);
    if (!panel) return [];
    panel.dataset["off"] = shown ? "no" : "yes";
    panel.dataset["wide"] = wide ? "yes" : "no";
    return [panel];
  }

  private item({ panel, shown, wide }: Place): HTMLLIElement {
    const title = this.title(panel);
    const box = make("input", { type: "checkbox", id: `layout-shown-${panel}` });
    box.checked = shown;
    box.addEventListener("change", () => this.change(panel, { shown: box.checked }, box.id));
    const button = (what: string, label: string, text: string, act: () => void) => {
      const made = make("button", { type: "button", class: "quiet", id: `layout-${what}-${panel}`, "aria-label": label, title: label }, text);
      made.addEventListener("click", act);
      return made;
    };
    const columns = wide ? "2 columns" : "1 column";
    const width = button("wide", `${title}: ${columns} wide, press for the other width`, columns, () => this.change(panel, { wide: !wide }, `layout-wide-${panel}`));
    return make(
      "li", { "data-of": panel, draggable: "true" },
      make("span", { class: "grip", "aria-hidden": "true" }, "⠿"),
      make("label", { for: box.id }, box, title),
      width,
      button("up", `${title}: further up (Alt+Up)`, "↑", () => this.move(panel, -1, "up")),
      button("down", `${title}: further down (Alt+Down)`, "↓", () => this.move(panel, 1, "down")),
    );
  }

  private title(panel: string): string {
    const heading = this.all.find((one) => name(one) === panel)?.dataset["title"];
    return heading ?? panel;
  }

  /** People's first change makes the layout theirs. */
  private change(panel: string, change: Partial<Place>, focus: string): void {
    this.put((this.places ?? this.automatic).map((place) => (place.panel === panel ? { ...place, ...change } : place)), focus);
  }

  private move(panel: string, by: number, what: string): void {
    const places = [...(this.places ?? this.automatic)];
    const from = places.findIndex((place) => place.panel === panel);
    const to = Math.min(Math.max(from + by, 0), places.length - 1);
    const [moved] = places.splice(from, 1);
    if (moved) places.splice(to, 0, moved);
    this.put(places, `layout-${what}-${panel}`);
    say(this.said, `${this.title(panel)} is now ${to + 1} of ${places.length}`, "good");
  }

  private key(event: KeyboardEvent): void {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const panel = (event.target as HTMLElement).closest<HTMLElement>("[data-of]")?.dataset["of"];
    if (by === undefined || panel === undefined) return;
    event.preventDefault();
    const what = (event.target as HTMLElement).id.split("-")[1] ?? "up";
    this.move(panel, by, what);
  }

  private drag(event: DragEvent): void {
    const from = event.target as HTMLElement;
    this.dragged = from.dataset["of"] ?? from.closest<HTMLElement>("[data-panel]")?.dataset["panel"] ?? null;
    event.dataTransfer?.setData("text/plain", this.dragged ?? "");
  }

  /** What is dragged is shown at once where it would be dropped. */
  private over(event: DragEvent, box: HTMLElement): void {
    if (this.dragged === null) return;
    event.preventDefault();
    const under = [...box.children].find((child) => child.contains(event.target as Node)) as HTMLElement | undefined;
    const to = under?.dataset["of"] ?? under?.dataset["panel"];
    if (to === undefined || to === this.dragged) return;
    const places = [...(this.places ?? this.automatic)];
    const at = (panel: string) => places.findIndex((place) => place.panel === panel);
    const target = at(to);
    const [moved] = places.splice(at(this.dragged), 1);
    if (moved) places.splice(target, 0, moved);
    this.put(places, null);
  }

  private put(places: Place[], focus: string | null): void {
    this.places = places;
    this.keep();
    this.show();
    if (focus !== null) document.getElementById(focus)?.focus();
  }

  private keep(): void {
    try {
      localStorage.setItem(this.key_(), write(this.graph, this.places ?? []));
    } catch {
      say(this.said, "this browser keeps nothing for this page: export the layout to have it again", "bad");
    }
  }

  private reset(): void {
    localStorage.removeItem(this.key_());
    this.places = null;
    this.show();
    say(this.said, "the page arranges itself again", "good");
  }

  private export(): void {
    const text = write(this.graph, this.places ?? this.automatic);
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: `${this.graph}-layout.json` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  private async import(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0];
    if (!file) return;
    if (file.size > TEXT_LEN_MAX) {
      say(this.said, `'${file.name}' is no layout: it has ${file.size} bytes, and a layout has ${TEXT_LEN_MAX} at most`, "bad");
    } else if (this.take(await file.text())) {
      this.keep();
      this.show();
    }
    input.value = "";
  }

  /** Takes a layout as far as it fits, and reports what does not. */
  private take(text: string): boolean {
    try {
      const { panels, misfits } = read(text, this.graph, this.automatic);
      this.places = panels;
      if (misfits.length > 0) say(this.said, `the layout is taken, but: ${misfits.join("; ")}`, "bad");
      else say(this.said, "the layout is taken", "good");
      return true;
    } catch (error) {
      say(this.said, (error as Error).message, "bad");
      return false;
    }
  }

  private toggle(open: boolean): void {
    this.sheet.hidden = !open;
    this.open.setAttribute("aria-expanded", String(open));
    setText(this.said, "");
    this.show();
    (open ? byId("layout-title") : this.open).focus();
  }
}

function name(panel: HTMLElement): string {
  return panel.dataset["panel"] ?? "";
}

/** Puts panels into a box. Those that are already there keep their focus and their scroll
 * position. */
function fill(box: HTMLElement, panels: HTMLElement[]): void {
  const stands = [...box.children];
  if (stands.length !== panels.length || stands.some((child, at) => child !== panels[at])) box.append(...panels);
}
