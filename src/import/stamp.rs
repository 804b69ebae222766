//! Stamps of files, which show that a file was changed.

use std::fs::{File, Metadata};
use std::io;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Size and modification time of a file, and its identity if the system has such.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified: metadata.modified().ok(), identity: identity(metadata) }
    }

    /// Returns the stamp of a file that is to be read from now on: every later change gives it
    /// another one.
    ///
    /// The clock that stamps files has ticks. Two changes in one tick leave the same modification
    /// time, so this waits until the tick of the last change is over. `None` if the file is changed
    /// all the time.
    pub(super) fn settled(file: &File) -> io::Result<Option<Self>> {
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            let stamp = Self::of(&file.metadata()?);
            match stamp.rest_of_tick(SystemTime::now()) {
                None => return Ok(Some(stamp)),
                Some(rest) => thread::sleep(rest),
            }
        }
        Ok(None)
    }

    /// Returns how long the tick of the last change may still last, or `None` if it is over.
    fn rest_of_tick(&self, now: SystemTime) -> Option<Duration> {
        const TICK: Duration = Duration::from_millis(20);
        const COARSE_TICK: Duration = Duration::from_secs(2);
        let modified = self.modified?;
        let since_epoch = modified.duration_since(UNIX_EPOCH).ok()?;
        // file systems without fractions of a second are those of FAT and HFS+
        let tick = if since_epoch.subsec_nanos() == 0 { COARSE_TICK } else { TICK };
        let age = now.duration_since(modified).ok()?;
        tick.checked_sub(age).filter(|rest| !rest.is_zero())
    }

    /// Returns whether two stamps are of one file. Where the system has no identities, it is
    /// assumed.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns how the file has changed since this stamp was taken, or `None` if it has not.
    pub(super) fn changes(&self, now: &Self) -> Option<String> {
        let size = (self.bytes != now.bytes).then(|| format!("its size was {} bytes and is {}", self.bytes, now.bytes));
        let time = (self.modified != now.modified).then(|| "its modification time is another".to_owned());
        let changes: Vec<String> = size.into_iter().chain(time).collect();
        (!changes.is_empty()).then(|| changes.join(", "))
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_waited_for_and_no_longer() {
        let rest = |modified: Duration, later_ms: u64| {
            let modified = UNIX_EPOCH + modified;
            let stamp = Stamp { bytes: 0, modified: Some(modified), identity: None };
            stamp.rest_of_tick(modified + Duration::from_millis(later_ms))
        };
        let (fine, coarse) = (Duration::new(1_700_000_000, 1), Duration::new(1_700_000_000, 0));
        assert_eq!(
            [0, 5, 19, 20, 60].map(|later| rest(fine, later).map(|rest| rest.as_millis())),
            [Some(20), Some(15), Some(1), None, None]
        );
        assert_eq!((rest(coarse, 500), rest(coarse, 2000)), (Some(Duration::from_millis(1500)), None));
        // of a clock that is ahead nothing can be known
        let ahead = Stamp { bytes: 0, modified: Some(UNIX_EPOCH + fine), identity: None };
        assert_eq!(ahead.rest_of_tick(UNIX_EPOCH), None);
    }

    #[test]
    fn size_and_time_tell_a_change() {
        let stamp =
            |bytes, seconds| Stamp { bytes, modified: Some(UNIX_EPOCH + Duration::from_secs(seconds)), identity: None };
        assert_eq!(stamp(1, 1).changes(&stamp(1, 1)), None);
        assert!(stamp(1, 2).changes(&stamp(1, 1)).unwrap().contains("time"));
        let both = stamp(1, 1).changes(&stamp(2, 2)).unwrap();
        assert!(both.contains("1 bytes and is 2") && both.contains("time"), "{both}");
    }
}
