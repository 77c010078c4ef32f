// A server that speaks the dashboard's protocol with made-up data: to work on the page without a
// run, and for states that no real run shows on demand. `node web/test/fake.mjs FOLDER [PORT]`
// serves the built page from FOLDER. It is not part of the product.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const TOKEN = "0123456789abcdef0123456789abcdef";
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'";

/** Starts it with the page of `folder`; `server.hear` may be replaced, `server.tell` speaks to all pages. */
export async function serve(folder, port = 0) {
  const sockets = new Set();
  const server = createServer(async (request, response) => {
    const name = request.url === "/" ? "index.html" : request.url.slice(1);
    const body = await readFile(join(folder, name)).catch(() => null);
    const type = TYPES[name.split(".").at(-1)] ?? "text/plain";
    response.writeHead(body ? 200 : 404, { "content-type": type, "content-security-policy": POLICY });
    response.end(body);
  });
  server.on("upgrade", (request, socket) => {
    if (server.away) return socket.destroy();
    const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + GUID).digest("base64");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => sockets.delete(socket));
    socket.on("data", (data) => orders(data).forEach((order) => server.hear(order, (answer) => send(socket, answer))));
    server.greet((answer) => send(socket, answer));
  });
  server.tell = (message) => sockets.forEach((socket) => send(socket, message));
  server.drop = () => sockets.forEach((socket) => socket.destroy());
  server.away = false;
  server.greet = () => {};
  server.hear = () => {};
  await new Promise((ready) => server.listen(port, "127.0.0.1", ready));
  return server;
}

function send(socket, message) {
  const binary = Buffer.isBuffer(message);
  const body = binary ? message : Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(body.length < 126 ? 2 : body.length < 65536 ? 4 : 10);
  head[0] = binary ? 0x82 : 0x81;
  head[1] = body.length < 126 ? body.length : body.length < 65536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(body.length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(body.length), 2);
  socket.write(Buffer.concat([head, body]));
}

/** Reads short masked text frames, which is all that the page sends. */
function orders(data) {
  const found = [];
  for (let at = 0; at + 6 <= data.length;) {
    const [length, body] = (data[at + 1] & 127) < 126 ? [data[at + 1] & 127, at + 6] : [data.readUInt16BE(at + 2), at + 8];
    const text = data.subarray(body, body + length).map((byte, i) => byte ^ data[body - 4 + (i & 3)]);
    if ((data[at] & 15) === 1) found.push(JSON.parse(text.toString()));
    at = body + length;
  }
  return found;
}

const origins = [[0, 0, 0], [0, 0, 0.29], [0, 0, 0.27], [0, 0, 0.07], [0.302, 0, 0], [0.072, 0, 0]];
const axes = [[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]];
const STATES = ["not ready", "switch on disabled", "ready to switch on", "switched on", "operation enabled", "fault"];

/** A port whose messages come, an actuator's port with its safe value, and a port that was never
 * written. */
function ports() {
  const f64 = (name, unit, count, offset) => ({ name, scalar: "f64", unit, count, shown: Math.min(count, 16), offset, labels: [] });
  return [
    { thread: 0, port: "ik.out", direction: "out", message: "Joints", others: ["ethercat.in"], fields: [f64("position_rad", "rad", 6, 0), f64("speed_m_per_s", "m/s", 1, 6), { ...f64("modes", "", 3, 25), scalar: "u8", labels: ["Off", "", "Heat"] }] },
    { thread: 1, port: "drives.in", direction: "in", message: "Real", others: ["ethercat.out"], fields: [f64("", "V", 1, 7)] },
    { thread: 0, port: "planner.command", direction: "in", message: "Order", others: ["dashboard.command"], fields: [{ ...f64("go", "", 1, 8), scalar: "bool" }, f64("many", "", 100, 9)] },
  ];
}

/** The values of those ports at a time. */
export function values(sequence, since_ms) {
  const ms = since_ms + 10_000;
  const numbers = [...Array.from({ length: 6 }, (_, i) => Math.sin(ms / 900 + i)), 0.25, -1.5, 0, ...Array(16).fill(0), 2, 1, 9];
  const frame = Buffer.alloc(16 + 3 * 16 + 8 * numbers.length);
  frame[0] = 3;
  frame[1] = 1;
  frame.writeUInt16LE(3, 2);
  frame.writeUInt32LE(sequence, 4);
  frame.writeDoubleLE(ms, 8);
  [[ms - 1, sequence, 1], [ms - 2300, 77, 4], [-1, 0, 0]].forEach(([written, count, flags], i) => {
    frame.writeDoubleLE(written, 16 + 16 * i);
    frame.writeUInt32LE(count, 24 + 16 * i);
    frame.writeUInt32LE(flags, 28 + 16 * i);
  });
  numbers.forEach((number, i) => frame.writeDoubleLE(number, 64 + 8 * i));
  return frame;
}

