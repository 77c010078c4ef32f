// The WebSocket: connects, tries again after growing pauses, knows how old the data is, and turns
// orders into promises.

import { mark } from "./marks";
import { decode, type CameraImage, type FreeOrder, type Hello, type Motion, type Order, type Sizes, type Text, type Values } from "./protocol";

/** Pauses between attempts, ms; the last one repeats. */
const PAUSES_MS = [250, 500, 1000, 2000, 4000];
/** A pause differs by up to this share, so that many pages do not come at once. */
const PAUSE_SPREAD = 0.3;
/** Data older than this is shown as old; motion comes every 33 ms. */
const OLD_MS = 700;
/** After this long without a message the connection is given up, and a new one is tried. */
const SILENT_MS = 6000;
/** An order that is not answered within this has failed. */
const ANSWER_MS = 5000;
/** Spacing of pings. */
const PING_MS = 2000;
/** Round trips remembered; the shortest counts, because a busy page answers late. */
const ROUND_TRIPS = 8;
/** Time between two checks of the data's age. */
const LOOK_MS = 200;
/** The server's code when there is no room for another viewer, or when this one was too slow. */
const CLOSED_FULL = 1013;

export type Link =
  | { state: "connecting"; first: boolean; reason: string }
  | { state: "live" }
  | { state: "old"; age_ms: number }
  | { state: "ended"; reason: string }
  | { state: "recorded" };

/** Where what is shown comes from: a run, or a recording of one. */
export interface Source {
  /** One way to the server, ms. */
  readonly network_ms: number | null;
  order(order: Order): Promise<string>;
  ask(order: FreeOrder | (Order & { token: string })): Promise<string>;
  view(image: boolean, values: boolean): void;
}

/** Who listens. */
export interface Listener {
  link(link: Link): void;
  hello(hello: Hello): void;
  text(text: Text): void;
  motion(motion: Motion): void;
  image(image: CameraImage): void;
  values(values: Values): void;
  /** What comes next does not continue what came before. */
  begin?(): void;
}

interface Waiting {
  resolve(text: string): void;
  reject(error: Error): void;
  timer: number;
}

/** One page's connection to the dashboard. */
export class Connection implements Source {
  private socket: WebSocket | null = null;
  private attempt = 0;
  private heard_ms = 0;
  private moved_ms = 0;
  private sizes: Sizes | null = null;
  private ended = "";
  private met = false;
  private next_id = 1;
  private readonly waiting = new Map<number, Waiting>();
  private wants = { image: false, values: false };
  private round_trips_ms: number[] = [];

  constructor(
    private readonly url: string,
    private readonly token: () => string | null,
    private readonly listener: Listener,
  ) {
    setInterval(() => this.look(), LOOK_MS);
    setInterval(() => this.send({ do: "ping", at: performance.now() }), PING_MS);
    this.open();
  }

  /** One way to the server, ms: half of the shortest of the last round trips. */
  get network_ms(): number | null {
    return this.round_trips_ms.length > 0 ? Math.min(...this.round_trips_ms) / 2 : null;
  }

  /** Carries an order out. The promise resolves to the result, or is rejected with the reason. */
  order(order: Order): Promise<string> {
    const token = this.token();
    if (!token) return Promise.reject(new Error("this page has no token"));
    return this.ask({ ...order, token });
  }

  /** The same for orders that need no token. */
  ask(order: FreeOrder | (Order & { token: string })): Promise<string> {
    const id = this.next_id++;
    if (!this.send({ ...order, id })) return Promise.reject(new Error("not connected: nothing was sent"));
    return new Promise((resolve, reject) => {
      const timer = window.setTimeout(() => {
        this.waiting.delete(id);
        reject(new Error(`no answer within ${ANSWER_MS / 1000} s`));
      }, ANSWER_MS);
      this.waiting.set(id, { resolve, reject, timer });
    });
  }

