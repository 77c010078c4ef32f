// The parameters that may be set while the core runs: their values, the values that they accept,
// and a field for a new value. Changed ones are sent together, so that the core gets all of a
// node's at once.

import { byId, make, say, setText } from "./dom";
import type { Order, RunEvent, Tunable } from "./protocol";

/** Length of the text by which an event about this page's values is recognised; a longer text is
 * cut. */
const SAVED_BEGINNING = 500;

interface Row {
  name: string;
  value: HTMLElement;
  field: HTMLInputElement | HTMLSelectElement;
  said: HTMLElement;
  row: HTMLElement;
  /** The value that the core has. */
  now: string;
}

export class ParametersPanel {
  private readonly table = byId<HTMLTableElement>("parameters-table");
  private readonly said = byId("parameters-said");
  private readonly apply = byId<HTMLButtonElement>("parameters-apply");
  private readonly save = byId<HTMLInputElement>("parameters-save");
  private rows: Row[] = [];
  private shape = "";
  private may_order = false;
  /** The beginning of the text about the values that this page is writing to the spec; null if
   * none. */
  private saving: string | null = null;

  /** `order` sends an order, and its result is shown. `appeared` is called when there is something
   * to set. */
  constructor(private readonly order: (order: Order) => Promise<string>, private readonly appeared: () => void) {
    byId("parameters-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    byId("parameters-undo").addEventListener("click", () => this.undo());
  }

  /** Another graph, or the same one. What can be set is sent separately. */
  hello(): void {
    this.shape = "";
    this.rows = [];
    byId("parameters").hidden = true;
  }

  /** A field that people have changed keeps what they typed. */
  tunables(tunables: Tunable[]): void {
    const shape = JSON.stringify(tunables.map(({ value: _, ...rest }) => rest));
    const isNew = shape !== this.shape;
    if (isNew) this.build(tunables);
    this.shape = shape;
    tunables.forEach(({ value }, at) => {
      const row = this.rows[at];
      if (!row) return;
      if (row.field.value === row.now) row.field.value = value;
      row.now = value;
      setText(row.value, value);
    });
    this.mark();
    if (isNew) {
      byId("parameters").hidden = tunables.length === 0;
      this.appeared();
    }
  }

  /** Shows what became of values that were to be written to the spec. */
  events(events: RunEvent[]): void {
    const ours = this.saving;
    if (ours === null) return;
    // Other pages may save, too.
    const saved = events.find(({ what, text }) => (what === "saved" || what === "not_saved") && text.startsWith(ours));
    if (!saved) return;
    this.saving = null;
    say(this.said, saved.text, saved.what === "saved" ? "good" : "bad");
  }

  enable(may_order: boolean): void {
    this.may_order = may_order;
    for (const { field } of this.rows) field.disabled = !may_order;
    this.save.disabled = !may_order;
    this.mark();
  }

  private build(tunables: Tunable[]): void {
    const heads = ["parameter", "now", "new value", "unit", "takes"].map((title) => make("th", { scope: "col" }, title));
    this.rows = tunables.map((tunable) => this.row(tunable));
    this.table.replaceChildren(make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...this.rows.map(({ row }) => row)));
    this.enable(this.may_order);
  }

  private row({ node, parameter, value, unit, takes, doc }: Tunable): Row {
    const name = `${node}.${parameter}`;
    const id = `parameter-${name}`;
    const isFlag = value === "true" || value === "false";
    const field = isFlag
      ? make("select", { id }, make("option", {}, "true"), make("option", {}, "false"))
      // No `inputmode`: the decimal keys of a phone have no minus, and a comma in many languages.
      : make("input", { id, autocomplete: "off", spellcheck: "false", maxlength: "40" });
    field.value = value;
    const said = make("span", { class: "said", id: `${id}-said`, role: "status" });
    field.setAttribute("aria-describedby", said.id);
    field.addEventListener("input", () => {
      say(said, "", "good");
      field.removeAttribute("aria-invalid");
      this.mark();
    });
    const now = make("td", { class: "number" }, value);
    const row = make(
      "tr", {},
      make("th", { scope: "row", title: doc }, make("label", { for: id }, name)), now,
      make("td", {}, field), make("td", {}, unit), make("td", { class: "takes" }, takes, doc ? ` \u00b7 ${doc}` : "", said),
    );
    return { name, value: now, field, said, row, now: value };
  }

  private changed(): Row[] {
    return this.rows.filter(({ field, now }) => field.value.trim() !== now);
  }

  private mark(): void {
    const changed = this.changed();
    for (const row of this.rows) row.row.dataset["changed"] = changed.includes(row) ? "yes" : "no";
    this.apply.disabled = !this.may_order || changed.length === 0;
    byId<HTMLButtonElement>("parameters-undo").disabled = changed.length === 0;
    setText(this.apply, changed.length > 1 ? `Apply ${changed.length}` : "Apply");
  }

  private undo(): void {
    for (const { field, now, said } of this.rows) {
      field.value = now;
      field.removeAttribute("aria-invalid");
      say(said, "", "good");
    }
    this.mark();
  }

  private async send(): Promise<void> {
    const changed = this.changed();
    if (changed.length === 0 || this.apply.disabled) return;
    const settings = changed.map(({ name, field }) => `${name}=${field.value.trim()}`);
    this.saving = this.save.checked ? `${settings.join(", ")} `.slice(0, SAVED_BEGINNING) : null;
    try {
      say(this.said, await this.order({ do: "set", settings, save: this.save.checked }), "good");
      for (const row of changed) row.now = row.field.value = row.field.value.trim();
    } catch (error) {
      this.saving = null;
      this.refused(changed, (error as Error).message);
    }
    this.mark();
  }

  /** Shows the refusal beside the field that it is about; nothing was set. */
  private refused(changed: Row[], text: string): void {
    const about = changed.length === 1 ? changed[0] : changed.find(({ name }) => text.includes(name));
    if (!about) return say(this.said, `nothing is set: ${text}`, "bad");
    say(about.said, `▲ ${text}`, "bad");
    about.field.setAttribute("aria-invalid", "true");
    about.field.focus();
    say(this.said, "nothing is set", "bad");
  }
}
