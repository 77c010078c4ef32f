//! Why a guest could not go on.

use core::fmt;

use sinew_link::{Memory, SharedWords};

use crate::number_enum;
use crate::text::{Name, read_bytes, write_bytes};

number_enum! {
    /// What happened in the guest.
    FaultKind {
        /// An instruction that does not exist was executed.
        Undefined = 1,
        /// Code was fetched from an address without code.
        PrefetchAbort = 2,
        /// Memory was accessed that the guest may not access.
        DataAbort = 3,
        /// An assertion of the operating system's kernel failed.
        Assert = 4,
        /// A thread used more stack than it has.
        StackOverflow = 5,
        /// No memory was left.
        OutOfMemory = 6,
        /// The guest's code panicked.
        Panic = 7,
        /// A node returned an error.
        Node = 8,
        /// The carve-out did not match what the image expects.
        Refused = 9,
    }
}

impl FaultKind {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            FaultKind::Undefined => "undefined instruction",
            FaultKind::PrefetchAbort => "prefetch abort",
            FaultKind::DataAbort => "data abort",
            FaultKind::Assert => "assertion of the kernel",
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::OutOfMemory => "out of memory",
            FaultKind::Panic => "panic",
            FaultKind::Node => "fault of a node",
            FaultKind::Refused => "refused its carve-out",
        }
    }
}

/// Most bytes of the text.
const TEXT_BYTES: usize = 128;
pub(crate) const BYTES: usize = 56 + TEXT_BYTES;

/// A fault, as the guest recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestFault {
    /// The kind.
    pub kind: FaultKind,
    /// Address of the instruction in the guest, if there is one.
    pub pc: u32,
    /// Address that was accessed (DFAR or IFAR), if there is one.
    pub address: u32,
    /// Status register of the processor (DFSR or IFSR), if it has one for this fault.
    pub status: u32,
    /// The thread that ran: a node or the agent; FreeRTOS has a thread for each.
    pub who: Name,
    text: [u8; TEXT_BYTES],
    text_len: u32,
}

impl GuestFault {
    /// A fault of which only the kind is known.
    pub fn new(kind: FaultKind, who: Name) -> GuestFault {
        let text = [0; TEXT_BYTES];
        GuestFault { kind, pc: 0, address: 0, status: 0, who, text, text_len: 0 }
    }

    /// The text of the guest. A longer text is cut.
    pub fn text(&self) -> &str {
        let text = &self.text[..(self.text_len as usize).min(TEXT_BYTES)];
        match core::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    pub(crate) fn write<M: Memory>(&self, words: &SharedWords<M>, at: usize) {
        words.set(at + 4, self.pc);
        words.set(at + 8, self.address);
        words.set(at + 12, self.status);
        words.set(at + 16, self.text_len);
        self.who.write(words, at + 20);
        write_bytes(words, at + 52, &self.text);
        words.set(at, self.kind as u32);
    }

    pub(crate) fn read<M: Memory>(words: &SharedWords<M>, at: usize) -> Option<GuestFault> {
        let kind = FaultKind::of(words.get(at))?;
        let mut fault = GuestFault::new(kind, Name::read(words, at + 20));
        fault.pc = words.get(at + 4);
        fault.address = words.get(at + 8);
        fault.status = words.get(at + 12);
        fault.text_len = words.get(at + 16);
        read_bytes(words, at + 52, &mut fault.text);
        Some(fault)
    }
}

/// Appends to the text. What does not fit is cut.
impl fmt::Write for GuestFault {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            let Some(place) = self.text.get_mut(self.text_len as usize) else { break };
            *place = byte;
            self.text_len += 1;
        }
        Ok(())
    }
}

impl fmt::Display for GuestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in '{}'", self.kind.text(), self.who)?;
        match self.kind {
            FaultKind::DataAbort | FaultKind::PrefetchAbort => write!(
                f,
                " at {:#010x}: address {:#010x}, status {:#x}",
                self.pc, self.address, self.status
            )?,
            FaultKind::Undefined => write!(f, " at {:#010x}", self.pc)?,
            _ => {}
        }
        match self.text() {
            "" => Ok(()),
            text => write!(f, ": {text}"),
        }
    }
}
