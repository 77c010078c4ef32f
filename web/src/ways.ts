// The ways of flows, put together from the lines of a tap: what each node took and made of it, and
// which nodes and links of the picture the flow passed.

import type { Met } from "./flow_graph";
import type { Picture, TapLine } from "./protocol";

/** Ways kept, and steps kept of one way: a flow may go round for hours. */
const WAYS_MAX = 6;
const STEPS_MAX = 100;

/** A node on the way of a packet. */
export interface Stage {
  node: string;
  /** Empty where the flow began. */
  input: string;
  at_us: number;
  /** What came in, and what the node made of it; `null` while the node is still at it. */
  packet: string;
  outcome: string | null;
  took_us: number | null;
  made: string | null;
}

export interface Way {
  flow: number;
  stages: Stage[];
  /** Stages that are not kept. */
  left_out: number;
  ended: boolean;
  links: Set<number>;
}

export class Ways {
  lost = 0;
  private readonly all: Way[] = [];

  /** Collects the ways that come to a node. */
  constructor(private readonly picture: Picture, private readonly node: string) {}

  /** The ways, newest first. The last lines of another node's tap may come late. */
  get shown(): Way[] {
    return this.all.filter(({ stages }) => stages.some(({ node }) => node === this.node));
  }

  /** Takes a line; the flow `kept` is not dropped, however old it is. */
  take(line: TapLine, kept: number | null): void {
    if ("lost" in line) this.lost += line.lost;
    else if ("ended" in line) this.end(line.ended);
    else if ("packet" in line) this.come(line.packet, kept);
    else if ("step" in line) this.leave(line.step);
  }

  of(flow: number | null): Way | undefined {
    return this.all.find((way) => way.flow === flow);
  }

  /** The nodes and links of the picture that a way passed. */
  met({ stages, links }: Way): Met {
    const names = new Set(stages.map(({ node }) => node));
    return { nodes: new Set(this.picture.nodes.flatMap(({ name }, at) => (names.has(name) ? [at] : []))), links };
  }

  private come({ flow, node, input, at_us, packet }: TapPacket, kept: number | null): void {
    let way = this.of(flow);
    if (!way) {
      way = { flow, stages: [], left_out: 0, ended: false, links: new Set() };
      this.all.unshift(way);
      const last = this.all.length - 1;
      if (last >= WAYS_MAX) this.all.splice(this.all[last]?.flow === kept ? last - 1 : last, 1);
    }
    for (const link of this.into(way, node)) way.links.add(link);
    if (way.stages.length >= STEPS_MAX) way.left_out += 1;
    else way.stages.push({ node, input, at_us, packet, outcome: null, took_us: null, made: null });
  }

  private leave({ flow, node, took_us, outcome, packet }: TapStep): void {
    const stage = this.of(flow)?.stages.find((stage) => stage.node === node && stage.outcome === null);
    if (stage) Object.assign(stage, { outcome, took_us, made: packet });
  }

  private end(flow: number): void {
    const way = this.of(flow);
    if (way) way.ended = true;
  }

  /** The links by which a packet has come to a node. They come from the last node that had the
   * packet and leads there; if it is already known which output it took, only that output's
   * link. */
  private into(way: Way, node: string): number[] {
    const name = (at: number) => this.picture.nodes[at]?.name;
    const links = this.picture.flow_links.flatMap((link, at) => (name(link.to_node) === node ? [{ ...link, at }] : []));
    const before = [...way.stages].reverse().find((stage) => links.some(({ from_node }) => name(from_node) === stage.node));
    const from = links.filter(({ from_node }) => before && name(from_node) === before.node);
    const taken = from.filter((link) => link.from === `${before?.node}.${before?.outcome}`);
    return (taken.length > 0 ? taken : from).map(({ at }) => at);
  }
}

type TapPacket = Extract<TapLine, { packet: unknown }>["packet"];
type TapStep = Extract<TapLine, { step: unknown }>["step"];
