//! FreeRTOS as this crate uses it: its functions, and the functions that it needs from us.

use core::ffi::{CStr, c_char, c_void};

use crate::{board, cpu, fault, gic, memory};

/// Ticks of FreeRTOS in a second.
pub(crate) const TICK_HZ: u32 = 1000;
/// The highest priority of a task.
pub(crate) const PRIORITY_MAX: u32 = 15;
/// Longest name of a task, with its zero.
const NAME_MAX: usize = 32;

/// What others call a task of FreeRTOS.
pub(crate) type Thread = Task;

/// A task of FreeRTOS.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Task(*mut c_void);

// SAFETY: a name for a task, which FreeRTOS lets any task use.
unsafe impl Send for Task {}
// SAFETY: as for `Send`.
unsafe impl Sync for Task {}

unsafe extern "C" {
    fn xTaskCreateStatic(
        code: extern "C" fn(*mut c_void),
        name: *const c_char,
        stack_words: u32,
        argument: *mut c_void,
        priority: u32,
        stack: *mut u32,
        memory: *mut u8,
    ) -> Task;
    static sinew_task_bytes: u32;
    fn vTaskStartScheduler();
    fn xTaskDelayUntil(previous: *mut u32, ticks: u32) -> i32;
    fn xTaskGetTickCount() -> u32;
    fn xTaskGetSchedulerState() -> i32;
    fn pcTaskGetName(task: *mut c_void) -> *const c_char;
    fn ulTaskGenericNotifyTake(index: u32, clear: i32, ticks: u32) -> u32;
    fn vTaskGenericNotifyGiveFromISR(task: Task, index: u32, woken: *mut i32);
    fn xTaskGenericNotify(task: Task, index: u32, value: u32, action: i32, old: *mut u32) -> i32;
    fn xTaskAbortDelay(task: Task) -> i32;
    fn vTaskDelay(ticks: u32);
    fn vTaskSuspendAll();
    fn xTaskResumeAll() -> i32;
    fn vTaskSuspend(task: *mut c_void);
    fn pvPortMalloc(len: usize) -> *mut c_void;
    fn vPortFree(memory: *mut c_void);
    fn FreeRTOS_Tick_Handler();
    static mut ulPortYieldRequired: u32;
}

/// Makes a task with a gap below its stack. It runs once the scheduler does. `name` is cut at 31
/// bytes. `None` if no memory is left.
pub(crate) fn spawn(
    code: extern "C" fn(*mut c_void),
    name: &str,
    stack_bytes: u32,
    argument: *mut c_void,
    priority: u32,
) -> Option<Task> {
    let mut text = [0; NAME_MAX];
    text.iter_mut().zip(name.bytes().take(NAME_MAX - 1)).for_each(|(to, from)| *to = from);
    let (stack, len) = memory::stack(stack_bytes as usize)?;
    // SAFETY: a constant of the C compiler.
    let memory = allocate(unsafe { sinew_task_bytes } as usize);
    if memory.is_null() {
        return None;
    }
    let words = (len / 4) as u32;
    // SAFETY: FreeRTOS copies the name; the caller's code takes the argument; stack and memory are
    // the task's for ever.
    let task = unsafe {
        xTaskCreateStatic(code, text.as_ptr().cast(), words, argument, priority, stack, memory)
    };
    (!task.0.is_null()).then_some(task)
}

/// Gives the core to the tasks.
pub(crate) fn run() -> ! {
    // SAFETY: called once, by the start, in supervisor mode.
    unsafe { vTaskStartScheduler() };
    panic!("the scheduler had no memory for its idle task")
}

/// Ticks since the start.
pub(crate) fn ticks() -> u32 {
    // SAFETY: reads a word.
    unsafe { xTaskGetTickCount() }
}

/// Sleeps until `ticks` after `previous`, or until woken. `previous` moves on by `ticks`.
pub(crate) fn sleep_until(previous: &mut u32, ticks: u32) {
    // SAFETY: called from a task.
    unsafe { xTaskDelayUntil(previous, ticks) };
}

/// Sleeps for `ticks` ticks, or until woken.
pub(crate) fn pause(ticks: u32) {
    // SAFETY: called from a task.
    unsafe { vTaskDelay(ticks) };
}

/// Calls `act` while no other task runs. Interrupts still come. `act` must not wait.
pub(crate) fn alone<T>(act: impl FnOnce() -> T) -> T {
    if !has_started() {
        return act();
    }
    // SAFETY: called from a task, as the scheduler runs; each suspension is resumed.
    unsafe { vTaskSuspendAll() };
    let done = act();
    // SAFETY: as above.
    unsafe { xTaskResumeAll() };
    done
}

/// Whether tasks run already.
pub(crate) fn has_started() -> bool {
    const NOT_STARTED: i32 = 1;
    // SAFETY: reads a word.
    unsafe { xTaskGetSchedulerState() != NOT_STARTED }
}

/// No limit of time.
pub(crate) const FOR_EVER: u32 = u32::MAX;

