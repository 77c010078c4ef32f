// The arm where there is no WebGL: its joints as a line and the traced path, seen from an angle.

import { OrthographicCamera, Vector3 } from "three";
import type { ArmModel } from "./arm_model";
import { styled } from "./dom";
import type { View } from "./drawing";
import { markPicture } from "./marks";
import { Trace } from "./trace";

/** Draws on a plain canvas. */
export class SketchView implements View {
  private readonly camera = new OrthographicCamera();
  private readonly points = new Float32Array(Trace.MAX * 3);
  private readonly context: CanvasRenderingContext2D;
  private turn_rad = 0;
  private tilt_rad = 0;
  private zoom = 1;
  private asked = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly arm: ArmModel,
    private readonly trace: Trace,
  ) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser draws on no canvas at all");
    this.context = context;
    this.camera.up.set(0, 0, 1);
    new ResizeObserver(() => this.changed()).observe(canvas);
    this.home();
  }

  home(): void {
    [this.turn_rad, this.tilt_rad, this.zoom] = [-0.8, 0.35, 1];
    this.changed();
  }

  orbit(turn_rad: number, tilt_rad: number, zoom: number): void {
    this.turn_rad += turn_rad;
    this.tilt_rad = Math.min(Math.max(this.tilt_rad - tilt_rad, -0.1), 1.5);
    this.zoom = Math.min(Math.max(this.zoom * zoom, 0.3), 4);
    this.changed();
  }

  recolour(): void {
    this.changed();
  }

  changed(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    this.canvas.width = width * devicePixelRatio;
    this.canvas.height = height * devicePixelRatio;
    this.context.scale(devicePixelRatio, devicePixelRatio);
    this.aim(width / height);
    const count = this.trace.copy(this.points);
    const way = Array.from({ length: count }, (_, i) => new Vector3().fromArray(this.points, 3 * i));
    this.stroke(way, styled("--trace"), 2);
    const places = [new Vector3(), ...this.arm.places()];
    this.stroke(places, styled("--arm-body"), 7);
    this.context.fillStyle = styled("--ink");
    for (const place of places) {
      const [x, y] = this.project(place);
      this.context.fillRect(x - 3, y - 3, 6, 6);
    }
    markPicture(this.arm.pose);
  }

  private aim(aspect: number): void {
    const size = this.arm.length_m;
    const half = size * 0.8 * this.zoom;
    Object.assign(this.camera, { left: -half * aspect, right: half * aspect, top: half, bottom: -half, far: size * 20 });
    this.camera.updateProjectionMatrix();
    const target = new Vector3(size * 0.25, 0, size * 0.45);
    const level = Math.cos(this.tilt_rad);
    const from = new Vector3(Math.cos(this.turn_rad) * level, Math.sin(this.turn_rad) * level, Math.sin(this.tilt_rad));
    this.camera.position.copy(target).addScaledVector(from, size * 5);
    this.camera.lookAt(target);
    this.camera.updateMatrixWorld(true);
  }

  private project(place: Vector3): [number, number] {
    const on = place.clone().project(this.camera);
    return [((on.x + 1) / 2) * this.canvas.clientWidth, ((1 - on.y) / 2) * this.canvas.clientHeight];
  }

  private stroke(places: Vector3[], colour: string, width: number): void {
    this.context.beginPath();
    for (const place of places) this.context.lineTo(...this.project(place));
    Object.assign(this.context, { strokeStyle: colour, lineWidth: width, lineJoin: "round", lineCap: "round" });
    this.context.stroke();
  }
}
