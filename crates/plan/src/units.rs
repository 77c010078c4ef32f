//! The unit of a number, found at the end of its name.

/// Endings of names and the units that they stand for; a longer one comes before its own ending.
const ENDS: &[(&str, &str)] = &[
    ("_rad_per_s3", "rad/s3"),
    ("_rad_per_s2", "rad/s2"),
    ("_rad_per_s", "rad/s"),
    ("_rad", "rad"),
    ("_deg_per_s2", "deg/s2"),
    ("_deg_per_s", "deg/s"),
    ("_deg_c", "deg C"),
    ("_deg", "deg"),
    ("_mm_per_s2", "mm/s2"),
    ("_mm_per_s", "mm/s"),
    ("_mm", "mm"),
    ("_um", "um"),
    ("_n_m", "N m"),
    ("_m_per_s3", "m/s3"),
    ("_m_per_s2", "m/s2"),
    ("_m_per_s", "m/s"),
    ("_m", "m"),
    ("_n", "N"),
    ("_kg", "kg"),
    ("_v", "V"),
    ("_a", "A"),
    ("_w", "W"),
    ("_ohm", "ohm"),
    ("_hz", "Hz"),
    ("_rpm", "rpm"),
    ("_pa", "Pa"),
    ("_bar", "bar"),
    ("_percent", "%"),
    ("_s", "s"),
    ("_ms", "ms"),
    ("_us", "us"),
    ("_ns", "ns"),
];

/// The unit at the end of a name, such as `m/s` in `speed_m_per_s`; an element of an array
/// (`force_n[2]`) has the unit of the array. `None`: the name gives no unit.
pub fn unit_of_name(name: &str) -> Option<&'static str> {
    let name = name.split('[').next().unwrap_or_default();
    let found = ENDS.iter().find(|(end, _)| name.ends_with(end) || name == &end[1..]);
    found.map(|(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_stands_last_and_the_longest_end_counts() {
        let units = ["position_rad", "turn_rad_per_s", "force_n[2]", "torque_n_m", "v", "status"];
        let known = [Some("rad"), Some("rad/s"), Some("N"), Some("N m"), Some("V"), None];
        assert_eq!(units.map(unit_of_name), known);
        for (at, (end, unit)) in ENDS.iter().enumerate() {
            assert_eq!(unit_of_name(&format!("x{end}")), Some(*unit), "row {at} is never reached");
        }
    }
}
