//! Where the flange may be: above a floor, within a box. Both are given in the arm's base frame.
//! Only the place of the flange is checked, not a tool nor the links of the arm.

use std::fmt;

use rs_opw_kinematics::glam::DVec3;
use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Fault, Parameters, fault};

/// The distance outside that rounding may cause, m.
const TOLERANCE_M: f64 = 1e-6;

/// Greatest distance of coordinates from the base, mm. No path may go further.
const FAR_MM: f64 = 100_000.0;

const fn corner(name: &'static str, doc: &'static str, default: &'static str) -> Parameter {
    let ty = ParameterType::Numbers { count_min: 3, count_max: 3, min: -FAR_MM, max: FAR_MM };
    Parameter::new(name, ty).or(default).unit("mm").doc(doc)
}

/// Parameter: the floor.
pub const FLOOR_MM: Parameter = Parameter::new(
    "floor_mm",
    ParameterType::Number { min: -FAR_MM, max: FAR_MM },
)
.or("0")
.unit("mm")
.doc(
    "Least height of the flange; 0 is the plane on which the arm stands. The same for planner and \
     ik.",
);

/// Parameter: one corner of the box.
pub const BOX_MIN_MM: Parameter = corner(
    "box_min_mm",
    "Least x, y and z of the flange. The same for planner and ik.",
    "[-100000, -100000, -100000]",
);

/// Parameter: the other corner.
pub const BOX_MAX_MM: Parameter = corner(
    "box_max_mm",
    "Greatest x, y and z of the flange. The same for planner and ik.",
    "[100000, 100000, 100000]",
);

/// The floor and the box.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    floor_m: f64,
    min_m: DVec3,
    max_m: DVec3,
    tolerance_m: f64,
}

/// The limit that a place exceeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// 0 to 2: x to z.
    axis: usize,
    value_m: f64,
    limit_m: f64,
    knob: &'static str,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outside { axis, value_m, limit_m, knob } = *self;
        let side = match knob {
            "floor_mm" => "below the floor",
            "box_min_mm" => "before the box",
            _ => "beyond the box",
        };
        write!(
            f,
            "{:.3} mm {side}: {} is {:.3} mm, {knob} says {:.3}; move it or change {knob}",
            (value_m - limit_m).abs() * 1e3,
            ["x", "y", "z"][axis],
            value_m * 1e3,
            limit_m * 1e3
        )
    }
}

impl Workspace {
    /// From parameters [`FLOOR_MM`], [`BOX_MIN_MM`] and [`BOX_MAX_MM`].
    ///
    /// # Errors
    /// There is no room in it, or `home` (the flange at the start) is outside.
    pub fn new(parameters: &Parameters<'_>, home: DVec3) -> Result<Workspace, Fault> {
        let corner = |name| DVec3::from_slice(parameters.numbers(name)) * 1e-3;
        let workspace = Workspace {
            floor_m: parameters.number("floor_mm") * 1e-3,
            min_m: corner("box_min_mm"),
            max_m: corner("box_max_mm"),
            tolerance_m: TOLERANCE_M,
        };
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let [min, max] = [workspace.min_m[axis], workspace.max_m[axis]].map(|m| m * 1e3);
            if min >= max {
                return Err(fault!(
                    "box_min_mm and box_max_mm leave no room in {name}: {min:.3} to {max:.3} mm; \
                     give the lesser one in box_min_mm"
                ));
            }
        }
        workspace.check(home).map_err(|outside| fault!("home_deg: {outside}"))?;
        Ok(workspace)
    }

    /// The same floor and box for a place that is computed anew later: with half of the distance
    /// that rounding may cause.
    #[must_use]
    pub fn reserved(&self) -> Workspace {
        Workspace { tolerance_m: self.tolerance_m / 2.0, ..*self }
    }

    /// Whether the flange may be at a place. Does not allocate.
    ///
    /// # Errors
    /// The first limit that the place exceeds.
    pub fn check(&self, place: DVec3) -> Result<(), Outside> {
        let floor = (2, self.floor_m, "floor_mm", 1.0);
        let min = (0..3).map(|axis| (axis, self.min_m[axis], "box_min_mm", 1.0));
        let max = (0..3).map(|axis| (axis, self.max_m[axis], "box_max_mm", -1.0));
        for (axis, limit_m, knob, inwards) in std::iter::once(floor).chain(min).chain(max) {
            let value_m = place[axis];
            if (value_m - limit_m) * inwards < -self.tolerance_m {
                return Err(Outside { axis, value_m, limit_m, knob });
            }
        }
        Ok(())
    }
}
