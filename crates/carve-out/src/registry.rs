//! The registry: which side made which named thing, and which sides hold it. It is stored in the
//! carve-out itself.
//!
//! Each side has an allocator for half of the named memory, and a table of the things that it made.
//! The other side reads that table, and writes only how often it holds each entry. So every word
//! has one writer. Two conflicts must not be missed: a name that both sides make at once, and an
//! entry that one side removes while the other attaches it. In both cases each side writes, fences,
//! then reads what the other side wrote. So at least one of them sees the other and steps back. (A
//! chip without coherent caches must map these tables uncached.)
//!
//! Free room is computed from this side's own copies, never from the shared bytes. The other side's
//! table is copied, checked against its half of the memory, then used.
//!
//! Names last for one life of the guest: the next life begins with empty tables.

use core::ops::Range;
use core::sync::atomic::{Ordering, fence};

use sinew_link::{Memory, PieceMemory, Semaphore, SharedWords, queue};

use crate::letter::{AgentLetter, Ask};
use crate::shared::{
    BYTES, CHANGING, ENTRIES_MAX, FREE, LEAVING, MadeBy, SHARED_QUOTA, SharedClass, SharedEntry,
    SharedRefusal, SharedWish, THERE,
};
use crate::text::Name;
use crate::{CarveOut, ENTRIES, HOLDS, Header, PAGE};

/// Places in both tables together.
const PLACES: usize = 2 * ENTRIES_MAX;

/// One side's view of the named memory.
#[derive(Debug)]
pub struct Registry<M> {
    carve_out: CarveOut<M>,
    me: MadeBy,
    epoch: u32,
    halves: [Range<u32>; 2],
    /// The entries that this side made, and the stamp that it wrote last for each.
    mine: [(Option<SharedEntry>, u32); ENTRIES_MAX],
    /// The entries that this side holds, as they were when attached, and how often.
    held: [(Option<SharedEntry>, u32); PLACES],
}

/// A named thing, and how often each side holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedHolds {
    /// What it is.
    pub entry: SharedEntry,
    /// How often Linux holds it.
    pub linux: u32,
    /// How often the guest holds it, as the guest wrote it.
    pub guest: u32,
}

type Piece<M> = PieceMemory<M>;

impl<M: Memory + Clone> Registry<M> {
    /// The view of one side, in the life that the header gives. There must be only one.
    pub fn new(carve_out: CarveOut<M>, header: &Header, me: MadeBy) -> Registry<M> {
        let page = PAGE as u32;
        let middle = header.named_from + (header.size - header.named_from) / 2 / page * page;
        let halves = [header.named_from..middle, middle..header.size];
        let (mine, held) = ([(None, 0); ENTRIES_MAX], [(None, 0); PLACES]);
        Registry { carve_out, me, epoch: header.epoch, halves, mine, held }
    }

    /// The thing with this name, whichever side made it.
    pub fn find(&self, name: Name) -> Option<SharedEntry> {
        (0..PLACES).filter_map(|place| self.entry(place)).find(|entry| entry.name == name)
    }

    /// The thing at place `place` of 64, with its holders.
    pub fn at(&self, place: usize) -> Option<SharedHolds> {
        let entry = (place < PLACES).then(|| self.entry(place))??;
        let [linux, guest] =
            [MadeBy::Linux, MadeBy::Guest].map(|side| self.carve_out.words.get(hold(side, place)));
        Some(SharedHolds { entry, linux, guest })
    }

    /// All named things.
    pub fn list(&self) -> impl Iterator<Item = SharedHolds> {
        (0..PLACES).filter_map(|place| self.at(place))
    }

    /// Finds the thing with this name, or makes it with this side's allocator. With `for_peer`, the
    /// first tokens of a semaphore belong to the other side.
    ///
    /// # Errors
    /// The name belongs to something else, or the wish cannot be met.
    pub fn get(
        &mut self,
        name: Name,
        wish: &SharedWish,
        for_peer: bool,
    ) -> Result<SharedEntry, SharedRefusal> {
        if !is_name(name) {
            return Err(SharedRefusal::BadName);
        }
        match self.find(name) {
            Some(entry) if entry.wish == *wish => Ok(entry),
            Some(_) => Err(SharedRefusal::Taken),
            None => self.make(name, wish, for_peer),
        }
    }

