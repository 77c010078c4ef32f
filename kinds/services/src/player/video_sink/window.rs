//! The pictures in the link, from the next one on: they are read ahead, shown in an order of their
//! own, and freed in the order of the link.

use std::collections::VecDeque;

use sinew_core::Fault;
use sinew_media::{PictureHead, PixelFormat};
use sinew_pictures::messages::Picture;
use sinew_pictures::picture::read_head;
use sinew_runtime::ServiceIo;

use crate::player::presenter::Candidate;

/// Largest position that a film can have: 146 years.
const POSITION_NS_MAX: u64 = 1 << 62;

/// A picture in the link.
struct Standing {
    head: PictureHead,
    is_done: bool,
}

/// The pictures in the link.
#[derive(Default)]
pub(super) struct Window {
    standing: VecDeque<Standing>,
    /// Number of places without a picture, and of pictures with an invalid head.
    pub(super) empty: u64,
    pub(super) bad: u64,
}

impl Window {
    /// Reads what has come.
    pub(super) fn look(&mut self, io: &mut ServiceIo, port: usize) -> Result<(), Fault> {
        while let Some(picture) = io.ahead::<Picture>(port, self.standing.len() as u32)? {
            let mut head: PictureHead = read_head(|bytes| picture.read_at(0, bytes));
            head.position_ns = head.position_ns.min(POSITION_NS_MAX);
            let format = head.check();
            self.bad += u64::from(format.is_err());
            self.empty += u64::from(format == Ok(PixelFormat::Nothing));
            let is_done = !matches!(format, Ok(format) if format != PixelFormat::Nothing);
            self.standing.push_back(Standing { head, is_done });
        }
        Ok(())
    }

    /// The pictures that wait: the index of each, counted from the next one, and its head.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (usize, &PictureHead)> + Clone {
        let standing = self.standing.iter().enumerate().filter(|(_, it)| !it.is_done);
        standing.map(|(at, it)| (at, &it.head))
    }

    /// The pictures that wait, as candidates for the presenter.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> + Clone {
        self.waiting().map(|(_, head)| candidate(head))
    }

    /// How many pictures wait.
    pub(super) fn len(&self) -> usize {
        self.waiting().count()
    }

    /// The picture at this index is no longer needed.
    pub(super) fn done(&mut self, at: usize) {
        self.standing[at].is_done = true;
    }

    /// Frees the places of pictures that are no longer needed, as far as they are the next ones.
    pub(super) fn free(&mut self, io: &mut ServiceIo, port: usize) -> Result<(), Fault> {
        while self.standing.front().is_some_and(|next| next.is_done) {
            if let Some(picture) = io.peek::<Picture>(port)? {
                picture.release();
            }
            self.standing.pop_front();
        }
        Ok(())
    }
}

/// A picture as a candidate for the presenter.
pub(super) fn candidate(head: &PictureHead) -> Candidate {
    let PictureHead { position_ns, duration_ns, serial, .. } = *head;
    Candidate { position_ns, duration_ns, serial }
}