/** What a scope shows for `order`: a ramp for each trace. */
export function picture(order, ms) {
  const columns = Array.from({ length: order.look.columns }, (_, at) => at / order.look.columns);
  const [from, until] = [-order.settings.window_ns * order.settings.pre * 1e-9, order.settings.window_ns * (1 - order.settings.pre) * 1e-9];
  const trace = (name, at) => ({
    name, unit: at === 0 ? "rad" : "V", labels: [], min: columns.map((x) => x * (at + 1)), max: columns.map((x) => x * (at + 1) + 0.1),
    figures: { cycles: 1000, missing: 0, min: 0, max: at + 1.1, mean: 0.5, rms: 0.6, peak_to_peak: 1.1, frequency_hz: null },
    cursors: order.look.cursors_s ? { at_s: order.look.cursors_s, values: [1.25, 2.5], difference: 1.25, apart_s: 0.5, apart_hz: 2 } : null,
  });
  const step = { begin_s: 0, initial: 0, steady: 1, rise_s: 0.012, overshoot_percent: 4.5, peak: 1.045, peak_s: 0.02, settling_s: 0.05, within: 0.02 };
  const bode = [1, 10, 100].map((frequency_hz) => ({ frequency_hz, gain_db: -frequency_hz / 10, phase_deg: -frequency_hz, coherence: 1 }));
  return {
    type: "scope", key: 7, number: Math.floor(ms), doing: order.frozen ? "frozen" : "rolling", triggered: order.settings.sweep !== "roll",
    window_s: [from, until], span_s: order.look.span_s ?? [from, until], lost: 0, life: 0, ended: null, traces: order.traces.map(trace),
    xy: order.look.xy ? columns.map((x) => [x, x * x]) : null,
    spectrum: order.look.spectrum === undefined ? null : { Ok: { points: [[1, 0.1], [12.5, 3], [400, 0.01]], peaks: [[12.5, 3]], resolution_hz: 0.5 } },
    step: order.look.step ? { Ok: step } : null, bode: order.look.bode ? { Ok: bode } : null,
  };
}

export function hello(life = "1") {
  const signals = [
    ["planner", 0, "actual_m", "m", 3, []], ["planner", 0, "paused", "", 1, []], ["planner", 0, "path_chosen", "", 1, []],
    ["drives", 1, "state", "", 6, STATES], ["drives", 1, "brake", "", 6, ["open", "closed"]],
    ["drives", 1, "position_rad", "rad", 6, []], ["drives", 1, "velocity_rad_per_s", "rad/s", 6, []],
    ["drives", 1, "torque_n_m", "N m", 6, []],
  ];
  let offset = 0;
  const rows = signals.map(([node, thread, name, unit, count, labels]) => {
    offset += count;
    return { node, thread, name, unit, count, labels, doc: name, offset: offset - count };
  });
  const joints = origins.map((xyz, i) => ({
    name: `joint_${i + 1}`, moves: true, origin_xyz_m: xyz, origin_rpy_rad: [0, 0, 0], axis: axes[i], lower_rad: -3, upper_rad: 3,
  }));
  const domains = [["control", false], ["plant", false], ["camera", true], ["dashboard", true], ["recorder", true], ["monitor", true]];
  const nodes = [["planner", "path_planner", 0], ["ik", "ik", 0], ["ethercat", "ethercat_master", 0], ["drives", "drives", 1],
    ["camera", "camera", 2], ["dashboard", "dashboard", 3], ["recorder", "recorder", 4], ["monitor", "monitor", 5]];
  const links = [["planner.out", "ik.in", 0, 1, true], ["ik.out", "ethercat.in", 1, 2, true],
    ["ethercat.out", "drives.in", 2, 3, false], ["ethercat.feedback", "planner.feedback", 2, 0, true],
    ["ethercat.feedback", "camera.pose", 2, 4, false], ["drives.out", "ethercat.frame", 3, 2, false],
    ["camera.out", "dashboard.image", 4, 5, false], ["dashboard.command", "planner.command", 5, 0, false]];
  return {
    type: "hello", protocol: 1, sinew: "0.1.0", graph: "robot", file: "graphs/robot/robot.yaml", life, now_ms: 0,
    threads: [
      { domain: "control", thread: 0, period_us: 1000, deadline_us: 1000, timed: true, nodes: ["planner", "ik", "ethercat"] },
      { domain: "plant", thread: 0, period_us: 1000, deadline_us: 1000, timed: false, nodes: ["drives"] },
    ],
    signals: rows, ports: ports(), ports_left_out: 0,
    picture: {
      domains: domains.map(([name, service]) => ({ name, service })),
      nodes: nodes.map(([name, kind, domain]) => ({ name, kind, domain, flow: null, runs: true })),
      links: links.map(([from, to, from_node, to_node, fused]) => ({ from, to, from_node, to_node, fused })),
      flow_links: [],
    },
    arm: { name: "irb120", joints }, joints_signal: 5, path_signal: 0, paths: ["../arm/square.csv", "../arm/plate.gcode", "rose.csv"],
    histogram: { lowest_us: 0.1, per_decade: 10, count: 82 }, commands: true, holds: true, camera: true,
  };
}