    fn make(
        &mut self,
        name: Name,
        wish: &SharedWish,
        for_peer: bool,
    ) -> Result<SharedEntry, SharedRefusal> {
        if !wish.is_sound() {
            return Err(SharedRefusal::BadSize);
        }
        let free = self.mine.iter().position(|(entry, _)| entry.is_none());
        let index = free.ok_or(SharedRefusal::TooMany)?;
        let in_use: u32 = self.mine().map(|entry| pages(entry.wish.size)).sum();
        if in_use + pages(wish.size) > SHARED_QUOTA {
            return Err(SharedRefusal::Quota);
        }
        let offset = self.room(pages(wish.size)).ok_or(SharedRefusal::NoRoom)?;
        let (maker, epoch) = (self.me, self.epoch);
        let entry = SharedEntry { name, maker, index: index as u32, offset, epoch, wish: *wish };
        self.prepare(&entry, for_peer)?;
        self.stamp(index, CHANGING);
        entry.write(&self.carve_out.words, ENTRIES[maker as usize] + index * BYTES);
        self.stamp(index, THERE);
        self.mine[index].0 = Some(entry);
        // Either we see the other side's entry of this name, or the other side sees ours.
        fence(Ordering::SeqCst);
        if self.theirs().any(|entry| entry.name == name) {
            self.mine[index].0 = None;
            self.stamp(index, FREE);
            return Err(SharedRefusal::Taken);
        }
        Ok(entry)
    }

    /// Attaches the thing with this name. It may be attached more than once.
    ///
    /// # Errors
    /// There is no such thing, or it is being removed.
    pub fn attach(&mut self, name: Name) -> Result<SharedEntry, SharedRefusal> {
        if let Some(place) = self.holds(name) {
            let (entry, count) = self.held[place];
            self.set_hold(place, entry, count.saturating_add(1));
            return entry.ok_or(SharedRefusal::Unknown);
        }
        let entry = self.find(name).ok_or(SharedRefusal::Unknown)?;
        let place = place(&entry);
        self.set_hold(place, Some(entry), 1);
        // Either we see that it is being removed, or the side that removes it sees our hold.
        fence(Ordering::SeqCst);
        if self.entry(place) != Some(entry) {
            self.set_hold(place, None, 0);
            return Err(SharedRefusal::Unknown);
        }
        Ok(entry)
    }

    /// Detaches it once.
    ///
    /// # Errors
    /// This side does not hold it.
    pub fn detach(&mut self, name: Name) -> Result<(), SharedRefusal> {
        let place = self.holds(name).ok_or_else(|| self.lacks(name))?;
        let (entry, count) = self.held[place];
        match count {
            0 | 1 => self.set_hold(place, None, 0),
            count => self.set_hold(place, entry, count - 1),
        }
        Ok(())
    }

    /// Removes a thing that this side made.
    ///
    /// # Errors
    /// There is no such thing, or a side holds it.
    pub fn remove(&mut self, name: Name) -> Result<(), SharedRefusal> {
        let mine = self.mine.iter().position(|(entry, _)| entry.is_some_and(|it| it.name == name));
        let index = mine.ok_or(SharedRefusal::Unknown)?;
        let place = self.me as usize * ENTRIES_MAX + index;
        if self.held[place].1 > 0 {
            return Err(SharedRefusal::Attached);
        }
        self.stamp(index, LEAVING);
        // Either we see that the other side attaches it, or the other side sees that it is being
        // removed.
        fence(Ordering::SeqCst);
        if self.carve_out.words.get(hold(self.me.other(), place)) != 0 {
            self.stamp(index, THERE);
            return Err(SharedRefusal::Attached);
        }
        self.mine[index].0 = None;
        self.stamp(index, FREE);
        Ok(())
    }

    /// The answer to a request of the other side to the registry; `None` if the request is for
    /// something else.
    pub fn answer(&mut self, letter: &AgentLetter) -> Option<AgentLetter> {
        let name = letter.name;
        let outcome = match Ask::of(letter.what)? {
            Ask::Get => {
                let [class, size, hash, first, second] = letter.numbers;
                let wish = SharedClass::of(class).ok_or(SharedRefusal::BadRequest);
                let detail = [first, second];
                wish.and_then(|class| {
                    self.get(name, &SharedWish { class, size, hash, detail }, true).map(Some)
                })
            }
            Ask::Attach => self.attach(name).map(Some),
            Ask::Detach => self.detach(name).map(|()| None),
            Ask::Remove => self.remove(name).map(|()| None),
            Ask::List => match self.at(letter.numbers[0] as usize) {
                Some(found) => Ok(Some(found.entry)),
                None => Err(SharedRefusal::Unknown),
            },
            Ask::Nodes | Ask::StopNode | Ask::Jobs | Ask::Call | Ask::Where => return None,
        };
        Some(match outcome {
            Ok(None) => letter.done(),
            Ok(Some(entry)) => {
                let SharedWish { class, size, hash, .. } = entry.wish;
                let numbers = [place(&entry) as u32, class as u32, entry.offset, size, hash];
                letter.done().numbered(numbers).named(entry.name)
            }
            Err(why) => letter.refused(why),
        })
    }

