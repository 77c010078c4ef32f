// The scope of a recorded run. In a live run the dashboard computes it; here it is computed from
// the recording. Traces that the recording has whole have every cycle, all others what was shown.

import type { Hello, ScopeOrder, ScopePicture, TracePicture } from "./protocol";
import { motionNumber, valuesNumber } from "./protocol";
import type { Said, WholeTrace } from "./recording";

/** Values further apart than this are not joined, s. */
const APART_S = 0.5;

export class RecordedScope {
  private readonly known = new Map<string, WholeTrace>();
  private readonly whole: Set<string>;

  constructor(
    private readonly hello: Hello,
    private readonly said: Said[],
    whole: WholeTrace[],
  ) {
    for (const trace of whole) this.known.set(trace.name, trace);
    this.whole = new Set(this.known.keys());
  }

  /** Why this order cannot be shown; empty if it can. */
  refuse(order: ScopeOrder): string {
    const unknown = order.traces.find((name) => !this.trace(name));
    return unknown === undefined ? "" : `'${unknown}' is no number in this recording; the list has all of them`;
  }

  /** The window that ends at a moment. */
  picture({ traces, settings, look, frozen }: ScopeOrder, now_s: number): ScopePicture {
    const window_s: [number, number] = [-settings.window_ns / 1e9, 0];
    const span_s = look.span_s ?? window_s;
    const shown = traces.flatMap((name) => this.trace(name) ?? []);
    const whole = traces.filter((name) => this.whole.has(name));
    const others = traces.length - whole.length;
    const note = [whole.length > 0 ? `every cycle of ${whole.join(", ")}` : "", others > 0 ? `${others} as often as the page draws` : ""];
    return {
      type: "scope", key: 0, number: 0, doing: frozen ? "frozen" : "rolling", triggered: false, window_s, span_s, lost: 0, life: 0, ended: null,
      traces: shown.map((trace) => picture(trace, now_s, window_s, span_s, look)),
      xy: null, spectrum: null, step: null, bode: null,
      note: note.filter((part) => part !== "").join("; "),
    };
  }

  private trace(name: string): WholeTrace | null {
    const known = this.known.get(name);
    if (known) return known;
    const found = this.signal(name) ?? this.field(name);
    if (found) this.known.set(name, found);
    return found;
  }

  private signal(name: string): WholeTrace | null {
    for (const row of this.hello.signals) {
      const at = element(name, `${row.node}.${row.name}`, row.count);
      if (at !== null) return this.drawn({ name, unit: row.unit, labels: row.labels }, (frame) => motionNumber(frame, this.hello.threads.length, row.offset + at));
    }
    return null;
  }

  private field(name: string): WholeTrace | null {
    for (const port of this.hello.ports) {
      for (const row of port.fields) {
        const at = element(name, row.name ? `${port.port}.${row.name}` : port.port, row.count);
        if (at !== null && at < row.shown) return this.drawn({ name, unit: row.unit, labels: row.labels }, (frame) => valuesNumber(frame, this.hello.ports.length, row.offset + at));
      }
    }
    return null;
  }

  /** A trace made of the frames that were shown. */
  private drawn(head: { name: string; unit: string; labels: string[] }, number: (frame: ArrayBuffer) => number | null): WholeTrace {
    const [times, values]: [number[], number[]] = [[], []];
    for (const { at_ms, message } of this.said) {
      const value = message instanceof ArrayBuffer ? number(message) : null;
      if (value === null) continue;
      times.push(at_ms / 1000);
      values.push(value);
    }
    return { ...head, times_s: Float64Array.from(times), values: Float32Array.from(values) };
  }
}

/** Which of the `count` numbers that are called `whole` a name means. */
function element(name: string, whole: string, count: number): number | null {
  if (count === 1) return name === whole ? 0 : null;
  const at = name.startsWith(`${whole}[`) && name.endsWith("]") ? Number(name.slice(whole.length + 1, -1)) : NaN;
  return Number.isInteger(at) && at >= 0 && at < count ? at : null;
}

function picture(trace: WholeTrace, now_s: number, window_s: [number, number], span_s: [number, number], look: ScopeOrder["look"]): TracePicture {
  const columns = look.columns;
  const [min, max]: [(number | null)[], (number | null)[]] = [Array(columns).fill(null), Array(columns).fill(null)];
  const width_s = (span_s[1] - span_s[0]) / columns;
  for (let column = 0; column < columns; column++) {
    const from_s = now_s + span_s[0] + column * width_s;
    // What comes later is not shown, though the recording has it.
    if (from_s > now_s) break;
    const [first, end] = [from(trace, from_s), from(trace, Math.min(from_s + width_s, now_s + 1e-9))];
    const values = first < end ? trace.values.subarray(first, end) : between(trace, first, from_s + width_s / 2);
    if (values.length === 0) continue;
    min[column] = values.reduce((a, b) => Math.min(a, b));
    max[column] = values.reduce((a, b) => Math.max(a, b));
  }
  const at = (s: number) => trace.values[Math.max(0, from(trace, now_s + s + 1e-9) - 1)] ?? null;
  const values = trace.values.subarray(from(trace, now_s + window_s[0]), from(trace, now_s + 1e-9));
  return { name: trace.name, unit: trace.unit, labels: trace.labels, min, max, figures: figures(values), cursors: cursors(look.cursors_s, at) };
}

function cursors(at_s: [number, number] | undefined, at: (s: number) => number | null): TracePicture["cursors"] {
  if (!at_s) return null;
  const values: [number | null, number | null] = [at(at_s[0]), at(at_s[1])];
  const apart_s = at_s[1] - at_s[0];
  const difference = values[0] === null || values[1] === null ? null : values[1] - values[0];
  return { at_s, values, difference, apart_s, apart_hz: apart_s === 0 ? null : 1 / Math.abs(apart_s) };
}

/** Index of the first value that is not before a time. */
function from({ times_s }: WholeTrace, s: number): number {
  let [low, high] = [0, times_s.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times_s[middle] ?? 0) < s) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value on the line between two neighbours; none if they are far apart. */
function between({ times_s, values }: WholeTrace, after: number, s: number): Float32Array {
  const [t0, t1, v0, v1] = [times_s[after - 1], times_s[after], values[after - 1], values[after]];
  if (t0 === undefined || t1 === undefined || v0 === undefined || v1 === undefined || t1 - t0 > APART_S) return new Float32Array();
  return Float32Array.of(v0 + ((v1 - v0) * Math.min(Math.max(s - t0, 0), t1 - t0)) / (t1 - t0 || 1));
}

function figures(values: Float32Array): TracePicture["figures"] {
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.length === 0) return null;
  const [min, max] = [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))];
  const mean = finite.reduce((sum, value) => sum + value, 0) / finite.length;
  const rms = Math.sqrt(finite.reduce((sum, value) => sum + value * value, 0) / finite.length);
  return { cycles: values.length, missing: 0, min, max, mean, rms, peak_to_peak: max - min, frequency_hz: null };
}
