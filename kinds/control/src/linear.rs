//! Linear systems in steps of a period: matrices of bounded size, and the exact step of a
//! continuous system over a period in which its inputs are held.
//!
//! The matrices are made once; a step neither allocates nor fails.

use sinew_core::{Fault, fault};

/// Greatest norm of `a` times the period. It takes some 20 squarings, which lose about 1e-10 of a
/// number. Past this norm the fastest part of the system is over a million times faster than the
/// period.
const NORM_MAX: f64 = 1_048_576.0;
/// Up to this norm the Padé approximant of order 13 is exact to the last bit (Higham 2005, table
/// 2.3).
const PADE_NORM_MAX: f64 = 5.371_920_351_148_152;
/// The coefficients of that approximant, from power 0 on.
const PADE: [f64; 14] = [
    64_764_752_532_480_000.0,
    32_382_376_266_240_000.0,
    7_771_770_303_897_600.0,
    1_187_353_796_428_800.0,
    129_060_195_264_000.0,
    10_559_470_521_600.0,
    670_442_572_800.0,
    33_522_128_640.0,
    1_323_241_920.0,
    40_840_800.0,
    960_960.0,
    16_380.0,
    182.0,
    1.0,
];

/// A dense matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DenseMatrix {
    columns: usize,
    numbers: Box<[f64]>,
}

impl DenseMatrix {
    /// A matrix of zeros.
    pub(crate) fn zeros(rows: usize, columns: usize) -> DenseMatrix {
        DenseMatrix { columns, numbers: vec![0.0; rows * columns].into() }
    }

    /// A matrix of these rows.
    pub(crate) fn of<const ROWS: usize, const COLUMNS: usize>(
        rows: [[f64; COLUMNS]; ROWS],
    ) -> DenseMatrix {
        DenseMatrix { columns: COLUMNS, numbers: rows.as_flattened().into() }
    }

    fn identity(rows: usize) -> DenseMatrix {
        let mut one = DenseMatrix::zeros(rows, rows);
        (0..rows).for_each(|at| *one.at(at, at) = 1.0);
        one
    }

    fn rows(&self) -> usize {
        self.numbers.len().checked_div(self.columns).unwrap_or(0)
    }

    /// The number in this row and column.
    pub(crate) fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.numbers[row * self.columns + column]
    }

    fn get(&self, row: usize, column: usize) -> f64 {
        self.numbers[row * self.columns + column]
    }

    /// Adds the product with the vector `with`, of as many numbers as columns, to the vector `to`,
    /// of as many numbers as rows.
    #[inline]
    pub(crate) fn add_product(&self, with: &[f64], to: &mut [f64]) {
        // A matrix without columns has an empty list of numbers: there is nothing to add.
        let rows = self.numbers.chunks_exact(self.columns.max(1));
        for (row, to) in rows.zip(to) {
            *to += row.iter().zip(with).map(|(our, their)| our * their).sum::<f64>();
        }
    }

    fn product(&self, with: &DenseMatrix) -> DenseMatrix {
        let mut product = DenseMatrix::zeros(self.rows(), with.columns);
        for row in 0..self.rows() {
            for column in 0..with.columns {
                let terms = (0..self.columns).map(|at| self.get(row, at) * with.get(at, column));
                *product.at(row, column) = terms.sum();
            }
        }
        product
    }

    fn scaled(&self, by: f64) -> DenseMatrix {
        let numbers = self.numbers.iter().map(|number| number * by).collect();
        DenseMatrix { numbers, ..*self }
    }

    fn plus(&self, other: &DenseMatrix) -> DenseMatrix {
        let numbers = self.numbers.iter().zip(&other.numbers).map(|(our, their)| our + their);
        DenseMatrix { numbers: numbers.collect(), ..*self }
    }

    /// The greatest sum of the absolute values of a column.
    fn norm(&self) -> f64 {
        let sum = |column| (0..self.rows()).map(|row| self.get(row, column).abs()).sum::<f64>();
        (0..self.columns).map(sum).fold(0.0, f64::max)
    }

    /// Solves `self x = with` by elimination. The pivot is the greatest number of its column.
    fn solve(mut self, mut with: DenseMatrix) -> DenseMatrix {
        let rows = self.rows();
        for at in 0..rows {
            let great = |row: &usize| self.get(*row, at).abs();
            let pivot = (at..rows).max_by(|one, other| great(one).total_cmp(&great(other)));
            self.swap_rows(at, pivot.unwrap_or(at));
            with.swap_rows(at, pivot.unwrap_or(at));
            for row in at + 1..rows {
                let factor = self.get(row, at) / self.get(at, at);
                self.subtract_row(row, at, factor);
                with.subtract_row(row, at, factor);
            }
        }
        for at in (0..rows).rev() {
            for below in at + 1..rows {
                with.subtract_row(at, below, self.get(at, below));
            }
            let pivot = self.get(at, at);
            let row = &mut with.numbers[at * with.columns..][..with.columns];
            row.iter_mut().for_each(|number| *number /= pivot);
        }
        with
    }

    fn swap_rows(&mut self, one: usize, other: usize) {
        for column in 0..self.columns {
            self.numbers.swap(one * self.columns + column, other * self.columns + column);
        }
    }

    fn subtract_row(&mut self, from: usize, row: usize, factor: f64) {
        for column in 0..self.columns {
            let less = factor * self.get(row, column);
            *self.at(from, column) -= less;
        }
    }

    /// The matrix exponential, by scaling and squaring: Higham, "The scaling and squaring method
    /// for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26(4), 2005, with the
    /// approximant of order 13 in all cases.
    fn exponential(&self) -> DenseMatrix {
        let squarings = (self.norm() / PADE_NORM_MAX).log2().ceil().max(0.0) as i32;
        let one = self.scaled(0.5_f64.powi(squarings));
        let two = one.product(&one);
        let four = two.product(&two);
        let six = four.product(&two);
        let powers = [DenseMatrix::identity(self.rows()), two, four, six];
        // Sums PADE[from], PADE[from + 2] and so on times these powers.
        let sum = |from: usize, powers: &[DenseMatrix]| {
            let terms = powers.iter().enumerate();
            let terms = terms.map(|(at, power)| power.scaled(PADE[from + 2 * at]));
            terms.reduce(|sum, term| sum.plus(&term)).unwrap_or_else(|| powers[0].clone())
        };
        let half = |from| powers[3].product(&sum(from + 8, &powers[1..])).plus(&sum(from, &powers));
        let (odd, even) = (one.product(&half(1)), half(0));
        let mut power = even.plus(&odd.scaled(-1.0)).solve(even.plus(&odd));
        for _ in 0..squarings {
            power = power.product(&power);
        }
        power
    }
}

