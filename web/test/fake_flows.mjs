// A made-up run of flows without a core: what the page is told of an API, and of its taps.

import * as fake from "./fake.mjs";

/** `count` nodes of flows: a listener, a router, and branches of two nodes behind each of its
 * outputs, which all lead to one answer to errors; also a store that no packet reaches, a test that
 * does not run, and the dashboard. */
export function hello(count = 30) {
  const nodes = [["listener", "listener", "source"], ["router", "router", "node"], ["failed", "snippet", "node"], ["users", "store", "node"]];
  const links = [["listener.out", "router.in", 0, 1]];
  for (let way = 0; nodes.length < count; way += 1) {
    const first = nodes.length;
    nodes.push([`check_${way}`, "validate", "node"], [`answer_${way}`, "snippet", "node"]);
    links.push([`router.out[${way}]`, `check_${way}.in`, 1, first], [`check_${way}.out`, `answer_${way}.in`, first, first + 1],
      [`check_${way}.error`, "failed.in", first, 2]);
  }
  nodes.push(["a_test", "test", "node"], ["page", "dashboard", null]);
  links.push(["a_test.out", "router.in", nodes.length - 2, 1]);
  return {
    ...fake.hello(), graph: "shop", threads: [], signals: [], ports: [], arm: null, joints_signal: null, path_signal: null, paths: [],
    commands: false, holds: false, camera: false,
    picture: {
      domains: [{ name: "page", service: true }, { name: "api", service: true }],
      nodes: nodes.map(([name, kind, flow]) => ({ name, kind, domain: name === "page" ? 0 : 1, flow, runs: name !== "a_test" })),
      links: [],
      flow_links: links.map(([from, to, from_node, to_node]) => ({ from, to, from_node, to_node })),
    },
  };
}

/** The figures of the nodes that have some; all other nodes have done nothing. */
export function status({ picture }, figures = {}) {
  const { status } = fake.status();
  const none = { packets: 0, errors: 0, refused: 0, in_flight: 0, packets_per_s: 0, time_ns_p50: null, time_ns_p99: null, time_ns_max: null };
  const domains = picture.domains.map(({ name }, at) => ({
    ...status.domains[2], name, state: "running", last_reason: null,
    nodes: picture.nodes.filter(({ domain, runs }) => domain === at && runs)
      .map(({ name, kind, flow }) => ({ name, kind, ...(flow ? { flow: { ...none, ...figures[name] } } : {}) })),
  }));
  return { type: "status", status: { ...status, graph: "shop", domains } };
}

export const noCycles = { type: "figures", threads: [], nodes: [], links: [], viewers: 1 };

/** The lines of a flow that begins in the listener and takes these steps. A step is: node, outcome,
 * result. */
export function way(flow, ...steps) {
  const lines = steps.flatMap(([node, outcome, packet], at) => [
    { packet: { flow, node, at_us: 1_000_000 + 100 * at, input: "in", packet: '{"path":"/"}' } },
    { step: { flow, node, at_us: 1_000_050 + 100 * at, took_us: 50, outcome, packet } },
  ]);
  const begun = { packet: { flow, node: "listener", at_us: 999_900, input: "", packet: '{"path":"/"}' } };
  return [begun, ...lines, { ended: flow }].map((line) => ({ type: "tap", line }));
}
