// The path that the tool has drawn: a bounded list of points; the oldest are forgotten first.

/** Points kept; at 2 mm apart that is some metres of path. */
const POINTS_MAX = 1600;
/** Points nearer to the last one than this are left out, m. */
const STEP_M = 0.002;

/** Points in the arm's base frame, m. */
export class Trace {
  private readonly ring = new Float32Array(POINTS_MAX * 3);
  private next = 0;
  private held = 0;

  /** Most points that it holds. */
  static readonly MAX = POINTS_MAX;

  get length(): number {
    return this.held;
  }

  /** Takes a point, unless it is not finite or hardly differs from the last one. */
  add(x: number, y: number, z: number): void {
    if (!Number.isFinite(x + y + z)) return;
    if (this.held > 0) {
      const at = ((this.next + POINTS_MAX - 1) % POINTS_MAX) * 3;
      const [px = 0, py = 0, pz = 0] = this.ring.subarray(at, at + 3);
      if (Math.hypot(x - px, y - py, z - pz) < STEP_M) return;
    }
    this.ring.set([x, y, z], this.next * 3);
    this.next = (this.next + 1) % POINTS_MAX;
    this.held = Math.min(this.held + 1, POINTS_MAX);
  }

  /** Forgets all points: the run has begun again. */
  clear(): void {
    this.next = 0;
    this.held = 0;
  }

  /** Copies the points into `into`, oldest first, and says how many there are. */
  copy(into: Float32Array): number {
    const from = (this.next + POINTS_MAX - this.held) % POINTS_MAX;
    const first = Math.min(this.held, POINTS_MAX - from);
    into.set(this.ring.subarray(from * 3, (from + first) * 3));
    into.set(this.ring.subarray(0, (this.held - first) * 3), first * 3);
    return this.held;
  }
}
