// The arm as a tree of frames: what the three-dimensional view and the flat one both draw.

import { Group, Object3D, Quaternion, Vector3 } from "three";
import type { ArmJoint } from "./protocol";

/** A joint: `frame` is placed where the joint is, and `turning` turns in it. */
export interface Joint {
  frame: Group;
  turning: Group;
  axis: Vector3;
  /** From this joint to the next, or the last link's stub; in the frame of `turning`, m. */
  reach: Vector3;
}

/** The moving joints in order, from the base to the flange. */
export class ArmModel {
  readonly root = new Group();
  readonly joints: Joint[] = [];
  readonly flange = new Object3D();
  /** Sum of the distances between joints, m: the scale of everything drawn. */
  readonly length_m: number;
  /** How often it has taken another pose; 0 before the first. */
  pose = 0;

  constructor(rows: ArmJoint[]) {
    let parent: Object3D = this.root;
    for (const row of rows) {
      const frame = new Group();
      frame.position.set(...row.origin_xyz_m);
      // URDF: about the fixed x, then y, then z, which is z, y, x about the moving axes.
      const [roll, pitch, yaw] = row.origin_rpy_rad;
      frame.rotation.set(roll, pitch, yaw, "ZYX");
      parent.add(frame);
      parent = frame;
      if (!row.moves) continue;
      const turning = new Group();
      frame.add(turning);
      parent = turning;
      this.joints.push({ frame, turning, axis: new Vector3(...row.axis).normalize(), reach: new Vector3() });
    }
    parent.add(this.flange);
    this.root.updateMatrixWorld(true);
    this.joints.forEach((joint, at) => {
      const next = this.joints[at + 1]?.frame ?? this.flange;
      joint.reach = joint.turning.worldToLocal(next.getWorldPosition(new Vector3()));
    });
    this.length_m = this.joints.reduce((sum, joint) => sum + joint.reach.length(), 0) || 1;
  }

  /** Turns every joint to its angle. An angle that is not a number leaves its joint as it is. */
  turn(angles_rad: ArrayLike<number>): void {
    const turned = new Quaternion();
    let moved = this.pose === 0;
    this.joints.forEach((joint, at) => {
      const angle = angles_rad[at];
      if (angle === undefined || !Number.isFinite(angle)) return;
      turned.setFromAxisAngle(joint.axis, angle);
      moved ||= !turned.equals(joint.turning.quaternion);
      joint.turning.quaternion.copy(turned);
    });
    if (!moved) return;
    this.pose += 1;
    this.root.updateMatrixWorld(true);
  }

  /** Where the joints and the flange are, m. */
  places(): Vector3[] {
    return [...this.joints.map((joint) => joint.frame), this.flange].map((frame) =>
      frame.getWorldPosition(new Vector3()),
    );
  }
}