export function motion(sequence, ms, held = false) {
  const phase = held ? 0 : ms / 900;
  const path = [0.374 + 0.08 * Math.cos(phase), 0.08 * Math.sin(phase), 0.45 + 0.05 * Math.sin(2 * phase)];
  const joints = [0.25 * Math.sin(phase), 0.2 * Math.cos(phase) + 0.2, 0.15 * Math.sin(phase) + 0.1, 0.3 * Math.sin(phase), 0.6, phase % 6];
  const numbers = [...path, 0, 0, ...Array(6).fill(held ? 1 : 4), ...Array(6).fill(held ? 1 : 0), ...joints, ...joints.map((q) => q * 0.6), ...joints.map((q) => 6 * q)];
  const frame = Buffer.alloc(16 + 64 + 4 * numbers.length + 2 + 12);
  frame[0] = frame[1] = 1;
  frame.writeUInt16LE(2, 2);
  frame.writeUInt32LE(sequence, 4);
  frame.writeDoubleLE(ms, 8);
  for (const at of [16, 48]) {
    frame.writeDoubleLE(sequence * 33, at);
    frame.writeFloatLE(40, at + 8);
    frame.writeUInt32LE(1, at + 28);
  }
  numbers.forEach((number, i) => frame.writeFloatLE(number, 80 + 4 * i));
  frame.writeUInt16LE(1, 80 + 4 * numbers.length);
  path.forEach((number, i) => frame.writeFloatLE(number, 82 + 4 * numbers.length + 4 * i));
  return frame;
}

export function status(phase = "running", elapsed_ms = 61000) {
  const rows = [["control", "realtime"], ["plant", "realtime"], ["camera", "service"], ["dashboard", "service"], ["recorder", "service"], ["monitor", "service"]];
  const domains = rows.map(([name, role], i) => ({
    name, role, state: name === "recorder" ? "backoff" : role === "realtime" && phase === "held" ? "finished" : "running", pid: 4711 + i, user: "root", up_ms: elapsed_ms,
    restarts: name === "recorder" ? 3 : 0, last_reason: name === "recorder" ? "its process was ended by signal 9" : null,
    next_restart_ms: name === "recorder" ? 800 : null, address: name === "monitor" ? "http://127.0.0.1:9100/metrics" : null, resident_kib: 9000 + 1311 * i, threads: [], nodes: [], limits: [],
  }));
  return { type: "status", status: { graph: "robot", file: "robot.yaml", pid: 4710, phase, elapsed_ms, domains, links: [], notes: [], stop: null } };
}

export function figures(cycles) {
  const histogram = (middle, width, max) => {
    const counts = Array.from({ length: 82 }, (_, i) => Math.round(cycles * Math.exp(-(((i - middle) / width) ** 2)) / width / 1.77));
    counts[Math.ceil(Math.log10(max / 0.1) * 10)] += 1;
    return { count: cycles, max_us: max, p50_us: 0.1 * 10 ** ((middle - 0.5) / 10), p99_us: 0.1 * 10 ** ((middle + width) / 10), p99_9_us: null, counts };
  };
  const thread = (a, b) => ({ cycles, overruns: 2, skipped: 0, lost: 0, latency: histogram(a, 3, 412), jitter: histogram(b, 2, 97) });
  const node = (p50) => ({ count: cycles, p50_us: p50, p99_us: 3 * p50, p99_9_us: null, max_us: 20 * p50 });
  const link = (rate, fill, lost = 0, broken = false) => ({ rate_per_s: rate, fill, lost, broken });
  return {
    type: "figures", threads: [thread(26, 14), thread(20, 17)], nodes: [node(4.1), node(2.2), node(6.5), node(9.3), null, null, null, null],
    links: [link(1000, null, null), link(1000, null, null), link(1000, 0), link(1000, null, null), link(1000, 0, 41), link(1000, 0), link(30, 0.25), link(0, 0)], viewers: 1,
  };
}

