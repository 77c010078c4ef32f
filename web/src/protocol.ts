// What the server says and takes, in the same words as kinds/services/src/dashboard/protocol.rs,
// where each of them is explained.

/** The version of the protocol that this page speaks. */
export const VERSION = 1;

const MOTION = 1;
const IMAGE = 2;
const VALUES = 3;

/** Flags of a port in a frame with values. */
export const VALUE = { fresh: 1, closed: 2, safe: 4 };

/** Flags of a thread: what happened in a cycle since the last frame. */
export const FLAG = { fresh: 1, overrun: 2, feedbackMissing: 4, stopping: 8, failed: 16, withoutInput: 32 };

export type Triple = [number, number, number];

export interface ThreadInfo {
  domain: string;
  thread: number;
  period_us: number;
  deadline_us: number;
  timed: boolean;
  nodes: string[];
}

export interface SignalInfo {
  thread: number;
  node: string;
  name: string;
  doc: string;
  unit: string;
  count: number;
  labels: string[];
  offset: number;
}

export interface FieldInfo {
  name: string;
  scalar: string;
  unit: string;
  count: number;
  shown: number;
  offset: number;
  labels: string[];
}

export interface PortInfo {
  thread: number;
  port: string;
  direction: "in" | "out";
  message: string;
  others: string[];
  fields: FieldInfo[];
}

export interface ArmJoint {
  name: string;
  moves: boolean;
  origin_xyz_m: Triple;
  origin_rpy_rad: Triple;
  axis: Triple;
  lower_rad: number;
  upper_rad: number;
}

export interface HistogramInfo {
  lowest_us: number;
  per_decade: number;
  count: number;
}

export interface Hello {
  type: "hello";
  protocol: number;
  sinew: string;
  graph: string;
  file: string;
  life: string;
  now_ms: number;
  threads: ThreadInfo[];
  signals: SignalInfo[];
  ports: PortInfo[];
  ports_left_out: number;
  picture: Picture;
  arm: { name: string; joints: ArmJoint[] } | null;
  joints_signal: number | null;
  path_signal: number | null;
  paths: string[];
  histogram: HistogramInfo;
  commands: boolean;
  holds: boolean;
  camera: boolean;
}

/** The ends of a link: `node.port` in words, and the nodes by their places. */
export interface Ends {
  from: string;
  to: string;
  from_node: number;
  to_node: number;
}

/** The plan's domains, nodes and links, in the order of the figures; the page places them itself. */
export interface Picture {
  domains: { name: string; service: boolean }[];
  nodes: { name: string; kind: string; domain: number; flow: "source" | "node" | null; runs: boolean }[];
  links: (Ends & { fused: boolean })[];
  flow_links: Ends[];
}

export interface DomainStatus {
  name: string;
  role: "realtime" | "service" | "guest";
  state: string;
  pid: number | null;
  user: string;
  up_ms: number;
  restarts: number;
  last_reason: string | null;
  next_restart_ms: number | null;
  address: string | null;
  resident_kib: number | null;
  nodes: NodeStatus[];
  /** The other hosts of the graph, as the service that stands for them sees them. */
  hosts?: HostStatus[];
}

/** Another host of the graph. */
export interface HostStatus {
  name: string;
  state: "unheard" | "heard" | "silent" | "other_graph" | "two";
  round_trip_us?: number | null;
  late: number;
  misplaced?: number;
}

export interface NodeStatus {
  name: string;
  kind: string;
  flow?: FlowStatus;
}

/** What a node of flows has done since its process was started. */
export interface FlowStatus {
  packets: number;
  errors: number;
  refused: number;
  in_flight: number;
  packets_per_s: number;
  time_ns_p50: number | null;
  time_ns_p99: number | null;
  time_ns_max: number | null;
}

export interface LinkStatus {
  from: string;
  to: string;
  transport: string;
  delivery: string;
  capacity: number;
  broken: boolean;
}

export interface Status {
  graph: string;
  file: string;
  pid: number;
  phase: "starting" | "running" | "held" | "stopping";
  elapsed_ms: number;
  domains: DomainStatus[];
  links: LinkStatus[];
  notes: string[];
  stop: { reason: string } | null;
}

export interface RunEvent {
  number: number;
  time_ns: number;
  unix_ms: number;
  domain: string | null;
  what: string;
  text: string;
  /** In an event "log": the node of the core that logged it. */
  logged?: { node: string; level: "info" | "warning" | "error"; cycle: number };
}

export interface Times {
  count: number;
  max_us: number | null;
  p50_us: number | null;
  p99_us: number | null;
  p99_9_us: number | null;
}

export interface Histogram extends Times {
  counts: number[];
}

