// Histograms of cycle latency and activation jitter, both axes logarithmic, with the maximum of
// each thread marked: a single late cycle in a million must be seen.

import uPlot from "uplot";
import { byId, columnHead, make, setText, styled } from "./dom";
import { count, NONE, time } from "./format";
import type { Figures, Hello, Histogram, HistogramInfo, ThreadInfo } from "./protocol";

/** Where the count axis begins: a bucket with one value is visible, an empty one is not. */
const FLOOR = 0.6;
/** Room above the highest bucket, for the words at the maxima. */
const HEADROOM = 30;
/** Dashes that tell the threads apart without colour. */
const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
/** Most threads that are drawn; more would hide each other. */
const THREADS_MAX = 4;

type What = "latency" | "jitter";

export class HistogramPanel {
  private plot: uPlot | null = null;
  private hello_: Hello | null = null;
  /** The threads that are drawn, and their last histograms. */
  private threads: ThreadInfo[] = [];
  private last: Histogram[] = [];
  private cells: HTMLElement[][] = [];
  private buckets_us: number[] = [];

  constructor(private readonly what: What) {
    new ResizeObserver(() => this.resize()).observe(this.box());
  }

  hello(hello: Hello): void {
    this.hello_ = hello;
    this.threads = hello.threads.filter((thread) => this.draws(thread)).slice(0, THREADS_MAX);
    byId(this.what).hidden = this.threads.length === 0;
    this.buckets_us = buckets(hello.histogram);
    this.last = [];
    this.table();
    const deadline = hello.threads.find(({ timed }) => timed)?.deadline_us;
    if (this.what === "latency") setText(byId("latency-deadline"), deadline ? `deadline ${time(deadline)}` : "");
    this.build();
  }

  figures({ threads }: Figures): void {
    const all = this.hello_?.threads ?? [];
    const drawn = threads.filter((_, at) => all[at] && this.draws(all[at]));
    this.last = drawn.map((thread) => thread[this.what]).filter((histogram) => histogram !== null);
    this.last.forEach(({ count: seen, p50_us, p99_us, p99_9_us, max_us }, at) => {
      const texts = [count(seen), time(p50_us), time(p99_us), time(p99_9_us), time(max_us)];
      this.cells[at]?.forEach((cell, column) => setText(cell, texts[column] ?? NONE));
    });
    this.plot?.setData(this.data());
  }

  recolour(): void {
    if (this.hello_) this.build();
  }

  /** A thread that is released by a message has no planned start, so it has no jitter. */
  private draws({ timed }: ThreadInfo): boolean {
    return timed || this.what === "latency";
  }

  private box(): HTMLElement {
    return byId(`${this.what}-plot`);
  }

  private build(): void {
    this.plot?.destroy();
    const { clientWidth: width, clientHeight: height } = this.box();
    this.plot = new uPlot(this.options(Math.max(width, 80), Math.max(height, 80)), this.data(), this.box());
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.box();
    if (width > 0 && height > 0) this.plot?.setSize({ width, height });
  }

  /** Empty buckets are below the floor, and so out of sight. */
  private data(): uPlot.AlignedData {
    const rows = this.threads.map((_, at) => {
      const counts = this.last[at]?.counts ?? [];
      return this.buckets_us.map((_, bucket) => counts[bucket] || FLOOR / 10);
    });
    return [this.buckets_us, ...rows];
  }

  private options(width: number, height: number): uPlot.Options {
    const axis = { stroke: styled("--muted"), grid: { stroke: styled("--grid"), width: 1, filter: decades }, ticks: { show: false }, font: "11px system-ui" };
    return {
      width, height,
      padding: [14, 20, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { distr: 3, time: false, range: () => this.span_us() }, y: { distr: 3, range: (_, __, most) => [FLOOR, Math.max(most, 10) * HEADROOM] } },
      axes: [
        { ...axis, size: 26, values: (_, at) => at.map((us) => (isDecade(us) ? time(us).replace(/\.0+ /, " ") : "")) },
        { ...axis, size: 44, values: (_, at) => at.map((n) => (isDecade(n) ? power(n) : "")) },
      ],
      series: [{}, ...this.threads.map((_, at) => series(at))],
      hooks: { draw: [(plot) => this.marks(plot)] },
    };
  }

