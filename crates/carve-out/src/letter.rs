//! Letters: requests of one side to the other, and the answers. They have a fixed size and go
//! through queues of links.

use sinew_link::{Memory, PieceMemory, RegionError, Shape, queue};

use crate::text::Name;
use crate::{CarveOut, LETTERS, MadeBy, SharedRefusal, number_enum};

/// Most bytes of text or data in a letter.
pub const LETTER_TEXT_MAX: usize = 64;

const BYTES: usize = 128;
/// Most letters in transit, in each direction.
const CAPACITY: u32 = 16;
/// Distinguishes letters of this layout from others.
const HASH: u32 = 0x4c45_5402;
const SHAPE: Shape = Shape::queue(BYTES as u32, HASH, CAPACITY);
pub(crate) const QUEUE_BYTES: usize = SHAPE.region_len().next_multiple_of(128);

number_enum! {
    /// The request in a letter.
    Ask {
        /// Find or make a thing with the allocator of the answering side. Numbers: class, size,
        /// hash and the two of the detail. The answer: place, offset, size.
        Get = 1,
        /// Attach it.
        Attach = 2,
        /// Detach it.
        Detach = 3,
        /// Remove a thing that was made with the allocator of the answering side.
        Remove = 4,
        /// Entry at place `numbers[0]` of 64, as the answering side finds it: name; class, offset,
        /// size, hash.
        List = 5,
        /// Node at index `numbers[0]`: name; state, cycles.
        Nodes = 6,
        /// Stop a node, by name.
        StopNode = 7,
        /// Job at index `numbers[0]`: name, and what it does.
        Jobs = 8,
        /// Do a job, by name, with numbers and data.
        Call = 9,
        /// Where the guest sees the memory: virtual, physical (two words), size, bells heard.
        Where = 10,
    }
}

/// One letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLetter {
    /// Number of the request that this is or answers.
    pub id: u32,
    /// The request ([`Ask`]); in an answer 0, or the reason of a refusal ([`SharedRefusal`]).
    pub what: u32,
    /// Numbers. Their meaning depends on the request.
    pub numbers: [u32; 5],
    /// A name.
    pub name: Name,
    text: [u8; LETTER_TEXT_MAX],
    text_len: u32,
}

impl AgentLetter {
    /// A request, which has no number yet.
    pub fn ask(what: Ask, name: Name) -> AgentLetter {
        AgentLetter { id: 0, what: what as u32, numbers: [0; 5], name, text: [0; 64], text_len: 0 }
    }

    /// The answer to this request: it was done.
    pub fn done(&self) -> AgentLetter {
        AgentLetter { what: 0, numbers: [0; 5], text: [0; 64], text_len: 0, ..*self }
    }

    /// The answer to this request: it was refused.
    pub fn refused(&self, why: SharedRefusal) -> AgentLetter {
        AgentLetter { what: why as u32, ..self.done() }
    }

    /// Whether the answer is a refusal. An unknown reason means that the peer lies.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn outcome(&self) -> Result<(), SharedRefusal> {
        match self.what {
            0 => Ok(()),
            why => Err(SharedRefusal::of(why).unwrap_or(SharedRefusal::Corrupt)),
        }
    }

    /// The same letter with this data. Data that is too long is cut.
    #[must_use]
    pub fn with(mut self, data: &[u8]) -> AgentLetter {
        let len = data.len().min(LETTER_TEXT_MAX);
        self.text = [0; LETTER_TEXT_MAX];
        self.text[..len].copy_from_slice(&data[..len]);
        self.text_len = len as u32;
        self
    }

    /// The same letter with these numbers.
    #[must_use]
    pub fn numbered(self, numbers: [u32; 5]) -> AgentLetter {
        AgentLetter { numbers, ..self }
    }

    /// The same letter with this name.
    #[must_use]
    pub fn named(self, name: Name) -> AgentLetter {
        AgentLetter { name, ..self }
    }

    /// The same request with this number.
    #[must_use]
    pub fn as_request(self, id: u32) -> AgentLetter {
        AgentLetter { id, ..self }
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        &self.text[..self.text_len as usize]
    }

    /// The data as text. If it is not UTF-8, only the valid part before the first error.
    pub fn text(&self) -> &str {
        let data = self.data();
        match core::str::from_utf8(data) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&data[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [self.id, self.what, self.text_len].into_iter().chain(self.numbers);
        let (places, _) = bytes.as_chunks_mut::<4>();
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
        bytes[32..64].copy_from_slice(self.name.bytes());
        bytes[64..].copy_from_slice(&self.text);
        bytes
    }

    /// `None` if its text is longer than a letter can have.
    fn from_bytes(bytes: &[u8; BYTES]) -> Option<AgentLetter> {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |at: usize| u32::from_le_bytes(words[at]);
        let (mut name, mut text) = ([0; 32], [0; LETTER_TEXT_MAX]);
        name.copy_from_slice(&bytes[32..64]);
        text.copy_from_slice(&bytes[64..]);
        let numbers = core::array::from_fn(|at| word(3 + at));
        let (name, text_len) = (Name::of_bytes(name), word(2));
        let letter = AgentLetter { id: word(0), what: word(1), numbers, name, text, text_len };
        (text_len as usize <= LETTER_TEXT_MAX).then_some(letter)
    }
}