export interface ThreadFigures {
  cycles: number;
  overruns: number;
  skipped: number;
  lost: number;
  latency: Histogram;
  jitter: Histogram | null;
}

export interface LinkFigures {
  rate_per_s: number | null;
  fill: number | null;
  lost: number | null;
  broken: boolean;
}

export interface Figures {
  type: "figures";
  threads: ThreadFigures[];
  nodes: (Times | null)[];
  links: LinkFigures[];
  viewers: number;
}

export interface Stop {
  type: "stop";
  reason: string;
  asked_ms: number;
  safe_output_us: number | null;
  brakes_closed_us: number | null;
  at_rest_us: number | null;
}

/** A parameter that may be set while the core runs. */
export interface Tunable {
  node: string;
  parameter: string;
  value: string;
  unit: string;
  takes: string;
  min: number | null;
  max: number | null;
  doc: string;
}

/** What a scope is set to; see kinds/services/src/dashboard/protocol/scope.rs. */
export interface ScopeOrder {
  traces: string[];
  settings: {
    window_ns: number;
    pre: number;
    sweep: "roll" | "auto" | "normal" | "single";
    trigger: { trace: number; slope: "rising" | "falling" | "either" | "above" | "below"; level: number; hysteresis: number };
  };
  look: {
    columns: number;
    span_s?: [number, number];
    cursors_s?: [number, number];
    xy?: [number, number];
    spectrum?: number;
    step?: { input?: number; output: number };
    bode?: [number, number];
  };
  frozen: boolean;
}

export interface TraceFigures {
  cycles: number;
  missing: number;
  min: number;
  max: number;
  mean: number;
  rms: number;
  peak_to_peak: number;
  frequency_hz: number | null;
}

export interface TracePicture {
  name: string;
  unit: string;
  labels: string[];
  min: (number | null)[];
  max: (number | null)[];
  figures: TraceFigures | null;
  cursors: { at_s: [number, number]; values: [number | null, number | null]; difference: number | null; apart_s: number; apart_hz: number | null } | null;
}

/** A figure, or why there is none. */
export type Shown<T> = { Ok: T } | { Err: string };

export interface StepResponse {
  begin_s: number;
  initial: number;
  steady: number;
  rise_s: number;
  overshoot_percent: number;
  peak: number;
  peak_s: number;
  settling_s: number;
  within: number;
}

export interface FrequencyPoint {
  frequency_hz: number;
  gain_db: number;
  phase_deg: number;
  coherence: number;
}

export interface ScopePicture {
  type: "scope";
  key: number;
  number: number;
  doing: "rolling" | "waiting" | "filling" | "done" | "frozen";
  triggered: boolean;
  window_s: [number, number];
  span_s: [number, number];
  lost: number;
  life: number;
  ended: string | null;
  traces: TracePicture[];
  xy: ([number, number] | null)[] | null;
  spectrum: Shown<{ points: [number, number][]; peaks: [number, number][]; resolution_hz: number }> | null;
  step: Shown<StepResponse> | null;
  bode: Shown<FrequencyPoint[]> | null;
  /** In a recorded run: the traces of which every cycle is shown. */
  note?: string;
}

/** What a tap of flows says; times are monotonic. */
export type TapLine =
  | { packet: { flow: number; node: string; at_us: number; input: string; packet: string } }
  | { step: { flow: number; node: string; at_us: number; took_us: number; outcome: string; packet: string } }
  | { ended: number }
  | { lost: number };

/** What the server says as text. */
export type Text =
  | Hello
  | { type: "status"; status: Status }
  | { type: "events"; events: RunEvent[]; missed: number }
  | Figures
  | Stop
  | { type: "done"; id: number; text: string }
  | { type: "error"; id: number | null; text: string }
  | { type: "tap"; line: TapLine }
  | { type: "untapped"; text: string }
  | ScopePicture
  | { type: "tunables"; tunables: Tunable[] }
  | { type: "pong"; at: number }
  | { type: "ended"; text: string };

/** What an order asks for, beside its id and token. */
export type Order =
  | { do: "check" | "halt" | "reset" | "pause" | "resume" | "untap" }
  | { do: "set"; settings: string[]; save: boolean }
  | { do: "tap"; domain: string; node: string }
  | { do: "restart"; domain: string }
  | { do: "choose"; path: number };

/** Orders that every viewer may give. */
export type FreeOrder = ({ do: "scope" } & ScopeOrder) | { do: "arm" | "unscope" };

/** A thread of the core in a motion frame. */
export interface ThreadMotion {
  cycle: number;
  latency_us: number;
  jitter_us: number;
  overruns: number;
  skipped: number;
  lost: number;
  flags: number;
}

/** Thirty times a second: the cycles' figures, all signals, and the tool's path since the last
 * one. */
