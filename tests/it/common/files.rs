//! Files of arbitrary content, in several chunks and commits.

use super::Table;
use super::data::{ColumnPlan, Distribution, table};
use super::plan::{Step, WritePlan, write_to};
use tensilo::sink::Stream;
use tensilo::{DType, Extent, Metadata, Profile, WriterOptions};
use tensilo_testing::Random;

/// The content of a file and how it is written.
#[derive(Clone, Debug)]
pub struct FilePlan {
    pub columns: Vec<ColumnPlan>,
    pub samples: usize,
    pub write: WritePlan,
}

impl FilePlan {
    pub fn arbitrary(random: &mut Random) -> Self {
        let columns = (0..1 + random.below(4)).map(|_| arbitrary_column(random)).collect();
        let samples = 1 + random.below(400) as usize;
        let step = |random: &mut Random| [Step::Batch(1 + random.below(150) as usize), Step::Commit];
        let steps = (0..random.below(4)).flat_map(|_| step(random)).collect();
        let profile = Profile::ALL[random.below(Profile::ALL.len() as u64) as usize];
        let write = WritePlan {
            profile,
            block_bytes: profile.block_bytes(),
            chunk_bytes: [100, 1000, 5000][random.below(3) as usize],
            alignment: [64, 64, 4096][random.below(3) as usize],
            threads: 1,
            steps,
        };
        Self { columns, samples, write }
    }

    /// Returns a plan that differs only in the values.
    pub fn twin(&self) -> Self {
        let mut twin = self.clone();
        twin.columns.iter_mut().for_each(|column| column.seed = !column.seed);
        twin
    }

    /// Returns the table and the file; the id of the file depends on `origin`.
    pub fn write(&self, origin: &str) -> (Table, Vec<u8>) {
        let table = table(&self.columns, Metadata::new(), self.samples);
        let options: WriterOptions = self.write.options().origin(origin);
        let summary = write_to(Stream(Vec::new()), &table, &self.write, &options).expect("a valid table");
        (table, summary.sink.0)
    }
}

fn arbitrary_column(random: &mut Random) -> ColumnPlan {
    let dtype = DType::ALL[random.below(DType::ALL.len() as u64) as usize];
    let extent = |random: &mut Random| match random.below(4) {
        0 => Extent::Varying,
        _ => Extent::Fixed(1 + random.below(9) as u32),
    };
    let shape = match dtype.is_string() {
        true => vec![Extent::Varying],
        false => (0..random.below(3)).map(|_| extent(random)).collect(),
    };
    let distributions = [Distribution::Random, Distribution::Constant, Distribution::Smooth, Distribution::Zero];
    ColumnPlan {
        dtype,
        shape,
        nullable: random.one_in(3),
        metadata: Metadata::new(),
        distribution: distributions[random.below(4) as usize],
        seed: random.bits(),
    }
}
