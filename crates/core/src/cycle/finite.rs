//! Whether all numbers of a message are finite: checked after every update, so it is vector code
//! without a branch.

use std::ops::Range;

use sinew_plan::catalogue::{MessageType, Scalar};
use zerocopy::IntoBytes;

/// Where the doubles and floats of a message are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finite {
    /// Words of the message that hold a double each; neighbours are one range.
    doubles: Vec<Range<usize>>,
    /// Bytes of the message that hold floats.
    floats: Vec<Range<usize>>,
}

impl Finite {
    /// For messages of this type; `None` if it has no doubles and no floats.
    pub fn of(message: &MessageType) -> Option<Finite> {
        let mut finite = Finite { doubles: Vec::new(), floats: Vec::new() };
        for field in message.fields {
            let (start, count) = (field.offset as usize, field.count as usize);
            match field.scalar {
                Scalar::F64 => extend(&mut finite.doubles, start / 8..start / 8 + count),
                Scalar::F32 => extend(&mut finite.floats, start..start + 4 * count),
                _ => {}
            }
        }
        (!finite.doubles.is_empty() || !finite.floats.is_empty()).then_some(finite)
    }

    /// Whether all numbers of the message are finite.
    // Not inlined: the cycle's code is faster when it is small.
    #[inline(never)]
    pub fn holds(&self, words: &[u64]) -> bool {
        let doubles = self.doubles.iter().all(|range| doubles_hold(&words[range.clone()]));
        let bytes = words.as_bytes();
        doubles && self.floats.iter().all(|range| floats_hold(&bytes[range.clone()]))
    }
}

/// Whether all of these values are finite.
#[inline]
pub fn are_finite(values: &[f64]) -> bool {
    values.iter().fold(true, |finite, value| finite & value.is_finite())
}

fn extend(ranges: &mut Vec<Range<usize>>, next: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == next.start => last.end = next.end,
        _ => ranges.push(next),
    }
}

/// Adding one to an exponent carries into the sign bit only if the exponent is all ones.
#[inline]
fn doubles_hold(words: &[u64]) -> bool {
    let carry = |bits: u64| (bits & 0x7ff0_0000_0000_0000) + 0x0010_0000_0000_0000;
    let (eights, rest) = words.as_chunks::<8>();
    let mut carries = [0; 8];
    for eight in eights {
        for (sum, &bits) in carries.iter_mut().zip(eight) {
            *sum |= carry(bits);
        }
    }
    let sum = carries.into_iter().fold(0, |sum, next| sum | next);
    rest.iter().fold(sum, |sum, &bits| sum | carry(bits)) >> 63 == 0
}

#[inline]
fn floats_hold(bytes: &[u8]) -> bool {
    let carry = |bits: u32| (bits & 0x7f80_0000) + 0x0080_0000;
    let (fours, _) = bytes.as_chunks::<4>();
    fours.iter().fold(0, |sum, &four| sum | carry(u32::from_ne_bytes(four))) >> 31 == 0
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "`message!` declares public types")]
mod tests {
    use super::*;
    use crate::message;
    use crate::message::Message;

    message! {
        /// For the tests.
        pub struct Mixed {
            /// A count between numbers.
            pub count: u64,
            /// Doubles, more than a chunk and not a multiple of it.
            pub doubles: [f64; 21],
            /// More doubles.
            pub more: f64,
            /// Floats that start within a word.
            pub flag: u32,
            /// Floats.
            pub floats: [f32; 3],
        }
    }

    fn holds(value: &Mixed) -> bool {
        let words: Vec<u64> = value
            .as_bytes()
            .chunks(8)
            .map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("whole words")))
            .collect();
        Finite::of(Mixed::TYPE).expect("it has numbers").holds(&words)
    }

    #[test]
    fn every_number_is_looked_at_and_nothing_else() {
        let good = Mixed {
            count: u64::MAX,
            doubles: [f64::MAX; 21],
            more: f64::MIN_POSITIVE,
            flag: u32::MAX,
            floats: [f32::MIN; 3],
        };
        assert!(holds(&good));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN] {
            for at in 0..21 {
                let mut value = good;
                value.doubles[at] = bad;
                assert!(!holds(&value), "doubles[{at}] = {bad}");
            }
            for at in 0..3 {
                let mut value = good;
                value.floats[at] = bad as f32;
                assert!(!holds(&value), "floats[{at}] = {bad}");
            }
            assert!(!holds(&Mixed { more: bad, ..good }));
        }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "ranges are what is compared")]
    fn neighbours_are_one_range() {
        let finite = Finite::of(Mixed::TYPE).expect("it has numbers");
        assert_eq!(finite.doubles, [1..23]);
        assert_eq!(finite.floats, [188..200]);
    }
}