  /** Asks for images and values, or for none: a hidden tab needs none. */
  view(image: boolean, values: boolean): void {
    this.wants = { image, values };
    this.send({ do: "view", ...this.wants });
  }

  private send(message: object): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  private open(): void {
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.heard_ms = performance.now();
    socket.onopen = () => {
      mark("open");
      this.send({ do: "ping", at: performance.now() });
      if (this.wants.image || this.wants.values) this.send({ do: "view", ...this.wants });
    };
    socket.onmessage = ({ data }) => this.take(data);
    socket.onclose = ({ code, reason }) => this.closed(socket, code, reason);
  }

  /** A message that cannot be read is reported, and changes nothing. */
  private take(data: string | ArrayBuffer): void {
    this.heard_ms = performance.now();
    try {
      if (typeof data === "string") this.takeText(JSON.parse(data) as Text);
      else this.takeBytes(data);
    } catch (error) {
      const text = `the dashboard sent what this page cannot read: ${(error as Error).message}`;
      this.listener.text({ type: "error", id: null, text });
    }
  }

  private takeBytes(data: ArrayBuffer): void {
    if (this.sizes === null) return;
    const message = decode(data, this.sizes);
    if (message.kind === "image") return this.listener.image(message);
    if (message.kind === "values") return this.listener.values(message);
    this.moved_ms = this.heard_ms;
    this.listener.motion(message);
  }

  private takeText(text: Text): void {
    switch (text.type) {
      case "hello":
        this.attempt = 0;
        this.met = true;
        this.ended = "";
        this.sizes = sizes(text);
        this.moved_ms = performance.now();
        this.listener.hello(text);
        return this.listener.link({ state: "live" });
      case "pong":
        this.round_trips_ms = [performance.now() - text.at, ...this.round_trips_ms].slice(0, ROUND_TRIPS);
        return;
      case "done":
        return this.settle(text.id, (waiting) => waiting.resolve(text.text));
      case "error":
        if (text.id !== null) return this.settle(text.id, (waiting) => waiting.reject(new Error(text.text)));
        break;
      case "ended":
        this.ended = text.text;
    }
    this.listener.text(text);
  }

  private settle(id: number, how: (waiting: Waiting) => void): void {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    clearTimeout(waiting.timer);
    this.waiting.delete(id);
    how(waiting);
  }

  /** Shows how old the data is; gives up a connection that is silent. */
  private look(): void {
    const now = performance.now();
    if (now - this.heard_ms > SILENT_MS && this.socket) return this.socket.close();
    if (this.sizes === null) return;
    const age_ms = now - this.moved_ms;
    this.listener.link(age_ms > OLD_MS ? { state: "old", age_ms } : { state: "live" });
  }

  private closed(socket: WebSocket, code: number, reason: string): void {
    if (socket !== this.socket) return;
    this.socket = null;
    this.sizes = null;
    for (const id of [...this.waiting.keys()]) {
      this.settle(id, (waiting) => waiting.reject(new Error("the connection was lost before an answer came")));
    }
    const why = reason || (code === CLOSED_FULL ? "there is no room for another viewer" : "");
    if (this.ended) this.listener.link({ state: "ended", reason: this.ended });
    else this.listener.link({ state: "connecting", first: !this.met, reason: why });
    const pause = PAUSES_MS[Math.min(this.attempt, PAUSES_MS.length - 1)] ?? 1000;
    this.attempt += 1;
    setTimeout(() => this.open(), pause * (1 + PAUSE_SPREAD * Math.random()));
  }
}

/** How long the binary messages of a run are. */
export function sizes({ signals, ports }: Hello): Sizes {
  const fields = ports.flatMap((port) => port.fields);
  return {
    signals: signals.reduce((most, { offset, count }) => Math.max(most, offset + count), 0),
    ports: ports.length,
    numbers: fields.reduce((most, { offset, shown }) => Math.max(most, offset + shown), 0),
  };
}
