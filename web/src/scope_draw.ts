// Draws what a scope shows on a canvas: traces over time with a scale for each unit, and pictures
// of two axes. It takes numbers, draws lines, and keeps nothing.

import { styled } from "./dom";
import { number } from "./format";
import type { TracePicture } from "./protocol";

/** Dashes that tell traces apart without colour. */
export const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2], [1, 4], [10, 2, 2, 2, 2, 2]];
/** Room for one scale at the left, px. */
const SCALE_PX = 56;
/** Most scales that are drawn; others are in the table. */
const SCALES_MAX = 3;
const FONT = "11px system-ui";

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The ends of a linear or logarithmic axis. */
export interface Range {
  from: number;
  until: number;
  log?: boolean;
}

/** A line in a picture of two axes, with a gap where there is no pair. */
export interface Line {
  pairs: ([number, number] | null)[];
  series: number;
}

export function share(value: number, { from, until, log }: Range): number {
  if (log) return Math.log(value / from) / Math.log(until / from);
  return (value - from) / (until - from);
}

/** A range with some room around it, also around a single value. */
export function around(values: number[], log = false): Range {
  const finite = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (finite.length === 0) return log ? { from: 1, until: 10, log } : { from: -1, until: 1 };
  const [least, most] = finite.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  if (log) return { from: least / 1.1, until: most * 1.1, log };
  const room = most > least ? (most - least) * 0.06 : Math.max(Math.abs(most) * 0.1, 1e-6);
  return { from: least - room, until: most + room };
}

