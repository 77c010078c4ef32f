//! Waypoints as comma-separated values: one line each, under a header that names the units.

use rs_opw_kinematics::glam::{DQuat, DVec3, EulerRot};
use rs_opw_kinematics::kinematic_traits::Pose;

use super::{BadText, COORDINATE_MAX_M, MOVES_MAX, Move, MoveShape, number, shortened};

/// The only header that is understood. Angles turn about the fixed axes x, then y, then z. The
/// speed is that of the move to the waypoint.
pub const HEADER: &str = "x_mm,y_mm,z_mm,roll_deg,pitch_deg,yaw_deg,speed_mm_per_s";

/// Reads waypoints. Empty lines and lines that begin with `#` are ignored.
///
/// # Errors
/// The first thing that is not as expected.
pub fn parse(text: &str) -> Result<Vec<Move>, BadText> {
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line)).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let (at, header) = lines
        .next()
        .ok_or_else(|| BadText::new(1, 1, format!("is empty; expected the line '{HEADER}'")))?;
    if header.split(',').map(str::trim).ne(HEADER.split(',')) {
        let found = shortened(header);
        return Err(BadText::new(at, 1, format!("found '{found}'; expected '{HEADER}'")));
    }
    let mut moves = Vec::new();
    let mut last = at;
    for (at, line) in lines {
        if moves.len() == MOVES_MAX {
            return Err(BadText::new(at, 1, format!("more than {MOVES_MAX} waypoints; split it")));
        }
        moves.push(waypoint(at, line)?);
        last = at;
    }
    if moves.len() < 2 {
        let found = moves.len();
        return Err(BadText::new(last, 1, format!("{found} waypoints; expected at least 2")));
    }
    Ok(moves)
}

fn waypoint(at: usize, line: &str) -> Result<Move, BadText> {
    let mut values = [0.0; 7];
    let mut column = 1;
    let mut count = 0;
    for field in line.split(',') {
        let Some(value) = values.get_mut(count) else {
            return Err(BadText::new(
                at,
                column,
                "an eighth value; expected 7, each with a decimal point",
            ));
        };
        let blank = field.chars().take_while(|c| c.is_whitespace()).count();
        let here = column + blank;
        *value = number(field.trim()).map_err(|text| BadText::new(at, here, text))?;
        let (name, limit) = match count {
            0..3 => ("coordinate", COORDINATE_MAX_M * 1e3),
            3..6 => ("angle", 360.0),
            _ => ("speed", 1e5),
        };
        if value.abs() > limit {
            let text = format!("{name} {value}; expected at most {limit} to either side of zero");
            return Err(BadText::new(at, here, text));
        }
        if count == 6 && *value <= 0.0 {
            let text = format!("speed {value} mm/s; expected more than 0");
            return Err(BadText::new(at, here, text));
        }
        column += field.chars().count() + 1;
        count += 1;
    }
    if count < values.len() {
        let text = format!("{count} values; expected 7: {HEADER}");
        return Err(BadText::new(at, column - 1, text));
    }
    let [x, y, z, roll, pitch, yaw, speed] = values;
    let turn = [yaw, pitch, roll].map(f64::to_radians);
    let rotation = DQuat::from_euler(EulerRot::ZYX, turn[0], turn[1], turn[2]);
    let to = Pose { translation: DVec3::new(x, y, z) * 1e-3, rotation: rotation.normalize() };
    Ok(Move { to, shape: MoveShape::Line, speed_m_per_s: speed * 1e-3, line: at })
}