export const event = (number, what, domain, text) => ({ number, time_ns: number * 1e6, unix_ms: 1793337000000 + number * 137, what, domain, text });

/** The parameters that can be set, with their values. */
const tuned = { "pid.kp": "6", "pid.ki": "60", "gate.open": "true" };
export function tunables() {
  const all = Object.entries(tuned).map(([name, value]) => {
    const [node, parameter] = name.split(".");
    const takes = value === "true" || value === "false" ? "true or false" : "a number from 0 to 100";
    return { node, parameter, value, unit: parameter === "kp" ? "V/rad" : "", takes, min: 0, max: 100, doc: `what ${parameter} does` };
  });
  return { type: "tunables", tunables: all };
}

/** Sets all parameters, or none. */
function set(server, { id, settings, save }, answer) {
  const wanted = settings.map((setting) => setting.split("="));
  const bad = wanted.find(([, value]) => !(value === "true" || value === "false" || (Number(value) >= 0 && Number(value) <= 100)));
  if (bad) return answer({ type: "error", id, text: `'${bad[0]}' is ${bad[1]}; expected a number from 0 to 100` });
  for (const [name, value] of wanted) tuned[name] = value;
  answer({ type: "done", id, text: settings.join(", ") });
  server.tell(tunables());
  if (save) server.tell({ type: "events", events: [event(90, "saved", null, `${settings.join(", ")} written to 'robot.yaml'`)], missed: 0 });
}

/** The scope of the page that asked last. */
function scoped(server, order, answer, ms) {
  const unknown = order.traces?.find((name) => !name.includes("."));
  if (unknown) return answer({ type: "error", id: order.id, text: `'${unknown}' is no trace; expected NODE.SIGNAL or NODE.PORT` });
  if (order.do !== "arm") server.scope = order.do === "scope" ? order : null;
  answer({ type: "done", id: order.id, text: `${order.do}: done` });
  if (server.scope) server.tell({ ...picture(server.scope, ms), ...server.scope_says });
}

/** A machine that can be stopped and reset. */
export function run(server) {
  let [sequence, phase, held_ms] = [0, "running", 0];
  const since = Date.now();
  const ms = () => Date.now() - since;
  const story = [event(1, "started", "control", "process 4711"), event(2, "ready", "control", "after 3.1 ms"),
    event(3, "late", "control", "cycle 81234: deadline 1000 us exceeded by 137 us in node 'ik'"),
    event(4, "output", "camera", "<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script>"),
    event(5, "faulted", "recorder", "its process was ended by signal 9"), event(6, "restarting", "recorder", "in 800 ms")];
  server.greet = (tell) => [hello(), status(phase), figures(61000), { type: "events", events: story, missed: 0 }, tunables()].forEach(tell);
  server.hear = (order, answer) => {
    if (order.do === "ping") return answer({ type: "pong", at: order.at });
    if (order.do === "view") return (server.wants = order);
    if (["scope", "arm", "unscope"].includes(order.do)) return scoped(server, order, answer, ms());
    if (order.token !== TOKEN) return answer({ type: "error", id: order.id, text: "the token is wrong" });
    if (order.do === "set") return set(server, order, answer);
    if (order.do === "halt") [phase, held_ms] = ["held", ms()];
    if (order.do === "reset") [phase, sequence] = ["running", 0];
    answer({ type: "done", id: order.id, text: `${order.do}: done` });
    server.tell(status(phase, ms()));
    if (order.do === "halt") server.tell({ type: "stop", reason: "the dashboard's stop button", asked_ms: held_ms, safe_output_us: 1100, brakes_closed_us: 43000, at_rest_us: 51000 });
  };
  const timers = [setInterval(() => server.tell(motion((sequence += 1), ms(), phase === "held")), 33),
    setInterval(() => server.wants?.values && server.tell(values((sequence += 1), ms())), 100),
    setInterval(() => [status(phase, ms()), figures(61000 + ms())].forEach(server.tell), 500)];
  server.on("close", () => timers.forEach(clearInterval));
  return () => timers.forEach(clearInterval);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = await serve(process.argv[2], Number(process.argv[3] ?? 8601));
  run(server);
  console.log(`http://127.0.0.1:${server.address().port}/#token=${TOKEN}`);
}
