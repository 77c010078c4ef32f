//! The only unsafe code of this crate: mapped memory, the time stamp counter, scheduling classes,
//! robust mutexes between processes, a semaphore, and descriptors that outlive an exec.

#![expect(unsafe_code, reason = "this is the place that DESIGN lists for it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, mmap_anonymous, munmap};
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{
    clear_ambient_capability_set, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use rustix::time::Timespec;

use crate::mappings;

thread_local! {
    /// Without a destructor and made beforehand: touching it allocates nothing.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for each thread how often it is asked for memory. A program
/// that has this as its `#[global_allocator]` learns which nodes allocate in their cycles.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

/// How often this thread has asked [`Counting`] for memory; 0 where that is not the allocator.
#[inline]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

// SAFETY: every call goes to `System`, with what the caller has promised for it; counting is a
// plain load and store of this thread's own word, and cannot unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get().wrapping_add(1));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get().wrapping_add(1));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get().wrapping_add(1));
        // SAFETY: as above.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Bytes that several threads or processes may map. Clones share the mapping.
#[derive(Clone, Debug)]
pub struct Region(Arc<Mapping>);

#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// Bytes before and after it that nobody may touch.
    guard: usize,
    file: Option<OwnedFd>,
}

// SAFETY: the mapping is only an address range; every access goes through atomics, or through
// copies whose users are kept apart by the algorithms of sinew-link or by a mutex.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        let (base, len) = (self.base.as_ptr(), self.len + 2 * self.guard);
        // SAFETY: base, len and guard are what mmap gave; the last handle is gone, so nobody reads
        // it now. It cannot fail for a range that was mapped, and nothing could be done if it did.
        let _ = unsafe { munmap(base.byte_sub(self.guard).cast(), len) };
    }
}

/// Bytes of the page before a guarded region, and of that behind it.
const GUARD: usize = 4096;

/// A file in memory, of a length that nobody can change.
fn sealed(name: &str, len: usize) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, len as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    // Another user who was given the file for reading does not get more rights by opening it again.
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    Ok(file)
}

/// Bytes of a region that a peer has made.
fn sealed_len(file: &OwnedFd) -> io::Result<usize> {
    if !rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::SHRINK) {
        return Err(io::Error::other("the region is not sealed against shrinking"));
    }
    match usize::try_from(fstat(file)?.st_size).unwrap_or(0) {
        0 => Err(io::Error::other("the region is empty")),
        len => Ok(len),
    }
}

