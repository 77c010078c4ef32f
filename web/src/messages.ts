// Every message of the core, field by field, and every signal of its nodes: the newest value, its
// unit and age, and whether it is new, replaced by a safe value or was never written.

import { byId, columnHead, make, setState, setText } from "./dom";
import { count, NONE, number } from "./format";
import { VALUE, type FieldInfo, type Hello, type Motion, type PortInfo, type SignalInfo, type Values } from "./protocol";

/** The age of values younger than this is not shown, ms: a frame comes every 100. */
const YOUNG_MS = 250;

/** A row of the table, and the words by which it is found. */
interface Row {
  row: HTMLTableRowElement;
  words: string;
  value: HTMLElement;
  state: HTMLElement;
}

/** A port or the signals of a node: its head, and a row for each field. */
interface Group {
  body: HTMLTableSectionElement;
  words: string;
  state: HTMLElement;
  rows: Row[];
}

export class MessagesPanel {
  private readonly table = byId<HTMLTableElement>("messages-table");
  private readonly filter = byId<HTMLInputElement>("messages-filter");
  private readonly says = byId("messages-says");
  private ports: { info: PortInfo; group: Group }[] = [];
  private signals: { info: SignalInfo; group: Group; row: Row }[] = [];
  private groups: Group[] = [];

  /** `scope` shows a field or signal on the scope. */
  constructor(private readonly scope: (name: string) => void) {
    this.filter.addEventListener("input", () => this.sift());
  }

  hello(hello: Hello): void {
    byId("messages").hidden = hello.ports.length === 0 && hello.signals.length === 0;
    this.ports = hello.ports.map((info) => ({ info, group: this.portGroup(info) }));
    this.signals = [];
    const nodes = [...new Set(hello.signals.map(({ node }) => node))];
    const of_nodes = nodes.map((node) => this.nodeGroup(node, hello.signals.filter((signal) => signal.node === node)));
    this.groups = [...this.ports.map(({ group }) => group), ...of_nodes];
    const heads = ["field", "value", "unit", "", ""].map((title) => columnHead(title));
    this.table.replaceChildren(make("thead", {}, make("tr", {}, ...heads)), ...this.groups.map(({ body }) => body));
    const left_out = hello.ports_left_out;
    byId("messages-left-out").hidden = left_out === 0;
    setText(byId("messages-left-out"), `${count(left_out)} more ports are not shown: a page shows 200 ports and 1000 numbers. The scope has all of them.`);
    this.sift();
  }

  /** Only rows that are in sight are written anew. */
  values({ ports, numbers, now_ms }: Values): void {
    this.ports.forEach(({ info, group }, at) => {
      const port = ports[at];
      if (!port || group.body.hidden) return;
      const written = port.written_ms >= 0;
      const [text, state] = standing(written ? now_ms - port.written_ms : null, port.flags);
      setText(group.state, text);
      setState(group.state, state);
      group.state.title = `${count(port.messages)} messages`;
      info.fields.forEach((field, row) => {
        const cell = group.rows[row]?.value;
        if (cell) setText(cell, written ? shown(field, numbers) : NONE);
      });
    });
  }

  motion({ signals, threads }: Motion): void {
    for (const { info, row } of this.signals) {
      if (row.row.hidden || row.row.parentElement?.hidden) continue;
      const has_run = (threads[info.thread]?.cycle ?? -1) >= 0;
      const texts = Array.from(signals.subarray(info.offset, info.offset + info.count), (value) => info.labels[value] || number(value));
      setText(row.value, has_run ? list(texts, info.count) : NONE);
    }
  }

