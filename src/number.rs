//! Numbers as users write them on the command line.

use sinew_spec::decimal_comma;

/// A number; the error names the decimal point if `text` has a comma in its place.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| {
        decimal_comma(text, |point| number(point).is_ok())
            .unwrap_or_else(|| "expected a number, such as 12.5".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_decimal_point() {
        assert_eq!(number("-2.5e3"), Ok(-2500.0));
        assert!(number("3,5").unwrap_err().starts_with("write 3.5: "));
        assert!(number("x").unwrap_err().starts_with("expected a number"));
    }
}
