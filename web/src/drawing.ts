// What draws the arm, and everything that needs three.js. It is a script of its own, so that the
// page connects while this script is still loading.

import { ArmModel } from "./arm_model";
import { SketchView } from "./arm_sketch";
import { webglView } from "./arm_view";
import type { ArmJoint } from "./protocol";
import type { Trace } from "./trace";

/** What the panel asks of a view, flat or not. */
export interface View {
  /** Something changed: draw soon. */
  changed(): void;
  /** The theme changed. */
  recolour(): void;
  /** Turns and tilts the view, and moves it nearer (`zoom` < 1) or away. */
  orbit(turn_rad: number, tilt_rad: number, zoom: number): void;
  /** Back to where it began. */
  home(): void;
}

/** An arm and the view of it. */
export interface Drawing {
  arm: ArmModel;
  view: View;
  is_flat: boolean;
}

/** Draws the arm on the canvas: in three dimensions, or flat where there is no WebGL. */
export function draw(canvas: HTMLCanvasElement, joints: ArmJoint[], trace: Trace): Drawing {
  const arm = new ArmModel(joints);
  try {
    return { arm, view: webglView(canvas, arm, trace), is_flat: false };
  } catch {
    // Once a canvas was asked for WebGL, it may give no other context.
    const flat = canvas.cloneNode() as HTMLCanvasElement;
    canvas.replaceWith(flat);
    return { arm, view: new SketchView(flat, arm, trace), is_flat: true };
  }
}
