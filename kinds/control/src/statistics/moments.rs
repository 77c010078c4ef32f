//! Mean and spread of numbers: one by one, joined, and of the last so many.

/// What is kept of some numbers.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    /// How many; whole.
    count: f64,
    mean: f64,
    /// The sum of the squares of their distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// Of no number.
    pub(super) const NONE: Moments =
        Moments { count: 0.0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

    /// One more; by Welford.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Of those of both; by Chan, Golub and LeVeque.
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

    /// Mean, least, greatest, root of the mean square, standard deviation; of one number or more.
    #[inline]
    pub(super) fn figures(&self) -> [f64; 5] {
        let spread = self.squares / self.count;
        let rms = (self.mean * self.mean + spread).sqrt();
        [self.mean, self.min, self.max, rms, spread.sqrt()]
    }
}

/// The last so many numbers, in blocks of half as many: the block that fills, the full one before
/// it, and of the one before that the end.
///
/// While a block fills, the ends of the full one are summed backwards, one longer in each step:
/// when they are needed, in the next block, all are there.
pub(super) struct MomentWindow {
    length: usize,
    /// Half of the length, rounded up.
    block: usize,
    /// The numbers of the block that fills and of the full one, at `side` and opposite.
    values: [Box<[f64]>; 2],
    /// Of the last numbers of a block, from an index on: of the full one, as far as they are
    /// summed, at `side`; of the one before it opposite.
    ends: [Box<[Moments]>; 2],
    side: usize,
    /// How many numbers are in the block that fills.
    filled: usize,
    /// Of these.
    filling: Moments,
    /// Of the full block.
    full: Moments,
    /// Of its longest end so far.
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

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        (self.filled, self.has_full, self.has_last) = (0, false, false);
        (self.filling, self.full, self.end) = (Moments::NONE, Moments::NONE, Moments::NONE);
    }

    /// Takes a number; what is to be said of the last ones.
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

    /// Of those of the window that came before the block that fills.
    fn before(&self) -> Moments {
        let wanted = self.length - self.filled;
        match wanted.checked_sub(self.block) {
            Some(past) => self.end_of(self.side ^ 1, past, self.has_last).join(self.full),
            // Of an odd length, when the block is full: all but one of the block before.
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
