// Where the nodes of a domain with flows are placed. Packets go from left to right; nodes that no
// packet reaches (a database, a store) are below. dagre finds the columns and the order in each.

import { graphlib, layout } from "@dagrejs/dagre";
import type { Ends, Picture } from "./protocol";
import type { Point, Rect } from "./shapes";

const WIDTH_MIN = 96;
const HEIGHT = 50;
/** Room at a node's side for the words at a link. */
const END_HEIGHT = 13;
/** Room for a letter of a node's name. */
const LETTER_WIDTH = 7;
/** A longer name is cut; the whole name is shown when the mouse rests on it. */
const NAME_MAX = 24;
/** Between columns: room for the name of a port and a rate. */
const COLUMN_GAP = 62;
const ROW_GAP = 16;
/** Gap between a link that passes a column and the nodes there. */
const LINK_GAP = 10;
/** Nodes without packets in a row. */
const IDLE_MAX = 6;

export interface FlowLayout {
  width: number;
  height: number;
  /** By their place in the picture. */
  nodes: Map<number, Rect>;
  /** The corners of each link, by its place in the picture's `flow_links`. */
  links: Map<number, Point[]>;
}

/** The part of a node's name that is shown. */
export function shown(name: string): string {
  return name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name;
}

/** Places these nodes, and the links between them, starting at (0, 0). */
export function layFlows(picture: Picture, nodes: number[]): FlowLayout {
  const links = picture.flow_links.flatMap((link, at) =>
    nodes.includes(link.from_node) && nodes.includes(link.to_node) ? [{ ...link, at }] : []);
  const linked = new Set(links.flatMap(({ from_node, to_node }) => [from_node, to_node]));
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: ROW_GAP, ranksep: COLUMN_GAP, edgesep: LINK_GAP });
  for (const at of nodes.filter((at) => linked.has(at))) graph.setNode(String(at), size(picture, at));
  for (const { at, from_node, to_node } of links) graph.setEdge(String(from_node), String(to_node), {}, String(at));
  if (linked.size > 0) layout(graph, { constraints: ordered(links) });
  const placed = new Map<number, Rect>();
  for (const name of graph.nodes()) {
    const { x, y, width, height } = graph.node(name) as Rect;
    placed.set(Number(name), { x: x - width / 2, y: y - height / 2, width, height });
  }
  const ways = new Map<number, Point[]>();
  const columns = widths(placed);
  for (const { at, from_node, to_node } of links) {
    const { points } = graph.edge(String(from_node), String(to_node), String(at)) as { points: { x: number; y: number }[] };
    ways.set(at, points.slice(1, -1).flatMap(({ x, y }) => past(columns, x, y)));
  }
  join(links, placed, ways);
  placeIdle(picture, nodes.filter((at) => !linked.has(at)), placed);
  return { ...extent(placed), nodes: placed, links: ways };
}

function size(picture: Picture, at: number): { width: number; height: number } {
  const letters = shown(picture.nodes[at]?.name ?? "").length;
  const leaves = picture.flow_links.filter(({ from_node }) => from_node === at).length;
  return { width: Math.max(WIDTH_MIN, LETTER_WIDTH * letters + 18), height: Math.max(HEIGHT, END_HEIGHT * (leaves + 1)) };
}

/** Nodes that have only this one link are placed in the order of its ports. */
function ordered(links: Ends[]): { left: string; right: string }[] {
  const single = links.filter(({ to_node }) => links.filter((other) => other.to_node === to_node).length === 1);
  return single.flatMap(({ from_node, to_node }, i) => {
    const next = single.slice(i + 1).find((other) => other.from_node === from_node);
    return next ? [{ left: String(to_node), right: String(next.to_node) }] : [];
  });
}

/** The width of each column, by its middle. */
function widths(placed: Map<number, Rect>): Map<number, number> {
  const columns = new Map<number, number>();
  for (const { x, width } of placed.values()) {
    const middle = Math.round(x + width / 2);
    columns.set(middle, Math.max(columns.get(middle) ?? 0, width));
  }
  return columns;
}

/** A link that passes a column goes straight through it; between two columns it needs no corner. */
function past(columns: Map<number, number>, x: number, y: number): Point[] {
  const width = columns.get(Math.round(x));
  return width === undefined ? [] : [[x - width / 2, y], [x + width / 2, y]];
}

/** Adds the ends of all links. Links at one side of a node share it, in the order in which they
 * come. */
function join(links: { at: number; from_node: number; to_node: number }[], placed: Map<number, Rect>, ways: Map<number, Point[]>): void {
  const middle = (node: number) => placed.get(node)!.y + placed.get(node)!.height / 2;
  const ends = links.map(({ at, from_node, to_node }) => {
    const way = ways.get(at)!;
    return { at, from_node, to_node, leaves: way[0]?.[1] ?? middle(to_node), arrives: way.at(-1)?.[1] ?? middle(from_node) };
  });
  for (const end of ends) {
    const from = placed.get(end.from_node)!;
    const to = placed.get(end.to_node)!;
    const beside = ends.filter(({ from_node }) => from_node === end.from_node).sort((a, b) => a.leaves - b.leaves);
    const before = ends.filter(({ to_node }) => to_node === end.to_node).sort((a, b) => a.arrives - b.arrives);
    const share = (all: unknown[]) => (all.indexOf(end) + 1) / (all.length + 1);
    ways.get(end.at)!.unshift([from.x + from.width, from.y + from.height * share(beside)]);
    ways.get(end.at)!.push([to.x, to.y + to.height * share(before)]);
  }
}

/** Places the nodes without packets in rows below the others. */
function placeIdle(picture: Picture, idle: number[], placed: Map<number, Rect>): void {
  const { height } = extent(placed);
  let [x, y] = [0, height === 0 ? 0 : height + ROW_GAP];
  idle.forEach((at, i) => {
    if (i > 0 && i % IDLE_MAX === 0) [x, y] = [0, y + HEIGHT + ROW_GAP];
    const { width } = size(picture, at);
    placed.set(at, { x, y, width, height: HEIGHT });
    x += width + ROW_GAP;
  });
}

function extent(placed: Map<number, Rect>): { width: number; height: number } {
  const all = [...placed.values()];
  return {
    width: Math.max(0, ...all.map(({ x, width }) => x + width)),
    height: Math.max(0, ...all.map(({ y, height }) => y + height)),
  };
}
