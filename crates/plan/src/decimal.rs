//! What to write instead of a number with a decimal comma, which many languages use.

/// What to write instead of `text`, a number with a decimal comma such as `3,5`, `1.000,5` or
/// `2,5ms`; `None` if the text is something else. `reads` gets the number with a decimal point and
/// says whether that is what was expected.
pub fn decimal_comma(text: &str, reads: impl Fn(&str) -> bool) -> Option<String> {
    let (whole, fraction) = text.split_once(',')?;
    let point = format!("{}.{fraction}", whole.replace('.', ""));
    reads(&point).then(|| format!("write {point}: with a decimal point, not a comma"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_comma_becomes_a_point() {
        let help = |text| decimal_comma(text, |point| point.parse::<f64>().is_ok());
        let write = |point| Some(format!("write {point}: with a decimal point, not a comma"));
        assert_eq!(help("3,5"), write("3.5"));
        assert_eq!(help("-0,25e-3"), write("-0.25e-3"));
        assert_eq!(help("1.000,5"), write("1000.5"));
        for other in ["", "3.5", "a,b", "1,2,3", "3,5V", ","] {
            assert_eq!(help(other), None, "{other}");
        }
    }
}
