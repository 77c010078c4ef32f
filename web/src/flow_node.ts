// The panel of a node of flows: what it has done, and the ways of packets that come to it. The
// server traces two flows a second for the panel, as long as it is open and the page has the token.

import { byId, make, setState, setText } from "./dom";
import type { Met } from "./flow_graph";
import { count, NONE, rate, time, words } from "./format";
import type { FlowStatus, Order, Picture, Status, TapLine } from "./protocol";
import { Ways, type Stage, type Way } from "./ways";

/** Letters of a packet that are shown; the rest is shown when the mouse rests on it. */
const PACKET_MAX = 160;
/** Pause between the end of a tap and the next try. */
const AGAIN_MS = 3000;
const WITHOUT_TOKEN = "The ways of packets are shown to those who have the token.";

interface Listener {
  /** The panel shows this node, or none. */
  chosen(node: number | null): void;
  /** A way is to be shown in the graph, or none. */
  met(met: Met | null): void;
  order(order: Order): Promise<string>;
}

export class FlowNodePanel {
  private readonly panel = byId("flow-node");
  private readonly figures = byId("flow-node-figures");
  private readonly says = byId("ways-says");
  private picture: Picture | null = null;
  private at: number | null = null;
  private may_order = false;
  private status_: Status | null = null;
  /** Which node is tapped, and until when no other tap is tried. */
  private tapped: number | null = null;
  private again_at = 0;
  private ways: Ways | null = null;
  private chosen: number | null = null;
  private due = false;

  constructor(private readonly listener: Listener) {
    byId("flow-node-close").addEventListener("click", () => this.show(null));
    // In a graph with a core, Escape stops the core and does nothing else.
    document.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && document.body.dataset["core"] === "none") this.show(null);
    });
  }

  /** The connection is new: nothing is tapped. The graph may be another one. */
  hello(picture: Picture): void {
    const name = this.at === null ? undefined : this.picture?.nodes[this.at]?.name;
    this.picture = picture;
    this.tapped = null;
    this.again_at = 0;
    const at = picture.nodes.findIndex((node) => node.name === name && node.flow !== null);
    this.show(at < 0 ? null : at);
  }

  /** Opens the panel for a node; called again, closes it. */
  toggle(at: number): void {
    this.show(at === this.at ? null : at);
    this.panel.scrollIntoView({ block: "nearest" });
  }

  /** Opens the panel for a node, or closes it. */
  show(at: number | null): void {
    const node = at === null ? undefined : this.picture?.nodes[at];
    this.at = node ? at : null;
    this.panel.hidden = !node;
    this.ways = this.picture && node ? new Ways(this.picture, node.name) : null;
    this.choose(null);
    this.listener.chosen(this.at);
    this.again_at = 0;
    if (node) {
      setText(byId("flow-node-title"), node.name);
      setText(byId("flow-node-says"), `${node.kind} in ${this.picture?.domains[node.domain]?.name}`);
    }
    if (this.status_) this.status(this.status_);
    else this.tap();
  }

  status(status: Status): void {
    this.status_ = status;
    const name = this.at === null ? undefined : this.picture?.nodes[this.at]?.name;
    if (name === undefined) return this.tap();
    const flow = status.domains.flatMap(({ nodes }) => nodes).find((node) => node.name === name)?.flow;
    const rows = flow ? figures(flow, this.picture?.nodes[this.at!]?.flow === "source") : [];
    this.figures.replaceChildren(...rows.map(([head, text]) => make("div", {}, make("dt", {}, head), make("dd", {}, text))));
    this.tap();
  }

  enable(may_order: boolean): void {
    this.may_order = may_order;
    this.tap();
  }

  line(line: TapLine): void {
    this.ways?.take(line, this.chosen);
    const first = this.ways?.shown[0];
    if (this.chosen === null && first) this.choose(first.flow);
    this.draw();
  }

  untapped(text: string): void {
    this.tapped = null;
    this.again_at = performance.now() + AGAIN_MS;
    this.say(text, "bad");
  }

  /** Starts a tap for the node that is shown, if there is none yet; ends it if no node is shown. */
  private tap(): void {
    if (!this.may_order) {
      this.tapped = null;
      return this.say(WITHOUT_TOKEN, "good");
    }
    if (this.at === this.tapped || performance.now() < this.again_at) return;
    this.tapped = this.at;
    const node = this.at === null ? undefined : this.picture?.nodes[this.at];
    const domain = this.picture?.domains[node?.domain ?? -1]?.name;
    if (!node || domain === undefined) return void this.listener.order({ do: "untap" }).catch(() => {});
    this.say(`Waiting for a packet at ${node.name} …`, "good");
    this.listener.order({ do: "tap", domain, node: node.name }).catch((error: Error) => this.untapped(error.message));
  }

  private say(text: string, state: "good" | "bad"): void {
    setText(this.says, text);
    setState(this.says, state);
  }

  private choose(flow: number | null): void {
    this.chosen = flow;
    this.draw();
  }

  /** Draws at the next animation frame, however many lines come until then. */
  private draw(): void {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.drawNow();
    });
  }

  private drawNow(): void {
    const { shown: all = [], lost = 0 } = this.ways ?? {};
    const way = this.ways?.of(this.chosen);
    // A count that goes on is shown, but not read aloud.
    this.says.setAttribute("aria-live", lost > 0 ? "off" : "polite");
    if (all.length > 0) this.say(lost > 0 ? `▲ ${count(lost)} steps came too fast and are not shown` : "", "good");
    this.list(all);
    byId("way").replaceChildren(...(way ? table(way, (node) => this.leads(node)) : []));
    this.listener.met(way && this.ways ? this.ways.met(way) : null);
  }

  /** Whether a node has outputs that lead somewhere; if not, what it makes is the reply. */
  private leads(name: string): boolean {
    const { nodes = [], flow_links = [] } = this.picture ?? {};
    return flow_links.some(({ from_node }) => nodes[from_node]?.name === name);
  }

  /** The buttons stay the same elements, so that one with the keyboard focus keeps it. */
  private list(all: Way[]): void {
    const list = byId("ways");
    while (list.childElementCount > all.length) list.lastElementChild?.remove();
    while (list.childElementCount < all.length) {
      const button = make("button", { type: "button", class: "quiet" });
      const at = list.childElementCount;
      button.addEventListener("click", () => this.choose(this.ways?.shown[at]?.flow ?? null));
      list.append(make("li", {}, button));
    }
    all.forEach((way, at) => {
      const button = list.children[at]!.firstElementChild!;
      setText(button, summary(way));
      const pressed = String(way.flow === this.chosen);
      if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
    });
  }
}

