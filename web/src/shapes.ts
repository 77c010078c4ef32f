// Shapes that the layouts of the graph share.

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Point = [number, number];
/** A cubic curve: its ends and its two controls, in order. */
export type Curve = [Point, Point, Point, Point];
