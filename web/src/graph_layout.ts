// Where the boxes, nodes and links of the graph are: the core above, the services below a wall.
// Compact, so that it fits into a panel; `sinew graph --svg` draws the large one.

import { layFlows, type FlowLayout } from "./flow_layout";
import type { Ends, Picture } from "./protocol";
import type { Curve, Point, Rect } from "./shapes";

const NODE_WIDTH = 108;
const NODE_HEIGHT = 56;
/** Gap between nodes: room for the label of a link. */
const GAP = 72;
const BOX_PAD = 12;
const BOX_HEAD = 42;
const BOX_GAP = GAP - 2 * BOX_PAD;
const ROW_GAP = 50;
const WALL_GAP = 64;
/** Room for the words at the right end of the wall. */
const WALL_WORDS_WIDTH = 140;
const MARGIN = 6;
/** A row of boxes is no wider than this, unless one box is. */
const ROW_WIDTH_MAX = 690;
/** Without a core the picture may be as wide as the page. */
const WIDE_ROW_WIDTH_MAX = 1150;
/** Nodes side by side in a box. */
const COLUMNS_MAX = 4;
/** Room for the figures of a link. */
export const LABEL_WIDTH = 50;
const LABEL_HEIGHT = 19;

export type Way = { corners: Point[] } | { curve: Curve };

/** Where everything is. What does not take part in the run has no place. */
export interface Layout {
  width: number;
  height: number;
  /** Height of the wall between core and services, if there are both. */
  wall_y: number | null;
  domains: Rect[];
  nodes: (Rect | undefined)[];
  links: { curve: Curve; label: Rect }[];
  /** Links of packets. Within a domain they have corners, from left to right. */
  flow_links: (Way | undefined)[];
}

/** Places everything; all lists are in the order of the picture. */
export function layOut(picture: Picture): Layout {
  const layout: Layout = { width: 0, height: 0, wall_y: null, domains: [], nodes: [], links: [], flow_links: [] };
  const core = picture.domains.flatMap(({ service }, at) => (service ? [] : [at]));
  const services = picture.domains.flatMap(({ service }, at) => (service ? [at] : []));
  // Flows come first: people look for them first, and they are the widest.
  const flows = (at: number) => Number(picture.nodes.some(({ domain, flow }) => domain === at && flow !== null));
  services.sort((one, other) => flows(other) - flows(one));
  let y = placeRows(picture, core, MARGIN, layout);
  if (core.length > 0 && services.length > 0) {
    layout.wall_y = y + WALL_GAP / 2;
    y += WALL_GAP;
  }
  layout.height = placeRows(picture, services, y, layout) + MARGIN;
  layout.width = Math.max(...layout.domains.map(({ x, width }) => x + width), 0) + MARGIN;
  const curves = route(picture.links, layout.nodes);
  const isAcross = ({ from_node, to_node }: Ends, at: number) => !layout.flow_links[at] && layout.nodes[from_node] && layout.nodes[to_node];
  const across = picture.flow_links.flatMap((link, at) => (isAcross(link, at) ? [{ ...link, at }] : []));
  route(across, layout.nodes).forEach((curve, i) => (layout.flow_links[across[i]!.at] = { curve }));
  const names = layout.domains.map(({ x, y }, at) => name(picture.domains[at]?.name ?? "", x, y));
  const y_wall = layout.wall_y ?? -WALL_GAP;
  const wall = { x: layout.width - WALL_WORDS_WIDTH, y: y_wall - 18, width: WALL_WORDS_WIDTH, height: 36 };
  placeLabels(curves, layout, [...names, wall]);
  return layout;
}

/** Places the boxes of domains in rows from `y` on; returns where the last row ends. */
function placeRows(picture: Picture, domains: number[], y: number, layout: Layout): number {
  const inner = domains.map((at) => lay(picture, at));
  const width_max = Math.max(picture.domains.some(({ service }) => !service) ? ROW_WIDTH_MAX : WIDE_ROW_WIDTH_MAX, ...inner.map(({ width }) => width + 2 * BOX_PAD));
  let [x, height] = [MARGIN, 0];
  domains.forEach((at, i) => {
    const { nodes, links, ...size } = inner[i]!;
    const width = size.width + 2 * BOX_PAD;
    if (x > MARGIN && x + width > width_max) {
      y += height + ROW_GAP;
      [x, height] = [MARGIN, 0];
    }
    const box = { x, y, width, height: BOX_HEAD + size.height + BOX_PAD };
    const [dx, dy] = [x + BOX_PAD, y + BOX_HEAD];
    layout.domains[at] = box;
    nodes.forEach((rect, node) => (layout.nodes[node] = { ...rect, x: rect.x + dx, y: rect.y + dy }));
    links.forEach((points, link) => (layout.flow_links[link] = { corners: points.map(([x, y]) => [x + dx, y + dy]) }));
    x += width + BOX_GAP;
    height = Math.max(height, box.height);
  });
  return y + height;
}

