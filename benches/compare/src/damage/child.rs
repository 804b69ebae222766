//! Runs the trials of one format on one data set in a child process, because readers crash.
//!
//! The child writes one line after reading the intact file, and one line per trial. The number of
//! lines tells the parent which trial ended the child; the next child continues after that trial.

use super::formats::{self, Format};
use super::kind::Kind;
use super::outcome::ReadOutcome;
use crate::data::{self, Dataset};
use crate::measure::Random;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Runs the trials of one format on one data set.
#[derive(clap::Args)]
pub struct Arguments {
    /// File with the values
    #[arg(long)]
    pub values: PathBuf,
    /// Intact file of the format
    #[arg(long)]
    pub file: PathBuf,
    /// Name of the data set
    #[arg(long)]
    pub dataset: String,
    /// Shape of a sample
    #[arg(long, value_delimiter = ',')]
    pub shape: Vec<u32>,
    /// Index of the format
    #[arg(long)]
    pub format: usize,
    /// Trials per kind of damage, for all data sets together
    #[arg(long)]
    pub trials: usize,
    #[arg(long)]
    pub seed: u64,
    /// Number of trials of the plan that are done
    #[arg(long)]
    pub done: usize,
}

/// The result of a trial.
pub struct Trial {
    /// The number of samples that the ordinary reader returned with the right values.
    pub right: usize,
    /// The number of samples that it returned with wrong values.
    pub wrong: usize,
    pub error: bool,
    /// The result of the format's own tools for damaged files, if it has any.
    pub salvage_result: Option<SalvageResult>,
}

pub struct SalvageResult {
    pub found: bool,
    pub right: usize,
    pub wrong: usize,
}

impl Trial {
    fn line(&self) -> String {
        let salvage_result = self.salvage_result.as_ref();
        let salvage_result = salvage_result.map(|salvage_result| {
            format!(" {} {} {}", u8::from(salvage_result.found), salvage_result.right, salvage_result.wrong)
        });
        format!("{} {} {}{}", self.right, self.wrong, u8::from(self.error), salvage_result.unwrap_or_default())
    }

    pub fn parse(line: &str) -> Result<Self> {
        let fields = line.split(' ').map(str::parse).collect::<std::result::Result<Vec<usize>, _>>();
        match fields.with_context(|| format!("not the line of a trial: {line}"))?[..] {
            [right, wrong, error, ref salvage_result @ ..] => {
                let salvage_result = match *salvage_result {
                    [found, right, wrong] => Some(SalvageResult { found: found != 0, right, wrong }),
                    _ => None,
                };
                Ok(Self { right, wrong, error: error != 0, salvage_result })
            }
            _ => anyhow::bail!("not the line of a trial: {line}"),
        }
    }
}

/// Returns the trials on the data set with this index, as kind of damage and number of the trial.
/// Data sets take turns.
pub fn plan(dataset: usize, trials: usize) -> Vec<(Kind, usize)> {
    let of_kind = |kind| (dataset..trials).step_by(data::NAMES.len()).map(move |trial| (kind, trial));
    Kind::ALL.into_iter().flat_map(of_kind).collect()
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let number = data::NAMES.iter().position(|name| *name == arguments.dataset).context("no such data set")?;
    let data = Dataset {
        name: arguments.dataset.clone(),
        shape: arguments.shape.clone(),
        values: bytemuck::pod_collect_to_vec(&fs::read(&arguments.values)?),
        origin: String::new(),
    };
    let format = formats::all().into_iter().nth(arguments.format).context("no such format")?;
    let intact = fs::read(&arguments.file)?;
    let copy = copy(&arguments.file);
    fs::write(&copy, &intact)?;
    let file = File::options().write(true).open(&copy)?;
    let all = ReadOutcome::of(&data, |outcome| format.read(&data, &copy, outcome));
    ensure!(all.is_all(), "only {} of {} samples of the intact file are right", all.right, data.samples());
    println!("intact");
    for (kind, trial) in plan(number, arguments.trials).into_iter().skip(arguments.done) {
        // the same seed for all formats; offsets also depend on the length of the file
        let number = trial * Kind::ALL.len() + kind as usize;
        let seed = Random::new(arguments.seed).bits() ^ number as u64;
        let damage = kind.draw(&intact, &mut Random::new(Random::new(seed).bits()));
        damage.apply(&file)?;
        println!("{}", one(format.as_ref(), &data, &copy).line());
        damage.undo(&file, &intact)?;
    }
    Ok(())
}

/// Returns the path of the copy that is damaged.
pub fn copy(file: &Path) -> PathBuf {
    file.with_extension("copy")
}

fn one(format: &dyn Format, data: &Dataset, file: &Path) -> Trial {
    let ReadOutcome { right, wrong, error, .. } = ReadOutcome::of(data, |outcome| format.read(data, file, outcome));
    let salvage_result = format.finds_damage(file).map(|found| {
        let salvaged = ReadOutcome::of(data, |outcome| format.salvage(data, file, outcome));
        SalvageResult { found, right: salvaged.right, wrong: salvaged.wrong }
    });
    Trial { right, wrong, error, salvage_result }
}