/// What a linear system does in a period in which its inputs are held:
/// x' = `state` x + `input` u.
#[derive(Clone, Debug)]
pub(crate) struct HeldSystem {
    /// The next state for inputs of zero.
    pub(crate) state: DenseMatrix,
    /// What the inputs add.
    pub(crate) input: DenseMatrix,
}

impl HeldSystem {
    /// The exact step of dx/dt = a x + b u: the exponential of [[a, b], [0, 0]] times the period
    /// has both matrices in its upper rows (Van Loan, "Computing integrals involving the matrix
    /// exponential", IEEE Trans. Automatic Control 23(3), 1978).
    ///
    /// # Errors
    /// `a` is too fast for the period, or the system grows past all numbers within it.
    pub(crate) fn new(a: &DenseMatrix, b: &DenseMatrix, period_s: f64) -> Result<Self, Fault> {
        let norm = a.norm() * period_s;
        if norm.is_nan() || norm > NORM_MAX {
            return Err(fault!(
                "the system is too fast for the period: in {period_s} s it could change by \
                 {norm:.1e} times itself, at most {NORM_MAX:.0}; shorten the period, or make the \
                 system slower"
            ));
        }
        let (states, inputs) = (a.rows(), b.columns);
        // The result is linear in b, so `b` is scaled down: great numbers in it need no more
        // squarings.
        let shrink = 0.5_f64.powi((b.norm() * period_s).max(1.0).log2().ceil() as i32);
        let mut whole = DenseMatrix::zeros(states + inputs, states + inputs);
        for row in 0..states {
            for column in 0..states {
                *whole.at(row, column) = a.get(row, column) * period_s;
            }
            for column in 0..inputs {
                *whole.at(row, states + column) = b.get(row, column) * period_s * shrink;
            }
        }
        let whole = whole.exponential();
        let mut held = HeldSystem {
            state: DenseMatrix::zeros(states, states),
            input: DenseMatrix::zeros(states, inputs),
        };
        for row in 0..states {
            for column in 0..states {
                *held.state.at(row, column) = whole.get(row, column);
            }
            for column in 0..inputs {
                *held.input.at(row, column) = whole.get(row, states + column) / shrink;
            }
        }
        let numbers = held.state.numbers.iter().chain(&held.input.numbers);
        match numbers.copied().all(f64::is_finite) {
            true => Ok(held),
            false => Err(fault!(
                "the system grows past all numbers within a period of {period_s} s; shorten the \
                 period, or make the system slower"
            )),
        }
    }

    /// Computes the state after a period that begins with `state`.
    #[inline]
    pub(crate) fn step(&self, state: &[f64], inputs: &[f64], next: &mut [f64]) {
        next.fill(0.0);
        self.state.add_product(state, next);
        self.input.add_product(inputs, next);
    }
}

#[cfg(test)]
mod tests;