  /** From the first value to the greatest, or to the deadline, in whole decades. */
  private span_us(): [number, number] {
    const first = Math.min(...this.last.map(({ counts }) => this.buckets_us[counts.findIndex((n) => n > 0)] ?? Infinity));
    const most = Math.max(...this.last.map(({ max_us }) => max_us ?? 0), 100);
    const low = Number.isFinite(first) ? first : 1;
    return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(most * 1.05))];
  }

  /** The greatest value of each thread, with its name. */
  private marks(plot: uPlot): void {
    const { top, height } = plot.bbox;
    const pixel = devicePixelRatio;
    const context = plot.ctx;
    context.save();
    context.font = `${11 * pixel}px system-ui`;
    const line = (us: number, colour: string, dash: number[], text: string, row: number) => {
      const x = plot.valToPos(us, "x", true);
      Object.assign(context, { strokeStyle: colour, fillStyle: styled("--ink"), lineWidth: 1.5 * pixel });
      context.setLineDash(dash.map((length) => length * pixel));
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, top + height);
      context.stroke();
      const near = x > plot.bbox.left + plot.bbox.width * 0.6;
      context.textAlign = near ? "right" : "left";
      const [at_x, at_y] = [x + (near ? -4 : 4) * pixel, top + (10 + 13 * row) * pixel];
      // An outline in the colour of the panel keeps the words apart from the curves.
      context.setLineDash([]);
      Object.assign(context, { strokeStyle: styled("--panel"), lineWidth: 3 * pixel });
      context.strokeText(text, at_x, at_y);
      context.fillText(text, at_x, at_y);
    };
    this.last.slice(0, THREADS_MAX).forEach(({ max_us }, at) => {
      if (max_us) line(max_us, styled(`--series-${at + 1}`), DASHES[at] ?? [], `${this.threads[at]?.domain} max ${time(max_us)}`, at);
    });
    context.restore();
  }

  private table(): void {
    const { threads } = this;
    const titles = ["", this.what === "latency" ? "cycles" : "releases", "P50", "P99", "P99.9", "max"];
    const why = "A percentile is shown only with ten values beyond it";
    const heads = titles.map((title) => columnHead(title, title.startsWith("P") ? { title: why } : {}));
    this.cells = threads.map(() => titles.slice(1).map(() => make("td", {}, NONE)));
    const rows = threads.map(({ domain, thread, nodes }, at) => {
      const swatch = make("i", { class: "swatch", "data-dash": String(at) });
      swatch.style.borderTopColor = `var(--series-${at + 1})`;
      const several = threads.filter((other) => other.domain === domain).length > 1;
      const name = several ? `${domain} ${thread}` : domain;
      return make("tr", { title: nodes.join(", ") }, make("th", { scope: "row" }, swatch, name), ...(this.cells[at] ?? []));
    });
    byId(`${this.what}-figures`).replaceChildren(make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  }
}

/** The lower end of each bucket, us. The first one reaches down to 0 and is drawn one step low. */
function buckets({ lowest_us, per_decade, count: all }: HistogramInfo): number[] {
  return Array.from({ length: all }, (_, at) => lowest_us * 10 ** ((at - 1) / per_decade));
}

function series(at: number): uPlot.Series {
  const stepped = uPlot.paths.stepped;
  const colour = styled(`--series-${at + 1}`);
  return {
    stroke: colour,
    fill: `${colour}26`,
    width: 1.5,
    dash: DASHES[at] ?? [],
    points: { show: false },
    ...(stepped ? { paths: stepped({ align: 1 }) } : {}),
  };
}

function isDecade(value: number): boolean {
  const exponent = Math.log10(value);
  return Math.abs(exponent - Math.round(exponent)) < 1e-6;
}

/** Marks only at powers of ten: the panel is small. */
function decades(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((at) => (isDecade(at) ? at : null));
}

function power(value: number): string {
  const exponent = Math.round(Math.log10(value));
  if (exponent < 4) return String(Math.round(value));
  return `10${[...String(exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("")}`;
}
