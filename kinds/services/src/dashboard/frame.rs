//! The binary messages, byte by byte as the protocol defines them.

use axum::body::Bytes;

use super::ports::PortValues;
use super::protocol::{IMAGE, MOTION, PATH_POINTS_MAX, VALUES, VERSION};

/// What a thread did since the last frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ThreadMotion {
    /// Number of its last cycle; -1 before the first.
    pub(super) cycle: f64,
    pub(super) latency_us: f32,
    pub(super) jitter_us: f32,
    pub(super) overruns: u32,
    pub(super) skipped: u32,
    pub(super) lost: u32,
    pub(super) flags: u32,
}

/// What moved since the last frame.
#[derive(Debug)]
pub(super) struct Motion<'a> {
    pub(super) sequence: u32,
    pub(super) now_ms: f64,
    pub(super) threads: &'a [ThreadMotion],
    /// The signals of all threads, in order.
    pub(super) signals: &'a [f64],
    /// All points since the last frame.
    pub(super) path: &'a [[f64; 3]],
}

/// The bytes of a motion message.
pub(super) fn motion(motion: &Motion<'_>) -> Bytes {
    let mut bytes = vec![MOTION, VERSION];
    let threads = u16::try_from(motion.threads.len()).expect("a graph has fewer threads");
    bytes.extend(threads.to_le_bytes());
    bytes.extend(motion.sequence.to_le_bytes());
    bytes.extend(motion.now_ms.to_le_bytes());
    for thread in motion.threads {
        bytes.extend(thread.cycle.to_le_bytes());
        bytes.extend(thread.latency_us.to_le_bytes());
        bytes.extend(thread.jitter_us.to_le_bytes());
        for count in [thread.overruns, thread.skipped, thread.lost, thread.flags] {
            bytes.extend(count.to_le_bytes());
        }
    }
    for value in motion.signals {
        bytes.extend((*value as f32).to_le_bytes());
    }
    let points = thinned(motion.path);
    bytes.extend((points.len() as u16).to_le_bytes());
    for coordinate in points.iter().flatten() {
        bytes.extend((*coordinate as f32).to_le_bytes());
    }
    bytes.into()
}

/// At most [`PATH_POINTS_MAX`] of the points, evenly spaced, including the last one.
fn thinned(points: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let step = points.len().div_ceil(PATH_POINTS_MAX).max(1);
    let mut thinned: Vec<_> = points.iter().rev().step_by(step).copied().collect();
    thinned.reverse();
    thinned
}

/// The bytes of an image message.
pub(super) fn image(sequence: u32, taken_ms: f64, jpeg: &[u8]) -> Bytes {
    let mut bytes = vec![IMAGE, VERSION, 0, 0];
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(taken_ms.to_le_bytes());
    bytes.extend(jpeg);
    bytes.into()
}

/// The bytes of a message with the values of ports.
pub(super) fn values(sequence: u32, now_ms: f64, ports: &[PortValues]) -> Bytes {
    let mut bytes = vec![VALUES, VERSION];
    let count = u16::try_from(ports.len()).expect("no more than PORTS_MAX are shown");
    bytes.extend(count.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(now_ms.to_le_bytes());
    for port in ports {
        bytes.extend(port.written_ms.to_le_bytes());
        bytes.extend(port.messages.to_le_bytes());
        bytes.extend(port.flags.to_le_bytes());
    }
    for number in ports.iter().flat_map(|port| &port.numbers) {
        bytes.extend(number.to_le_bytes());
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadMotion = ThreadMotion {
        cycle: 77.0,
        latency_us: 12.5,
        jitter_us: 3.0,
        overruns: 1,
        skipped: 2,
        lost: 3,
        flags: 9,
    };

    #[test]
    fn a_motion_stands_where_the_protocol_says() {
        let signals = [0.5, -1.0, 2.0];
        let path = [[1.0, 2.0, 3.0]];
        let bytes = motion(&Motion {
            sequence: 5,
            now_ms: 1234.5,
            threads: &[THREAD, THREAD],
            signals: &signals,
            path: &path,
        });
        let f32_at = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let f64_at = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        assert_eq!(bytes[..8], [MOTION, VERSION, 2, 0, 5, 0, 0, 0]);
        assert_eq!(f64_at(8), 1234.5);
        assert_eq!((f64_at(16), f32_at(24), f32_at(28)), (77.0, 12.5, 3.0));
        assert_eq!(bytes[32..48], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0]);
        let signals = 16 + 2 * 32;
        assert_eq!([0, 4, 8].map(|at| f32_at(signals + at)), [0.5, -1.0, 2.0]);
        let path = signals + 12;
        assert_eq!(bytes[path..path + 2], [1, 0]);
        assert_eq!([2, 6, 10].map(|at| f32_at(path + at)), [1.0, 2.0, 3.0]);
        assert_eq!(bytes.len(), path + 14);
    }

    #[test]
    fn an_image_stands_where_the_protocol_says() {
        let bytes = image(7, 2.5, b"jpeg");
        assert_eq!(bytes[..8], [IMAGE, VERSION, 0, 0, 7, 0, 0, 0]);
        assert_eq!(bytes[8..16], 2.5_f64.to_le_bytes());
        assert_eq!(&bytes[16..], b"jpeg");
    }

    #[test]
    fn values_stand_where_the_protocol_says() {
        let port = |written_ms, numbers| PortValues { written_ms, messages: 9, flags: 5, numbers };
        let bytes = values(3, 8.5, &[port(7.25, vec![1.5, -2.0]), port(-1.0, vec![4.0])]);
        let f64_at = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        assert_eq!(bytes[..8], [VALUES, VERSION, 2, 0, 3, 0, 0, 0]);
        assert_eq!([8, 16, 32].map(f64_at), [8.5, 7.25, -1.0]);
        assert_eq!(bytes[24..32], [9, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!([48, 56, 64].map(f64_at), [1.5, -2.0, 4.0]);
        assert_eq!(bytes.len(), 72);
    }

    #[test]
    fn a_long_path_is_thinned_evenly_and_keeps_its_end() {
        let points: Vec<_> = (0..33).map(|at| [f64::from(at), 0.0, 0.0]).collect();
        let thinned = thinned(&points);
        assert!(thinned.len() <= PATH_POINTS_MAX && thinned.last() == points.last());
        assert!(thinned.windows(2).all(|pair| pair[1][0] - pair[0][0] == 3.0));
        assert!(super::thinned(&[]).is_empty());
        assert_eq!(super::thinned(&points[..2]), points[..2]);
    }
}