  /** A message of one number takes one row. */
  private portGroup(info: PortInfo): Group {
    const { port, direction, message, others, fields } = info;
    const about = `${message}${others.length > 0 ? ` ${direction === "in" ? "from" : "to"} ${others.join(", ")}` : ""}`;
    const rows = fields.map((field) => {
      const [element, times] = field.count > 1 ? ["[0]", ` × ${field.count}`] : ["", ""];
      const name = field.name ? `${port}.${field.name}` : port;
      return this.row(name + element, field.name, field.unit, `${field.scalar}${times}`);
    });
    const [lone] = rows;
    if (rows.length !== 1 || !lone) return this.group(port, about, rows);
    lone.row.className = "lone";
    lone.row.querySelector("th")?.replaceChildren(...headed(fields[0]?.name ? `${port}.${fields[0].name}` : port, about));
    return { body: make("tbody", {}, lone.row), words: `${port} ${about}`.toLowerCase(), state: lone.state, rows };
  }

  private nodeGroup(node: string, signals: SignalInfo[]): Group {
    const rows = signals.map(({ name, unit, doc, count: all }) => this.row(`${node}.${name}${all > 1 ? "[0]" : ""}`, name, unit, doc));
    const group = this.group(node, "signals", rows);
    signals.forEach((info, at) => {
      const row = rows[at];
      if (row) this.signals.push({ info, group, row });
    });
    return group;
  }

  private group(name: string, about: string, rows: Row[]): Group {
    const state = make("span", { class: "state" });
    const head = make("th", { scope: "rowgroup", colspan: "3" }, ...headed(name, about));
    const standing = make("td", { class: "standing", colspan: "2" }, state);
    const body = make("tbody", {}, make("tr", { class: "head" }, head, standing), ...rows.map(({ row }) => row));
    return { body, words: `${name} ${about}`.toLowerCase(), state, rows };
  }

  private row(name: string, title: string, unit: string, doc: string): Row {
    const value = make("td", { class: "number" }, NONE);
    const button = make("button", { type: "button", class: "quiet", "aria-label": `Show ${name} on the scope`, title: "show on the scope" }, "∿");
    button.addEventListener("click", () => this.scope(name));
    const state = make("span", { class: "state" });
    const cells = [make("th", { scope: "row", title: doc }, title), value, make("td", {}, unit), make("td", { class: "standing" }, state), make("td", {}, button)];
    return { row: make("tr", {}, ...cells), words: `${name} ${unit}`.toLowerCase(), value, state };
  }

  /** A word that matches a port shows all its fields; otherwise it shows the fields that it
   * matches. */
  private sift(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    let [seen, all] = [0, 0];
    for (const { body, words, rows } of this.groups) {
      const whole = words.includes(wanted);
      for (const { row, words: own } of rows) row.hidden = !whole && !own.includes(wanted);
      const left = rows.filter(({ row }) => !row.hidden).length;
      body.hidden = left === 0 && !(whole && rows.length === 0);
      [seen, all] = [seen + left, all + rows.length];
    }
    setText(this.says, seen === all ? `${count(all)} fields` : `${count(seen)} of ${count(all)} fields`);
  }
}

function headed(name: string, about: string): HTMLElement[] {
  return [make("span", {}, name), make("span", { class: "about" }, ` ${about}`)];
}

/** The state of a port in words, and its colour. */
function standing(age_ms: number | null, flags: number): [string, string] {
  const age = age_ms === null ? "" : aged(age_ms);
  if (flags & VALUE.closed) return [`✕ writer gone ${age}`, "bad"];
  if (flags & VALUE.safe) return [`■ safe value ${age}`, "warn"];
  if (age_ms === null) return ["○ never written", ""];
  return flags & VALUE.fresh ? ["● new", "good"] : [`○ ${age}`, ""];
}

function aged(ms: number): string {
  if (ms < YOUNG_MS) return "now";
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s old` : `${Math.floor(ms / 60_000)} min old`;
}

function shown(field: FieldInfo, numbers: Float64Array): string {
  const all = numbers.subarray(field.offset, field.offset + field.shown);
  const texts = Array.from(all, (value) => (field.scalar === "bool" ? String(value !== 0) : field.labels[value] || number(value)));
  return list(texts, field.count);
}

function list(texts: string[], all: number): string {
  if (all === 1) return texts[0] ?? NONE;
  const more = all > texts.length ? `, … ${all - texts.length} more` : "";
  return `[${texts.join(", ")}${more}]`;
}