/// The other side has overwritten the queues of letters: nothing more is sent or read in this life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LettersBroken;

type Way<M> = PieceMemory<M>;

/// One side's ends of the four queues.
pub struct Letters<M: Memory> {
    asks: queue::Writer<Way<M>>,
    answers: queue::Reader<Way<M>>,
    asked: queue::Reader<Way<M>>,
    answered: queue::Writer<Way<M>>,
}

fn way<M: Memory>(memory: M, queue: usize) -> Way<M> {
    let at = LETTERS + queue * QUEUE_BYTES;
    PieceMemory::new(memory, at, QUEUE_BYTES).expect("every carve-out has room for the queues")
}

/// Makes the four queues.
pub(crate) fn create<M: Memory>(memory: &M) {
    for queue in 0..4 {
        sinew_link::create(&way(memory, queue), &SHAPE).expect("the shape and its room are fixed");
    }
}

impl<M: Memory + Clone> Letters<M> {
    /// The ends of this side.
    ///
    /// # Errors
    /// The other side has overwritten them.
    pub fn open(carve_out: &CarveOut<M>, me: MadeBy) -> Result<Letters<M>, RegionError> {
        let [asks, answers, asked, answered] = match me {
            MadeBy::Linux => [0, 1, 2, 3],
            MadeBy::Guest => [2, 3, 0, 1],
        };
        let way = |queue| way(carve_out.memory().clone(), queue);
        Ok(Letters {
            asks: queue::Writer::attach(way(asks), &SHAPE)?,
            answers: queue::Reader::attach(way(answers), &SHAPE)?,
            asked: queue::Reader::attach(way(asked), &SHAPE)?,
            answered: queue::Writer::attach(way(answered), &SHAPE)?,
        })
    }

    /// Sends a request to the other side. Returns whether there was room. The caller must then ring
    /// the bell.
    ///
    /// # Errors
    /// The queues are broken.
    pub fn ask(&mut self, letter: &AgentLetter) -> Result<bool, LettersBroken> {
        send(&mut self.asks, letter)
    }

    /// Sends an answer to the other side. Returns whether there was room. The caller must then ring
    /// the bell.
    ///
    /// # Errors
    /// The queues are broken.
    pub fn answer(&mut self, letter: &AgentLetter) -> Result<bool, LettersBroken> {
        send(&mut self.answered, letter)
    }

    /// The next answer, if one has come.
    ///
    /// # Errors
    /// The queues are broken.
    pub fn answers(&mut self) -> Result<Option<AgentLetter>, LettersBroken> {
        receive(&mut self.answers)
    }

    /// The next request of the other side, if one has come.
    ///
    /// # Errors
    /// The queues are broken.
    pub fn asked(&mut self) -> Result<Option<AgentLetter>, LettersBroken> {
        receive(&mut self.asked)
    }
}

fn send<M: Memory>(
    queue: &mut queue::Writer<M>,
    letter: &AgentLetter,
) -> Result<bool, LettersBroken> {
    match queue.try_send(&letter.to_bytes()) {
        Ok(()) => Ok(true),
        Err(queue::SendError::Full) => Ok(false),
        Err(queue::SendError::Corrupt) => Err(LettersBroken),
    }
}

/// A letter whose text is too long counts like a position outside the queue: no correct side sends
/// it.
fn receive<M: Memory>(queue: &mut queue::Reader<M>) -> Result<Option<AgentLetter>, LettersBroken> {
    let mut bytes = [0; BYTES];
    match queue.try_receive(&mut bytes) {
        Ok(false) => Ok(None),
        Ok(true) => AgentLetter::from_bytes(&bytes).map(Some).ok_or(LettersBroken),
        Err(_) => Err(LettersBroken),
    }
}
