//! Figures as text: one unit and one number of decimals for all figures that are compared.

use std::fmt::Display;

/// Names of the units of time, and their nanoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// The greatest figure that is written in a unit if the next unit is possible too.
const FIGURE_MAX: f64 = 10_000.0;
/// The least figure for which a unit is used. Below it too few digits would remain.
const FIGURE_MIN: f64 = 0.1;

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureUnit {
    /// Its name; empty for a count or a ratio.
    pub name: &'static str,
    /// The size of the unit.
    pub one: f64,
    decimals: usize,
}

impl FigureUnit {
    /// For times in ns.
    pub fn of_times(ns: &[f64]) -> FigureUnit {
        let (least, greatest) = extent(ns);
        let fits = |&(_, one): &(&str, f64)| greatest < FIGURE_MAX * one;
        let mut at = TIMES.iter().position(fits).unwrap_or(TIMES.len() - 1);
        while at > 0 && least < FIGURE_MIN * TIMES[at].1 {
            at -= 1;
        }
        let (name, one) = TIMES[at];
        let whole = at == 0 && ns.iter().all(|ns| ns.fract() == 0.0);
        let decimals = if whole { 0 } else { decimals_of_all(least / one, greatest / one) };
        FigureUnit { name, one, decimals }
    }

    /// For anything else: the unit stays as it is.
    pub fn of_figures(values: &[f64]) -> FigureUnit {
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let (least, greatest) = extent(values);
        let decimals = if whole { 0 } else { decimals_of_all(least, greatest) };
        FigureUnit { name: "", one: 1.0, decimals }
    }

    /// A figure in this unit, without the unit's name.
    pub fn figure(self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.one)
    }
}

/// A time with three digits in the unit that suits it.
pub fn time(ns: f64) -> String {
    let (name, one) = TIMES.into_iter().rfind(|(_, one)| ns.abs() >= *one).unwrap_or(TIMES[0]);
    let figure = ns / one;
    let decimals = if ns.fract() == 0.0 && one == 1.0 { 0 } else { decimals(figure.abs()) };
    format!("{figure:.decimals$} {name}")
}

/// The same without zeros at its end, for a round figure.
pub fn round_time(ns: f64) -> String {
    let text = time(ns);
    let (figure, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let figure = match figure.contains('.') {
        true => figure.trim_end_matches('0').trim_end_matches('.'),
        false => figure,
    };
    format!("{figure} {unit}")
}

/// A size in the largest unit of which it is a whole multiple.
pub fn size(bytes: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("GiB", 1073741824.0), ("MiB", 1048576.0), ("KiB", 1024.0)];
    match UNITS.iter().find(|(_, one)| bytes > 0.0 && bytes % one == 0.0) {
        Some((name, one)) => format!("{} {name}", bytes / one),
        None => format!("{bytes} B"),
    }
}

/// A ratio, to three digits.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        less if less < 9.995 => format!("{value:.2}"),
        less if less < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A number of things with their name: `1 cycle`, `2 cycles`.
pub fn counted<N: Display + From<u8> + PartialEq>(n: N, thing: &str) -> String {
    format!("{n} {thing}{}", if n == N::from(1) { "" } else { "s" })
}

/// The name of an axis, a measure or a figure as words.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The least value that is not zero, and the greatest, both by magnitude.
fn extent(values: &[f64]) -> (f64, f64) {
    let sizes = || values.iter().map(|value| value.abs()).filter(|&size| size > 0.0);
    let least = sizes().min_by(f64::total_cmp).unwrap_or(1.0);
    (least, sizes().max_by(f64::total_cmp).unwrap_or(1.0))
}

/// The same, but the greatest figure gets at most six digits.
fn decimals_of_all(least: f64, greatest: f64) -> usize {
    decimals(least).min((5.0 - greatest.log10().floor()).max(0.0) as usize)
}

/// Three digits for the least figure, but at most three decimals.
fn decimals(least: f64) -> usize {
    (2.0 - least.log10().floor()).clamp(0.0, 3.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ns: &[f64]) -> Vec<String> {
        let unit = FigureUnit::of_times(ns);
        ns.iter().map(|&ns| format!("{} {}", unit.figure(ns), unit.name)).collect()
    }

    #[test]
    fn all_of_a_column_has_one_unit_in_which_the_least_keeps_its_digits() {
        assert_eq!(written(&[131.0, 297.0]), ["131 ns", "297 ns"]);
        assert_eq!(written(&[131.0, 68_920.0]), ["0.131 us", "68.920 us"]);
        assert_eq!(written(&[1_310.0, 68_920.0]), ["1.31 us", "68.92 us"]);
        assert_eq!(written(&[5_000.0, 20_000_000.0]), ["5.0 us", "20000.0 us"]);
        assert_eq!(written(&[0.0, 3.0]), ["0 ns", "3 ns"]);
        assert_eq!(written(&[-500_000.0, 2e6]), ["-500 us", "2000 us"]);
        assert_eq!(written(&[17.4, 60.0]), ["17.4 ns", "60.0 ns"]);
        assert_eq!(written(&[18e9, 20e9]), ["18.0 s", "20.0 s"]);
    }

    #[test]
    fn a_single_time_has_three_digits_and_its_own_unit() {
        let times = [0.0, 0.4, 8.46, 131.0, 131.4, 2849.0, 1_278_000.0, 2e9].map(time);
        let expected =
            ["0 ns", "0.400 ns", "8.46 ns", "131 ns", "131 ns", "2.85 us", "1.28 ms", "2.00 s"];
        assert_eq!(times, expected);
        assert_eq!(
            [500.0, 1e3, 2.5e6, 1e8].map(round_time),
            ["500 ns", "1 us", "2.5 ms", "100 ms"]
        );
        let sizes = [0.0, 8.0, 1024.0, 1536.0, 1049600.0, 1048576.0, 3221225472.0].map(size);
        assert_eq!(sizes, ["0 B", "8 B", "1 KiB", "1536 B", "1025 KiB", "1 MiB", "3 GiB"]);
    }

    #[test]
    fn a_ratio_has_three_digits() {
        assert_eq!([1.0, 12.34, 345.6, 9.999].map(ratio), ["1.00", "12.3", "346", "10.0"]);
    }

    #[test]
    fn counts_have_no_decimals() {
        assert_eq!(FigureUnit::of_figures(&[0.0, 12.0]).figure(12.0), "12");
        assert_eq!(FigureUnit::of_figures(&[0.5, 99.25]).figure(99.25), "99.250");
    }
}
