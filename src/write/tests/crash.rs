//! Simulates a loss of power at every moment, and checks the states in which it can leave the disk.
//!
//! [`Machine`] replays a log and tracks, for each file, which bytes are durable and which
//! operations are pending. An image consists of the durable bytes and some of the pending
//! operations. A [`Fate`] chooses these: none, all, a prefix, all but one, only one, or any subset,
//! with torn sectors. Names are durable only once their folder is synced. In each image, a reader
//! must find the last commit that had returned, or a later one, in full. Appending to the image
//! must succeed.

use super::scenarios::{Contents, Scenario, check_append, contents, path};
use super::simulated::{Faults, Op};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use tensilo_testing::{Random, env_or};

const SECTOR: usize = 512;

/// The minimum number of images over all scenarios.
fn requested_images() -> usize {
    env_or("TENSILO_CRASH_IMAGES", 4_000)
}

/// Which operations since the last sync have reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Nothing,
    All,
    /// Only the first `n` operations.
    Prefix(usize),
    AllBut(usize),
    Only(usize),
    /// The first `n` operations, and the first sectors of the next one.
    Torn(usize),
    /// Any subset of the operations, any of their sectors, and any file length that one of them
    /// sets.
    Any,
}

/// A file: its durable bytes, and the operations that may be on disk.
#[derive(Clone, Default)]
struct Inode {
    durable: Vec<u8>,
    pending: Vec<Op>,
    /// Writes that a failed sync has dropped. A later sync does not make them durable.
    lost: Vec<Op>,
    /// Whether the file had a name when it was synced. On some file systems (btrfs), syncing an
    /// unnamed file makes none of its bytes durable. If its folder is synced next, the name leads
    /// to an empty file.
    synced_by_name: bool,
}

impl Inode {
    fn sync(&mut self) {
        let cut = self.pending.iter().filter_map(|op| match op {
            Op::Truncate { bytes, .. } => Some(*bytes),
            _ => None,
        });
        if let Some(cut) = cut.min() {
            self.lost.retain(|op| matches!(op, Op::Write { at, .. } if *at < cut));
        }
        for op in std::mem::take(&mut self.pending) {
            apply(&op, &mut self.durable, &mut |_| true);
        }
    }

    /// Returns the operations that may be on disk, in order.
    fn uncertain(&self) -> Vec<&Op> {
        self.lost.iter().chain(&self.pending).collect()
    }

    fn image(&self, fate: Fate, random: &mut Random) -> Vec<u8> {
        let mut image = self.durable.clone();
        let uncertain = self.uncertain();
        let fill = if random.one_in(2) { 0 } else { random.bits() as u8 };
        for (i, op) in uncertain.iter().enumerate() {
            let whole = match fate {
                Fate::Nothing => false,
                Fate::All => true,
                Fate::Prefix(count) => i < count,
                Fate::AllBut(one) => i != one,
                Fate::Only(one) => i == one,
                Fate::Torn(count) => i < count,
                Fate::Any => random.one_in(2),
            };
            let torn = matches!(fate, Fate::Torn(count) if i == count) || (fate == Fate::Any && random.one_in(3));
            if let Op::Write { at, .. } = op {
                let holes = image.len()..*at;
                if (whole || torn) && !holes.is_empty() {
                    image.resize(holes.end, fill);
                }
            }
            if torn && fate == Fate::Any {
                apply(op, &mut image, &mut |_| random.one_in(2));
            } else if torn {
                let mut sectors = random.below(8);
                apply(op, &mut image, &mut |_| {
                    sectors = sectors.saturating_sub(1);
                    sectors > 0
                });
            } else if whole {
                apply(op, &mut image, &mut |_| true);
            }
        }
        if fate == Fate::Any && random.one_in(3) {
            let ends = uncertain.iter().map(|op| match op {
                Op::Write { at, bytes, .. } => at + bytes.len(),
                Op::Truncate { bytes, .. } => *bytes,
                _ => 0,
            });
            let lengths: Vec<usize> = ends.chain([self.durable.len()]).collect();
            image.resize(lengths[random.index(lengths.len())], fill);
        }
        image
    }
}