/** The inside of a domain's box, starting at (0, 0). */
function lay(picture: Picture, domain: number): FlowLayout {
  const here = picture.nodes.flatMap((node, at) => (node.domain === domain && node.runs ? [at] : []));
  if (here.some((at) => picture.nodes[at]?.flow)) return layFlows(picture, here);
  const nodes = new Map<number, Rect>();
  here.forEach((node, i) => nodes.set(node, {
    x: (i % COLUMNS_MAX) * (NODE_WIDTH + GAP),
    y: Math.floor(i / COLUMNS_MAX) * (NODE_HEIGHT + GAP),
    width: NODE_WIDTH,
    height: NODE_HEIGHT,
  }));
  const columns = Math.max(Math.min(here.length, COLUMNS_MAX), 1);
  const rows = Math.max(Math.ceil(here.length / COLUMNS_MAX), 1);
  return { width: columns * (NODE_WIDTH + GAP) - GAP, height: rows * (NODE_HEIGHT + GAP) - GAP, nodes, links: new Map() };
}

type Side = "left" | "right" | "top" | "bottom";

interface End {
  node: number;
  side: Side;
  /** Where the other end is along this side, so that ends do not cross each other. */
  towards: number;
}

/** The sides at which a link leaves and arrives. */
function sides(from: Rect, to: Rect): [Side, Side] {
  if (from.y !== to.y) return from.y < to.y ? ["bottom", "top"] : ["top", "bottom"];
  const next = from.x + from.width + GAP + 1;
  if (to.x > from.x && to.x <= next) return ["right", "left"];
  return ["top", "top"];
}

function route(links: Ends[], nodes: Layout["nodes"]): Curve[] {
  const ends: [End, End][] = links.map(({ from_node, to_node }) => {
    const [from, to] = [nodes[from_node]!, nodes[to_node]!];
    const [leaves, arrives] = sides(from, to);
    return [
      { node: from_node, side: leaves, towards: to.x },
      { node: to_node, side: arrives, towards: from.x },
    ];
  });
  const all = ends.flat();
  return ends.map(([from, to]) => curve(from, spot(from, all, nodes), to, spot(to, all, nodes)));
}

/** The place of an end on its side, which it shares evenly with others. */
function spot(end: End, all: End[], nodes: Layout["nodes"]): Point {
  const beside = all.filter(({ node, side }) => node === end.node && side === end.side);
  beside.sort((one, other) => one.towards - other.towards);
  const share = (beside.indexOf(end) + 1) / (beside.length + 1);
  const { x, y, width, height } = nodes[end.node]!;
  switch (end.side) {
    case "left": return [x, y + share * height];
    case "right": return [x + width, y + share * height];
    case "top": return [x + share * width, y];
    case "bottom": return [x + share * width, y + height];
  }
}

function curve(from: End, start: Point, to: End, end: Point): Curve {
  const across = Math.abs(end[0] - start[0]);
  const drop = Math.abs(end[1] - start[1]);
  const reach = from.side === to.side ? 22 + 0.045 * across : Math.max(drop * 0.5, 24);
  const pull = ([x, y]: Point, side: Side): Point => {
    if (side === "left") return [x - across / 2, y];
    if (side === "right") return [x + across / 2, y];
    return [x, side === "top" ? y - reach : y + reach];
  };
  return [start, pull(start, from.side), pull(end, to.side), end];
}

/** The point of a curve at a share of its parameter. */
export function along([a, b, c, d]: Curve, t: number): Point {
  const s = 1 - t;
  const at = (i: 0 | 1) => s * s * s * a[i] + 3 * s * s * t * b[i] + 3 * s * t * t * c[i] + t * t * t * d[i];
  return [at(0), at(1)];
}

/** The place of a domain's name and state in its box. */
function name(text: string, x: number, y: number): Rect {
  return { x, y, width: 7 * text.length + 64, height: 20 };
}

/** Tries places along each link, and takes the first one that covers nothing. */
function placeLabels(curves: Curve[], layout: Layout, words: Rect[]): void {
  const taken: Rect[] = [...layout.nodes.filter((node) => node !== undefined), ...words];
  for (const curve of curves) {
    const places = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82].map((t): Rect => {
      const [x, y] = along(curve, t);
      return { x: x - LABEL_WIDTH / 2, y: y - LABEL_HEIGHT / 2, width: LABEL_WIDTH, height: LABEL_HEIGHT };
    });
    const label = places.find((place) => !taken.some((other) => meets(place, other))) ?? places[0]!;
    taken.push(label);
    layout.links.push({ curve, label });
  }
}

function meets(one: Rect, other: Rect): boolean {
  return (
    one.x < other.x + other.width && other.x < one.x + one.width &&
    one.y < other.y + other.height && other.y < one.y + one.height
  );
}
