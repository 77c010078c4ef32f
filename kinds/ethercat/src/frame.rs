//! The EtherCAT frame: one datagram that reads and writes the process image of all drives.
//!
//! By ETG.1000.4 (IEC 61158-4-12): all numbers are little-endian, except the EtherType.
//!
//! ```text
//! offset  bytes  field
//!      0      6  destination (broadcast)
//!      6      6  source; the first slave sets bit 1 of the first byte
//!     12      2  EtherType 88 A4 (big-endian)
//!     14      2  EtherCAT header: length of what follows (11 bits), 0 (1 bit), type 1 (4 bits)
//!     16      1  command: 12, logical read write (LRW)
//!     17      1  index: the master's mark, comes back unchanged
//!     18      4  logical address
//!     22      2  length of the data (11 bits), 0 (3), circulating (1), more follow (1)
//!     24      2  interrupt
//!     26    108  process image: six RxPDOs (7 bytes each), then six TxPDOs (11 bytes each)
//!    134      2  working counter: each slave adds 2 for a write and 1 for a read
//!
//! RxPDO  0  2  6040h control word            TxPDO  0  2  6041h status word
//!        2  1  6060h mode of operation              2  1  6061h mode of operation display
//!        3  4  607Ah target position                3  4  6064h position actual value
//!                                                   7  4  606Ch velocity actual value
//! ```
//! Objects by CiA 402-2 (IEC 61800-7-201); positions in encoder counts, speed in counts/s.

use core::fmt;

use super::DRIVES;

/// Length of the whole frame.
pub const FRAME_BYTES: usize = WORKING_COUNTER + 2;
/// Working counter of a frame that all drives have written and read.
pub const WORKING_COUNTER_EXPECTED: u16 = 3 * DRIVES as u16;
/// Start of the process image in the master's logical address space.
pub const LOGICAL_ADDRESS: u32 = 0x0001_0000;
/// Source address of the master's frames.
pub const MASTER_ADDRESS: [u8; 6] = [0x10; 6];

const ETHERTYPE: [u8; 2] = [0x88, 0xA4];
const LRW: u8 = 12;
/// The bit that a slave sets in the source address: locally administered.
const PROCESSED: u8 = 0x02;

const IMAGE: usize = 26;
const RX_BYTES: usize = 7;
const TX_BYTES: usize = 11;
const IMAGE_BYTES: usize = DRIVES * (RX_BYTES + TX_BYTES);
const WORKING_COUNTER: usize = IMAGE + IMAGE_BYTES;
/// The expected EtherCAT header, between Ethernet header and image.
const ECAT_HEADER: u16 = (10 + IMAGE_BYTES as u16 + 2) | 1 << 12;

/// What the master sends to a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Object 6040h.
    pub control: u16,
    /// Object 6060h.
    pub mode: i8,
    /// Object 607Ah, counts.
    pub target_counts: i32,
}

/// What a drive sends to the master.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveFeedback {
    /// Object 6041h.
    pub status: u16,
    /// Object 6061h.
    pub mode: i8,
    /// Object 6064h, counts.
    pub position_counts: i32,
    /// Object 606Ch, counts/s.
    pub velocity_counts_per_s: i32,
}

/// Why bytes are not one of our frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// Not the expected number of bytes.
    Length(usize),
    /// Another EtherType.
    EtherType([u8; 2]),
    /// Another EtherCAT header (length, type).
    Header(u16),
    /// Another command.
    Command(u8),
    /// Another logical address.
    Address(u32),
    /// Another length of the data, or further datagrams.
    DataLength(u16),
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BadFrame::Length(n) => write!(f, "{n} bytes, expected {FRAME_BYTES}"),
            BadFrame::EtherType([a, b]) => write!(f, "EtherType {a:02x}{b:02x}, expected 88a4"),
            BadFrame::Header(h) => write!(f, "header {h:#06x}, expected {ECAT_HEADER:#06x}"),
            BadFrame::Command(c) => write!(f, "command {c}, expected {LRW} (LRW)"),
            BadFrame::Address(a) => {
                write!(f, "logical address {a:#010x}, expected {LOGICAL_ADDRESS:#010x}")
            }
            BadFrame::DataLength(n) => write!(f, "data length {n}, expected {IMAGE_BYTES}"),
        }
    }
}

