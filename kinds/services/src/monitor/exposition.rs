//! The formats in which Prometheus reads figures, and the choice of one for a reader.

use std::fmt;

#[cfg(feature = "native_histograms")]
use prometheus_client::encoding::prometheus_protobuf;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Delimited messages: the only format with native histograms; used if built with that feature.
    Protobuf,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own text format, 0.0.4: for all other readers.
    Text,
}

const HAS_PROTOBUF: bool = cfg!(feature = "native_histograms");

impl Format {
    /// The content type of its body.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The format that an `Accept` header prefers; text if the header names none of them.
    pub(super) fn of(accept: &str) -> Format {
        let wanted = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let mut quality = 1.0;
            let mut is_ours = true;
            for part in parts {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                let value = value.trim_matches('"');
                match (key.to_ascii_lowercase().as_str(), media.as_str()) {
                    ("q", _) => quality = value.parse().unwrap_or(0.0),
                    ("encoding", _) => is_ours &= value == "delimited",
                    ("version", "application/openmetrics-text") => {
                        is_ours &= ["0.0.1", "1.0.0"].contains(&value);
                    }
                    _ => {}
                }
            }
            let format = match media.as_str() {
                "application/vnd.google.protobuf" if HAS_PROTOBUF => Format::Protobuf,
                "application/openmetrics-text" => Format::OpenMetrics,
                "text/plain" | "text/*" | "*/*" => Format::Text,
                _ => return None,
            };
            (is_ours && quality > 0.0).then_some((format, quality))
        });
        // Of equal ones the first is taken.
        let best = wanted.reduce(|a: (Format, f64), b| if b.1 > a.1 { b } else { a });
        best.map_or(Format::Text, |it| it.0)
    }

    /// All figures in this format.
    ///
    /// # Errors
    /// A bug of the encoder.
    pub(super) fn encode(self, registry: &Registry) -> Result<Vec<u8>, String> {
        let failed = |error: &dyn fmt::Display| format!("cannot be encoded: {error}");
        #[cfg(feature = "native_histograms")]
        if self == Format::Protobuf {
            return prometheus_protobuf::encode_to_vec(registry).map_err(|error| failed(&error));
        }
        let mut open = String::new();
        text::encode(&mut open, registry).map_err(|error| failed(&error))?;
        Ok(if self == Format::OpenMetrics { open } else { classic(&open) }.into_bytes())
    }
}

/// Converts OpenMetrics to 0.0.4, in which a counter has the same name as its values, and units and
/// the end mark do not exist.
fn classic(open: &str) -> String {
    let mut text = String::new();
    let mut help: Option<(&str, &str)> = None;
    for line in open.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("EOF" | "UNIT"), ..) => {}
            (Some("#"), Some("HELP"), Some(name), doc) => help = Some((name, doc.unwrap_or(""))),
            (Some("#"), Some("TYPE"), Some(name), Some(is)) => {
                let total = if is == "counter" { "_total" } else { "" };
                if let Some((_, doc)) = help.take().filter(|help| help.0 == name) {
                    text += &format!("# HELP {name}{total} {doc}\n");
                }
                text += &format!("# TYPE {name}{total} {is}\n");
            }
            _ => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_what_it_likes_best() {
        let prometheus = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                          encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;\
                          escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let without = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        for (accept, format) in [
            (prometheus, Format::Protobuf),
            (without, Format::OpenMetrics),
            ("text/plain, application/openmetrics-text; version=\"1.0.0\"", Format::Text),
            ("application/openmetrics-text; version=2.0.0, text/plain;q=0.1", Format::Text),
            ("application/vnd.google.protobuf; encoding=text", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("text/html, */*", Format::Text),
            ("", Format::Text),
            (";;=,,;q=", Format::Text),
        ] {
            assert_eq!(Format::of(accept), format, "{accept}");
        }
    }

    #[test]
    fn classic_text_has_counters_by_their_full_name_and_no_end() {
        let open = "# HELP a_b Cycles, as counted.\n# TYPE a_b counter\na_b_total{x=\"# TYPE\"} 1\n\
                    # HELP c_seconds Time.\n# TYPE c_seconds gauge\n# UNIT c_seconds seconds\n\
                    c_seconds 2.0\n# EOF\n";
        let expected = "# HELP a_b_total Cycles, as counted.\n# TYPE a_b_total counter\n\
                        a_b_total{x=\"# TYPE\"} 1\n# HELP c_seconds Time.\n\
                        # TYPE c_seconds gauge\nc_seconds 2.0\n";
        assert_eq!(classic(open), expected);
    }
}
