//! Why a domain stops. A fault is made without allocating, so a failing cycle keeps the same rule
//! as a running one.

use std::fmt;

use sinew_plan::Span;

/// Bytes of text that a fault can hold; a longer text is cut.
pub const TEXT_MAX: usize = 232;

/// What sort of thing went wrong. The numbers are used in shared memory; do not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// A node returned an error.
    Error = 1,
    /// A node panicked.
    Panic = 2,
    /// A node wrote a number that is not finite.
    NotFinite = 3,
    /// Deadlines were exceeded past the policy.
    Overrun = 4,
    /// A peer is gone.
    LostPeer = 5,
    /// A peer wrote what no correct peer writes.
    BadPeer = 6,
    /// A queue was full and the spec says that this is a fault.
    Full = 7,
    /// The kernel refused something the domain cannot do without.
    System = 8,
    /// The domain died without a report: by a signal, or by an exit that it did not choose.
    Died = 9,
}

impl Cause {
    /// Every cause with its word in reports.
    pub const ALL: &'static [(Cause, &'static str)] = &[
        (Cause::Error, "error"),
        (Cause::Panic, "panic"),
        (Cause::NotFinite, "not_finite"),
        (Cause::Overrun, "overrun"),
        (Cause::LostPeer, "lost_peer"),
        (Cause::BadPeer, "bad_peer"),
        (Cause::Full, "full"),
        (Cause::System, "system"),
        (Cause::Died, "died"),
    ];

    /// The word in reports.
    pub fn word(self) -> &'static str {
        Cause::ALL[self as usize - 1].1
    }

    /// The cause with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Cause> {
        Cause::ALL.get((number as usize).checked_sub(1)?).map(|row| row.0)
    }
}

/// A reason to stop.
#[derive(Clone)]
pub struct Fault {
    /// What sort.
    pub cause: Cause,
    text: [u8; TEXT_MAX],
    /// The length of the text and, above its 8 bits, a place in the spec: 8 bits for which text, 16
    /// for its length, 32 for where it begins; all zero: none. Every receive returns a result with
    /// a fault in it, and each further field would cost time.
    marks: u64,
}

/// Bits of the length of the text in [`Fault::marks`].
const LEN_BITS: u32 = 8;
const _: () = assert!(TEXT_MAX < 1 << LEN_BITS);

impl Fault {
    /// A fault with a text; does not allocate.
    pub fn new(cause: Cause, text: fmt::Arguments<'_>) -> Fault {
        let mut fault = Fault { cause, text: [0; TEXT_MAX], marks: 0 };
        // Cutting a text that is too long is the only failure, and `write_str` does not report it.
        let _ = fmt::write(&mut fault, text);
        fault
    }

    /// The same, with the place in the spec: what `make` says about a value is shown there. A place
    /// longer than 64 KiB is cut; one in an override past the 255th is left out.
    #[must_use]
    pub fn at(self, span: Span) -> Fault {
        let Ok(source) = u8::try_from(span.source) else { return self };
        let len = span.len.min(u16::MAX.into());
        let place = u64::from(source) | u64::from(len) << 8 | u64::from(span.start) << 24;
        Fault { marks: self.len() as u64 | place << LEN_BITS, ..self }
    }

    /// Where in the spec its reason is, if a node could not be made from what is written there.
    pub fn span(&self) -> Option<Span> {
        let place = self.marks >> LEN_BITS;
        let (source, len) = (place as u8, (place >> 8) as u16);
        let span = Span { source: source.into(), len: len.into(), start: (place >> 24) as u32 };
        (place != 0).then_some(span)
    }

    fn len(&self) -> usize {
        (self.marks & ((1 << LEN_BITS) - 1)) as usize
    }

    /// What went wrong, where, and what to change.
    pub fn text(&self) -> &str {
        let valid = &self.text[..self.len()];
        std::str::from_utf8(valid).unwrap_or_else(|error| {
            std::str::from_utf8(&valid[..error.valid_up_to()]).unwrap_or_default()
        })
    }
}

impl fmt::Write for Fault {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = self.len();
        let bytes = &text.as_bytes()[..text.len().min(TEXT_MAX - len)];
        self.text[len..len + bytes.len()].copy_from_slice(bytes);
        self.marks += bytes.len() as u64;
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause.word(), self.text())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Fault {}

/// A [`Fault`] with [`Cause::Error`], written like `format!`; does not allocate.
///
/// ```
/// let fault = sinew_core::fault!("joint {} at {:.1} deg", 3, 181.5);
/// assert_eq!(fault.text(), "joint 3 at 181.5 deg");
/// ```
#[macro_export]
macro_rules! fault {
    ($($text:tt)*) => {
        $crate::Fault::new($crate::Cause::Error, format_args!($($text)*))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_too_long_is_cut_at_a_character() {
        let fault = crate::fault!("{}", "µ".repeat(TEXT_MAX));
        assert_eq!(fault.text(), "µ".repeat(TEXT_MAX / 2));
        let odd = crate::fault!("a{}", "µ".repeat(TEXT_MAX));
        assert_eq!(odd.text(), format!("a{}", "µ".repeat(TEXT_MAX / 2 - 1)));
    }

    #[test]
    fn a_place_stands_beside_any_text() {
        for text in [0, 1, TEXT_MAX].map(|len| "a".repeat(len)) {
            let fault = crate::fault!("{text}");
            assert_eq!(fault.span(), None);
            for (start, len, source) in [(7, 3, 0), (u32::MAX, 65_535, 255), (0, 1, 0)] {
                let span = Span { source, start, len };
                let placed = fault.clone().at(Span { len: 9, ..span }).at(span);
                assert_eq!((placed.span(), placed.text()), (Some(span), &*text));
            }
            let long = Span { source: 1, start: 5, len: 70_000 };
            assert_eq!(fault.clone().at(long).span(), Some(Span { len: 65_535, ..long }));
            assert_eq!(fault.at(Span { source: 256, ..long }).span(), None);
        }
    }

    #[test]
    fn causes_survive_their_number() {
        for &(cause, word) in Cause::ALL {
            assert_eq!(Cause::from_number(cause as u32), Some(cause));
            assert_eq!(cause.word(), word);
        }
        assert_eq!(Cause::from_number(0), None);
        assert_eq!(Cause::from_number(99), None);
    }
}