/// Suspends this task for good.
pub(crate) fn sleep_forever() {
    // SAFETY: called from a task, which suspends itself.
    unsafe { vTaskSuspend(core::ptr::null_mut()) };
}

/// Wakes a task that waits, will wait, or sleeps until some tick. Only from a task.
pub(crate) fn wake(task: Task) {
    const INCREMENT: i32 = 2;
    // SAFETY: called from a task; `wait` takes notification 0.
    unsafe {
        xTaskGenericNotify(task, 0, 0, INCREMENT, core::ptr::null_mut());
        xTaskAbortDelay(task);
    }
}

/// Sleeps until this task is woken, at most `ticks` ticks.
pub(crate) fn wait(ticks: u32) {
    // SAFETY: called from a task; nobody else uses notification 0.
    unsafe { ulTaskGenericNotifyTake(0, 1, ticks) };
}

/// As [`wait`], in milliseconds.
pub(crate) fn wait_ms(ms: u32) {
    wait(ms.saturating_mul(TICK_HZ / 1000));
}

/// Wakes a task that waits or will wait. Only from an interrupt.
pub(crate) fn wake_from_interrupt(task: Task) {
    let mut is_stronger = 0;
    // SAFETY: called from an interrupt whose priority may call FreeRTOS; the port reads the word
    // when that interrupt ends.
    unsafe {
        vTaskGenericNotifyGiveFromISR(task, 0, &mut is_stronger);
        if is_stronger != 0 {
            ulPortYieldRequired = 1;
        }
    }
}

/// The name of the task that runs, or a word for the start.
pub(crate) fn running() -> &'static str {
    if !has_started() {
        return "start";
    }
    // SAFETY: reads words; the name lives as long as the task, which is for ever.
    unsafe { CStr::from_ptr(pcTaskGetName(core::ptr::null_mut())).to_str().unwrap_or("?") }
}

/// Memory of FreeRTOS's heap, aligned to 8; null if none is left.
pub(crate) fn allocate(len: usize) -> *mut u8 {
    // SAFETY: any length will do.
    unsafe { pvPortMalloc(len).cast() }
}

/// Frees memory.
///
/// # Safety
/// It came from [`allocate`], and nothing uses it any more.
pub(crate) unsafe fn free(memory: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { vPortFree(memory.cast()) }
}

/// Steps of the counter from tick to tick.
fn tick_step() -> u64 {
    u64::from(cpu::counter_hz() / TICK_HZ)
}

/// When the next tick is due, by the counter. Only the tick's interrupt writes it.
static mut TICK_AT: u64 = 0;

#[unsafe(no_mangle)]
extern "C" fn sinew_tick_start() {
    // SAFETY: interrupts are off.
    unsafe { TICK_AT = cpu::counter() };
    sinew_tick_clear();
    gic::enable(board::TIMER_INTERRUPT, gic::PRIORITY_OF_TIMER, false);
}

/// Drops the whole ticks that the core has slept through. If they were made up for one by one,
/// every node would be released as often at once, and each would see no new input in all these
/// cycles.
#[unsafe(no_mangle)]
extern "C" fn sinew_tick_clear() {
    let step = tick_step();
    // SAFETY: the tick's interrupt does not interrupt itself.
    unsafe {
        let late = cpu::counter().saturating_sub(TICK_AT);
        TICK_AT += (late / step + 1) * step;
        cpu::alarm_at(TICK_AT);
    }
}

#[unsafe(no_mangle)]
extern "C" fn vApplicationFPUSafeIRQHandler(acknowledged: u32) {
    let interrupt = acknowledged & 0x3ff;
    if interrupt == board::TIMER_INTERRUPT {
        // SAFETY: the port's handler of the tick's interrupt.
        unsafe { FreeRTOS_Tick_Handler() };
    } else if let Some(bell) = board::bell_of(interrupt) {
        crate::bells::hear(bell);
    } else if interrupt < gic::SPURIOUS {
        panic!("interrupt {interrupt} came, and nobody had let it through");
    }
}

/// Nothing to do: the core sleeps, so that an emulated core costs the host nothing.
#[unsafe(no_mangle)]
extern "C" fn vApplicationIdleHook() {
    cpu::sleep();
}

#[unsafe(no_mangle)]
extern "C" fn vApplicationMallocFailedHook() {
    fault::out_of_memory(None)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vApplicationStackOverflowHook(_task: Task, name: *const c_char) {
    // SAFETY: FreeRTOS gives its own copy of the task's name. An overflow may have damaged it; then
    // the text ends at the next zero in mapped memory.
    let name = unsafe { CStr::from_ptr(name) };
    fault::stack_overflow(name.to_str().unwrap_or("?"), 0, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_assert_failed(file: *const c_char, line: u32) {
    // SAFETY: a constant of the C compiler.
    let file = unsafe { CStr::from_ptr(file) }.to_str().unwrap_or("?");
    fault::assertion(file, line)
}
