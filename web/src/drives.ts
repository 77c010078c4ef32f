// The drives: one column for each axis, made of whatever signals the node of the joints has.

import { byId, make, setState, setText } from "./dom";
import { signed } from "./format";
import type { Hello, Motion, SignalInfo } from "./protocol";

/** The signal of the brakes, by which drives are recognised. */
const BRAKE = "brake";
/** The torque bar's scale begins here and grows with what is seen, N m. */
const TORQUE_MIN = 1;

/** How a state of CiA 402 is shown: in order, on its way, or at fault. */
function tone(word: string): string {
  if (word.includes("fault")) return "bad";
  return word === "operation enabled" || word === "operation_enabled" ? "good" : "warn";
}

interface Cell {
  signal: SignalInfo;
  axis: number;
  show(value: number): void;
}

export class DrivesPanel {
  private cells: Cell[] = [];

  hello(hello: Hello): void {
    // Without an arm to draw there may still be drives: they have brakes.
    const named = hello.joints_signal === null ? undefined : hello.signals[hello.joints_signal];
    const joints = named ?? hello.signals.find(({ name }) => name === BRAKE);
    const signals = joints ? hello.signals.filter(({ node, count }) => node === joints.node && count === joints.count) : [];
    byId("drives-panel").hidden = !joints;
    setText(byId("drives-name"), joints?.node ?? "");
    this.cells = [];
    const axes = Array.from({ length: joints?.count ?? 0 }, (_, axis) => axis);
    const head = make("tr", {}, make("th", { scope: "col" }, "axis"));
    head.append(...axes.map((axis) => make("th", { scope: "col" }, String(axis + 1))));
    const rows = signals.map((signal) => this.row(signal, axes));
    byId("drives").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }

  motion({ signals }: Motion): void {
    for (const { signal, axis, show } of this.cells) show(signals[signal.offset + axis] ?? NaN);
  }

  private row(signal: SignalInfo, axes: number[]): HTMLTableRowElement {
    const [title, unit] = heading(signal);
    const head = make("th", { scope: "row", title: signal.doc }, unit ? `${title}, ${unit}` : title);
    const scale = { most: TORQUE_MIN };
    const cells = axes.map((axis) => {
      const cell = make("td");
      this.cells.push({ signal, axis, show: this.shower(signal, cell, scale) });
      return cell;
    });
    return make("tr", {}, head, ...cells);
  }

  private shower(signal: SignalInfo, cell: HTMLElement, scale: { most: number }): (value: number) => void {
    if (signal.labels.length > 0) return worded(signal, cell);
    if (signal.unit === "N m") return metered(cell, scale);
    const factor = signal.unit.startsWith("rad") ? 180 / Math.PI : 1;
    return (value) => setText(cell, Number.isFinite(value) ? signed(value * factor, 1) : "no number");
  }
}

/** People think of angles in degrees. */
function heading({ name, unit }: SignalInfo): [string, string] {
  const title = name.replace(/_(rad_per_s|rad|n_m)$/, "").replaceAll("_", " ");
  return [title, unit.replace("rad", "°").replace("N m", "N\u202fm")];
}

function worded(signal: SignalInfo, cell: HTMLElement): (value: number) => void {
  const isBrake = signal.name === BRAKE;
  const word = make("span", { class: isBrake ? "brake" : "state" });
  cell.append(word);
  return (value) => {
    const text = signal.labels[value] || "unknown";
    setText(word, text.replaceAll("_", " "));
    setState(word, isBrake ? text : tone(text));
  };
}

/** A bar from the middle, on one scale for all axes, and the figure below it. */
function metered(cell: HTMLElement, scale: { most: number }): (value: number) => void {
  const bar = make("i");
  const figure = make("span");
  cell.append(make("div", { class: "meter", "aria-hidden": "true" }, bar), figure);
  return (value) => {
    const size = Math.abs(value);
    if (size > scale.most) scale.most = size;
    const share = Number.isFinite(value) ? (50 * size) / scale.most : 0;
    bar.style.width = `${share.toFixed(1)}%`;
    bar.style.left = `${(value < 0 ? 50 - share : 50).toFixed(1)}%`;
    setText(figure, Number.isFinite(value) ? signed(value, 1) : "no number");
  };
}
