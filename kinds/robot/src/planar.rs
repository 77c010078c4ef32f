//! Places on a plane, the arcs between them, and their form in a graph.

use rs_opw_kinematics::glam::{DQuat, DVec2};
use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Fault, Parameters, fault};
use sinew_plan::{Data, Item};
use std::f64::consts::TAU;

use super::messages::BaseState;

/// Greatest distance from the origin of the plane along each axis, m.
const FAR_M: f64 = 1e4;

/// Parameter: start position of a base.
pub(crate) const START_M: Parameter = Parameter::new(
    "start_m",
    ParameterType::Numbers { count_min: 2, count_max: 2, min: -FAR_M, max: FAR_M },
)
.or("[0, 0]")
.unit("m")
.doc("Place at the start: x and y.");

/// Parameter: start direction of a base.
pub(crate) const START_TURN_RAD: Parameter =
    Parameter::new("start_turn_rad", ParameterType::Number { min: -TAU, max: TAU })
        .or("0")
        .unit("rad")
        .doc("Direction at the start: 0 is along x, a quarter of a turn along y.");

/// A position on the plane, and a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlanarPlace {
    pub(crate) position_m: DVec2,
    /// From 0 to a whole turn; 0 is along x.
    pub(crate) turn_rad: f64,
}

impl PlanarPlace {
    /// Start of a base, from [`START_M`] and [`START_TURN_RAD`].
    pub(crate) fn start(parameters: &Parameters<'_>) -> PlanarPlace {
        PlanarPlace {
            position_m: DVec2::from_slice(parameters.numbers("start_m")),
            turn_rad: parameters.number("start_turn_rad").rem_euclid(TAU),
        }
    }

    /// The place that a base reports; it is taken as upright. A place far off the plane is moved to
    /// its rim, so that ways from there are numbers.
    pub(crate) fn of(state: &BaseState) -> PlanarPlace {
        let [_, _, z, w] = state.orientation_xyzw;
        PlanarPlace {
            position_m: DVec2::new(state.position_m[0], state.position_m[1])
                .clamp(DVec2::splat(-FAR_M), DVec2::splat(FAR_M)),
            turn_rad: (2.0 * z.atan2(w)).rem_euclid(TAU),
        }
    }

    /// Writes the place into the state that a base reports.
    pub(crate) fn show(&self, state: &mut BaseState) {
        let DVec2 { x, y } = self.position_m;
        state.position_m = [x, y, 0.0];
        state.orientation_xyzw = DQuat::from_rotation_z(self.turn_rad).to_array();
    }

    /// The end of an arc of this length, on which the base turns by this angle.
    ///
    /// The direction of its chord is half of the turn further. The chord is shorter than the arc by
    /// sin(x) / x, with x half of the turn (Siegwart, Nourbakhsh, Scaramuzza, *Introduction to
    /// Autonomous Mobile Robots*, 2nd ed., 5.2.4, has the chord as long as the arc).
    pub(crate) fn after(&self, way_m: f64, turn_rad: f64) -> PlanarPlace {
        let half = turn_rad / 2.0;
        let shorter = if half.abs() < 1e-6 { 1.0 } else { half.sin() / half };
        let chord = DVec2::from_angle(self.turn_rad + half) * (way_m * shorter);
        PlanarPlace {
            position_m: self.position_m + chord,
            turn_rad: (self.turn_rad + turn_rad).rem_euclid(TAU),
        }
    }
}

/// Reads a list of rows of numbers within [`FAR_M`], such as `[[1, 2], [3, 4]]`.
pub(crate) fn rows<const N: usize>(
    parameters: &Parameters<'_>,
    name: &str,
    (count_min, count_max): (usize, usize),
) -> Result<Vec<[f64; N]>, Fault> {
    let list = parameters.yaml(name);
    let items = items(name, list)?;
    let count = items.len();
    if !(count_min..=count_max).contains(&count) {
        let text = fault!("{name} has {count} rows, expected {count_min} to {count_max}");
        return Err(text.at(list.span));
    }
    items.iter().enumerate().map(|(at, item)| row(name, at + 1, item)).collect()
}

fn items<'i>(name: &str, item: &'i Item) -> Result<&'i [Item], Fault> {
    let Data::List(items) = &item.data else {
        let found = item.sort();
        let text = fault!("{name} is {found}, expected a list of rows: [[1, 2], [3, 4]]");
        return Err(text.at(item.span));
    };
    Ok(items)
}

fn row<const N: usize>(name: &str, at: usize, item: &Item) -> Result<[f64; N], Fault> {
    let given: &[Item] = if let Data::List(given) = &item.data { given } else { &[] };
    if given.len() != N {
        let found = given.len();
        let text = fault!("row {at} of {name} has {found} numbers, expected {N}");
        return Err(text.at(item.span));
    }
    let mut row = [0.0; N];
    for (number, item) in row.iter_mut().zip(given) {
        let text = item.text().unwrap_or(item.sort());
        let read = text.parse().ok().filter(|read: &f64| read.abs() <= FAR_M);
        *number = read.ok_or_else(|| {
            fault!("'{text:.20}' in row {at} of {name}, expected a number up to {FAR_M}")
                .at(item.span)
        })?;
    }
    Ok(row)
}
