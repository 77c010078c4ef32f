//! The path that the flange has taken: it fades with age.

use std::collections::VecDeque;

use glam::Vec3;

/// How long a place is kept, ns.
const KEPT_NS: u64 = 8_000_000_000;
/// Least distance between two places that are kept, m.
const STEP_M: f32 = 0.004;
/// Most places: a flange at full speed would need more of them, so its path is shorter.
const PLACES_MAX: usize = 1200;
/// Places in a piece.
const PIECE: usize = 24;

/// Where the flange was, the oldest place first.
pub(super) struct Track {
    places: VecDeque<(u64, Vec3)>,
}

/// A part of the path that is drawn at once.
pub(super) struct Piece {
    /// How fresh it is, from 1 down to 0.
    pub(super) fresh: f32,
    pub(super) places: Vec<Vec3>,
}

impl Track {
    pub(super) fn new() -> Track {
        Track { places: VecDeque::with_capacity(PLACES_MAX) }
    }

    /// Adds the flange's place.
    pub(super) fn add(&mut self, time_ns: u64, place: Vec3) {
        if self.places.back().is_none_or(|(_, last)| last.distance(place) >= STEP_M) {
            if self.places.len() == PLACES_MAX {
                self.places.pop_front();
            }
            self.places.push_back((time_ns, place));
        }
    }

    /// Removes old places, and returns the rest, up to the flange's place now.
    pub(super) fn pieces(&mut self, now_ns: u64, flange: Vec3) -> Vec<Piece> {
        let old_ns = |at_ns: u64| now_ns.saturating_sub(at_ns);
        while self.places.front().is_some_and(|&(at_ns, _)| old_ns(at_ns) > KEPT_NS) {
            self.places.pop_front();
        }
        let all = self.places.iter().copied().chain([(now_ns, flange)]).collect::<Vec<_>>();
        let piece = |from: usize| {
            let part = &all[from..all.len().min(from + PIECE + 1)];
            let age = old_ns(part[0].0) as f32 / KEPT_NS as f32;
            Piece { fresh: 1.0 - age, places: part.iter().map(|&(_, place)| place).collect() }
        };
        (0..all.len() - 1).step_by(PIECE).map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_path_fades_and_is_gone() {
        let mut track = Track::new();
        for step in 0..100_u64 {
            track.add(step, Vec3::X * (step as f32 * 0.0021));
        }
        assert_eq!(track.places.len(), 50, "every second one");
        let end = Vec3::X * 0.21;
        let young = track.pieces(SECOND_NS, end);
        assert!(young.iter().all(|piece| (0.8..0.9).contains(&piece.fresh)));
        assert_eq!(young.last().and_then(|piece| piece.places.last()), Some(&end));
        let joined = young.windows(2).all(|two| two[0].places.last() == two[1].places.first());
        assert!(joined && young.len() == 3);
        assert!(track.pieces(7 * SECOND_NS, end).iter().all(|piece| piece.fresh < 0.2));
        assert!(track.pieces(9 * SECOND_NS, end).is_empty());
    }

    #[test]
    fn it_never_holds_more_places_than_it_may() {
        let mut track = Track::new();
        for step in 0..3 * PLACES_MAX as u64 {
            track.add(0, Vec3::X * step as f32);
        }
        assert_eq!(track.places.len(), PLACES_MAX);
    }
}
