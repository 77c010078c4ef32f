//! Kind `odometry`: where a base on two wheels is, computed only from the turns of its wheels.
//!
//! Between two cycles the base is assumed to move along an arc (Siegwart, Nourbakhsh, Scaramuzza,
//! *Introduction to Autonomous Mobile Robots*, 2nd ed., 5.2.4).

use sinew_core::catalogue::{Kind, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters};

use super::messages::BaseState;
use super::planar::{self, PlanarPlace};
use super::wheels::{self, Axle};

const IN: usize = 0;
const OUT: usize = 1;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "odometry",
    runs_in: RunsIn::Realtime,
    doc: "Computes where a base with a left and a right wheel is, from the turns of its wheels: \
          along an exact arc from each cycle to the next. It uses only 'wheel_position_rad' and \
          'wheel_velocity_rad_per_s'. At the first message the base is at 'start_m'. It drifts, \
          without a limit, if wheels slip, or if radius or track differ from those of the base. \
          After lost messages one arc stands for several; wheels that start again at zero look \
          like wheels that turned back. Radius and track may be set while it runs, for the way \
          from there on.",
    ports: &[
        Port::input("wheels", "The turns of the base's wheels.", BaseState::TYPE),
        Port::output(
            "out",
            "Computed place and speed of the base, in every cycle.",
            BaseState::TYPE,
        ),
    ],
    parameters: &[wheels::RADIUS_M, wheels::TRACK_M, planar::START_M, planar::START_TURN_RAD],
    signals: &[
        Signal::new("position_m", "Computed place: x and y.", "m", 2),
        Signal::new("turn_rad", "Computed direction; 0 is along x.", "rad", 1),
    ],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (axle, place) = (Axle::of(parameters), PlanarPlace::start(parameters));
    Ok(Box::new(Odometry { axle, place, before_rad: None }))
}

struct Odometry {
    axle: Axle,
    place: PlanarPlace,
    /// How far the wheels had turned in the cycle before.
    before_rad: Option<[f64; 2]>,
}

impl Node for Odometry {
    fn update(&mut self, io: &mut Io<'_>, _cycle: &Cycle) -> Result<(), Fault> {
        let mut state = BaseState::default();
        if io.fresh(IN) != Fresh::None {
            let told = io.read::<BaseState>(IN);
            let now_rad = told.wheel_position_rad;
            let before_rad = self.before_rad.replace(now_rad).unwrap_or(now_rad);
            let turned_rad = [0, 1].map(|wheel| now_rad[wheel] - before_rad[wheel]);
            let (way_m, turn_rad) = self.axle.motion(turned_rad);
            self.place = self.place.after(way_m, turn_rad);
            let (speed_m_per_s, turn_rad_per_s) = self.axle.motion(told.wheel_velocity_rad_per_s);
            state.linear_m_per_s[0] = speed_m_per_s;
            state.angular_rad_per_s[2] = turn_rad_per_s;
            state.wheel_position_rad = now_rad;
            state.wheel_velocity_rad_per_s = told.wheel_velocity_rad_per_s;
        }
        self.place.show(&mut state);
        io.signal(0).copy_from_slice(&self.place.position_m.to_array());
        io.signal(1)[0] = self.place.turn_rad;
        *io.write::<BaseState>(OUT) = state;
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.axle = Axle::of(parameters);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;
    use std::path::Path;

    use super::*;
    use crate::testing::fixture;
    use crate::tuning_tests::tune;
    use rs_opw_kinematics::glam::DVec2;
    use sinew_core::NodeFixture;

    fn odometry(given: &[(&str, &str)]) -> NodeFixture {
        fixture(&NODE, Path::new("."), given).expect("makes")
    }

    fn say(odometry: &mut NodeFixture, wheel_position_rad: [f64; 2]) -> BaseState {
        odometry.put(IN, &BaseState { wheel_position_rad, ..BaseState::default() });
        odometry.update().expect("a cycle");
        odometry.get::<BaseState>(OUT).expect("every cycle")
    }

    /// The turns of both wheels for an arc around a centre to the left, from the way of each wheel.
    fn turns(radius_m: f64, angle_rad: f64, wheel_m: f64, track_m: f64) -> [f64; 2] {
        [-0.5, 0.5].map(|side| (radius_m + side * track_m) * angle_rad / wheel_m)
    }

    /// Arcs in a row, each compared with the place where it must end: the centre is known, and both
    /// ends are at the radius from it. The number of cycles in an arc does not matter.
    #[test]
    fn it_knows_arcs_exactly() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..50 {
            let start = [random.f64() * 4.0 - 2.0, random.f64() * 4.0 - 2.0];
            let mut heading = random.f64() * TAU;
            let start_m = format!("{start:?}");
            let start_turn_rad = heading.to_string();
            let given = [("start_m", &*start_m), ("start_turn_rad", &start_turn_rad)];
            let mut odometry = odometry(&given);
            // The wheels may begin at any angle.
            let mut wheels = [random.f64() * 100.0, random.f64() * -100.0];
            say(&mut odometry, wheels);
            let mut place = DVec2::from(start);
            for _ in 0..20 {
                let radius_m = (random.f64() - 0.5) * 6.0;
                let angle_rad = (random.f64() - 0.5) * 5.0;
                let centre = place + DVec2::from_angle(heading).perp() * radius_m;
                heading += angle_rad;
                place = centre - DVec2::from_angle(heading).perp() * radius_m;
                let cycles = random.u32(1..100);
                let each = turns(radius_m, angle_rad / f64::from(cycles), 0.05, 0.4);
                let mut told = BaseState::default();
                for _ in 0..cycles {
                    wheels = [wheels[0] + each[0], wheels[1] + each[1]];
                    told = say(&mut odometry, wheels);
                }
                let off = place.distance(DVec2::new(told.position_m[0], told.position_m[1]));
                let [_, _, z, w] = told.orientation_xyzw;
                let turned = 2.0 * z.atan2(w) - heading;
                assert!(off < 1e-9 && turned.sin().abs() < 1e-9, "{off} m, {turned} rad");
            }
        }
    }

