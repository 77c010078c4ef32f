//! Pieces of one stream that were read and not yet handed on.

use std::collections::VecDeque;
use std::sync::Arc;

use sinew_ffmpeg::{Piece, StreamSetup};
use sinew_media::{PacketHead, flag};

/// Most pieces, and most bytes of them: at least two seconds of any film.
const PIECES_MAX: usize = 128;
const BYTES_MAX: usize = 16 << 20;

/// A packet that waits.
pub(super) struct Waiting {
    pub(super) head: PacketHead,
    pub(super) setup: Arc<StreamSetup>,
    /// Its bytes; silence and the end have none.
    pub(super) piece: Option<Piece>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.piece.as_ref().map_or(0, |piece| piece.bytes().len())
    }
}

/// Packets of a stream, numbered.
#[derive(Default)]
pub(super) struct Backlog {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    number: u64,
    /// Whether something before the next packet is missing.
    has_gap: bool,
    /// The end of everything that was put here, ns.
    pub(super) ends_ns: u64,
}

impl Backlog {
    /// Puts a packet at its end.
    pub(super) fn put(&mut self, mut waiting: Waiting) {
        self.number += 1;
        waiting.head.number = self.number;
        if std::mem::take(&mut self.has_gap) {
            waiting.head.flags |= flag::GAP;
        }
        let head = &waiting.head;
        self.ends_ns = self.ends_ns.max(head.decoding_ns + head.duration_ns);
        self.bytes += waiting.bytes();
        self.waiting.push_back(waiting);
    }

    /// Removes and returns the next packet.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        let taken = self.waiting.pop_front()?;
        self.bytes -= taken.bytes();
        Some(taken)
    }

    /// A packet was not handed on after all: the next one has a gap before it.
    pub(super) fn left_out(&mut self) {
        match self.waiting.front_mut() {
            Some(next) => next.head.flags |= flag::GAP,
            None => self.has_gap = true,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether it holds so much that no more is read for the sake of another stream.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= PIECES_MAX || self.bytes >= BYTES_MAX
    }

    /// Removes the oldest packets, up to the next one that can be decoded alone; returns how many.
    pub(super) fn leave_out(&mut self) -> u64 {
        let keys = self.waiting.iter().skip(1).position(|it| it.head.has(flag::KEY));
        let count = keys.map_or(self.waiting.len(), |key| key + 1);
        (0..count).for_each(|_| drop(self.take()));
        self.left_out();
        count as u64
    }

    /// Forgets everything: the next packet comes from elsewhere, at `position_ns`.
    pub(super) fn clear(&mut self, position_ns: u64) {
        (self.bytes, self.ends_ns, self.has_gap) = (0, position_ns, false);
        self.waiting.clear();
    }
}
