// Plays a recorded run in place of a connection: the same messages, to the same listener. People
// pause it, go to another time, or change its speed. Nothing can be ordered.

import type { Listener, Source } from "./connection";
import { sizes } from "./connection";
import { byId, make, setText } from "./dom";
import { decode, type FreeOrder, type Hello, type Order, type ScopeOrder, type Sizes } from "./protocol";
import { RecordedScope } from "./recorded_scope";
import type { Recording, Said } from "./recording";

/** After a jump, the tool's path of this long before it is drawn, ms. */
const BACK_MS = 4000;
/** A page that was held up for longer than this goes on from where it was, ms. */
const HELD_UP_MS = 250;
/** Time between two pictures of the scope, ms. */
const SCOPE_MS = 100;

/** Why an order is refused. */
const RECORDED = "this is a recorded run: nothing can be ordered";

export class Playback implements Source {
  readonly network_ms = null;
  private readonly button = byId<HTMLButtonElement>("playback-play");
  private readonly slider = byId<HTMLInputElement>("playback-at");
  private said: Said[] = [];
  private sizes: Sizes | null = null;
  private scope: RecordedScope | null = null;
  private order_: ScopeOrder | null = null;
  private frozen_s: number | null = null;
  private drawn_ms = 0;
  /** What was said before this index is shown. */
  private next = 0;
  private at_ms = 0;
  private playing = true;
  private framed_ms = performance.now();

  constructor(
    private readonly recording: Recording,
    private readonly listener: Listener,
  ) {
    byId("playback").hidden = false;
    document.body.dataset["source"] = "recorded";
    setText(byId("playback-says"), recording.says);
    this.slider.max = String(recording.length_ms / 1000);
    this.button.addEventListener("click", () => this.play(!this.playing));
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value) * 1000));
    this.load().catch((error: Error) => {
      const text = `the recording in this page cannot be read: ${error.message}`;
      document.body.append(make("p", { class: "banner", "data-state": "lost", role: "alert" }, text));
      throw error;
    });
  }

  order(_: Order): Promise<string> {
    return Promise.reject(new Error(RECORDED));
  }

  ask(order: FreeOrder | (Order & { token: string })): Promise<string> {
    if (order.do === "unscope") this.order_ = null;
    else if (order.do !== "scope") return Promise.reject(new Error(RECORDED));
    else {
      const why = this.scope?.refuse(order);
      if (why) return Promise.reject(new Error(why));
      this.order_ = order;
      this.frozen_s = order.frozen ? (this.frozen_s ?? this.at_ms / 1000) : null;
      this.drawn_ms = -SCOPE_MS;
    }
    return Promise.resolve("");
  }

  view(): void {
    // Nothing to ask for: everything is in this page.
  }

  private async load(): Promise<void> {
    const [said, whole] = await Promise.all([this.recording.said(), this.recording.whole()]);
    const hello = said.map(({ message }) => message).find((message): message is Hello => !(message instanceof ArrayBuffer) && message.type === "hello");
    if (!hello) throw new Error("it does not say what it is of");
    [this.said, this.sizes] = [said.filter(({ message }) => message !== hello), sizes(hello)];
    this.scope = new RecordedScope(hello, this.said, whole);
    this.listener.link({ state: "recorded" });
    this.listener.hello(hello);
    this.play(true);
    const frame = (now_ms: number) => {
      this.frame(now_ms);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  private play(playing: boolean): void {
    if (playing && this.at_ms >= this.recording.length_ms) this.go(0);
    this.playing = playing;
    this.framed_ms = performance.now();
    setText(this.button, playing ? "Pause" : "Play");
  }

  private frame(now_ms: number): void {
    const passed_ms = now_ms - this.framed_ms;
    this.framed_ms = now_ms;
    if (this.playing && passed_ms > 0) {
      const speed = Number(byId<HTMLSelectElement>("playback-speed").value);
      this.at_ms = Math.min(this.at_ms + Math.min(passed_ms, HELD_UP_MS) * speed, this.recording.length_ms);
      if (this.at_ms >= this.recording.length_ms) this.play(false);
    }
    this.show();
  }

  /** Goes to a time: shows what was last said before it, and the path that leads to it. */
  private go(to_ms: number): void {
    const first = this.said.findIndex(({ at_ms }) => at_ms > to_ms);
    const end = first < 0 ? this.said.length : first;
    const past = this.said.slice(0, end);
    for (const type of ["status", "figures"]) {
      const last = past.filter(({ message }) => !(message instanceof ArrayBuffer) && message.type === type).at(-1);
      if (last) this.tell(last);
    }
    if (to_ms < this.at_ms) this.listener.begin?.();
    const back = past.findIndex(({ at_ms }) => at_ms >= to_ms - BACK_MS);
    [this.next, this.at_ms] = [back < 0 ? end : back, to_ms];
    this.show();
  }

  private show(): void {
    for (; this.next < this.said.length; this.next++) {
      const said = this.said[this.next];
      if (!said || said.at_ms > this.at_ms) break;
      this.tell(said);
    }
    const s = this.at_ms / 1000;
    this.slider.value = String(s);
    setText(byId("playback-time"), `${s.toFixed(1)} of ${(this.recording.length_ms / 1000).toFixed(1)} s`);
    if (!this.order_ || !this.scope || Math.abs(this.at_ms - this.drawn_ms) < SCOPE_MS) return;
    this.drawn_ms = this.at_ms;
    this.listener.text(this.scope.picture(this.order_, this.frozen_s ?? s));
  }

  private tell({ message }: Said): void {
    if (!(message instanceof ArrayBuffer)) return this.listener.text(message);
    if (!this.sizes) return;
    const decoded = decode(message, this.sizes);
    if (decoded.kind === "motion") this.listener.motion(decoded);
    else if (decoded.kind === "values") this.listener.values(decoded);
  }
}
