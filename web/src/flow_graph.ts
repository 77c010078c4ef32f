// The flows in the picture of the graph: what each node does, what is known of its links, and the
// way of a packet through both.

import { setState, setText, svg } from "./dom";
import { NONE, rate, short, time } from "./format";
import { shown } from "./flow_layout";
import type { Way } from "./graph_layout";
import type { FlowStatus, Picture, Status } from "./protocol";
import type { Rect } from "./shapes";

/** Errors since the last update are marked for this long. */
const MARKED_MS = 3000;

interface Node {
  group: SVGGElement;
  /** Its name for a screen reader. */
  title: SVGTitleElement;
  figures: SVGTextElement;
  last: SVGTextElement;
  /** The counts at the last update, and until when a new error is marked. */
  seen: FlowStatus | null;
  marked_until: number;
}

interface Line {
  group: SVGGElement;
  port: string;
  text: SVGTextElement;
  title: SVGTitleElement;
  /** Whether everything that its target takes comes over this link. */
  is_only: boolean;
}

/** Nodes and links that a packet passed, by their places in the picture. */
export interface Met {
  nodes: Set<number>;
  links: Set<number>;
}

export class FlowGraph {
  private nodes = new Map<number, Node>();
  private lines = new Map<number, Line>();
  private chosen: number | null = null;

  constructor(private readonly picture: Picture, private readonly choose: (node: number) => void) {}

  /** Draws a link; its words are placed above its beginning. */
  line(root: SVGElement, at: number, way: Way): void {
    const link = this.picture.flow_links[at]!;
    const port = link.from.slice(link.from.lastIndexOf(".") + 1);
    const all = this.picture.flow_links.filter(({ from_node }) => this.picture.nodes[from_node]?.runs);
    const several = all.filter(({ from_node }) => from_node === link.from_node).length > 1;
    const [x, y] = "corners" in way ? way.corners[0]! : way.curve[0];
    const title = svg("title");
    const text = svg("text", { x: x + 5, y: y - 3, class: "small" });
    const path = svg("path", { d: outline(way), class: "link", "marker-end": "url(#arrow)" });
    // A wide invisible line, to be hit by the pointer.
    const reach = svg("path", { d: outline(way), class: "reach" });
    const group = svg("g", { class: "flow-link", "data-port": port === "error" ? "error" : "" }, title, path, reach, text);
    const is_only = all.filter(({ to_node }) => to_node === link.to_node).length === 1;
    this.lines.set(at, { group, port: several ? port.replace(/^out(?=\[)/, "") : "", text, title, is_only });
    root.append(group);
    this.showLine(at, null);
  }

  node(root: SVGElement, at: number, rect: Rect): void {
    const { name } = this.picture.nodes[at]!;
    const middle = rect.x + rect.width / 2;
    const top = rect.y + (rect.height - 50) / 2;
    const text = (y: number, of: string, says: string) => svg("text", { x: middle, y: top + y, "text-anchor": "middle", class: of }, says);
    const [figures, last] = [text(31, "small", ""), text(44, "small last", "")];
    const title = svg("title");
    const group = svg(
      "g", { class: "flow-node", tabindex: 0, role: "button", "aria-pressed": "false", "data-node": name },
      title, svg("rect", { ...rect, rx: 4, class: "node" }), text(17, "node-name", shown(name)), figures, last,
    );
    group.addEventListener("click", () => this.choose(at));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(at);
    });
    this.nodes.set(at, { group, title, figures, last, seen: null, marked_until: 0 });
    this.showNode(at, undefined);
    root.append(group);
  }

  status({ domains }: Status): void {
    const rows = new Map(domains.flatMap(({ nodes }) => nodes).map(({ name, flow }) => [name, flow]));
    const of = (node: number) => rows.get(this.picture.nodes[node]?.name ?? "");
    for (const at of this.nodes.keys()) this.showNode(at, of(at));
    for (const [at, { is_only }] of this.lines) {
      const target = of(this.picture.flow_links[at]!.to_node);
      this.showLine(at, is_only ? (target?.packets_per_s ?? null) : null);
    }
  }

  /** Shows which node is looked at. */
  select(node: number | null): void {
    for (const [at, press] of [[this.chosen, "false"], [node, "true"]] as const) {
      if (at !== null) this.nodes.get(at)?.group.setAttribute("aria-pressed", press);
    }
    this.chosen = node;
  }

  /** Shows a way, or none. */
  mark(met: Met | null): void {
    const mark = (group: SVGGElement, isMet: boolean) => group.setAttribute("data-met", met === null ? "" : isMet ? "yes" : "no");
    for (const [at, { group }] of this.nodes) mark(group, met?.nodes.has(at) ?? false);
    for (const [at, { group }] of this.lines) mark(group, met?.links.has(at) ?? false);
  }

  private showNode(at: number, now: FlowStatus | undefined): void {
    const node = this.nodes.get(at)!;
    const { name, kind } = this.picture.nodes[at]!;
    const { seen } = node;
    // A process that was restarted counts from 0 again.
    if (now && seen && now.errors > seen.errors) node.marked_until = performance.now() + MARKED_MS;
    node.seen = now ?? null;
    const isNew = performance.now() < node.marked_until;
    setState(node.group, isNew ? "bad" : now && now.refused > 0 ? "warn" : "good");
    setText(node.figures, now ? figures(now) : NONE);
    const wrong = now ? troubles(now) : "";
    setText(node.last, wrong || (kind === name ? "" : kind));
    node.last.classList.toggle("trouble", wrong !== "");
    setText(node.title, `${name}, ${kind}${now ? `: ${figures(now)}, ${now.errors} errors` : ""}`);
  }

  private showLine(at: number, per_s: number | null): void {
    const { port, group, text, title } = this.lines.get(at)!;
    const { from, to } = this.picture.flow_links[at]!;
    const isKnown = per_s !== null;
    setState(group, isKnown && per_s > 0 ? "busy" : "");
    setText(text, port === "" ? "" : isKnown && per_s > 0 ? `${port} ${rate(per_s)}` : port);
    setText(title, `${from} to ${to}: ${isKnown ? rate(per_s) : "others lead there too, so how many take this link is not known"}`);
  }
}

/** How many packets a second, and, if it is known, how long 99 of 100 take. */
function figures({ packets_per_s, time_ns_p99 }: FlowStatus): string {
  return rate(packets_per_s) + (time_ns_p99 === null ? "" : ` · ${time(time_ns_p99 / 1000)}`);
}

/** What went wrong, in words. */
function troubles({ errors, refused }: FlowStatus): string {
  const parts = [errors > 0 ? `✕ ${short(errors)} error${errors === 1 ? "" : "s"}` : "", refused > 0 ? `▲ ${short(refused)} refused` : ""];
  return parts.filter((part) => part !== "").join(" ");
}

function outline(way: Way): string {
  const at = ([x, y]: readonly [number, number]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  if ("curve" in way) return `M${at(way.curve[0])} C${at(way.curve[1])} ${at(way.curve[2])} ${at(way.curve[3])}`;
  const pieces = way.corners.slice(1).map((to, i) => {
    const from = way.corners[i]!;
    const middle = (from[0] + to[0]) / 2;
    return `C${at([middle, from[1]])} ${at([middle, to[1]])} ${at(to)}`;
  });
  return `M${at(way.corners[0]!)} ${pieces.join(" ")}`;
}
