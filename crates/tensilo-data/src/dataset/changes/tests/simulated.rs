//! A store that records every operation, and the images that a power loss can leave.
//!
//! An operation is certain to survive only once its file or folder has been synced. An image is the
//! result of all certain operations and any subset of the other operations.

use crate::dataset::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;

/// One operation. Power can be lost before or after it.
#[derive(Clone, Debug)]
enum Op {
    /// Creates a name in a folder: a folder (`None`), or a file with these bytes.
    Name { path: String, bytes: Option<Vec<u8>> },
    /// Removes the name of a file or of an empty folder.
    Remove(String),
    /// Makes the bytes of a file durable.
    SyncFile(String),
    /// Makes the names in a folder durable.
    SyncFolder(String),
}

#[derive(Debug, Default)]
pub(super) struct CrashStore(Mutex<Vec<Op>>);

/// The files after a power loss.
#[derive(Debug, Default)]
pub(super) struct Image(pub(super) BTreeMap<String, Option<Vec<u8>>>);

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// If more operations than this are uncertain, only some subsets are tried.
const MAX_EXHAUSTIVE_OPS: usize = 8;

impl CrashStore {
    /// Returns the number of operations so far.
    pub(super) fn moments(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Writes a file without making it durable.
    pub(super) fn write_unsynced(&self, path: &str, bytes: &[u8]) {
        self.push(Op::Name { path: path.to_owned(), bytes: Some(bytes.to_vec()) });
    }

    fn push(&self, op: Op) {
        self.0.lock().unwrap().push(op);
    }

    /// Calls `show` with every image that a power loss after operation `from`, or after any later
    /// one, can leave. The flag says whether the power loss comes after the last operation.
    pub(super) fn crash_images(&self, from: usize, mut show: impl FnMut(&Image, bool)) {
        let log = self.0.lock().unwrap().clone();
        // in a long series of files, the images after most operations are equivalent, so this tries
        // the first 40, the last 40, and about 400 in between
        let step = (log.len() / 400).max(1);
        let moments =
            (from..=log.len()).filter(|moment| moment % step == 0 || moment - from < 40 || log.len() - moment < 40);
        for moment in moments {
            let done = &log[..moment];
            let uncertain = uncertain(done);
            let subsets: Vec<BTreeSet<usize>> = if uncertain.len() <= MAX_EXHAUSTIVE_OPS {
                (0_u32..1 << uncertain.len()).map(|bits| pick(&uncertain, |i| bits >> i & 1 == 1)).collect()
            } else {
                let one = |only: usize| pick(&uncertain, move |i| i == only);
                let but = |one: usize| pick(&uncertain, move |i| i != one);
                let some = [0, uncertain.len() / 2, uncertain.len() - 1];
                some.into_iter()
                    .flat_map(|i| [one(i), but(i)])
                    .chain([pick(&uncertain, |_| true), pick(&uncertain, |_| false)])
                    .collect()
            };
            for lost in subsets {
                show(&image(done, &lost), moment == log.len());
            }
        }
    }
}

/// Returns the indices of the operations that are not certain to be on disk.
fn uncertain(done: &[Op]) -> Vec<usize> {
    let is_uncertain = |(at, op): &(usize, &Op)| match op {
        Op::Name { path, .. } => {
            let later = &done[*at..];
            let named = later.iter().any(|op| matches!(op, Op::SyncFolder(folder) if folder == parent(path)));
            let written = later.iter().any(|op| matches!(op, Op::SyncFile(file) if file == path));
            let is_file = matches!(op, Op::Name { bytes: Some(_), .. });
            !named || (is_file && !written)
        }
        Op::Remove(path) => {
            !done[*at..].iter().any(|op| matches!(op, Op::SyncFolder(folder) if folder == parent(path)))
        }
        _ => false,
    };
    done.iter().enumerate().filter(is_uncertain).map(|(at, _)| at).collect()
}

fn pick(from: &[usize], is_picked: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    from.iter().enumerate().filter(|(i, _)| is_picked(*i)).map(|(_, &at)| at).collect()
}

/// Returns the image that remains if the uncertain operations `lost` did not reach the disk. If the
/// name of a file is durable but its bytes are lost, the file is empty.
fn image(done: &[Op], lost: &BTreeSet<usize>) -> Image {
    let mut image = Image::default();
    for (at, op) in done.iter().enumerate() {
        if let Op::Remove(path) = op
            && !lost.contains(&at)
        {
            image.0.remove(path);
        }
        let Op::Name { path, bytes } = op else { continue };
        let is_named = done[at..].iter().any(|op| matches!(op, Op::SyncFolder(folder) if folder == parent(path)));
        let has_folder = parent(path).is_empty() || image.0.contains_key(parent(path));
        match (lost.contains(&at), has_folder) {
            (_, false) => {}
            (false, true) => drop(image.0.insert(path.clone(), bytes.clone())),
            (true, true) if is_named => drop(image.0.insert(path.clone(), bytes.as_ref().map(|_| Vec::new()))),
            (true, true) => {}
        }
    }
    image
}

impl CrashStore {
    /// Returns the image that programs see as long as power is not lost.
    pub(super) fn now(&self) -> Image {
        image(&self.0.lock().unwrap(), &BTreeSet::new())
    }
}

impl Store for CrashStore {
    fn read(&self, path: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        self.now().read(path, max_bytes)
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        self.now().names(folder)
    }

    fn create_folder(&self, path: &str) -> io::Result<bool> {
        let exists = self.now().0.contains_key(path);
        if !exists {
            self.push(Op::Name { path: path.to_owned(), bytes: None });
        }
        self.sync_folder(parent(path))?;
        Ok(!exists)
    }

    /// Works like `AtomicFile`, which has its own tests.
    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        if self.now().0.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.push(Op::Name { path: path.to_owned(), bytes: Some(bytes.to_vec()) });
        self.push(Op::SyncFile(path.to_owned()));
        self.sync_folder(parent(path))
    }

    fn make_durable(&self, path: &str) -> io::Result<()> {
        self.push(Op::SyncFile(path.to_owned()));
        let mut folder = path;
        while !folder.is_empty() {
            folder = parent(folder);
            self.sync_folder(folder)?;
        }
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        // the contents of a folder are removed first
        let inside = self.now().0.into_keys().rev().filter(|found| found.starts_with(&format!("{path}/")));
        inside.chain([path.to_owned()]).for_each(|path| self.push(Op::Remove(path)));
        Ok(())
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        self.push(Op::SyncFolder(path.to_owned()));
        Ok(())
    }

    fn left_behind(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn bytes(&self, _: &str) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Store for Image {
    fn read(&self, path: &str, _: u64) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().flatten().ok_or(io::ErrorKind::NotFound.into())
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        if !self.0.contains_key(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = self.0.keys().filter(|path| parent(path) == folder);
        Ok(inside.filter_map(|path| path.rsplit('/').next()).map(str::to_owned).collect())
    }

    fn create_folder(&self, _: &str) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn publish(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn make_durable(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn left_behind(&self, _: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn bytes(&self, _: &str) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
