//! A path: read from a file, laid out in space, timed.
//!
//! [`csv`] and [`gcode`] turn text into [`Move`]s. [`geometry`] lays them out as segments.
//! [`profile`] defines when the tool is where.

pub mod csv;
pub mod gcode;
pub mod geometry;
pub mod profile;

use std::path::Path;

use rs_opw_kinematics::glam::DVec3;
use rs_opw_kinematics::kinematic_traits::Pose;
use sinew_core::{Fault, fault};

use crate::file::read as read_file;

/// Largest path file, bytes. Of a larger file no more is read.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Most moves in a path: each keeps its profile in memory, about 1 KB.
pub const MOVES_MAX: usize = 10_000;

/// Coordinates beyond this are a mistake of units, m.
pub const COORDINATE_MAX_M: f64 = 100.0;

/// How the tool gets to the end of a move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MoveShape {
    /// Straight.
    Line,
    /// Around an axis. It is a helix if the end has another height along the axis.
    Arc {
        /// A point of the axis at the height of the start, m.
        centre: DVec3,
        /// Direction of the axis; angles count right-handed around it.
        normal: DVec3,
        /// The angle of the arc around the axis.
        angle_rad: f64,
    },
}

/// One move, from wherever the one before ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Where it ends.
    pub to: Pose,
    /// The shape of its way.
    pub shape: MoveShape,
    /// Programmed speed; infinite means as fast as the limits allow.
    pub speed_m_per_s: f64,
    /// Line of the file, from 1.
    pub line: usize,
}

/// What is wrong with a file, and its place: line and column from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadText {
    /// Line.
    pub line: usize,
    /// Character of the line.
    pub column: usize,
    /// What was found and what was expected.
    pub text: String,
}

impl BadText {
    fn new(line: usize, column: usize, text: impl Into<String>) -> BadText {
        BadText { line, column, text: text.into() }
    }
}

/// Reads a path file. Its extension gives the format. The first move leads there from `home`.
/// `name` is used in messages; `work_origin_m` is the zero point of G-code.
///
/// # Errors
/// What is wrong, with name, line and column.
pub fn read(
    file: &Path,
    name: &str,
    home: &Pose,
    work_origin_m: DVec3,
) -> Result<Vec<Move>, Fault> {
    let bytes = read_file(file, FILE_BYTES_MAX)
        .map_err(|error| fault!("{name}: {error}; give a .csv or .gcode file in 'path'"))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        fault!("{name}:{line}:1: is not text (UTF-8)")
    })?;
    let moves = match file.extension().and_then(|end| end.to_str()) {
        Some("csv") => csv::parse(text),
        Some("gcode" | "nc" | "ngc") => gcode::parse(text, home, work_origin_m),
        _ => return Err(fault!("{name}: expected a name that ends in .csv, .gcode, .nc or .ngc")),
    };
    moves.map_err(|bad| fault!("{name}:{}:{}: {}", bad.line, bad.column, bad.text))
}

/// Reads a finite number.
fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(format!("'{text}' is not finite; expected a finite number")),
        Err(_) if text.is_empty() => Err("nothing here; expected a number".to_owned()),
        Err(_) => Err(format!("'{}' is not a number; expected one like 12.5", shortened(text))),
    }
}

/// The first characters of a text, for a quotation.
fn shortened(text: &str) -> String {
    text.chars().take(24).collect()
}

#[cfg(test)]
pub(crate) mod tests;