/** Round values on an axis, about so many. */
export function ticks({ from, until, log }: Range, about: number): number[] {
  if (log && until / from > 10) {
    const [first, last] = [Math.ceil(Math.log10(from)), Math.floor(Math.log10(until))];
    const every = Math.max(1, Math.ceil((last - first + 1) / about));
    return Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, at) => 10 ** (first + at * every));
  }
  const raw = (until - from) / Math.max(about, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.ceil(from / step);
  const count = Math.min(Math.floor(until / step) - first + 1, 50);
  return Array.from({ length: Math.max(count, 0) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Sets a canvas to the resolution of the screen, and clears it. */
export function begin(canvas: HTMLCanvasElement): [CanvasRenderingContext2D, Box] | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  const context = canvas.getContext("2d");
  if (!context || width < 40 || height < 40) return null;
  const [wide, high] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  return [context, { left: 6, top: 16, width: width - 16, height: height - 40 }];
}

/** The axis below a box, with lines across it. */
export function axisBelow(to: CanvasRenderingContext2D, box: Box, range: Range, title: string): void {
  const bottom = box.top + box.height;
  to.textAlign = "center";
  for (const value of ticks(range, box.width / 90)) {
    const x = box.left + box.width * share(value, range);
    stroke(to, styled("--grid"), 1, [], [[x, box.top], [x, bottom]]);
    text(to, number(value), Math.min(Math.max(x, 20), box.left + box.width - 18), bottom + 13, styled("--muted"));
  }
  to.textAlign = "right";
  text(to, title, box.left + box.width, box.top - 5, styled("--muted"));
}

/** A scale at the left of a box; the first one has lines across. */
export function axisLeft(to: CanvasRenderingContext2D, box: Box, range: Range, title: string, place: number, colour: string): void {
  const right = box.left - 6 - place * SCALE_PX;
  to.textAlign = "right";
  for (const value of ticks(range, box.height / 34)) {
    const y = box.top + box.height * (1 - share(value, range));
    if (place === 0) stroke(to, styled("--grid"), 1, [], [[box.left, y], [box.left + box.width, y]]);
    text(to, number(value), right, y + 3.5, colour);
  }
  text(to, title, right, box.top - 5, colour);
}

/** Makes room for this many scales. */
export function besideScales(box: Box, scales: number): Box {
  const room = SCALE_PX * Math.min(Math.max(scales, 1), SCALES_MAX);
  return { ...box, left: box.left + room, width: box.width - room };
}

/** Traces over time, each with the scale of its unit or its own. Returns the box, and the scales'
 * ranges. */
export function overTime(to: CanvasRenderingContext2D, whole: Box, traces: TracePicture[], scales: string[], time: Range): [Box, Range[]] {
  const names = [...new Set(scales)];
  const ranges = names.map((name) => around(traces.flatMap(({ min, max }, at) => (scales[at] === name ? [...min, ...max].map((value) => value ?? NaN) : []))));
  const box = besideScales(whole, names.length);
  axisBelow(to, box, time, "s");
  names.slice(0, SCALES_MAX).forEach((name, place) => {
    const first = scales.indexOf(name);
    const alone = names.length === 1 || scales.lastIndexOf(name) !== first;
    axisLeft(to, box, ranges[place] ?? { from: 0, until: 1 }, traces[first]?.unit ?? "", place, alone ? styled("--muted") : styled(`--series-${first + 1}`));
  });
  const of = traces.map((_, at) => ranges[names.indexOf(scales[at] ?? "")] ?? { from: 0, until: 1 });
  inside(to, box, () => traces.forEach((trace, at) => envelope(to, box, trace, of[at] ?? { from: 0, until: 1 }, at)));
  return [box, of];
}

/** A trace from column to column; within a column it goes from its least to its greatest value. */
function envelope(to: CanvasRenderingContext2D, box: Box, { min, max }: TracePicture, range: Range, series: number): void {
  const y = (value: number) => box.top + box.height * (1 - share(value, range));
  begun(to, series);
  let last: number | null = null;
  min.forEach((least, column) => {
    const most = max[column] ?? null;
    if (least === null || most === null) return void (last = null);
    const x = box.left + (box.width * (column + 0.5)) / min.length;
    const isNearMost = last !== null && Math.abs(last - most) < Math.abs(last - least);
    const [enter, leave] = isNearMost ? [most, least] : [least, most];
    if (last === null) to.moveTo(x, y(enter));
    else to.lineTo(x, y(enter));
    if (leave !== enter) to.lineTo(x, y(leave));
    last = leave;
  });
  to.stroke();
}

/** Lines in a picture of two axes. */
export function lines(to: CanvasRenderingContext2D, box: Box, all: Line[], x: Range, y: Range): void {
  inside(to, box, () => {
    for (const { pairs, series } of all) {
      begun(to, series);
      let begins = true;
      for (const pair of pairs) {
        if (pair === null) begins = true;
        else {
          const [px, py] = [box.left + box.width * share(pair[0], x), box.top + box.height * (1 - share(pair[1], y))];
          if (begins) to.moveTo(px, py);
          else to.lineTo(px, py);
          begins = false;
        }
      }
      to.stroke();
    }
  });
}

/** A line across a box at a place on its axis, with a word. */
export function across(to: CanvasRenderingContext2D, box: Box, at: number, range: Range, word: string, colour = styled("--muted")): void {
  const y = box.top + box.height * (1 - share(at, range));
  if (!(y >= box.top - 1 && y <= box.top + box.height + 1)) return;
  stroke(to, colour, 1, [3, 3], [[box.left, y], [box.left + box.width, y]]);
  to.textAlign = "right";
  text(to, word, box.left + box.width - 3, y - 3, colour);
}

/** The same as a vertical line. */
export function upright(to: CanvasRenderingContext2D, box: Box, at: number, range: Range, word: string, colour = styled("--muted")): void {
  const x = box.left + box.width * share(at, range);
  if (!(x >= box.left - 1 && x <= box.left + box.width + 1)) return;
  stroke(to, colour, 1.2, [4, 3], [[x, box.top], [x, box.top + box.height]]);
  to.textAlign = x > box.left + box.width * 0.9 ? "right" : "left";
  text(to, word, x + (to.textAlign === "left" ? 3 : -3), box.top + 10, colour);
}

function begun(to: CanvasRenderingContext2D, series: number): void {
  Object.assign(to, { strokeStyle: styled(`--series-${series + 1}`), lineWidth: 1.5, lineJoin: "round" });
  to.setLineDash(DASHES[series] ?? []);
  to.beginPath();
}

function stroke(to: CanvasRenderingContext2D, colour: string, width: number, dash: number[], points: [number, number][]): void {
  Object.assign(to, { strokeStyle: colour, lineWidth: width });
  to.setLineDash(dash);
  to.beginPath();
  points.forEach(([x, y], at) => (at === 0 ? to.moveTo(x, y) : to.lineTo(x, y)));
  to.stroke();
}

function text(to: CanvasRenderingContext2D, what: string, x: number, y: number, colour: string): void {
  to.fillStyle = colour;
  to.fillText(what, x, y);
}

function inside(to: CanvasRenderingContext2D, { left, top, width, height }: Box, draw: () => void): void {
  to.save();
  to.beginPath();
  to.rect(left, top - 1, width, height + 2);
  to.clip();
  draw();
  to.restore();
}