/// Writes a master's frame into `bytes`. The fields that the drives fill in are zero.
///
/// # Panics
/// `bytes` is shorter than [`FRAME_BYTES`].
pub fn encode(bytes: &mut [u8], index: u8, commands: &[Command; DRIVES]) {
    let bytes = &mut bytes[..FRAME_BYTES];
    bytes.fill(0);
    bytes[..6].fill(0xFF);
    bytes[6..12].copy_from_slice(&MASTER_ADDRESS);
    bytes[12..14].copy_from_slice(&ETHERTYPE);
    bytes[14..16].copy_from_slice(&ECAT_HEADER.to_le_bytes());
    bytes[16] = LRW;
    bytes[17] = index;
    bytes[18..22].copy_from_slice(&LOGICAL_ADDRESS.to_le_bytes());
    bytes[22..24].copy_from_slice(&(IMAGE_BYTES as u16).to_le_bytes());
    for (i, command) in commands.iter().enumerate() {
        let pdo = &mut bytes[IMAGE + i * RX_BYTES..][..RX_BYTES];
        pdo[..2].copy_from_slice(&command.control.to_le_bytes());
        pdo[2] = command.mode as u8;
        pdo[3..].copy_from_slice(&command.target_counts.to_le_bytes());
    }
}

/// A frame in which every field outside the process image has the expected value.
#[derive(Debug)]
pub struct CheckedFrame<'a> {
    bytes: &'a mut [u8; FRAME_BYTES],
}

impl<'a> CheckedFrame<'a> {
    /// Checks the bytes of exactly one frame.
    ///
    /// # Errors
    /// The first field that has another value.
    pub fn new(frame: &'a mut [u8]) -> Result<CheckedFrame<'a>, BadFrame> {
        let length = frame.len();
        let bytes: &mut [u8; FRAME_BYTES] =
            frame.try_into().map_err(|_| BadFrame::Length(length))?;
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let address = u32::from_le_bytes([bytes[18], bytes[19], bytes[20], bytes[21]]);
        match () {
            () if bytes[12..14] != ETHERTYPE => Err(BadFrame::EtherType([bytes[12], bytes[13]])),
            () if word(14) != ECAT_HEADER => Err(BadFrame::Header(word(14))),
            () if bytes[16] != LRW => Err(BadFrame::Command(bytes[16])),
            () if address != LOGICAL_ADDRESS => Err(BadFrame::Address(address)),
            // The highest bit means that more datagrams follow, the one below it that the frame
            // circulates.
            () if word(22) != IMAGE_BYTES as u16 => Err(BadFrame::DataLength(word(22))),
            () => Ok(CheckedFrame { bytes }),
        }
    }

    /// The master's mark.
    pub fn index(&self) -> u8 {
        self.bytes[17]
    }

    /// The working counter.
    pub fn working_counter(&self) -> u16 {
        u16::from_le_bytes([self.bytes[WORKING_COUNTER], self.bytes[WORKING_COUNTER + 1]])
    }

    /// What the master sends to drive `drive`.
    pub fn command(&self, drive: usize) -> Command {
        let pdo = &self.bytes[IMAGE + drive * RX_BYTES..][..RX_BYTES];
        Command {
            control: u16::from_le_bytes([pdo[0], pdo[1]]),
            mode: pdo[2] as i8,
            target_counts: i32::from_le_bytes([pdo[3], pdo[4], pdo[5], pdo[6]]),
        }
    }

    /// What drive `drive` sends to the master.
    pub fn report(&self, drive: usize) -> DriveFeedback {
        let pdo = &self.bytes[IMAGE + DRIVES * RX_BYTES + drive * TX_BYTES..][..TX_BYTES];
        DriveFeedback {
            status: u16::from_le_bytes([pdo[0], pdo[1]]),
            mode: pdo[2] as i8,
            position_counts: i32::from_le_bytes([pdo[3], pdo[4], pdo[5], pdo[6]]),
            velocity_counts_per_s: i32::from_le_bytes([pdo[7], pdo[8], pdo[9], pdo[10]]),
        }
    }

    /// Does what drive `drive` does when the frame passes: fills in its report and counts.
    pub fn answer(&mut self, drive: usize, report: &DriveFeedback) {
        let pdo = &mut self.bytes[IMAGE + DRIVES * RX_BYTES + drive * TX_BYTES..][..TX_BYTES];
        pdo[..2].copy_from_slice(&report.status.to_le_bytes());
        pdo[2] = report.mode as u8;
        pdo[3..7].copy_from_slice(&report.position_counts.to_le_bytes());
        pdo[7..].copy_from_slice(&report.velocity_counts_per_s.to_le_bytes());
        let counter = self.working_counter().wrapping_add(3);
        self.bytes[WORKING_COUNTER..].copy_from_slice(&counter.to_le_bytes());
        self.bytes[6] |= PROCESSED;
    }
}

#[cfg(test)]
mod tests;
