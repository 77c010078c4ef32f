// The panel of the arm: its view, the place of the tool, and the keys that turn the view.

import type { Drawing } from "./drawing";
import { byId, setText } from "./dom";
import { signed } from "./format";
import { mark } from "./marks";
import type { ArmJoint, Hello, Motion } from "./protocol";
import { Trace } from "./trace";

/** How far a key turns the view. */
const TURN_RAD = 0.12;
/** How far a key zooms it. */
const ZOOM = 0.88;

/** What a key does: turn, tilt, zoom. */
const KEYS: Record<string, [number, number, number]> = {
  ArrowLeft: [-TURN_RAD, 0, 1],
  ArrowRight: [TURN_RAD, 0, 1],
  ArrowUp: [0, -TURN_RAD, 1],
  ArrowDown: [0, TURN_RAD, 1],
  "+": [0, 0, ZOOM],
  "=": [0, 0, ZOOM],
  "-": [0, 0, 1 / ZOOM],
};

/** The code that draws; it is loaded while the page connects. */
const drawing = import("./drawing");

export class ArmPanel {
  private readonly trace = new Trace();
  private drawn = "";
  private drawing: Drawing | null = null;
  private joints: [number, number] | null = null;
  private path_at: number | null = null;

  constructor() {
    byId("scene").addEventListener("keydown", (event) => this.key(event));
  }

  /** Takes the arm of this run; the same arm keeps its view over a restart of the dashboard. */
  hello(hello: Hello): void {
    const signal = hello.joints_signal === null ? undefined : hello.signals[hello.joints_signal];
    this.joints = signal ? [signal.offset, signal.count] : null;
    const path = hello.path_signal === null ? undefined : hello.signals[hello.path_signal];
    this.path_at = path && path.count >= 3 ? path.offset : null;
    setText(byId("arm-name"), hello.arm?.name ?? "");
    byId("arm").hidden = !hello.arm && !hello.commands;
    const drawn = JSON.stringify(hello.arm);
    if (drawn === this.drawn) return;
    // Another graph: a canvas keeps its first context, so the page begins afresh.
    if (this.drawn !== "") return location.reload();
    this.drawn = drawn;
    if (hello.arm && this.joints) void this.draw(hello.arm.joints);
    else this.notice("The graph names no arm: give the dashboard 'arm', a URDF, in the spec.");
  }

  /** The core has begun again: what was drawn is of the run before. */
  begin(): void {
    this.trace.clear();
    this.drawing?.view.changed();
  }

  motion(motion: Motion): void {
    if (this.joints) {
      const [at, count] = this.joints;
      this.drawing?.arm.turn(motion.signals.subarray(at, at + count));
    }
    const { path } = motion;
    for (let i = 0; i + 2 < path.length; i += 3) this.trace.add(path[i]!, path[i + 1]!, path[i + 2]!);
    if (this.path_at !== null) {
      const [x = 0, y = 0, z = 0] = motion.signals.subarray(this.path_at, this.path_at + 3);
      const mm = [x, y, z].map((m) => `${signed(m * 1000, 1).padStart(7)}`);
      setText(byId("tool"), `tool  x ${mm[0]}  y ${mm[1]}  z ${mm[2]} mm`);
    }
    this.drawing?.view.changed();
  }

  recolour(): void {
    this.drawing?.view.recolour();
  }

  private async draw(joints: ArmJoint[]): Promise<void> {
    try {
      const { draw } = await drawing;
      mark("code");
      this.drawing = draw(byId<HTMLCanvasElement>("arm-canvas"), joints, this.trace);
      if (this.drawing.is_flat) {
        this.notice("This browser offers no WebGL: the arm is drawn flat. Turn on hardware acceleration for the full view.");
      }
    } catch (error) {
      this.notice(`The arm cannot be drawn: ${(error as Error).message}`);
    }
  }

  private notice(text: string): void {
    const notice = byId("arm-notice");
    notice.hidden = false;
    setText(notice, text);
  }

  private key(event: KeyboardEvent): void {
    const move = KEYS[event.key];
    if (event.key === "Home") this.drawing?.view.home();
    else if (move) this.drawing?.view.orbit(...move);
    else return;
    event.preventDefault();
  }
}