export interface Motion {
  kind: "motion";
  sequence: number;
  now_ms: number;
  threads: ThreadMotion[];
  signals: Float32Array;
  path: Float32Array;
}

/** A frame of the camera. */
export interface CameraImage {
  kind: "image";
  sequence: number;
  taken_ms: number;
  jpeg: Uint8Array<ArrayBuffer>;
}

/** A port in a frame with values. */
export interface PortValue {
  written_ms: number;
  messages: number;
  flags: number;
}

/** Ten times a second: the newest message of each port. */
export interface Values {
  kind: "values";
  sequence: number;
  now_ms: number;
  ports: PortValue[];
  numbers: Float64Array;
}

/** How many elements all signals, all ports and all their numbers are. */
export interface Sizes {
  signals: number;
  ports: number;
  numbers: number;
}

const HEAD_LEN = 16;
const PORT_LEN = 16;
const THREAD_LEN = 32;

/** Reads a binary message of a run of these sizes; throws a sentence if it is not one. */
export function decode(bytes: ArrayBuffer, sizes: Sizes): Motion | CameraImage | Values {
  if (bytes.byteLength < HEAD_LEN) throw new Error(`a message of ${bytes.byteLength} bytes is too short`);
  const view = new DataView(bytes);
  const [kind, version] = [view.getUint8(0), view.getUint8(1)];
  if (version !== VERSION) throw new Error(`a message of version ${version}, expected ${VERSION}`);
  const [sequence, at_ms] = [view.getUint32(4, true), view.getFloat64(8, true)];
  if (kind === IMAGE) return { kind: "image", sequence, taken_ms: at_ms, jpeg: new Uint8Array(bytes, HEAD_LEN) };
  if (kind === VALUES) return values(view, sequence, at_ms, sizes);
  if (kind !== MOTION) throw new Error(`a message of kind ${kind}, which this page does not know`);
  return motion(view, sequence, at_ms, sizes.signals);
}

/** A number of the signals of a motion message; `null` if it is another message. */
export function motionNumber(bytes: ArrayBuffer, threads: number, at: number): number | null {
  const view = new DataView(bytes);
  return view.getUint8(0) === MOTION ? view.getFloat32(HEAD_LEN + THREAD_LEN * threads + 4 * at, true) : null;
}

/** A number of a message with values; `null` if it is another message. */
export function valuesNumber(bytes: ArrayBuffer, ports: number, at: number): number | null {
  const view = new DataView(bytes);
  return view.getUint8(0) === VALUES ? view.getFloat64(HEAD_LEN + PORT_LEN * ports + 8 * at, true) : null;
}

function motion(view: DataView, sequence: number, now_ms: number, signals: number): Motion {
  const threads = view.getUint16(2, true);
  const path_at = HEAD_LEN + THREAD_LEN * threads + 4 * signals;
  const points = view.byteLength >= path_at + 2 ? view.getUint16(path_at, true) : 0;
  fits(view, path_at + 2 + 12 * points);
  return {
    kind: "motion",
    sequence,
    now_ms,
    threads: Array.from({ length: threads }, (_, i) => thread(view, HEAD_LEN + THREAD_LEN * i)),
    signals: floats(view, HEAD_LEN + THREAD_LEN * threads, signals),
    path: floats(view, path_at + 2, 3 * points),
  };
}

function values(view: DataView, sequence: number, now_ms: number, sizes: Sizes): Values {
  const numbers_at = HEAD_LEN + PORT_LEN * sizes.ports;
  fits(view, numbers_at + 8 * sizes.numbers);
  const port = (_: unknown, i: number): PortValue => {
    const at = HEAD_LEN + PORT_LEN * i;
    return { written_ms: view.getFloat64(at, true), messages: view.getUint32(at + 8, true), flags: view.getUint32(at + 12, true) };
  };
  const numbers = Float64Array.from({ length: sizes.numbers }, (_, i) => view.getFloat64(numbers_at + 8 * i, true));
  return { kind: "values", sequence, now_ms, ports: Array.from({ length: sizes.ports }, port), numbers };
}

function fits(view: DataView, expected: number): void {
  if (view.byteLength !== expected) throw new Error(`a frame of ${view.byteLength} bytes, expected ${expected}`);
}

function thread(view: DataView, at: number): ThreadMotion {
  return {
    cycle: view.getFloat64(at, true),
    latency_us: view.getFloat32(at + 8, true),
    jitter_us: view.getFloat32(at + 12, true),
    overruns: view.getUint32(at + 16, true),
    skipped: view.getUint32(at + 20, true),
    lost: view.getUint32(at + 24, true),
    flags: view.getUint32(at + 28, true),
  };
}

/** Little endian on every machine, and at any offset. */
function floats(view: DataView, at: number, count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => view.getFloat32(at + 4 * i, true));
}