/// Applies an operation. For a write, applies only the sectors for which `reaches` returns true.
fn apply(op: &Op, image: &mut Vec<u8>, reaches: &mut dyn FnMut(usize) -> bool) {
    match op {
        Op::Truncate { bytes, .. } if reaches(0) => image.resize(*bytes, 0),
        Op::Write { at, bytes, .. } => {
            let mut from = *at;
            let end = at + bytes.len();
            while from < end {
                let to = end.min((from / SECTOR + 1) * SECTOR);
                if reaches(from / SECTOR) {
                    image.resize(image.len().max(to), 0);
                    image[from..to].copy_from_slice(&bytes[from - at..to - at]);
                }
                from = to;
            }
        }
        _ => {}
    }
}

/// The disk: what is certainly durable, and what may be durable.
#[derive(Clone, Default)]
struct Machine {
    inodes: Vec<Inode>,
    durable_names: BTreeMap<PathBuf, usize>,
    names: BTreeMap<PathBuf, usize>,
    /// The last state that was reported as durable.
    state: usize,
}

impl Machine {
    /// Creates a disk. If `file` is given, it is durable at the destination.
    fn new(file: Option<&[u8]>) -> Self {
        let mut machine = Self::default();
        if let Some(bytes) = file {
            machine.inodes.push(Inode { durable: bytes.to_vec(), synced_by_name: true, ..Inode::default() });
            machine.durable_names.insert(path().to_path_buf(), 0);
            machine.names = machine.durable_names.clone();
        }
        machine
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Create { name } => {
                self.names.extend(name.clone().map(|name| (name, self.inodes.len())));
                self.inodes.push(Inode::default());
            }
            Op::Link { file, name } => {
                self.names.insert(name.clone(), *file);
            }
            Op::Write { file, .. } | Op::Truncate { file, .. } => self.inodes[*file].pending.push(op.clone()),
            Op::Sync { file } => {
                self.inodes[*file].sync();
                self.inodes[*file].synced_by_name |= self.names.values().any(|named| named == file);
            }
            Op::FailedSync { file } => {
                let inode = &mut self.inodes[*file];
                inode.lost.append(&mut inode.pending);
            }
            Op::Rename { from, to } => {
                let file = self.names.remove(from).unwrap();
                self.names.insert(to.clone(), file);
            }
            Op::Remove { name } => {
                self.names.remove(name);
            }
            Op::SyncFolder => {
                self.durable_names = self.names.clone();
                for &file in self.names.values() {
                    if !self.inodes[file].synced_by_name {
                        self.inodes[file] = Inode::default();
                    }
                }
            }
            Op::Failed(_) => {}
            Op::Returned { state } => self.state = *state,
        }
    }

    /// Returns the files that can be at the destination after a loss of power.
    fn possible_files(&self) -> Vec<Option<&Inode>> {
        let mut numbers = vec![self.durable_names.get(path()), self.names.get(path())];
        numbers.dedup();
        numbers.into_iter().map(|number| number.map(|&number| &self.inodes[number])).collect()
    }
}

/// Checks images and counts them.
#[derive(Default)]
pub struct Inspector {
    seen: HashSet<u64>,
    pub images: usize,
    /// The number of images that show each state.
    pub states: BTreeMap<usize, usize>,
}

impl Inspector {
    fn inspect(&mut self, image: Option<&[u8]>, machine: &Machine, states: &[Contents], what: &dyn Fn() -> String) {
        let mut hasher = DefaultHasher::new();
        (image, machine.state).hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        self.images += 1;
        let found = match image.map(contents).transpose() {
            Ok(found) => found,
            Err(error) => panic!("{}: {error}", what()),
        };
        let allowed = (machine.state..states.len()).rev().find(|&state| states[state] == found);
        let Some(state) = allowed else {
            panic!("{}: a reader sees {found:?} after state {} had been reached", what(), machine.state)
        };
        *self.states.entry(state).or_default() += 1;
        if let Some(image) = image.filter(|_| self.images.is_multiple_of(8)) {
            check_append(image, &what());
        }
    }

