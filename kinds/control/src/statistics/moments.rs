//! Mean and spread of numbers: added one by one, joined, and over a moving window.

/// The moments of some numbers.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    /// Count of the numbers; always whole.
    count: f64,
    mean: f64,
    /// The sum of the squares of their distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// The moments of no number.
    pub(super) const NONE: Moments =
        Moments { count: 0.0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

    /// Adds a number, by Welford's method.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The moments of both sets together, by Chan, Golub and LeVeque.
    #[inline]
    fn join(self, other: Moments) -> Moments {
        if self.count == 0.0 {
            return other;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        let part = other.count / count;
        Moments {
            count,
            mean: self.mean + apart * part,
            squares: self.squares + other.squares + apart * apart * self.count * part,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Mean, least, greatest, root mean square, standard deviation, of one number or more.
    #[inline]
    pub(super) fn figures(&self) -> [f64; 5] {
        let spread = self.squares / self.count;
        let rms = (self.mean * self.mean + spread).sqrt();
        [self.mean, self.min, self.max, rms, spread.sqrt()]
    }
}

/// The moments of the last `length` numbers. The numbers form blocks of half that length: the block
/// being filled, the full block before it, and the end of the block before that.
///
/// While a block fills, the moments of the ends of the full block are summed backwards, one number
/// longer in each step. When they are needed, in the next block, all of them are there.
pub(super) struct MomentWindow {
    length: usize,
    /// Half of the length, rounded up.
    block: usize,
    /// The numbers of the block being filled, at `side`, and of the full block, at the opposite
    /// side.
    values: [Box<[f64]>; 2],
    /// Moments of the last numbers of a block, from an index on. At `side` those of the full block,
    /// as far as they are summed; at the opposite side those of the block before it.
    ends: [Box<[Moments]>; 2],
    side: usize,
    /// How many numbers are in the block that fills.
    filled: usize,
    /// Moments of the block being filled.
    filling: Moments,
    /// Moments of the full block.
    full: Moments,
    /// Moments of the longest end of the full block that is summed so far.
    end: Moments,
    has_full: bool,
    has_last: bool,
}

impl MomentWindow {
    /// Allocates.
    pub(super) fn new(length: usize) -> MomentWindow {
        let block = length.div_ceil(2);
        let values = || vec![0.0; block].into_boxed_slice();
        let ends = || vec![Moments::NONE; block].into_boxed_slice();
        MomentWindow {
            length,
            block,
            values: [values(), values()],
            ends: [ends(), ends()],
            side: 0,
            filled: 0,
            filling: Moments::NONE,
            full: Moments::NONE,
            end: Moments::NONE,
            has_full: false,
            has_last: false,
        }
    }

    /// Forgets all numbers.
    pub(super) fn clear(&mut self) {
        (self.filled, self.has_full, self.has_last) = (0, false, false);
        (self.filling, self.full, self.end) = (Moments::NONE, Moments::NONE, Moments::NONE);
    }

    /// Adds a number. Returns the moments of the window.
    pub(super) fn add(&mut self, value: f64) -> Moments {
        if self.filled == self.block {
            (self.has_last, self.has_full) = (self.has_full, true);
            (self.full, self.filling, self.end) = (self.filling, Moments::NONE, Moments::NONE);
            self.filled = 0;
            self.side ^= 1;
        }
        self.values[self.side][self.filled] = value;
        self.filling.add(value);
        self.filled += 1;
        if self.has_full {
            let at = self.block - self.filled;
            self.end.add(self.values[self.side ^ 1][at]);
            self.ends[self.side][at] = self.end;
        }
        self.before().join(self.filling)
    }

    /// The moments of the numbers in the window before the block being filled.
    fn before(&self) -> Moments {
        let wanted = self.length - self.filled;
        match wanted.checked_sub(self.block) {
            Some(past) => self.end_of(self.side ^ 1, past, self.has_last).join(self.full),
            // If the length is odd and the block is full: all numbers but one of the block before.
            None => self.end_of(self.side, wanted, self.has_full),
        }
    }

    fn end_of(&self, side: usize, count: usize, is_there: bool) -> Moments {
        match count {
            0 => Moments::NONE,
            _ if is_there => self.ends[side][self.block - count],
            _ => Moments::NONE,
        }
    }
}
