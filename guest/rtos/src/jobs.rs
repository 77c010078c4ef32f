//! Jobs: work that Linux requests by name, with an answer.
//!
//! A thread of the lowest priority does the jobs, one after the other, so that a long job delays
//! neither the agent nor the nodes. An image declares its own jobs with [`jobs!`](crate::jobs!). A
//! few jobs are in every image.

mod ours;

use core::ffi::{CStr, c_char, c_void};
use core::fmt;

use sinew_carve_out::{AgentLetter, LETTER_TEXT_MAX, SharedRefusal};

use crate::once::Once;
use crate::{Fault, board, fault, guest, kernel, shared};

const STACK: u32 = 16 * 1024;
const PRIORITY: u32 = 1;

/// The code of a job: it reads the call and fills in the answer.
pub type RunJob = fn(&JobCall, &mut JobAnswer) -> Result<(), Fault>;

/// A job of the image.
#[derive(Clone, Copy)]
pub struct Job {
    /// Its name, at most 31 bytes.
    pub name: &'static str,
    /// What it does; Linux shows the first 64 bytes.
    pub doc: &'static str,
    /// Its code.
    pub run: RunJob,
}

/// The arguments of a job.
pub struct JobCall(AgentLetter);

impl JobCall {
    /// Numbers; 0 if not given.
    pub fn numbers(&self) -> &[u32; 5] {
        &self.0.numbers
    }

    /// Data, at most 64 bytes.
    pub fn data(&self) -> &[u8] {
        self.0.data()
    }

    /// The data as text.
    pub fn text(&self) -> &str {
        self.0.text()
    }
}

/// The answer of a job: numbers, and text of at most 64 bytes, written with `write!`.
#[repr(C)]
pub struct JobAnswer {
    /// Numbers.
    pub numbers: [u32; 5],
    len: u32,
    text: [u8; LETTER_TEXT_MAX],
}

impl fmt::Write for JobAnswer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            let Some(place) = self.text.get_mut(self.len as usize) else { break };
            *place = byte;
            self.len += 1;
        }
        Ok(())
    }
}

/// Declares the jobs of an image, in one table. A program uses it at most once.
#[macro_export]
macro_rules! jobs {
    ($($job:expr),* $(,)?) => {
        const _: () = {
            const COUNT: usize = [$($job),*].len();
            #[used]
            #[unsafe(link_section = ".sinew_jobs")]
            static JOBS: [$crate::Job; COUNT] = [$($job),*];
        };
    };
}

/// `struct sinew_job`.
#[repr(C)]
struct CJob {
    name: *const c_char,
    doc: *const c_char,
    run: unsafe extern "C" fn(*const u32, *const c_void, u32, *mut JobAnswer) -> *const c_char,
}

unsafe extern "C" {
    static __sinew_jobs_start: u8;
    static __sinew_jobs_end: u8;
    static __sinew_c_jobs_start: u8;
    static __sinew_c_jobs_end: u8;
}

/// A job in Rust or in C.
enum Work {
    Rust(&'static Job),
    C(&'static CJob),
}

fn all() -> impl Iterator<Item = Work> {
    // SAFETY: the linker script gathers nothing else between these marks.
    let (jobs, of_c): (&[Job], &[CJob]) = unsafe {
        (
            guest::section(&raw const __sinew_jobs_start, &raw const __sinew_jobs_end),
            guest::section(&raw const __sinew_c_jobs_start, &raw const __sinew_c_jobs_end),
        )
    };
    let of_rust = ours::OURS.iter().chain(jobs).map(Work::Rust);
    of_rust.chain(of_c.iter().map(Work::C))
}

impl Work {
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Work::Rust(job) => (job.name, job.doc),
            // SAFETY: the header asks for texts that end with a zero.
            Work::C(job) => unsafe {
                let text = |it| CStr::from_ptr(it).to_str().unwrap_or("?");
                (text(job.name), text(job.doc))
            },
        }
    }

    fn run(&self, call: &JobCall, answer: &mut JobAnswer) -> Result<(), Fault> {
        match self {
            Work::Rust(job) => (job.run)(call, answer),
            Work::C(job) => {
                let (data, len) = (call.data().as_ptr().cast(), call.data().len() as u32);
                // SAFETY: all live during the call; the header says what it may do.
                let why = unsafe { (job.run)(call.numbers().as_ptr(), data, len, answer) };
                answer.len = answer.len.min(LETTER_TEXT_MAX as u32);
                crate::c::result(why)
            }
        }
    }
}

/// The job with index `job`: its name, and what it does.
pub(crate) fn at(job: usize) -> Option<(&'static str, &'static str)> {
    all().nth(job).map(|job| job.words())
}

static WORKER: Once<kernel::Thread> = Once::new();

/// The call that is running or will run next.
static CALL: shared::Slot = shared::Slot::new();

/// Makes the thread that runs jobs; the scheduler does not run yet.
pub(crate) fn begin() {
    match kernel::spawn(worker, "jobs", STACK, core::ptr::null_mut(), PRIORITY) {
        Some(thread) => WORKER.set(thread),
        None => fault::out_of_memory(Some(STACK as usize)),
    };
}

/// Lets the worker thread do the job that Linux calls.
pub(crate) fn call(letter: &AgentLetter) -> Result<(), SharedRefusal> {
    if !all().any(|job| job.words().0 == letter.name.as_str()) {
        return Err(SharedRefusal::NoJob);
    }
    if !CALL.put(*letter) {
        return Err(SharedRefusal::Busy);
    }
    if let Some(worker) = WORKER.get() {
        kernel::wake(*worker);
    }
    Ok(())
}

extern "C" fn worker(_: *mut c_void) {
    loop {
        match CALL.get() {
            Some(letter) => {
                let answer = work(letter);
                CALL.clear();
                shared::with(|desk| desk.answer(&answer));
                board::ring(0);
            }
            None => kernel::wait(kernel::FOR_EVER),
        }
    }
}

fn work(letter: AgentLetter) -> AgentLetter {
    let mut answer = JobAnswer { numbers: [0; 5], len: 0, text: [0; LETTER_TEXT_MAX] };
    let Some(job) = all().find(|job| job.words().0 == letter.name.as_str()) else {
        return letter.refused(SharedRefusal::NoJob);
    };
    match job.run(&JobCall(letter), &mut answer) {
        Ok(()) => letter.done().numbered(answer.numbers).with(&answer.text[..answer.len as usize]),
        Err(why) => letter.refused(SharedRefusal::JobFailed).with(why.text().as_bytes()),
    }
}
