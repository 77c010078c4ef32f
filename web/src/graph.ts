// The graph as a live picture: rates, fill and losses at its links, execution times in its nodes,
// and what is broken or gone marked in words and form.

import { byId, setState, setText, svg } from "./dom";
import { FlowGraph, type Met } from "./flow_graph";
import { count, NONE, rate, short, time, words } from "./format";
import { LABEL_WIDTH, layOut } from "./graph_layout";
import type { Figures, LinkFigures, Picture, Status, Times } from "./protocol";
import type { Curve, Rect } from "./shapes";

/** A link as full as this is shown with a warning. */
const FILL_HIGH = 0.8;
/** Drawn no smaller than the minimum, but scrolled instead; and no larger than the maximum. */
const SCALE_MIN = 0.85;
const SCALE_MAX = 1.3;
/** States of a domain in which its nodes run, or soon will. */
const WELL = new Set(["running", "starting", "ready", "waiting"]);

interface Label {
  rect: SVGRectElement;
  middle: number;
  label: SVGGElement;
  line: SVGPathElement;
  text: SVGTextElement;
  bar: SVGRectElement;
  title: SVGTitleElement;
}

/** A node with execution times. */
interface Timed {
  half: SVGTextElement;
  most: SVGTextElement;
}

export class GraphPanel {
  private picture: Picture | null = null;
  private domains: { box: SVGRectElement; name: SVGTextElement }[] = [];
  /** Nodes that run in cycles, and services. */
  private nodes: (Timed | undefined)[] = [];
  private links: Label[] = [];
  private flows: FlowGraph | null = null;

  /** `choose` is called with the node of flows that people want to look at. */
  constructor(private readonly choose: (node: number) => void) {}

  hello(picture: Picture): void {
    // If it is the same graph, it is not drawn anew, and stays scrolled as it is.
    if (JSON.stringify(picture) === JSON.stringify(this.picture)) return;
    this.picture = picture;
    const layout = layOut(picture);
    const { width, height, wall_y } = layout;
    const hasFlows = picture.nodes.some(({ flow }) => flow !== null);
    const says = byId("graph-says");
    says.title = legend(picture.domains.some(({ service }) => !service), hasFlows);
    setText(says, says.title);
    // Its role is not image, because a screen reader reads its content, too.
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The graph" }, arrowHead());
    const flows = new FlowGraph(picture, this.choose);
    this.domains = picture.domains.map((domain, at) => this.box(root, domain, layout.domains[at]!));
    if (wall_y !== null) root.append(...wall(width, wall_y));
    const lines = layout.links.map(({ curve }, at) => this.line(root, curve, picture.links[at]!));
    layout.flow_links.forEach((way, at) => way && flows.line(root, at, way));
    this.nodes = picture.nodes.map(({ name, kind, domain, flow }, at) => {
      const says = kind === name ? "" : words(kind);
      const rect = layout.nodes[at];
      if (!rect) return undefined;
      if (flow === null) return this.node(root, name, says, rect, !picture.domains[domain]?.service);
      return void flows.node(root, at, rect);
    });
    this.links = layout.links.map(({ label }, at) => this.label(root, lines[at]!, label));
    if (hasFlows) scale(root, width, height);
    this.flows = flows;
    byId("graph").replaceChildren(root);
    const source = layout.nodes[picture.nodes.findIndex(({ flow, runs }) => flow === "source" && runs)];
    if (source) showPoint(root, source.y + source.height / 2);
  }

  /** Shows which node of flows is looked at. */
  select(node: number | null): void {
    this.flows?.select(node);
  }

  /** Shows the way of a packet, or none. */
  mark(met: Met | null): void {
    this.flows?.mark(met);
  }

  figures(figures: Figures): void {
    this.links.forEach((label, at) => {
      const row = figures.links[at];
      if (row) this.showLink(label, row, at);
    });
    this.nodes.forEach((node, at) => node && this.showNode(node, figures.nodes[at] ?? null, at));
  }

  status(status: Status): void {
    const { domains, phase } = status;
    this.flows?.status(status);
    this.picture?.domains.forEach(({ name }, at) => {
      const domain = domains.find((row) => row.name === name);
      const shown = this.domains[at];
      if (!domain || !shown) return;
      const well = WELL.has(domain.state) || (domain.role === "realtime" && phase !== "running" && domain.state !== "faulted");
      setState(shown.box, well ? "good" : "bad");
      setText(shown.name, `${well ? "" : "✕ "}${name} · ${words(domain.state)}`);
    });
  }

  private box(root: SVGElement, { name, service }: Picture["domains"][number], at: Rect): GraphPanel["domains"][number] {
    const box = svg("rect", { ...at, rx: 6, class: "box", "data-role": service ? "service" : "realtime" });
    const text = svg("text", { x: at.x + 10, y: at.y + 15, class: "domain-name" }, name);
    root.append(box, text);
    return { box, name: text };
  }