    /// The bytes of a region that this side holds.
    ///
    /// # Errors
    /// This side does not hold it, or it is something else.
    pub fn region(&self, name: Name) -> Result<SharedWords<Piece<M>>, SharedRefusal> {
        let entry = self.held(name, SharedClass::Region)?;
        self.piece(&entry).map(SharedWords::new)
    }

    /// A semaphore that this side holds.
    ///
    /// # Errors
    /// As for [`Registry::region`].
    pub fn semaphore(&self, name: Name) -> Result<Semaphore<Piece<M>>, SharedRefusal> {
        let entry = self.held(name, SharedClass::Semaphore)?;
        Ok(Semaphore::new(self.piece(&entry)?, self.me as usize))
    }

    /// Hands tokens of all semaphores to the other side where it waits for them. Returns how many,
    /// at most `u32::MAX`. Must be called from time to time, whichever side holds the semaphores.
    pub fn serve_semaphores(&self) -> u32 {
        let all = (0..PLACES).filter_map(|place| self.entry(place));
        let semaphores = all.filter(|entry| entry.wish.class == SharedClass::Semaphore);
        let serve = |entry: SharedEntry| {
            let semaphore = Semaphore::new(self.piece(&entry).ok()?, self.me as usize);
            // Garbage in it is reported to the code that uses it.
            semaphore.serve().ok()
        };
        // Four semaphores full of invented tokens exceed a u32.
        semaphores.filter_map(serve).fold(0, u32::saturating_add)
    }

    /// Sends a message through a queue that this side holds. Returns whether there was room.
    ///
    /// # Errors
    /// As for [`Registry::region`]; or the message has another size, or the queue is garbage.
    pub fn send(&self, name: Name, message: &[u8]) -> Result<bool, SharedRefusal> {
        let (entry, way) = self.way(name, self.me)?;
        if message.len() != entry.wish.detail[0] as usize {
            return Err(SharedRefusal::BadSize);
        }
        let writer = queue::Writer::attach(way, &entry.wish.shape());
        let mut writer = writer.map_err(|_| SharedRefusal::Corrupt)?;
        match writer.try_send(message) {
            Ok(()) => Ok(true),
            Err(queue::SendError::Full) => Ok(false),
            Err(queue::SendError::Corrupt) => Err(SharedRefusal::Corrupt),
        }
    }

    /// Receives a message through a queue that this side holds. Returns whether there was one.
    ///
    /// # Errors
    /// As for [`Registry::send`].
    pub fn receive(&self, name: Name, message: &mut [u8]) -> Result<bool, SharedRefusal> {
        let (entry, way) = self.way(name, self.me.other())?;
        if message.len() != entry.wish.detail[0] as usize {
            return Err(SharedRefusal::BadSize);
        }
        let reader = queue::Reader::attach(way, &entry.wish.shape());
        let mut reader = reader.map_err(|_| SharedRefusal::Corrupt)?;
        reader.try_receive(message).map_err(|_| SharedRefusal::Corrupt)
    }

    /// The entry that this side holds under this name.
    ///
    /// # Errors
    /// It holds nothing under this name, or something else.
    pub fn held(&self, name: Name, class: SharedClass) -> Result<SharedEntry, SharedRefusal> {
        let place = self.holds(name).ok_or_else(|| self.lacks(name))?;
        let entry = self.held[place].0.ok_or(SharedRefusal::Detached)?;
        if entry.wish.class == class { Ok(entry) } else { Err(SharedRefusal::WrongClass) }
    }

    /// The direction of a queue in which `from` writes; Linux's comes first.
    fn way(&self, name: Name, from: MadeBy) -> Result<(SharedEntry, Piece<M>), SharedRefusal> {
        let entry = self.held(name, SharedClass::Queue)?;
        Ok((entry, self.way_of(&entry, from)?))
    }

    fn way_of(&self, entry: &SharedEntry, from: MadeBy) -> Result<Piece<M>, SharedRefusal> {
        let len = entry.wish.way_bytes();
        let at = entry.offset as usize + from as usize * len;
        let memory = self.carve_out.memory().clone();
        PieceMemory::new(memory, at, len).ok_or(SharedRefusal::Corrupt)
    }

