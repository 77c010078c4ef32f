// Gives the frames of an arm a body: housings around the joints, and tapered links between them.
// The shape is computed from the joints alone, so that any arm looks like one, even if its URDF has
// no meshes.

import {
  CapsuleGeometry, CylinderGeometry, LatheGeometry, Mesh, MeshLambertMaterial, MeshStandardMaterial,
  Quaternion, Vector2, Vector3,
} from "three";
import type { ArmModel, Joint } from "./arm_model";

/** What the parts are made of; colours change with the theme. */
export type Materials = Record<"body" | "housing" | "ring", MeshStandardMaterial | MeshLambertMaterial>;

/** The materials in the colours of no theme yet; `plain` ones shine less and cost less. */
export function materials(plain: boolean): Materials {
  if (plain) return { body: new MeshLambertMaterial(), housing: new MeshLambertMaterial(), ring: new MeshLambertMaterial() };
  return {
    body: new MeshStandardMaterial({ roughness: 0.42, metalness: 0.08 }),
    housing: new MeshStandardMaterial({ roughness: 0.55, metalness: 0.25 }),
    ring: new MeshStandardMaterial({ roughness: 0.4, metalness: 0.1 }),
  };
}

const UP = new Vector3(0, 1, 0);

/** Adds the parts to the frames. */
export function clothe(arm: ArmModel, of: Materials): void {
  const size = arm.length_m;
  arm.root.add(pedestal(size, of));
  arm.joints.forEach((joint, at) => {
    const radius = jointRadius(arm, at);
    // The foot is the first motor's housing.
    if (at > 0) addHousing(joint, radius, of);
    const next = arm.joints[at + 1];
    if (next) addLink(joint, next, radius, jointRadius(arm, at + 1), of);
  });
  const last = arm.joints.at(-1);
  if (last) addFlange(last, jointRadius(arm, arm.joints.length - 1), of);
}

/** Thick at the base, slim at the wrist. */
function jointRadius(arm: ArmModel, at: number): number {
  const along = at / Math.max(arm.joints.length - 1, 1);
  return arm.length_m * (0.078 * (1 - along) + 0.03 * along);
}

/** The foot below the first joint: a lathe around z. */
function pedestal(size: number, of: Materials): Mesh {
  const outline = [
    [0, 0], [0.15, 0], [0.15, 0.02], [0.135, 0.028], [0.108, 0.07], [0.1, 0.115], [0.094, 0.122], [0, 0.122],
  ];
  const points = outline.map(([r = 0, z = 0]) => new Vector2(r * size, z * size));
  const foot = shadowed(new Mesh(new LatheGeometry(points, 48), of.housing));
  foot.quaternion.setFromUnitVectors(UP, new Vector3(0, 0, 1));
  return foot;
}

/** A motor's housing with its ring, around the axis of the joint. */
function addHousing(joint: Joint, radius: number, of: Materials): void {
  const along = new Quaternion().setFromUnitVectors(UP, joint.axis);
  const half = radius * 1.12;
  const outline = [
    [0, -half], [radius * 0.82, -half], [radius, -half * 0.84], [radius, half * 0.84], [radius * 0.82, half], [0, half],
  ];
  const points = outline.map(([r = 0, y = 0]) => new Vector2(r, y));
  const housing = shadowed(new Mesh(new LatheGeometry(points, 40), of.housing));
  housing.quaternion.copy(along);
  joint.turning.add(housing);
  for (const side of [-1, 1]) {
    const ring = new Mesh(new CylinderGeometry(radius * 0.6, radius * 0.6, radius * 0.06, 40), of.ring);
    ring.position.copy(joint.axis).multiplyScalar(side * (half + radius * 0.01));
    ring.quaternion.copy(along);
    joint.turning.add(ring);
  }
}

/** The body from a joint to the next: a tapered lathe with round ends. */
function addLink(joint: Joint, next: Joint, from: number, to: number, of: Materials): void {
  const length = joint.reach.length();
  if (length < 1e-6) return;
  const direction = joint.reach.clone().normalize();
  // A link along its own axis is the housing's neck, one across it a beam beside the housings.
  const along = Math.abs(direction.dot(joint.axis)) > 0.7;
  const width = along ? 0.92 : 0.78;
  const [r0, r1] = [from * width, Math.max(to, next ? to : 0) * 0.86];
  const points: Vector2[] = [];
  for (let i = 0; i <= 8; i++) points.push(cap(r0, -Math.PI / 2 + (i / 8) * (Math.PI / 2), 0));
  for (let i = 0; i <= 8; i++) points.push(cap(r1, (i / 8) * (Math.PI / 2), length));
  const body = shadowed(new Mesh(new LatheGeometry(points, 40), of.body));
  body.quaternion.setFromUnitVectors(UP, direction);
  joint.turning.add(body);
}

function cap(radius: number, angle: number, at: number): Vector2 {
  return new Vector2(Math.max(radius * Math.cos(angle), 0), at + radius * Math.sin(angle) * 0.9);
}

/** The flange and a small tool, so that one sees the last joint turn. */
function addFlange(joint: Joint, radius: number, of: Materials): void {
  const along = new Quaternion().setFromUnitVectors(UP, joint.axis);
  const disc = shadowed(new Mesh(new CylinderGeometry(radius * 0.9, radius * 0.9, radius * 0.5, 32), of.body));
  disc.position.copy(joint.axis).multiplyScalar(radius * 1.3);
  disc.quaternion.copy(along);
  const mark = new Mesh(new CapsuleGeometry(radius * 0.14, radius * 0.5, 4, 12), of.ring);
  const side = new Vector3(0, 0, 1).cross(joint.axis);
  if (side.lengthSq() < 0.1) side.set(1, 0, 0);
  mark.position.copy(disc.position).addScaledVector(side.normalize(), radius * 0.85);
  mark.quaternion.copy(along);
  joint.turning.add(disc, mark);
}

function shadowed(mesh: Mesh): Mesh {
  mesh.castShadow = true;
  mesh.receiveShadow = true;
  return mesh;
}
