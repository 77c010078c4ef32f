//! The arm as solids, in the manner of a small six-axis arm: castings with rounded rims, covers
//! over the joints. Thickness goes with the length of the arm; the places come from its file.

use glam::Vec3;

use super::chain::{Chain, JOINTS};
use super::mesh::{Disc, Material, Mesh, Section};

use Material::{Graphite, Paint, Steel};

/// Upper arm and forearm of the arm that the thicknesses are taken from, m.
const LENGTH_M: f32 = 0.58;

/// A solid, and the link that it moves with: 0 is the base, 1 what joint 1 turns.
pub(super) struct Part {
    pub(super) link: usize,
    pub(super) mesh: Mesh,
}

/// All parts of the arm, each in the frame of its link.
pub(super) fn parts(chain: &Chain) -> Vec<Part> {
    let frames = chain.frames(&[0.0; JOINTS]);
    let model = Model::of(chain);
    let base = model.base().into_iter().map(|mesh| Part { link: 0, mesh });
    let links = [
        model.turret(),
        model.upper_arm(),
        model.elbow(),
        model.forearm(),
        model.wrist(),
        model.flange(),
    ];
    let links =
        links.into_iter().zip(frames.links).enumerate().flat_map(|(at, (meshes, frame))| {
            let back = frame.inverse();
            let parts = meshes.into_iter().map(move |mesh| mesh.moved(&back));
            parts.map(move |mesh| Part { link: at + 1, mesh })
        });
    base.chain(links).collect()
}

/// The arm with all joints at zero, seen from its base.
struct Model {
    /// Where the joints are. Where joint 1 is along its axis does not matter.
    joint: [Vec3; JOINTS],
    flange: Vec3,
    /// Along the axes of joints 2, 3 and 5.
    side: Vec3,
    /// Along the forearm: the axis of joints 4 and 6.
    ahead: Vec3,
    /// A length of the arm that is modelled, m, in this one.
    scale: f32,
}

impl Model {
    fn of(chain: &Chain) -> Model {
        let frames = chain.frames(&[0.0; JOINTS]);
        let joint = frames.links.map(|frame| Vec3::from(frame.translation));
        let flange = Vec3::from(frames.flange.translation);
        let axes = chain.axes();
        // Which way an axis points is a matter of signs; the forearm leads away from the elbow.
        let ahead = axes[3] * axes[3].dot(joint[4] - joint[2]).signum();
        let length = joint[1].distance(joint[2]) + joint[2].distance(joint[4]);
        Model { joint, flange, side: axes[1], ahead, scale: length / LENGTH_M }
    }

    /// A plate across the arm, symmetric to its middle.
    fn plate(&self, material: Material, discs: &[Disc], half: f32, rim: f32) -> Mesh {
        self.cheek(material, discs, (-half, half), rim)
    }

    /// A plate across the arm, from and to so far from its middle.
    fn cheek(&self, material: Material, discs: &[Disc], ends: (f32, f32), rim: f32) -> Mesh {
        let middle = self.joint[1].dot(self.side);
        let ends = (middle + ends.0 * self.scale, middle + ends.1 * self.scale);
        Mesh::plate(material, self.side, discs, ends, rim * self.scale)
    }

    /// A plate on either side of the arm.
    fn cheeks(&self, material: Material, discs: &[Disc], ends: (f32, f32), rim: f32) -> [Mesh; 2] {
        let (from, to) = ends;
        [(from, to), (-to, -from)].map(|ends| self.cheek(material, discs, ends, rim))
    }

    /// A body of revolution, in figures of the arm that is modelled.
    fn turned<const N: usize>(
        &self,
        material: Material,
        origin: Vec3,
        axis: Vec3,
        profile: [(f32, f32); N],
    ) -> Mesh {
        let profile = profile.map(|(at, radius)| (at * self.scale, radius * self.scale));
        Mesh::turned(material, origin, axis, &profile)
    }

    /// A disc at a place, so many metres of the modelled arm off it.
    fn disc(&self, place: Vec3, off: Vec3, radius: f32) -> Disc {
        (place + off * self.scale, radius * self.scale)
    }

