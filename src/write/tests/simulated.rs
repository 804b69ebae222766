//! A simulated file system with one folder, which logs every operation and fails on demand.

use crate::open::Source;
use crate::write::storage::{Occupant, Storage, StorageFile};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// An operation. Files are numbered in order of creation.
#[derive(Clone, Debug)]
pub enum Op {
    /// `None` is a file without a name.
    Create {
        name: Option<PathBuf>,
    },
    /// Names an unnamed file.
    Link {
        file: usize,
        name: PathBuf,
    },
    Write {
        file: usize,
        at: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        file: usize,
        bytes: usize,
    },
    Sync {
        file: usize,
    },
    /// Pending writes may or may not be on disk, and the system no longer tracks which of them are
    /// missing.
    FailedSync {
        file: usize,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        name: PathBuf,
    },
    SyncFolder,
    /// Any other call that failed.
    Failed(&'static str),
    /// The writer has reported this state as durable.
    Returned {
        state: usize,
    },
}

impl Op {
    /// Returns whether the operation changes what a reader finds, or makes it durable.
    pub fn changes(&self) -> bool {
        matches!(
            self,
            Self::Write { .. } | Self::Sync { .. } | Self::Link { .. } | Self::Rename { .. } | Self::SyncFolder
        )
    }
}

/// How the disk misbehaves.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// The maximum number of bytes that a write accepts.
    pub accept: usize,
    /// Whether every third write is interrupted.
    pub interrupts: bool,
    /// The number of the call that fails, counted from 0.
    pub fail_at: Option<usize>,
    pub error: ErrorKind,
    /// Whether all later calls also fail.
    pub for_ever: bool,
    /// Whether the disk cannot create unnamed files.
    pub only_named: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            accept: usize::MAX,
            interrupts: false,
            fail_at: None,
            error: ErrorKind::Other,
            for_ever: false,
            only_named: false,
        }
    }
}

#[derive(Clone, Default)]
pub struct State {
    pub log: Vec<Op>,
    pub files: Vec<Vec<u8>>,
    pub names: BTreeMap<PathBuf, usize>,
    pub calls: usize,
    pub faults: Faults,
    writes: usize,
}

impl State {
    fn call(&mut self, what: &'static str) -> io::Result<()> {
        let call = self.calls;
        self.calls += 1;
        let fails = self.faults.fail_at.is_some_and(|at| call == at || (self.faults.for_ever && call > at));
        if fails {
            self.log.push(Op::Failed(what));
            return Err(io::Error::new(self.faults.error, format!("injected into {what}")));
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
pub struct Simulated(Arc<Mutex<State>>);

impl Simulated {
    pub fn new(faults: Faults) -> Self {
        let disk = Self::default();
        disk.state().faults = faults;
        disk
    }

    /// Adds a durable file to the disk.
    pub fn with(self, name: &Path, bytes: &[u8]) -> Self {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(bytes.to_vec());
        state.names.insert(name.to_path_buf(), file);
        drop(state);
        self
    }

    /// Returns an independent copy of the disk.
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.state().clone())))
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the bytes of a file that a reader finds now.
    pub fn bytes(&self, name: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).map(|&file| state.files[file].clone())
    }

    fn create(&self, name: Option<PathBuf>) -> io::Result<SimulatedFile> {
        let mut state = self.state();
        state.call("create")?;
        let file = state.files.len();
        state.files.push(Vec::new());
        if let Some(name) = &name {
            state.names.insert(name.clone(), file);
        }
        state.log.push(Op::Create { name });
        Ok(SimulatedFile { disk: self.clone(), file, at: 0, opened: 0 })
    }

    fn temporary_name(&self, target: &Path, prefix: &str) -> PathBuf {
        target.with_file_name(format!("{prefix}{}.tmp", self.state().files.len()))
    }

    pub fn returned(&self, number: usize) {
        self.state().log.push(Op::Returned { state: number });
    }
}