    #[test]
    fn a_wrong_radius_makes_all_ways_longer_and_a_wrong_track_all_turns() {
        let given = [("wheel_radius_m", "0.051"), ("track_m", "0.4")];
        let mut longer = odometry(&given);
        say(&mut longer, [0.0; 2]);
        assert!((say(&mut longer, [20.0; 2]).position_m[0] - 1.02).abs() < 1e-12);
        let mut wider = odometry(&[("track_m", "0.44")]);
        say(&mut wider, [0.0; 2]);
        say(&mut wider, [-4.0, 4.0]);
        assert!((wider.signal(1)[0] - 1.0 / 1.1).abs() < 1e-12, "1 rad of a base of 0.4 m");
        assert_eq!(wider.signal(0), [0.0, 0.0]);
    }

    #[test]
    fn other_numbers_count_for_the_way_from_there_on() {
        let mut odometry = odometry(&[]);
        say(&mut odometry, [0.0; 2]);
        say(&mut odometry, [20.0; 2]);
        tune(&mut odometry, &NODE, Path::new("."), &[("wheel_radius_m", "0.06")]);
        assert_eq!(say(&mut odometry, [20.0; 2]).position_m[0], 1.0);
        assert!((say(&mut odometry, [40.0; 2]).position_m[0] - 2.2).abs() < 1e-12);
    }

    #[test]
    fn without_wheels_it_stands_at_its_start() {
        let mut odometry = odometry(&[("start_m", "[3, 4]")]);
        odometry.update().expect("a cycle");
        let told = odometry.get::<BaseState>(OUT).expect("every cycle");
        assert_eq!((told.position_m, told.orientation_xyzw), ([3.0, 4.0, 0.0], [0., 0., 0., 1.]));
    }

    #[test]
    fn it_says_how_fast_the_wheels_go() {
        let mut odometry = odometry(&[]);
        let wheel_velocity_rad_per_s = [2.0, 6.0];
        odometry.put(IN, &BaseState { wheel_velocity_rad_per_s, ..BaseState::default() });
        odometry.update().expect("a cycle");
        let told = odometry.get::<BaseState>(OUT).expect("every cycle");
        assert!((told.linear_m_per_s[0] - 0.2).abs() < 1e-12);
        assert!((told.angular_rad_per_s[2] - 0.5).abs() < 1e-12);
    }
}
