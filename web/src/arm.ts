// The panel of the arm: its view, the place of the tool, and the keys that turn the view.

import { ArmModel } from "./arm_model";
import { SketchView } from "./arm_sketch";
import { webglView, type View } from "./arm_view";
import { byId, setText } from "./dom";
import { signed } from "./format";
import type { Hello, Motion } from "./protocol";
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

export class ArmPanel {
  private readonly trace = new Trace();
  private drawn = "";
  private arm: ArmModel | null = null;
  private view: View | null = null;
  private joints: [number, number] | null = null;
  private path_at: number | null = null;

  constructor() {
    byId("arm-canvas").addEventListener("keydown", (event) => this.key(event));
  }

  /** Takes the arm of this run; the same arm keeps its view over a restart of the dashboard. */
  hello(hello: Hello): void {
    const signal = hello.joints_signal === null ? undefined : hello.signals[hello.joints_signal];
    this.joints = signal ? [signal.offset, signal.count] : null;
    const path = hello.path_signal === null ? undefined : hello.signals[hello.path_signal];
    this.path_at = path && path.count >= 3 ? path.offset : null;
    setText(byId("arm-name"), hello.arm?.name ?? "");
    const drawn = JSON.stringify(hello.arm);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.trace.clear();
    this.draw(hello);
  }

  /** The core has begun again: what was drawn is of its former life. */
  begin(): void {
    this.trace.clear();
    this.view?.changed();
  }

  motion(motion: Motion): void {
    if (this.joints) {
      const [at, count] = this.joints;
      this.arm?.turn(motion.signals.subarray(at, at + count));
    }
    const { path } = motion;
    for (let i = 0; i + 2 < path.length; i += 3) this.trace.add(path[i]!, path[i + 1]!, path[i + 2]!);
    if (this.path_at !== null) {
      const [x = 0, y = 0, z = 0] = motion.signals.subarray(this.path_at, this.path_at + 3);
      const mm = [x, y, z].map((m) => `${signed(m * 1000, 1).padStart(7)}`);
      setText(byId("tool"), `tool  x ${mm[0]}  y ${mm[1]}  z ${mm[2]} mm`);
    }
    this.view?.changed();
  }

  recolour(): void {
    this.view?.recolour();
  }

  private draw(hello: Hello): void {
    if (this.view) {
      // Another graph: a canvas keeps its first context, so the page begins afresh.
      return location.reload();
    }
    const notice = byId("arm-notice");
    notice.hidden = false;
    if (!hello.arm || !this.joints) {
      return setText(notice, "The graph names no arm: give the dashboard 'arm', a URDF, in the spec.");
    }
    this.arm = new ArmModel(hello.arm.joints);
    const canvas = byId<HTMLCanvasElement>("arm-canvas");
    try {
      this.view = webglView(canvas, this.arm, this.trace);
      notice.hidden = true;
    } catch {
      setText(notice, "This browser offers no WebGL: the arm is drawn flat. Turn on hardware acceleration for the full view.");
      const flat = canvas.cloneNode() as HTMLCanvasElement;
      flat.addEventListener("keydown", (event) => this.key(event));
      canvas.replaceWith(flat);
      this.view = new SketchView(flat, this.arm, this.trace);
    }
  }

  private key(event: KeyboardEvent): void {
    const move = KEYS[event.key];
    if (event.key === "Home") this.view?.home();
    else if (move) this.view?.orbit(...move);
    else return;
    event.preventDefault();
  }
}