pub struct SimulatedFile {
    disk: Simulated,
    file: usize,
    at: usize,
    opened: u64,
}

pub struct Temporary {
    disk: Simulated,
    name: PathBuf,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.names.remove(&self.name).is_some() {
            state.log.push(Op::Remove { name: self.name.clone() });
        }
    }
}

impl Storage for Simulated {
    type File = SimulatedFile;
    type Temporary = Temporary;

    fn resolve(&self, destination: &Path) -> io::Result<(PathBuf, Occupant)> {
        let mut state = self.state();
        state.call("resolve")?;
        let exists = state.names.contains_key(destination);
        Ok((destination.to_path_buf(), if exists { Occupant::File } else { Occupant::Nothing }))
    }

    fn create_unnamed(&self, _: &Path) -> io::Result<Option<SimulatedFile>> {
        if self.state().faults.only_named {
            return Ok(None);
        }
        self.create(None).map(Some)
    }

    fn create_beside(&self, target: &Path, prefix: &str) -> io::Result<(SimulatedFile, Temporary)> {
        let name = self.temporary_name(target, prefix);
        Ok((self.create(Some(name.clone()))?, Temporary { disk: self.clone(), name }))
    }

    fn link(&self, file: &SimulatedFile, target: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call("link")?;
        if state.names.contains_key(target) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.names.insert(target.to_path_buf(), file.file);
        state.log.push(Op::Link { file: file.file, name: target.to_path_buf() });
        Ok(())
    }

    fn link_beside(&self, file: &SimulatedFile, target: &Path, prefix: &str) -> io::Result<Temporary> {
        let name = self.temporary_name(target, prefix);
        self.link(file, &name)?;
        Ok(Temporary { disk: self.clone(), name })
    }

    fn open(&self, path: &Path) -> io::Result<SimulatedFile> {
        let mut state = self.state();
        state.call("open")?;
        let file = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        let opened = state.files[file].len() as u64;
        Ok(SimulatedFile { disk: self.clone(), file, at: 0, opened })
    }

    fn rename(&self, temporary: Temporary, destination: &Path, overwrite: bool) -> io::Result<()> {
        let mut state = self.state();
        let called = state.call("rename").and_then(|()| {
            let taken = !overwrite && state.names.contains_key(destination);
            if taken { Err(ErrorKind::AlreadyExists.into()) } else { Ok(()) }
        });
        if called.is_ok() {
            let file = state.names.remove(&temporary.name).unwrap();
            state.names.insert(destination.to_path_buf(), file);
            state.log.push(Op::Rename { from: temporary.name.clone(), to: destination.to_path_buf() });
        }
        drop(state); // dropping `temporary` locks the state
        called
    }

    fn sync_folder_of(&self, _: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call("sync of the folder")?;
        state.log.push(Op::SyncFolder);
        Ok(())
    }
}

impl StorageFile for SimulatedFile {
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = bytes as usize;
        let mut state = self.disk.state();
        state.call("cut")?;
        state.files[self.file].resize(bytes, 0);
        state.log.push(Op::Truncate { file: self.file, bytes });
        self.at = bytes;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        let called = state.call("sync");
        let file = self.file;
        state.log.push(if called.is_ok() { Op::Sync { file } } else { Op::FailedSync { file } });
        called
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.writes += 1;
        if state.faults.interrupts && state.writes.is_multiple_of(3) {
            return Err(ErrorKind::Interrupted.into());
        }
        state.call("write")?;
        let accepted = bytes.len().min(state.faults.accept);
        let (at, end) = (self.at, self.at + accepted);
        let content = &mut state.files[self.file];
        content.resize(content.len().max(end), 0);
        content[at..end].copy_from_slice(&bytes[..accepted]);
        state.log.push(Op::Write { file: self.file, at, bytes: bytes[..accepted].to_vec() });
        self.at = end;
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for SimulatedFile {
    fn byte_count(&self) -> u64 {
        self.opened
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let content = state.files[self.file].get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(content.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