    fn piece(&self, entry: &SharedEntry) -> Result<Piece<M>, SharedRefusal> {
        let (memory, size) = (self.carve_out.memory().clone(), entry.wish.size as usize);
        // In whole words, all of them within the entry's pages.
        let piece = PieceMemory::new(memory, entry.offset as usize, size.next_multiple_of(4));
        piece.ok_or(SharedRefusal::Corrupt)
    }

    /// Why this side does not hold a name.
    fn lacks(&self, name: Name) -> SharedRefusal {
        let is_there = self.find(name).is_some();
        if is_there { SharedRefusal::Detached } else { SharedRefusal::Unknown }
    }

    /// Sets the initial content of an entry's memory.
    fn prepare(&self, entry: &SharedEntry, for_peer: bool) -> Result<(), SharedRefusal> {
        match entry.wish.class {
            SharedClass::Region => {
                let words = SharedWords::new(self.piece(entry)?);
                (0..entry.wish.size as usize).step_by(4).for_each(|at| words.set(at, 0));
            }
            SharedClass::Semaphore => Semaphore::new(self.piece(entry)?, self.me as usize)
                .create(entry.wish.detail[0], for_peer),
            SharedClass::Queue => {
                for from in [MadeBy::Linux, MadeBy::Guest] {
                    let way = self.way_of(entry, from)?;
                    sinew_link::create(&way, &entry.wish.shape())
                        .map_err(|_| SharedRefusal::BadSize)?;
                }
            }
        }
        Ok(())
    }

    /// The first free room of `len` bytes in this side's half, by its own copies.
    fn room(&self, len: u32) -> Option<u32> {
        let half = &self.halves[self.me as usize];
        let ends = self.mine().map(|entry| entry.offset + pages(entry.wish.size));
        let is_free = |from: u32| {
            let overlaps = |entry: &SharedEntry| {
                from < entry.offset + pages(entry.wish.size) && entry.offset < from + len
            };
            from + len <= half.end && !self.mine().any(|entry| overlaps(&entry))
        };
        ends.chain([half.start]).filter(|from| is_free(*from)).min()
    }

    fn mine(&self) -> impl Iterator<Item = SharedEntry> {
        self.mine.iter().filter_map(|(entry, _)| *entry)
    }

    fn theirs(&self) -> impl Iterator<Item = SharedEntry> {
        let first = self.me.other() as usize * ENTRIES_MAX;
        (first..first + ENTRIES_MAX).filter_map(|place| self.entry(place))
    }

    /// The entry at a place: for this side its own copy, for the other side its table's entry,
    /// checked.
    fn entry(&self, place: usize) -> Option<SharedEntry> {
        let (maker, index) = (place / ENTRIES_MAX, place % ENTRIES_MAX);
        if maker == self.me as usize {
            return self.mine[index].0;
        }
        let (at, maker) = (ENTRIES[maker] + index * BYTES, self.me.other());
        let (entry, _) = SharedEntry::read(&self.carve_out.words, at, maker, index as u32)?;
        let half = &self.halves[maker as usize];
        let is_good = is_name(entry.name)
            && entry.wish.is_sound()
            && entry.epoch == self.epoch
            && entry.offset.is_multiple_of(PAGE as u32)
            && entry.offset >= half.start
            && entry.offset.checked_add(entry.wish.size).is_some_and(|end| end <= half.end);
        is_good.then_some(entry)
    }

    fn holds(&self, name: Name) -> Option<usize> {
        self.held.iter().position(|(entry, _)| entry.is_some_and(|it| it.name == name))
    }

    fn set_hold(&mut self, place: usize, entry: Option<SharedEntry>, count: u32) {
        self.held[place] = (entry, count);
        self.carve_out.words.set(hold(self.me, place), count);
    }

    /// Writes a new stamp: this side's own count of changes, and the state.
    fn stamp(&mut self, index: usize, state: u32) {
        let stamp = (self.mine[index].1 | 3).wrapping_add(1) | state;
        self.mine[index].1 = stamp;
        self.carve_out.words.set(ENTRIES[self.me as usize] + index * BYTES, stamp);
    }
}

/// Offset of the word in which a side writes how often it holds the entry at a place.
fn hold(side: MadeBy, place: usize) -> usize {
    HOLDS[side as usize] + place * 4
}

fn place(entry: &SharedEntry) -> usize {
    entry.maker as usize * ENTRIES_MAX + entry.index as usize
}

fn pages(size: u32) -> u32 {
    size.next_multiple_of(PAGE as u32)
}

/// Whether it is a text with an end, and only zeros after it.
fn is_name(name: Name) -> bool {
    let text = name.as_str();
    (1..=31).contains(&text.len()) && Name::new(text) == Some(name)
}

#[cfg(test)]
mod tests;
