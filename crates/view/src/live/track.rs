//! The paths of the tool: every signal of three numbers in metres, as a path through space.

use sinew_core::trace::ThreadId;
use sinew_report::{Observed, Stats};

/// A point in space, m.
pub(crate) type Point = [f64; 3];

/// Initial time from one point of a track to the next, ns.
const SPACING_NS: u64 = 5_000_000;

/// Most points of a track. Beyond that every other point is removed, and new points come half as
/// often.
const POINTS_MAX: usize = 8192;

/// Least width of the window, m: otherwise an arm at rest would look like a cloud of noise.
const SPAN_MIN_M: f64 = 0.02;

/// The path of one signal.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    thread: ThreadId,
    /// The position of the signal among the signals of its thread.
    offset: usize,
    pub(crate) points: Vec<Point>,
    pub(crate) last: Option<Point>,
    spacing_ns: u64,
    next_ns: u64,
}

impl Track {
    fn new(thread: ThreadId, offset: usize) -> Track {
        let (points, last) = (Vec::new(), None);
        Track { thread, offset, points, last, spacing_ns: SPACING_NS, next_ns: 0 }
    }

    fn add(&mut self, observed: &Observed) {
        let values = observed.signals.get(self.offset..self.offset + 3);
        let place: Option<Point> = values.and_then(|values| values.try_into().ok());
        // All zeros mean that the node has not written the signal yet.
        let Some(place) = place.filter(|place| *place != [0.0; 3]) else { return };
        if !place.iter().all(|number| number.is_finite()) {
            return;
        }
        self.last = Some(place);
        if observed.start_ns < self.next_ns {
            return;
        }
        if self.points.len() == POINTS_MAX {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.spacing_ns *= 2;
        }
        self.points.push(place);
        self.next_ns = observed.start_ns + self.spacing_ns;
    }
}

/// A place as seen from above a corner, along the line from which all three axes look the same: x
/// goes down to the left, y down to the right, z up.
pub(crate) fn isometric([x, y, z]: Point) -> (f64, f64) {
    const COS_30: f64 = 0.866_025_403_784_438_6;
    ((y - x) * COS_30, z - (x + y) / 2.0)
}

/// The part of the picture's plane that is shown, m. Both directions have the same scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) right: [f64; 2],
    pub(crate) up: [f64; 2],
}

/// The paths of all such signals.
#[derive(Clone, Debug)]
pub(crate) struct Tracks(Vec<Track>);

impl Tracks {
    pub(crate) fn new(stats: &Stats) -> Tracks {
        let mut tracks = Vec::new();
        for thread in &stats.threads {
            let mut offset = 0;
            for signal in &thread.signals {
                if signal.signal.count == 3 && signal.signal.unit == "m" {
                    tracks.push(Track::new(thread.id, offset));
                }
                offset += signal.signal.count;
            }
        }
        Tracks(tracks)
    }

    pub(crate) fn add(&mut self, thread: ThreadId, observed: &Observed) {
        if !observed.is_stopping {
            let own = self.0.iter_mut().filter(|track| track.thread == thread);
            own.for_each(|track| track.add(observed));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Track> {
        self.0.iter()
    }

    /// The window that contains everything, for a picture of `width` x `height` square dots. `None`
    /// if there is nothing to draw.
    pub(crate) fn window(&self, width: f64, height: f64) -> Option<Window> {
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for &place in self.0.iter().flat_map(|track| track.points.iter().chain(&track.last)) {
            let (right, up) = isometric(place);
            low = [low[0].min(right), low[1].min(up)];
            high = [high[0].max(right), high[1].max(up)];
        }
        if low[0] > high[0] {
            return None;
        }
        let dot = ((high[0] - low[0]) / width).max((high[1] - low[1]) / height);
        // A small margin around it.
        let dot = dot.max(SPAN_MIN_M / width) * 1.08;
        let around = |at: usize, dots: f64| {
            let middle = f64::midpoint(low[at], high[at]);
            [middle - dot * dots / 2.0, middle + dot * dots / 2.0]
        };
        Some(Window { right: around(0, width), up: around(1, height) })
    }
}

#[cfg(test)]
mod tests {
    use sinew_report::fixture;

    use super::*;

    fn walked(places: impl IntoIterator<Item = Point>) -> Tracks {
        let mut tracks = Tracks::new(&Stats::new(&fixture::plan()));
        for (cycle, [x, y, z]) in places.into_iter().enumerate() {
            let mut observed = fixture::observed(cycle as u64 * 5);
            observed.signals = vec![0.0, x, y, z];
            tracks.add(fixture::CONTROL, &observed);
        }
        tracks
    }

    #[test]
    fn the_window_holds_the_motion_at_one_scale() {
        let tracks = walked((0..100).map(|at| [0.4, f64::from(at) * 1e-3, 0.2]));
        let window = tracks.window(100.0, 50.0).expect("points");
        let size = |range: [f64; 2]| range[1] - range[0];
        assert!((size(window.right) / size(window.up) - 2.0).abs() < 1e-9);
        for place in [[0.4, 0.0, 0.2], [0.4, 0.099, 0.2]] {
            let (right, up) = isometric(place);
            assert!(window.right[0] < right && right < window.right[1]);
            assert!(window.up[0] < up && up < window.up[1]);
        }
    }

    #[test]
    fn all_axes_look_alike() {
        for axis in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
            let (right, up) = isometric(axis);
            assert!((right.hypot(up) - 1.0).abs() < 1e-12);
        }
        assert_eq!(isometric([1.0, 1.0, 1.0]), (0.0, 0.0));
    }

    #[test]
    fn what_was_not_written_or_is_no_number_is_not_drawn() {
        let tracks = walked([[0.0; 3], [f64::NAN, 1.0, 1.0]]);
        assert_eq!(tracks.window(10.0, 10.0), None);
        let still = walked([[0.1, 0.2, 0.3]]).window(10.0, 10.0).expect("a point");
        assert!(still.right[1] - still.right[0] >= SPAN_MIN_M);
    }

    #[test]
    fn a_long_way_keeps_its_whole_shape() {
        let tracks = walked((0..3 * POINTS_MAX).map(|at| [1.0, at as f64, 1.0]));
        let track = tracks.iter().next().expect("target_m");
        assert!(track.points.len() <= POINTS_MAX && track.points.len() > POINTS_MAX / 4);
        assert_eq!(track.points[0], [1.0, 0.0, 1.0]);
        assert_eq!(track.last, Some([1.0, (3 * POINTS_MAX - 1) as f64, 1.0]));
    }
}
