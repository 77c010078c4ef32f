// The camera's picture. A frame that arrives while the last one is still decoded is dropped.

import { byId, setText } from "./dom";
import type { CameraImage } from "./protocol";

/** A picture older than this is reported as old. */
const OLD_MS = 1000;

export class CameraPanel {
  private readonly canvas = byId<HTMLCanvasElement>("camera-canvas");
  private readonly age = byId("camera-age");
  private decoding = false;
  private shown_ms = 0;

  constructor() {
    setInterval(() => this.look(), 250);
  }

  async image({ jpeg }: CameraImage): Promise<void> {
    if (this.decoding) return;
    this.decoding = true;
    try {
      const bitmap = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
      if (this.canvas.width !== bitmap.width) this.canvas.width = bitmap.width;
      if (this.canvas.height !== bitmap.height) this.canvas.height = bitmap.height;
      this.canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
      bitmap.close();
      this.shown_ms = performance.now();
    } catch {
      setText(this.age, "a picture could not be read");
    } finally {
      this.decoding = false;
    }
  }

  private look(): void {
    const age_ms = performance.now() - this.shown_ms;
    if (this.shown_ms === 0) setText(this.age, "no picture yet");
    else setText(this.age, age_ms > OLD_MS ? `▲ ${(age_ms / 1000).toFixed(0)} s old` : "live");
  }
}
