// Marks the page's way to its first moving picture, to be measured: each step is marked once and
// read by `performance.getEntriesByType("mark")`. docs/dashboard.md says what counts.

/** The steps in order: the script runs, the socket is open, the run has said what it is, the code
 * that draws is loaded, WebGL gave a context, the shaders are compiled (or handed over, if the
 * browser does not tell), the arm is drawn in its first pose, and in another pose. */
type Step = "script" | "open" | "hello" | "code" | "context" | "shaders" | "drawn" | "moving";

const done = new Set<Step>();
let first_pose = 0;

/** Marks a step, the first time. */
export function mark(step: Step): void {
  if (done.has(step)) return;
  done.add(step);
  performance.mark(step);
}

/** Marks a picture of the arm. `pose` counts its poses; 0 means that the run has told none yet. A
 * picture that differs from the first counts when the browser has taken it, which is at its next
 * frame. */
export function markPicture(pose: number): void {
  if (pose === 0 || done.has("moving")) return;
  mark("drawn");
  first_pose ||= pose;
  if (pose !== first_pose) requestAnimationFrame(() => mark("moving"));
}
