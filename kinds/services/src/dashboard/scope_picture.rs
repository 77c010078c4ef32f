//! A capture in the form that a viewer gets: small enough to be sent, with the requested figures.

use sinew_scope::{
    Capture, Captured, FrequencyPoint, FrequencySettings, NotShown, Spectrum, StepResponse, WITHIN,
    columns, cursors, figures, frequency_response, spectrum, step_of, step_response, xy,
};

use super::protocol::scope::{
    COLUMNS_MAX, ScopeLook, ScopePicture, SpectrumPicture, StepLook, TracePicture,
};

/// Most peaks of a spectrum that are named.
const PEAKS: usize = 5;

/// Fills in what is seen of a capture. Takes some milliseconds for a long capture, and more with a
/// spectrum or a response.
///
/// # Panics
/// If `look` names a trace that does not exist.
pub(super) fn fill(picture: &mut ScopePicture, capture: &Capture, look: &ScopeLook) {
    let window_s = [capture.from_s, capture.until_s];
    let span_s = look.span_s.unwrap_or(window_s);
    (picture.window_s, picture.span_s) = (window_s, span_s);
    (picture.number, picture.triggered) = (capture.number, capture.triggered);
    let traces = &capture.traces;
    picture.traces = traces.iter().map(|it| trace(it, look, span_s)).collect();
    picture.xy = look.xy.map(|[x, y]| thinned(&xy(&traces[x], &traces[y])));
    picture.spectrum = look.spectrum.map(|at| spectrum(&traces[at]).map(|it| spectrum_of(&it)));
    picture.step = look.step.map(|step| follows(traces, step));
    picture.bode = look.bode.map(|[input, output]| {
        let settings = FrequencySettings::default();
        let answer = frequency_response(&traces[input], &traces[output], &settings)?;
        Ok(spread(answer.points))
    });
}

fn trace(captured: &Captured, look: &ScopeLook, [from_s, until_s]: [f64; 2]) -> TracePicture {
    let columns = columns(captured, from_s, until_s, look.columns);
    let of = |value: fn(&sinew_scope::Column) -> f64| {
        columns.iter().map(|column| column.as_ref().map(|it| value(it) as f32)).collect()
    };
    TracePicture {
        name: captured.trace.name.clone(),
        unit: captured.trace.unit.clone(),
        labels: captured.trace.labels.clone(),
        min: of(|column| column.min),
        max: of(|column| column.max),
        figures: figures(captured),
        cursors: look.cursors_s.map(|at_s| cursors(captured, at_s)),
    }
}

/// Every n-th pair, so that there are no more than a picture has columns; a break stays a break.
fn thinned(pairs: &[Option<(f64, f64)>]) -> Vec<Option<[f32; 2]>> {
    let every = pairs.len().div_ceil(COLUMNS_MAX).max(1);
    let pair = |part: &[Option<(f64, f64)>]| {
        let breaks = part.iter().any(Option::is_none);
        part[part.len() - 1].filter(|_| !breaks).map(|(x, y)| [x as f32, y as f32])
    };
    pairs.chunks(every).map(pair).collect()
}

/// Groups of frequencies with equal width on a logarithmic axis.
fn groups<T>(all: &[T], hz: impl Fn(&T) -> f64) -> impl Iterator<Item = &[T]> {
    let (first, last) = match (all.first(), all.last()) {
        (Some(first), Some(last)) => (hz(first), hz(last)),
        _ => (1.0, 1.0),
    };
    let place = move |row: &T| {
        let share = (hz(row) / first).log10() / (last / first).log10().max(f64::MIN_POSITIVE);
        (share * (COLUMNS_MAX as f64 / 2.0)) as usize
    };
    all.chunk_by(move |one, other| place(one) == place(other))
}

fn spectrum_of(it: &Spectrum) -> SpectrumPicture {
    let points = it.frequencies_hz.iter().zip(&it.amplitudes).skip(1);
    let points: Vec<[f64; 2]> = points.map(|(hz, amplitude)| [*hz, *amplitude]).collect();
    let greatest = |group: &[[f64; 2]]| {
        let most = group.iter().max_by(|one, other| one[1].total_cmp(&other[1]));
        *most.expect("a group has a first one")
    };
    SpectrumPicture {
        points: groups(&points, |point| point[0]).map(greatest).collect(),
        peaks: it.peaks(PEAKS).into_iter().map(|(hz, amplitude)| [hz, amplitude]).collect(),
        resolution_hz: it.resolution_hz,
    }
}

/// Of neighbouring frequencies the one that is explained best.
fn spread(points: Vec<FrequencyPoint>) -> Vec<FrequencyPoint> {
    let shown: Vec<FrequencyPoint> = points.into_iter().filter(|point| point.shown).collect();
    let best = |group: &[FrequencyPoint]| {
        let most = group.iter().max_by(|one, other| one.coherence.total_cmp(&other.coherence));
        *most.expect("a group has a first one")
    };
    groups(&shown, |point| point.frequency_hz).map(best).collect()
}

fn follows(traces: &[Captured], step: StepLook) -> Result<StepResponse, NotShown> {
    let begin_s = step.input.map_or(Ok(0.0), |input| step_of(&traces[input]))?;
    step_response(&traces[step.output], begin_s, WITHIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xy_picture_is_thinned_and_keeps_its_breaks() {
        let mut pairs: Vec<_> = (0..10_000).map(|at| Some((f64::from(at), 1.0))).collect();
        pairs[5005] = None;
        let thinned = thinned(&pairs);
        assert_eq!(thinned.len(), COLUMNS_MAX);
        assert_eq!(thinned.iter().filter(|pair| pair.is_none()).count(), 1);
        assert_eq!(thinned.last(), Some(&Some([9999.0, 1.0])));
        assert!(super::thinned(&[]).is_empty());
    }

    #[test]
    fn a_long_spectrum_is_grouped_and_no_peak_is_lost() {
        let mut it = Spectrum {
            frequencies_hz: (0..50_001).map(|at| f64::from(at) / 100.0).collect(),
            amplitudes: vec![0.1; 50_001],
            resolution_hz: 0.01,
            skipped: 0,
        };
        it.amplitudes[31_415] = 2.0;
        let picture = spectrum_of(&it);
        assert!(picture.points.len() <= COLUMNS_MAX, "{}", picture.points.len());
        assert!(picture.points.contains(&[314.15, 2.0]));
        assert_eq!(picture.peaks[0], [314.15, 2.0]);
        let hz = picture.points.iter().map(|point| point[0]);
        assert!(hz.is_sorted());
        it.frequencies_hz.truncate(2);
        it.amplitudes.truncate(2);
        assert_eq!(spectrum_of(&it).points, [[0.01, 0.1]], "one frequency is one point");
    }
}