function figures(flow: FlowStatus, isSource: boolean): [string, string][] {
  const us = (ns: number | null) => time(ns === null ? null : ns / 1000);
  return [
    ["rate", rate(flow.packets_per_s)],
    [isSource ? "flows" : "packets", count(flow.packets)],
    ["errors", count(flow.errors)],
    ...(isSource ? [["refused", count(flow.refused)] as [string, string]] : []),
    ["in flight", count(flow.in_flight)],
    ["P50", us(flow.time_ns_p50)],
    ["P99", us(flow.time_ns_p99)],
    ["max", us(flow.time_ns_max)],
  ];
}

function summary({ flow, stages, ended }: Way): string {
  const failed = stages.some(({ outcome }) => outcome === "error");
  const end = Math.max(...stages.map(({ at_us, took_us }) => at_us + (took_us ?? 0)));
  const took = ended ? time(end - (stages[0]?.at_us ?? end)) : "under way";
  return `${failed ? "✕ " : ""}${flow} · ${took} · ${stages.length} node${stages.length === 1 ? "" : "s"}`;
}

/** A way, step by step; what a node made of the packet is below its line. */
function table({ flow, stages, left_out }: Way, leads: (node: string) => boolean): HTMLElement[] {
  const start = stages[0]?.at_us ?? 0;
  const heads = [["after", ""], ["node", ""], ["in → out", ""], ["took", "number"]];
  const head = make("thead", {}, make("tr", {}, ...heads.map(([text = "", kind = ""]) => make("th", { scope: "col", class: kind }, text))));
  const rows = stages.flatMap((stage) => row(stage, start, leads(stage.node)));
  const more = left_out > 0 ? [make("p", { class: "aside" }, `${count(left_out)} more steps are not kept`)] : [];
  return [make("table", { "aria-label": `The way of flow ${flow}` }, head, make("tbody", {}, ...rows)), ...more];
}

function row(stage: Stage, start: number, leads: boolean): HTMLTableRowElement[] {
  const { outcome, took_us, packet, made } = stage;
  // What comes out of an output without a link is the reply.
  const out = outcome === null ? "…" : outcome.startsWith("out") && !leads ? "reply" : words(outcome);
  const failed = outcome === "error";
  const whole = made ?? packet;
  const short = whole.length > PACKET_MAX ? `${whole.slice(0, PACKET_MAX)}…` : whole;
  const said = make("td", { colspan: "4", class: "packet", title: made === null ? `in: ${packet}` : `in: ${packet}\nout: ${made}` }, short);
  return [
    make(
      "tr", { "data-state": failed ? "bad" : "good" },
      make("td", {}, stage.at_us === start ? "0" : time(stage.at_us - start)), make("th", { scope: "row" }, stage.node),
      make("td", {}, stage.input === "" ? "begins" : `${failed ? "✕ " : ""}${stage.input} → ${out}`),
      make("td", { class: "number" }, took_us === null ? NONE : time(took_us)),
    ),
    make("tr", { class: "below" }, said),
  ];
}