impl Region {
    /// Zeroed memory of this process only.
    ///
    /// # Errors
    /// mmap fails.
    pub fn anonymous(len: usize) -> io::Result<Region> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, prot, flags) }?;
        Ok(Region::own(base.cast(), len, 0, None))
    }

    /// Zeroed memory behind a descriptor, sealed so that nobody can resize it.
    ///
    /// # Errors
    /// memfd_create, ftruncate, fcntl or mmap fails.
    pub fn shared(name: &str, len: usize) -> io::Result<Region> {
        Region::map(sealed(name, len)?)
    }

    /// As [`Region::shared`], between two pages that nobody may touch: a load or store past either
    /// end is SIGSEGV, whatever else this process has mapped. For proofs that no such access
    /// happens.
    ///
    /// # Errors
    /// As for [`Region::shared`]; or the length is not a multiple of 4096.
    pub fn guarded(name: &str, len: usize) -> io::Result<Region> {
        if !len.is_multiple_of(GUARD) {
            return Err(io::Error::other(format!("{len} bytes do not end at a guard's page")));
        }
        let file = sealed(name, len)?;
        let (none, flags) = (ProtFlags::empty(), MapFlags::PRIVATE);
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len + 2 * GUARD, none, flags) }?;
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the bytes are inside what was just mapped, which nobody else knows of; they are
        // in the file, which cannot shrink.
        let base =
            unsafe { mmap(start.byte_add(GUARD), len, rights, flags | MapFlags::FIXED, &file, 0) };
        match base {
            Ok(base) => Ok(Region::own(base.cast(), len, GUARD, Some(file))),
            Err(error) => {
                // SAFETY: as above. There is nothing to do if it fails.
                let _ = unsafe { munmap(start, len + 2 * GUARD) };
                Err(error.into())
            }
        }
    }

    /// Maps what another process shares.
    ///
    /// # Errors
    /// If it may still shrink (an access past its end would kill this process), is empty, or cannot
    /// be mapped.
    pub fn map(file: OwnedFd) -> io::Result<Region> {
        Region::mapped(file, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps a region that a peer has made, for reading only: a process that writes through it dies.
    /// For readers of a broadcast.
    ///
    /// # Errors
    /// As for [`Region::map`].
    pub fn map_read_only(file: OwnedFd) -> io::Result<Region> {
        // A store to an atomic in it is a signal, not undefined behaviour of ours; 32-bit atomic
        // loads write nothing.
        Region::mapped(file, ProtFlags::READ)
    }

    /// Maps `len` bytes of a region from `offset` on, a multiple of 4096: a link in the memory of a
    /// guest.
    ///
    /// # Errors
    /// As for [`Region::map`]; or the bytes are not all in the region.
    pub fn map_part(file: OwnedFd, offset: usize, len: usize) -> io::Result<Region> {
        let whole = sealed_len(&file)?;
        if len == 0 || offset.checked_add(len).is_none_or(|end| end > whole) {
            let text = format!("{len} bytes from {offset} are not in a region of {whole}");
            return Err(io::Error::other(text));
        }
        Region::mapped_from(file, ProtFlags::READ | ProtFlags::WRITE, offset, len)
    }

    fn mapped(file: OwnedFd, rights: ProtFlags) -> io::Result<Region> {
        let len = sealed_len(&file)?;
        Region::mapped_from(file, rights, 0, len)
    }

    fn mapped_from(
        file: OwnedFd,
        rights: ProtFlags,
        offset: usize,
        len: usize,
    ) -> io::Result<Region> {
        let (flags, from) = (MapFlags::SHARED, offset as u64);
        // SAFETY: the kernel chooses the address, so no memory in use is replaced; the bytes are in
        // the file, which cannot shrink.
        let base = unsafe { mmap(ptr::null_mut(), len, rights, flags, &file, from) }?;
        Ok(Region::own(base.cast(), len, 0, Some(file)))
    }

    /// A second descriptor of this region, which can only be read from.
    ///
    /// # Errors
    /// The kernel refuses it; anonymous regions have no descriptor.
    pub fn read_only(&self) -> io::Result<OwnedFd> {
        let file = self.file().ok_or_else(|| io::Error::other("the region has no descriptor"))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn own(base: *mut u8, len: usize, guard: usize, file: Option<OwnedFd>) -> Region {
        let base = NonNull::new(base).expect("mmap gives no null pointer");
        Region(Arc::new(Mapping { base, len, guard, file }))
    }

    /// Length in bytes.
    pub fn size(&self) -> usize {
        self.0.len
    }

    /// The descriptor behind it, if it has one.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.0.file.as_ref().map(AsFd::as_fd)
    }

    /// The region as words, for users that share nothing but words.
    ///
    /// A store through it into a link acts like that of a peer that breaks the rules: the ends
    /// check every word by which they find their way, and stay within the region. A message that an
    /// end copies at the same time, as bytes, is garbage as a whole; so may be the next ones. If
    /// that end belongs to this process, the copy and the store are also a data race for the
    /// language, which promises nothing then. We rely on this: a copy of bytes out of shared memory
    /// reads some bytes, and nobody looks at them except as a message, of which any bytes are a
    /// value. The copies are not atomic, because that would cost a queue time at every message (4
    /// KiB there and back 0.34 us instead of 0.12). Only an injected fault does this.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: mapped, aligned to a page, alive as long as self; atomics may be shared.
        unsafe { std::slice::from_raw_parts(self.0.base.as_ptr().cast(), self.0.len / 4) }
    }

    /// Releases the pages that this process has touched: for a process that keeps a region for
    /// others. The bytes stay as they are, and the next access finds them.
    pub fn let_go(&self) {
        if self.0.file.is_none() {
            return;
        }
        let base = self.0.base.as_ptr().cast();
        // SAFETY: the range is one that mmap gave, shared and backed by a file: its pages are in
        // the file, and only the entries of this process's page table are dropped. A refusal
        // changes nothing.
        let _ = unsafe { madvise(base, self.0.len, Advice::LinuxDontNeed) };
    }
}

// SAFETY: base and len stay as they are while any clone lives; a page is aligned to 4096.
unsafe impl sinew_link::Memory for Region {
    fn base(&self) -> NonNull<u8> {
        self.0.base
    }

    fn len(&self) -> usize {
        self.0.len
    }
}

/// The CPU's time stamp counter; 0 where the architecture has none that user code may read.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction; it reads a counter and touches no memory.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: the virtual counter is readable by user code on Linux; no memory is touched.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        0
    }
}