    /// Checks images of a moment: `count` random ones for each file, or the systematic ones if
    /// `count` is 0.
    fn inspect_moment(
        &mut self,
        machine: &Machine,
        states: &[Contents],
        random: &mut Random,
        count: usize,
        what: &str,
    ) {
        for inode in machine.possible_files() {
            let Some(inode) = inode else {
                self.inspect(None, machine, states, &|| what.to_owned());
                continue;
            };
            let pending = inode.uncertain().len();
            let systematic = [Fate::Nothing, Fate::All]
                .into_iter()
                .chain((0..pending).flat_map(|i| [Fate::Prefix(i), Fate::AllBut(i), Fate::Only(i), Fate::Torn(i)]));
            let any = std::iter::repeat_n(Fate::Any, if pending == 0 { 0 } else { count });
            let fates: Vec<Fate> = if count == 0 { systematic.collect() } else { any.collect() };
            for fate in fates {
                let image = inode.image(fate, random);
                self.inspect(Some(&image), machine, states, &|| format!("{what}, {fate:?}"));
            }
        }
    }
}

/// Returns what a reader finds after these operations without a loss of power.
pub fn view(before: Option<&[u8]>, log: &[Op]) -> Option<Vec<u8>> {
    let mut machine = Machine::new(before);
    log.iter().for_each(|op| machine.step(op));
    let inode = machine.possible_files().pop().flatten();
    inode.map(|inode| inode.image(Fate::All, &mut Random(0)))
}

/// Replays a log, and checks the images of every moment from `from` on.
pub fn replay(
    before: Option<&[u8]>,
    log: &[Op],
    from: usize,
    states: &[Contents],
    (seed, count): (u64, usize),
    inspector: &mut Inspector,
    what: &str,
) {
    let mut machine = Machine::new(before);
    let mut random = Random(seed);
    for moment in 0..=log.len() {
        if moment >= from {
            let what = format!("{what}, after {moment} operations");
            inspector.inspect_moment(&machine, states, &mut random, count, &what);
        }
        if let Some(op) = log.get(moment) {
            machine.step(op);
        }
    }
}

/// After a loss of power at any moment, any subset of the unsynced operations can be on disk, whole
/// or torn. In every case, a reader sees the last commit that had returned, or a later one, in
/// full.
#[test]
fn every_crash_leaves_a_commit_that_had_returned_or_a_later_one() {
    struct Run {
        what: String,
        before: Option<Vec<u8>>,
        log: Vec<Op>,
        states: Vec<Contents>,
        inspector: Inspector,
    }
    let mut runs = Vec::new();
    for scenario in Scenario::all() {
        for (accept, only_named) in [(1 << 20, false), (1_500, false), (300, false), (1_500, true)] {
            let (disk, mut states) = scenario.disk(Faults { accept, only_named, ..Faults::default() });
            let before = disk.bytes(path());
            scenario.run(&disk, &mut states).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            let log = disk.state().log.clone();
            let what = format!("{}, {accept} bytes at a time, only named: {only_named}", scenario.name);
            runs.push(Run { what, before, log, states, inspector: Inspector::default() });
        }
    }
    let requested = requested_images();
    let mut round = 0;
    loop {
        for run in &mut runs {
            let count = round.min(1) * 4; // the first round is systematic
            let pass = (round as u64, count);
            replay(run.before.as_deref(), &run.log, 0, &run.states, pass, &mut run.inspector, &run.what);
        }
        round += 1;
        let images: usize = runs.iter().map(|run| run.inspector.images).sum();
        if images >= requested {
            break;
        }
        assert!(round < 10_000, "only {images} different images can be made");
    }
    let (mut images, mut moments) = (0, 0);
    for run in &runs {
        println!(
            "{}: {} moments, {} images, states seen {:?}",
            run.what,
            run.log.len() + 1,
            run.inspector.images,
            run.inspector.states
        );
        images += run.inspector.images;
        moments += run.log.len() + 1;
        // the images cover all states, so a reader that always finds nothing would be noticed
        let unseen: Vec<usize> =
            (0..run.states.len()).filter(|state| !run.inspector.states.contains_key(state)).collect();
        assert!(unseen.is_empty(), "{}: no image shows the states {unseen:?}", run.what);
    }
    println!("{moments} moments, {images} different crash images, 0 bad");
}