    /// The foot, screwed to the floor, and the pedestal. The first joint turns on top of it.
    fn base(&self) -> Vec<Mesh> {
        let square = |half: f32, radius: f32| {
            [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
                .map(|(x, y)| self.disc(Vec3::ZERO, Vec3::new(x * half, y * half, 0.0), radius))
        };
        let (low, high) = (square(0.058, 0.026), square(0.02, 0.056));
        let cut = |at: f32, discs| Section { at: at * self.top(), discs, inset: 0.0 };
        let pedestal = [cut(0.07, &low), cut(0.25, &low), cut(0.45, &high), cut(0.5, &high)];
        let plug = [
            self.disc(Vec3::ZERO, Vec3::new(-0.09, -0.035, 0.0), 0.012),
            self.disc(Vec3::ZERO, Vec3::new(-0.09, 0.035, 0.0), 0.012),
            self.disc(Vec3::ZERO, Vec3::new(-0.04, 0.0, 0.0), 0.035),
        ];
        vec![
            Mesh::plate(Graphite, Vec3::Z, &square(0.066, 0.03), (0.0, 0.07 * self.top()), 0.004),
            Mesh::loft(Paint, Vec3::Z, &pedestal),
            Mesh::plate(Graphite, Vec3::Z, &plug, (0.1 * self.top(), 0.3 * self.top()), 0.004),
        ]
    }

    /// Height of joint 2.
    fn top(&self) -> f32 {
        self.joint[1].z
    }

    /// Turns on the pedestal and carries the shoulder.
    fn turret(&self) -> Vec<Mesh> {
        let (shoulder, top) = (self.joint[1], self.top());
        let below = |off: f32| {
            let foot = shoulder - Vec3::Z * (0.3 * top);
            self.disc(foot, self.ahead * off, 0.03)
        };
        let block = [self.disc(shoulder, Vec3::ZERO, 0.056), below(0.034), below(-0.034)];
        let ring = (top / self.scale * 0.5, top / self.scale * 0.68);
        vec![
            self.turned(
                Graphite,
                Vec3::ZERO,
                Vec3::Z,
                [
                    (ring.0, 0.074),
                    (ring.0 + 0.002, 0.077),
                    (ring.0 + 0.014, 0.077),
                    (ring.0 + 0.016, 0.074),
                ],
            ),
            self.turned(
                Paint,
                Vec3::ZERO,
                Vec3::Z,
                [
                    (ring.0 + 0.016, 0.074),
                    (ring.1 - 0.012, 0.074),
                    (ring.1 - 0.003, 0.07),
                    (ring.1, 0.062),
                ],
            ),
            self.plate(Paint, &block, 0.046, 0.008),
        ]
    }

    /// Two cheeks and what joins them, covers over both joints.
    fn upper_arm(&self) -> Vec<Mesh> {
        let (low, high) = (self.joint[1], self.joint[2]);
        let cheek = [self.disc(low, Vec3::ZERO, 0.058), self.disc(high, Vec3::ZERO, 0.047)];
        let web = [0.36, 0.68].map(|part| self.disc(low.lerp(high, part), Vec3::ZERO, 0.034));
        let cover = |place, radius| [self.disc(place, Vec3::ZERO, radius)];
        let mut meshes = vec![self.plate(Paint, &web, 0.05, 0.006)];
        meshes.extend(self.cheeks(Paint, &cheek, (0.048, 0.076), 0.009));
        meshes.extend(self.cheeks(Graphite, &cover(low, 0.044), (0.07, 0.084), 0.005));
        meshes.extend(self.cheeks(Graphite, &cover(high, 0.034), (0.07, 0.083), 0.005));
        meshes
    }

    /// Between the cheeks; the drive of joint 4 looks out behind.
    fn elbow(&self) -> Vec<Mesh> {
        let (elbow, neck) = (self.joint[2], self.neck());
        let block = [
            self.disc(elbow, Vec3::ZERO, 0.046),
            self.disc(neck, self.ahead * -0.03, 0.046),
            self.disc(neck, self.ahead * 0.052, 0.046),
        ];
        vec![
            self.plate(Paint, &block, 0.046, 0.01),
            self.turned(
                Graphite,
                neck,
                self.ahead,
                [(-0.108, 0.026), (-0.104, 0.033), (-0.07, 0.036), (-0.06, 0.036)],
            ),
        ]
    }

    /// The place on the forearm's axis beside joint 3.
    fn neck(&self) -> Vec3 {
        self.joint[4] - self.ahead * (self.joint[4] - self.joint[2]).dot(self.ahead)
    }

    /// A tube that ends in a fork.
    fn forearm(&self) -> Vec<Mesh> {
        let (neck, wrist) = (self.neck(), self.joint[4]);
        let length = neck.distance(wrist) / self.scale;
        let fork =
            [self.disc(wrist, Vec3::ZERO, 0.033), self.disc(wrist, self.ahead * -0.075, 0.036)];
        let mut meshes = vec![
            self.turned(
                Graphite,
                neck,
                self.ahead,
                [(0.096, 0.041), (0.098, 0.044), (0.108, 0.044), (0.11, 0.041)],
            ),
            self.turned(
                Paint,
                neck,
                self.ahead,
                [
                    (0.11, 0.043),
                    (0.14, 0.0435),
                    (length - 0.09, 0.045),
                    (length - 0.062, 0.045),
                    (length - 0.052, 0.04),
                    (length - 0.048, 0.03),
                ],
            ),
        ];
        meshes.extend(self.cheeks(Paint, &fork, (0.027, 0.045), 0.006));
        let cover = [self.disc(wrist, Vec3::ZERO, 0.023)];
        meshes.extend(self.cheeks(Graphite, &cover, (0.04, 0.05), 0.004));
        meshes
    }

    /// Between the tines of the fork.
    fn wrist(&self) -> Vec<Mesh> {
        let wrist = self.joint[4];
        let block =
            [self.disc(wrist, Vec3::ZERO, 0.029), self.disc(wrist, self.ahead * 0.02, 0.026)];
        vec![
            self.plate(Paint, &block, 0.0265, 0.005),
            self.turned(Paint, wrist, self.ahead, [(0.02, 0.026), (0.05, 0.026), (0.053, 0.0235)]),
        ]
    }

    /// What a tool is screwed to.
    fn flange(&self) -> Vec<Mesh> {
        let end = self.flange;
        vec![
            self.turned(
                Graphite,
                end,
                self.ahead,
                [(-0.02, 0.0215), (-0.0185, 0.0225), (-0.012, 0.0225), (-0.01, 0.02)],
            ),
            self.turned(
                Steel,
                end,
                self.ahead,
                [(-0.01, 0.0235), (-0.009, 0.025), (-0.001, 0.025), (0.0, 0.024)],
            ),
            self.turned(
                Graphite,
                end,
                self.ahead,
                [(-0.002, 0.0125), (0.0006, 0.0125), (0.001, 0.011)],
            ),
        ]
    }
}