/// Puts the calling thread into SCHED_FIFO.
///
/// # Errors
/// sched_setscheduler fails; EPERM without CAP_SYS_NICE or an rtprio limit.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    schedule(libc::SCHED_FIFO, priority)
}

/// Puts the calling thread into SCHED_OTHER, and with it all threads and processes that it starts
/// from now on.
///
/// # Errors
/// sched_setscheduler fails.
pub fn leave_realtime() -> io::Result<()> {
    schedule(libc::SCHED_OTHER, 0)
}

/// Puts the calling thread into SCHED_IDLE: it runs only where a CPU has nothing else to do.
///
/// # Errors
/// sched_setscheduler fails.
pub fn only_when_idle() -> io::Result<()> {
    schedule(libc::SCHED_IDLE, 0)
}

fn schedule(policy: libc::c_int, priority: u8) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: 0 is the calling thread; the parameter outlives the call.
    match unsafe { libc::sched_setscheduler(0, policy, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The scheduling policy (SCHED_*) and realtime priority that the calling thread has.
///
/// # Errors
/// sched_getscheduler or sched_getparam fails.
pub fn scheduling() -> io::Result<(i32, i32)> {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    // SAFETY: as above; the parameter outlives the call.
    if policy < 0 || unsafe { libc::sched_getparam(0, &mut parameter) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((policy, parameter.sched_priority))
}

/// An unnamed POSIX semaphore of this process (sem_overview(7)).
pub struct PosixSemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: the C library lets any thread post to a semaphore and wait on it, at the same time.
unsafe impl Send for PosixSemaphore {}
// SAFETY: as above.
unsafe impl Sync for PosixSemaphore {}

impl PosixSemaphore {
    /// A semaphore that nobody has posted to.
    ///
    /// # Errors
    /// sem_init fails.
    pub fn create() -> io::Result<PosixSemaphore> {
        // SAFETY: bytes of any value are a sem_t that is not yet initialised; so are zeros.
        let room = Box::new(UnsafeCell::new(unsafe { MaybeUninit::zeroed().assume_init() }));
        let semaphore = PosixSemaphore(room);
        // SAFETY: in a box it stays in place until it is dropped; nobody else knows of it yet.
        match unsafe { libc::sem_init(semaphore.0.get(), 0, 0) } {
            0 => Ok(semaphore),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds one, and wakes a thread that waits for it.
    ///
    /// # Errors
    /// sem_post fails: the count is too large.
    #[inline]
    pub fn post(&self) -> io::Result<()> {
        // SAFETY: it was initialised, and lives as long as self.
        match unsafe { libc::sem_post(self.0.get()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes one, and sleeps until there is one.
    ///
    /// # Errors
    /// sem_wait fails.
    #[inline]
    pub fn wait(&self) -> io::Result<()> {
        // SAFETY: as above.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for PosixSemaphore {
    fn drop(&mut self) {
        // SAFETY: it was initialised; the thread that drops it is its only user, so nobody waits.
        let _ = unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// Releases the pages of this program's code and constants, most of which were needed only at its
/// start. Pages that are needed again come out of the kernel's cache of the file. A refusal changes
/// nothing: the pages may be locked.
pub fn let_go_of_code() {
    for mapping in mappings::all().iter().filter(|mapping| mapping.is_code) {
        let addresses = &mapping.addresses;
        let base = ptr::without_provenance_mut(addresses.start);
        // SAFETY: this is a private mapping of a file that nobody may write to or has written to,
        // not even the loader or a debugger. The kernel keeps others from writing to a file that
        // runs. So every page comes back as it was.
        let _ = unsafe { madvise(base, addresses.len(), Advice::LinuxDontNeed) };
    }
}

/// Brings what is mapped at these addresses into memory and keeps it there.
///
/// # Errors
/// mlock fails: there is no right to lock, or nothing that may be touched is there.
pub fn lock(addresses: &Range<usize>) -> io::Result<()> {
    let base = ptr::without_provenance_mut(addresses.start);
    // SAFETY: it changes no byte and no access right, whatever is mapped there.
    Ok(unsafe { mlock(base, addresses.len()) }?)
}

/// Has the program that `command` starts killed when the thread that starts it ends.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: it changes what the kernel does at the parent's end and touches no memory of
        // ours; a system call is async-signal-safe.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // It may have ended before we asked.
        // SAFETY: getppid cannot fail and touches no memory.
        if unsafe { libc::getppid() } as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only, which are
    // async-signal-safe, and makes errors that hold no memory.
    unsafe { command.pre_exec(ask) };
}

/// Keeps these descriptors open in the program that `command` starts, and no others besides
/// standard input, output and error. Descriptors that our own parent left open are not passed on
/// either.
pub fn keep_open(command: &mut Command, descriptors: Vec<RawFd>) {
    let keep = move || {
        let (first, last, at_exec) = (3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        // Kernels before 5.11 refuse: what we opened ourselves closes all the same.
        // SAFETY: it marks descriptors and touches no memory; a system call is async-signal-safe.
        let _ = unsafe { libc::syscall(libc::SYS_close_range, first, last, at_exec) };
        for &descriptor in &descriptors {
            // SAFETY: fcntl on a number is harmless whatever it names, and async-signal-safe.
            if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only, which are
    // async-signal-safe; its vector was made before the fork.
    unsafe { command.pre_exec(keep) };
}

/// Process and effective user at the other end of a Unix socket, as they were when it connected.
/// The process is 0 if this one cannot see it (another PID namespace), so the type is not rustix's
/// `Pid`.
///
/// # Errors
/// getsockopt fails.
pub fn peer_of(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let into = ptr::from_mut(&mut peer).cast();
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel writes `len` bytes at most, which is the size of `peer`; every bit pattern
    // is a valid ucred.
    if unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, into, &mut len) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((peer.pid as u32, peer.uid))
}

/// The bounds that a process takes between fork and exec; see [`bound`].
#[derive(Debug, Default)]
pub struct ProcessBounds {
    /// The `cgroup.procs` of the cgroup that it enters.
    pub cgroup: Option<OwnedFd>,
    /// Its resource limits.
    pub limits: Vec<(Resource, Rlimit)>,
    /// The user, the first group and all groups that it gets, permanently and with no capabilities.
    pub user: Option<(u32, u32, Vec<u32>)>,
}

/// Has the process that `command` starts take these bounds before its program begins; the start
/// fails if the process cannot take a limit or become the user. If it could not enter its cgroup,
/// that shows only there.
pub fn bound(command: &mut Command, bounds: ProcessBounds) {
    let ProcessBounds { cgroup, limits, user } = bounds;
    let groups = user.iter().flat_map(|(_, _, groups)| groups);
    let groups: Vec<_> = groups.map(|&group| Gid::from_raw(group)).collect();
    let user = user.map(|(uid, gid, _)| (Uid::from_raw(uid), Gid::from_raw(gid)));
    let take = move || {
        if let Some(cgroup) = &cgroup {
            // 0 means the writing process. The parent checks in which cgroup the process is.
            let _ = rustix::io::write(cgroup, b"0");
        }
        for (resource, limit) in &limits {
            setrlimit(*resource, *limit)?;
        }
        if let Some((uid, gid)) = user {
            // These act on one thread, and there is no other between fork and exec.
            set_thread_groups(&groups)?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
            clear_ambient_capability_set()?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only, and rustix makes them
    // without the C library, so nothing allocates or locks; its lists were made before the fork.
    unsafe { command.pre_exec(take) };
}

/// Takes a descriptor that the parent left open for us. Such a descriptor lacks the close-on-exec
/// flag, which everything that this program opens itself has. So no number that somebody here owns
/// can be taken, and none can be taken twice.
///
/// # Errors
/// Nothing is open under this number, or it was not left open for us.
pub fn adopt(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor <= libc::STDERR_FILENO {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is not -1, by the lines above; the borrowed descriptor lives for these calls only;
    // a number that names nothing gives EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let flags = fcntl_getfd(borrowed)?;
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(io::Error::other(format!("descriptor {descriptor} was not left open for us")));
    }
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and nobody owns it: the standard library and rustix open everything with
    // the flag that was missing here, and an earlier caller that got it has set that flag.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

unsafe extern "C" {
    // glibc 2.30 and musl 1.2 have this function; the libc crate does not declare it for every
    // target.
    fn pthread_mutex_clocklock(
        mutex: *mut libc::pthread_mutex_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
}

/// A robust process-shared mutex in a region.
#[derive(Debug)]
pub struct SharedMutex {
    region: Region,
    /// Where it is.
    at: usize,
}

/// Bytes that a [`SharedMutex`] takes.
pub const SHARED_MUTEX_LEN: usize = size_of::<libc::pthread_mutex_t>().next_multiple_of(128);

/// Whether and how a lock was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// As it should be.
    Clean,
    /// The previous owner died with it; what the lock guards may be half written.
    OwnerDied,
    /// It was not obtained within the time.
    TimedOut,
    /// The bytes are not a mutex (any more).
    Broken,
}

impl SharedMutex {
    /// Makes the mutex `at` bytes from the start of `region`, where all bytes are zero and nobody
    /// else is yet.
    ///
    /// # Errors
    /// A pthread function fails.
    ///
    /// # Panics
    /// As [`SharedMutex::attach`].
    pub fn create(region: &Region, at: usize) -> io::Result<()> {
        let made = SharedMutex::attach(region.clone(), at);
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before use and destroyed after it; the mutex is
        // inside the region (asserted at attach), and no other user exists yet.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
            check(libc::pthread_mutexattr_setpshared(attributes.as_mut_ptr(), 1))?;
            let robust = libc::PTHREAD_MUTEX_ROBUST;
            check(libc::pthread_mutexattr_setrobust(attributes.as_mut_ptr(), robust))?;
            check(libc::pthread_mutex_init(made.mutex(), attributes.as_ptr()))?;
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        }
        Ok(())
    }

    /// The mutex that [`SharedMutex::create`] made at `at`.
    ///
    /// # Panics
    /// If `at` is not a multiple of 128, or the region ends within [`SHARED_MUTEX_LEN`] from there.
    pub fn attach(region: Region, at: usize) -> SharedMutex {
        let end = at.checked_add(SHARED_MUTEX_LEN);
        assert!(at.is_multiple_of(128) && end.is_some_and(|end| end <= region.size()));
        SharedMutex { region, at }
    }

    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        // SAFETY: inside the region (asserted at attach), and aligned, as its start is to a page.
        unsafe { self.region.0.base.as_ptr().add(self.at).cast() }
    }

    /// Locks, waiting until `until_ns` of the monotonic clock at most. After `Clean` and
    /// `OwnerDied` the caller must [`SharedMutex::unlock`].
    pub fn lock(&self, until_ns: u64) -> Locked {
        let until = libc_timespec(until_ns);
        // SAFETY: the mutex is inside the region and was made by create. A peer that overwrites it
        // can make the call fail or time out; `sync: mutex` trusts its peer not to forge glibc's
        // robust list, and `transport/mutex.rs` says so.
        let code = unsafe {
            pthread_mutex_clocklock(self.mutex(), libc::CLOCK_MONOTONIC, &raw const until)
        };
        match code {
            0 => Locked::Clean,
            libc::ETIMEDOUT => Locked::TimedOut,
            // SAFETY: EOWNERDEAD means that we hold the mutex now and may declare it consistent.
            libc::EOWNERDEAD => match unsafe { libc::pthread_mutex_consistent(self.mutex()) } {
                0 => Locked::OwnerDied,
                _ => Locked::Broken,
            },
            _ => Locked::Broken,
        }
    }

    /// Unlocks; only the holder of the lock may call it.
    pub fn unlock(&self) {
        // SAFETY: as in lock. If the caller does not hold it, a robust mutex answers EPERM.
        unsafe { libc::pthread_mutex_unlock(self.mutex()) };
    }
}

/// `ns` since the clock's start as the kernel wants it.
pub fn timespec(ns: u64) -> Timespec {
    let tv_sec = i64::try_from(ns / 1_000_000_000).expect("64 bits of ns are less of s");
    Timespec { tv_sec, tv_nsec: (ns % 1_000_000_000) as _ }
}

fn libc_timespec(ns: u64) -> libc::timespec {
    // A deadline past the end of time_t is as good as none.
    let seconds = libc::time_t::try_from(ns / 1_000_000_000).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec: seconds, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_semaphore_holds_what_is_posted_until_it_is_taken() {
        let semaphore = PosixSemaphore::create().expect("one");
        semaphore.post().expect("room");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| [semaphore.wait(), semaphore.wait()]);
            semaphore.post().expect("room");
            let [first, second] = waits.join().expect("no panic");
            assert!(first.is_ok() && second.is_ok());
        });
    }

    #[test]
    fn a_thread_may_run_only_when_a_cpu_is_idle() {
        let policy = std::thread::spawn(|| {
            only_when_idle().expect("everybody may");
            scheduling()
        });
        assert_eq!(policy.join().expect("no panic").expect("known").0, libc::SCHED_IDLE);
    }

    #[test]
    fn a_shared_region_is_the_same_memory_under_both_mappings() {
        let one = Region::shared("test", 8192).expect("memfd");
        let copy = one.file().expect("a descriptor").try_clone_to_owned().expect("dup");
        let two = Region::map(copy).expect("mmap");
        one.words()[7].store(0xfeed, Ordering::Relaxed);
        assert_eq!(two.words()[7].load(Ordering::Relaxed), 0xfeed);
        assert_eq!((two.size(), two.words().len()), (8192, 2048));
    }

    #[test]
    fn nobody_may_touch_the_pages_around_a_guarded_region() {
        let region = Region::guarded("test", 8192).expect("memory");
        region.words().iter().for_each(|word| word.store(0xfeed, Ordering::Relaxed));
        let from = region.words().as_ptr().addr();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let rights = |address: usize| {
            let mut lines = maps.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(range, _)| {
                let (from, to) = range.split_once('-').expect("a range");
                let hex = |text| usize::from_str_radix(text, 16).expect("an address");
                (hex(from)..hex(to)).contains(&address)
            });
            found.map(|(_, rest)| &rest[..4])
        };
        let found = [from - 1, from, from + 8191, from + 8192].map(rights);
        assert_eq!(found, [Some("---p"), Some("rw-s"), Some("rw-s"), Some("---p")]);
        assert!(Region::guarded("test", 8000).is_err(), "its end would not be guarded");
    }

    #[test]
    fn a_region_that_is_let_go_keeps_its_bytes() {
        let sorts = [Region::shared("test", 8192), Region::anonymous(8192)];
        for region in sorts.map(|region| region.expect("memory")) {
            region.words()[7].store(0xfeed, Ordering::Relaxed);
            region.let_go();
            assert_eq!(region.words()[7].load(Ordering::Relaxed), 0xfeed);
        }
    }

    #[test]
    fn code_that_is_let_go_still_runs_and_takes_less_room() {
        let resident_kib = || {
            let code = mappings::all().into_iter().filter(|mapping| mapping.is_code);
            code.map(|mapping| mapping.resident_kib).sum::<u32>()
        };
        let before_kib = resident_kib();
        let_go_of_code();
        let after_kib = resident_kib();
        assert!(after_kib < before_kib, "{after_kib} of {before_kib} KiB");
    }

    #[test]
    fn a_region_that_may_shrink_is_refused() {
        let file =
            memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("fd");
        ftruncate(&file, 4096).expect("ftruncate");
        let error = Region::map(file).expect_err("it is not sealed");
        assert!(error.to_string().contains("not sealed"), "{error}");
    }

    #[test]
    fn a_mutex_tells_that_its_owner_died() {
        let region = Region::shared("test", 4096).expect("memfd");
        SharedMutex::create(&region, 0).expect("mutex");
        let other = SharedMutex::attach(region.clone(), 0);
        std::thread::spawn(move || assert_eq!(other.lock(u64::MAX), Locked::Clean))
            .join()
            .expect("the thread ends with the lock held");
        let mutex = SharedMutex::attach(region, 0);
        assert_eq!(mutex.lock(u64::MAX), Locked::OwnerDied);
        mutex.unlock();
        assert_eq!(mutex.lock(u64::MAX), Locked::Clean);
        mutex.unlock();
    }

    #[test]
    fn bytes_that_are_no_mutex_do_not_hang() {
        let region = Region::shared("test", 4096).expect("memfd");
        for word in region.words() {
            word.store(u32::MAX, Ordering::Relaxed);
        }
        let mutex = SharedMutex::attach(region, 0);
        let soon = crate::clock::now_ns() + 1_000_000;
        assert_ne!(mutex.lock(soon), Locked::Clean);
    }

    #[test]
    fn a_program_gets_the_descriptors_that_are_meant_for_it_and_no_others() {
        // Without CLOEXEC, as our own parent may have left it.
        let _left_open = memfd_create("left", MemfdFlags::empty()).expect("memfd");
        let meant = memfd_create("meant", MemfdFlags::CLOEXEC).expect("memfd");
        // Compared by name, because `ls` opens the folder under a number that it finds free.
        let mut command = Command::new("ls");
        keep_open(command.args(["-l", "/proc/self/fd"]), vec![meant.as_raw_fd()]);
        let listed = command.output().expect("ls").stdout;
        let listed = String::from_utf8(listed).expect("names");
        assert!(listed.contains("memfd:meant"), "{listed}");
        assert!(!listed.contains("memfd:left"), "{listed}");
    }
}