  private node(root: SVGElement, name: string, says: string, at: Rect, timed: boolean): Timed {
    const middle = at.x + at.width / 2;
    const text = (y: number, of: string, says: string) =>
      svg("text", { x: middle, y: at.y + y, "text-anchor": "middle", class: of }, says);
    // A service has no execution time, so its words are in the middle.
    const top = timed ? 18 : says === "" ? 32 : 25;
    const [half, most] = [text(top + 16, "small", says), text(top + 30, "small", "")];
    root.append(svg("rect", { ...at, rx: 4, class: "node" }), text(top, "node-name", name), half, most);
    return { half, most };
  }

  private line(root: SVGElement, curve: Curve, link: Picture["links"][number]): SVGPathElement {
    const [a, b, c, d] = curve.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
    const line = svg("path", { d: `M${a} C${b} ${c} ${d}`, class: "link", "data-role": this.role(link), "marker-end": "url(#arrow)" });
    root.append(line);
    return line;
  }

  /** Within a thread, between threads of the core, or with a service. */
  private role({ from_node, to_node, fused }: Picture["links"][number]): string {
    const { domains = [], nodes = [] } = this.picture ?? {};
    const outside = [from_node, to_node].some((node) => domains[nodes[node]?.domain ?? -1]?.service);
    return outside ? "service" : fused ? "fused" : "core";
  }

  private label(root: SVGElement, line: SVGPathElement, at: Rect): Label {
    const middle = at.x + at.width / 2;
    const rect = svg("rect", { ...at, rx: 3 });
    const text = svg("text", { x: middle, y: at.y + 12, "text-anchor": "middle" }, NONE);
    const bar = svg("rect", { x: at.x + 5, y: at.y + at.height - 4.5, width: 0, height: 2.5, class: "fill-bar" });
    const title = svg("title");
    const label = svg("g", { class: "label" }, title, rect, text, bar);
    root.append(label);
    return { rect, middle, label, line, text, bar, title };
  }

  private showLink({ rect, middle, label, line, text, bar, title }: Label, row: LinkFigures, at: number): void {
    const link = this.picture?.links[at];
    const state = row.broken ? "bad" : row.lost || (row.fill ?? 0) > FILL_HIGH ? "warn" : "good";
    setState(label, state);
    setState(line, state);
    setText(text, row.broken ? "✕ broken" : row.lost ? `▲ lost ${short(row.lost)}` : rate(row.rate_per_s));
    const width = Math.max(LABEL_WIDTH, 6 * (text.textContent ?? "").length + 8);
    rect.setAttribute("width", String(width));
    rect.setAttribute("x", String(middle - width / 2));
    bar.setAttribute("width", ((row.fill ?? 0) * (LABEL_WIDTH - 10)).toFixed(1));
    const fill = row.fill === null ? "" : `, ${(row.fill * 100).toFixed(0)} % full`;
    const lost = row.lost === null ? "" : `, ${count(row.lost)} lost`;
    setText(title, `${link?.from} to ${link?.to}: ${rate(row.rate_per_s)}${fill}${lost}`);
  }

  private showNode({ half, most }: Timed, times: Times | null, at: number): void {
    if (!times) return;
    setText(half, times.p50_us === null ? words(this.picture?.nodes[at]?.kind ?? "") : time(times.p50_us));
    setText(most, times.max_us === null ? "" : `max ${time(times.max_us)}`);
  }
}

/** What the figures in the picture are. */
function legend(hasCore: boolean, hasFlows: boolean): string {
  const core = hasCore ? ["messages a second", "execution time: half are below, max"] : [];
  return [...core, ...(hasFlows ? ["flows: packets a second", "P99 of the time in a node"] : [])].join(" · ");
}

/** A wide graph scrolls before its words are too small to read; a small graph is not enlarged
 * much. */
function scale(root: SVGSVGElement, width: number, height: number): void {
  Object.assign(root.style, {
    minWidth: `${(width * SCALE_MIN).toFixed(0)}px`, minHeight: `${(height * SCALE_MIN).toFixed(0)}px`,
    maxWidth: `${(width * SCALE_MAX).toFixed(0)}px`, maxHeight: `${(height * SCALE_MAX).toFixed(0)}px`,
  });
}

/** Scrolls so far down that the flows begin in the middle. */
function showPoint(root: SVGSVGElement, y: number): void {
  const box = byId("graph");
  const scale = root.clientHeight / root.viewBox.baseVal.height;
  box.scrollTo(0, y * scale - box.clientHeight / 2);
}

function arrowHead(): SVGDefsElement {
  const head = svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" });
  const size = { viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse" };
  return svg("defs", {}, svg("marker", { id: "arrow", orient: "auto", ...size }, head));
}

function wall(width: number, y: number): SVGElement[] {
  const text = (at: number, says: string) => svg("text", { x: width - 6, y: at, "text-anchor": "end", class: "small" }, says);
  return [
    svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "wall" }),
    text(y - 6, "core: one stops, all stop"),
    text(y + 14, "services: each fails alone"),
  ];
}
