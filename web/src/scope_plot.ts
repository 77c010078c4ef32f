// What a scope shows, as one of five pictures.

import { styled } from "./dom";
import { number } from "./format";
import type { FrequencyPoint, ScopePicture, Shown, StepResponse } from "./protocol";
import { across, around, axisBelow, axisLeft, begin, besideScales, lines, overTime, share, upright, type Box, type Range } from "./scope_draw";

export type Mode = "time" | "xy" | "spectrum" | "step" | "bode";

/** What is drawn, and how. */
export interface Drawn {
  picture: ScopePicture;
  mode: Mode;
  /** The two traces that a picture of two traces is of. */
  pair: [number, number];
  /** Names of the scales, trace by trace. */
  scales: string[];
  cursors_s: [number, number] | null;
  /** The trigger, if the scope waits for one. */
  level: { trace: number; level: number } | null;
}

/** Draws it. Returns the box of a picture over time, by which a place in it becomes a time; else
 * null. */
export function draw(canvas: HTMLCanvasElement, drawn: Drawn): Box | null {
  const begun = begin(canvas);
  if (!begun) return null;
  const [to, box] = begun;
  switch (drawn.mode) {
    case "xy":
      return xy(to, box, drawn);
    case "spectrum":
      return spectrum(to, box, drawn);
    case "bode":
      return bode(to, box, drawn);
    default:
      return time(to, box, drawn);
  }
}

function time(to: CanvasRenderingContext2D, whole: Box, { picture, mode, pair, scales, cursors_s, level }: Drawn): Box {
  const [from, until] = picture.span_s;
  const range = { from, until: until > from ? until : from + 1 };
  const [box, of] = overTime(to, whole, picture.traces, scales, range);
  const levels = level && of[level.trace];
  if (picture.triggered) upright(to, box, 0, range, "trigger");
  if (level && levels) across(to, box, level.level, levels, `level ${number(level.level)}`);
  if (cursors_s) cursors_s.forEach((at, which) => upright(to, box, at, range, which === 0 ? "A" : "B", styled("--ink")));
  const step = mode === "step" ? good(picture.step) : null;
  const follows = of[pair[1]];
  if (step && follows) steps(to, box, step, range, follows);
  return box;
}

function steps(to: CanvasRenderingContext2D, box: Box, step: StepResponse, times: Range, values: Range): void {
  upright(to, box, step.begin_s, times, "step");
  upright(to, box, step.begin_s + step.settling_s, times, "settled");
  across(to, box, step.initial, values, "before");
  across(to, box, step.steady, values, "steady");
  if (step.overshoot_percent > 0) across(to, box, step.peak, values, "peak");
}

function xy(to: CanvasRenderingContext2D, whole: Box, { picture, pair }: Drawn): null {
  const pairs = picture.xy ?? [];
  const [x, y] = [0, 1].map((of) => around(pairs.map((point) => point?.[of] ?? NaN)));
  const [first, second] = pair.map((at) => picture.traces[at]);
  const box = besideScales(whole, 1);
  if (!x || !y || !first || !second) return null;
  axisBelow(to, box, x, titled(first.name, first.unit));
  axisLeft(to, box, y, second.unit, 0, styled("--muted"));
  lines(to, box, [{ pairs, series: 0 }], x, y);
  return null;
}

function spectrum(to: CanvasRenderingContext2D, whole: Box, { picture, pair }: Drawn): null {
  const shown = good(picture.spectrum);
  const trace = picture.traces[pair[0]];
  if (!shown || !trace) return null;
  const most = Math.max(...shown.points.map(([, amplitude]) => amplitude));
  // What is below a millionth of the greatest is rounding noise.
  const floor = most * 1e-6 || 1e-12;
  const x = { ...around(shown.points.map(([hz]) => hz), true), log: true };
  const y = { from: floor, until: (most || 1) * 2, log: true };
  const box = besideScales(whole, 1);
  axisBelow(to, box, x, "Hz");
  axisLeft(to, box, y, trace.unit, 0, styled("--muted"));
  lines(to, box, [{ pairs: shown.points.map(([hz, amplitude]) => [hz, Math.max(amplitude, floor)]), series: pair[0] }], x, y);
  return null;
}

/** Gain above, phase below. */
function bode(to: CanvasRenderingContext2D, whole: Box, { picture, pair }: Drawn): null {
  const points = good(picture.bode);
  if (!points) return null;
  const x = { ...around(points.map(({ frequency_hz }) => frequency_hz), true), log: true };
  const half = (whole.height - 34) / 2;
  const parts: [Box, string, (point: FrequencyPoint) => number][] = [
    [{ ...whole, height: half }, "dB", ({ gain_db }) => gain_db],
    [{ ...whole, top: whole.top + half + 34, height: half }, "°", ({ phase_deg }) => phase_deg],
  ];
  for (const [room, unit, of] of parts) {
    const box = besideScales(room, 1);
    const y = around(points.map(of));
    axisBelow(to, box, x, "Hz");
    axisLeft(to, box, y, unit, 0, styled("--muted"));
    lines(to, box, [{ pairs: points.map((point) => [point.frequency_hz, of(point)]), series: pair[1] }], x, y);
    if (share(0, y) > 0 && share(0, y) < 1) across(to, box, 0, y, "");
  }
  return null;
}

function titled(name: string, unit: string): string {
  return unit ? `${name}, ${unit}` : name;
}

/** A figure, if it is there. */
export function good<T>(shown: Shown<T> | null): T | null {
  return shown && "Ok" in shown ? shown.Ok : null;
}

/** What a picture of figures says in words. */
export function reads({ spectrum, step, bode, traces }: ScopePicture, pair: [number, number]): string {
  const bad = [spectrum, step, bode].find((shown) => shown && "Err" in shown);
  if (bad && "Err" in bad) return `not shown: ${bad.Err}`;
  const unit = traces[pair[1]]?.unit ?? "";
  const [steps, peaks, points] = [good(step), good(spectrum), good(bode)];
  if (steps) {
    const { rise_s, overshoot_percent, settling_s, within, steady, peak } = steps;
    return [`rise ${number(rise_s * 1000)} ms`, `overshoot ${number(Number(overshoot_percent.toFixed(2)))} %`,
      `settled within ${number(within * 100)} % after ${number(settling_s * 1000)} ms`, `steady ${number(steady)} ${unit}`, `peak ${number(peak)} ${unit}`].join(" · ");
  }
  if (peaks) {
    const named = peaks.peaks.map(([hz, amplitude]) => `${number(hz)} Hz: ${number(amplitude)} ${traces[pair[0]]?.unit ?? ""}`);
    return `peaks ${named.join(" · ") || "none"} · resolution ${number(peaks.resolution_hz)} Hz`;
  }
  if (points) return `${points.length} frequencies from ${number(points[0]?.frequency_hz ?? NaN)} to ${number(points.at(-1)?.frequency_hz ?? NaN)} Hz where the input explains the output`;
  return "";
}
