//! Handles SIGINT (Ctrl-C), SIGTERM and SIGHUP.
//!
//! An interrupted command must undo its work, but it must end even if that takes too long. So the
//! progress callback of the work polls for a signal and cancels the work, which is then undone. A
//! separate thread is the watchdog: it ends the process if the work has no such callback or does
//! not end in time. A second signal ends the process at once.
//!
//! On systems other than Unix, a signal ends the process, which is the default action. A temporary
//! file then remains next to its destination; the next `convert` to that destination reports it.

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
#[cfg(unix)]
use signal_hook::{flag, iterator::Signals, low_level};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// The last signal that arrived, or 0 if none did. The signal handler sets it, so the work sees a
/// signal even if the thread that waits for signals is not scheduled.
static RECEIVED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// Whether the work has seen a signal and is ending.
static SEEN: AtomicBool = AtomicBool::new(false);
/// How many milliseconds the current work may take to end after a signal, or 0 if no work polls
/// for signals.
static TIMEOUT_MS: AtomicU64 = AtomicU64::new(0);
/// The temporary file to remove if a signal ends the process.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);
/// Whether the terminal shows a progress line, which must be cleared when the process ends.
static LINE: AtomicBool = AtomicBool::new(false);

/// A signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal(i32);

impl Signal {
    /// Returns the exit code of a process that this signal ended.
    pub(crate) fn exit_code(self) -> u8 {
        u8::try_from(self.0).unwrap_or(0).saturating_add(128) // 1, 2 or 15
    }

    /// Returns the name, such as `SIGINT`.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            1 => "SIGHUP",
            2 => "SIGINT",
            _ => "SIGTERM",
        }
    }
}

/// Does nothing: by default, a signal ends the process.
#[cfg(not(unix))]
pub(crate) fn watch() {}

/// Starts the thread that waits for signals. Ignored signals, as under `nohup`, stay ignored.
#[cfg(unix)]
pub(crate) fn watch() {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let watch = move || {
        let watched: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
        for &signal in &watched {
            // if this fails, so does the next call
            let _ = flag::register_usize(signal, RECEIVED.clone(), usize::try_from(signal).unwrap_or(0));
        }
        let signals = Signals::new(watched);
        let _ = ready.send(()); // the receiver waits below
        if let Ok(mut signals) = signals {
            let mut is_first = true;
            signals.forever().for_each(|signal| on_signal(signal, std::mem::take(&mut is_first)));
        }
    };
    if std::thread::Builder::new().spawn(watch).is_ok() {
        let _ = is_ready.recv(); // an error means that the thread has ended
    }
}

/// Returns whether the parent process made this process ignore the signal. Only Linux reports this.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signal.checked_sub(1).and_then(|bit| mask.checked_shr(bit.unsigned_abs())).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(unix)]
fn on_signal(signal: i32, is_first: bool) {
    /// The minimum timeout after the work has seen a signal.
    const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
    let mut timeout = Duration::from_millis(TIMEOUT_MS.load(Ordering::SeqCst));
    if SEEN.load(Ordering::SeqCst) {
        timeout = timeout.max(EXIT_TIMEOUT); // the work may have ended before this thread woke up
    }
    let wait = move || {
        std::thread::sleep(timeout);
        end(Signal(signal));
    };
    if !is_first || timeout.is_zero() || std::thread::Builder::new().spawn(wait).is_err() {
        end(Signal(signal));
    }
}

/// Ends the process immediately.
#[cfg(unix)]
fn end(signal: Signal) -> ! {
    use std::io::Write;
    if let Some(path) = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = std::fs::remove_file(path); // fails if the file has been renamed to its destination
    }
    if LINE.load(Ordering::SeqCst) {
        let _ = std::io::stderr().write_all(b"\r\x1b[2K"); // fails if the terminal is closed
    }
    low_level::exit(signal.exit_code().into())
}

/// Returns the signal that arrived, or `None` if none did. If there is a signal, the caller must
/// end its work.
pub(crate) fn received() -> Option<Signal> {
    let signal = i32::try_from(RECEIVED.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)?;
    SEEN.store(true, Ordering::SeqCst);
    Some(Signal(signal))
}

/// Registers work that polls for signals and ends within `timeout` after a signal. A longer timeout
/// that is already registered stays in force.
pub(crate) fn begin_work(timeout: Duration) {
    TIMEOUT_MS.fetch_max(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
}

/// Unregisters the work, and records that the terminal shows no progress line.
pub(crate) fn end_work() {
    TIMEOUT_MS.store(0, Ordering::SeqCst);
    show_line(false);
}

/// Sets the file to remove if a signal ends the process.
pub(crate) fn remove_at_exit(path: Option<&Path>) {
    *TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner) = path.map(Path::to_path_buf);
}

/// Sets whether the terminal shows a progress line.
pub(crate) fn show_line(is_shown: bool) {
    LINE.store(is_shown, Ordering::SeqCst);
}
