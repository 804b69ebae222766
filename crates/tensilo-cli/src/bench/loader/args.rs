//! The arguments of `tensilo bench --loader`.

use crate::failure::{Failure, Outcome};
use crate::options::values::Names;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tensilo_data::{Dataset, Mode, RunsAndWindows};

/// The arguments of `tensilo bench --loader`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Loader")]
pub(crate) struct LoaderArgs {
    /// Measure batches that a loader reads ahead, of a file or of a folder of files
    #[arg(long, conflicts_with_all = ["column", "pattern", "threads", "verification"])]
    pub(crate) loader: bool,
    /// The columns of a batch [default: all]
    #[arg(long, value_name = "a,b", requires = "loader")]
    pub(crate) columns: Vec<Names>,
    /// Threads that decode; auto finds how many are enough
    #[arg(long, value_name = "N|auto", requires = "loader", default_value = "auto")]
    pub(crate) decode_threads: DecodeThreads,
    /// Batches that are read at the same time; raise it for storage with a high latency [default:
    /// the decode threads]
    #[arg(long, value_name = "N", requires = "loader", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) io_depth: Option<u32>,
    /// Decode on a GPU of NVIDIA, such as cuda or cuda:1
    #[arg(long, value_name = "cuda[:N]", requires = "loader", value_parser = device)]
    pub(crate) device: Option<usize>,
    /// The order of samples, and how well it shuffles [default: windowed, without the quality]
    #[arg(long, value_enum, requires = "loader")]
    pub(crate) order: Option<OrderName>,
    /// The samples of a run of the windowed order [default: as the manifest records]
    #[arg(long, value_name = "N", requires = "loader", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) run: Option<u32>,
    /// The runs of a window of the windowed order [default: as the manifest records]
    #[arg(long, value_name = "N", requires = "loader", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// Consumers that each take a batch in a step
    #[arg(long, value_name = "N", requires = "loader", default_value = "8", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) gpus: u32,
    /// The time of a step, in milliseconds
    #[arg(long, value_name = "MS", requires = "loader", default_value = "200", value_parser = step)]
    pub(crate) step_ms: Duration,
    /// Draw the throughput against the decode threads
    #[arg(long, value_name = "OUT.svg", requires = "loader")]
    pub(crate) svg: Option<PathBuf>,
    /// Replace OUT.svg if it exists
    #[arg(short, long, requires = "svg")]
    pub(crate) force: bool,
}

/// The value of `--decode-threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeThreads {
    /// Some numbers, one after the other, until one is enough.
    Auto,
    /// This number.
    Number(u32),
}

impl FromStr for DecodeThreads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number @ 1..=1024) => Ok(Self::Number(number)),
            _ if text == "auto" => Ok(Self::Auto),
            _ => Err("write auto, or a number of 1 to 1024".to_owned()),
        }
    }
}

/// The values of `--order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// As they are stored
    Sequential,
    /// Any sample may follow any other
    Shuffled,
    /// Runs of samples, and then the samples in windows of runs, as the manifest records them
    Windowed,
}

impl OrderName {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
            Self::Windowed => "windowed",
        }
    }
}

impl LoaderArgs {
    /// Returns the order of samples.
    pub(super) fn mode(&self, order: OrderName, dataset: &Dataset) -> Outcome<Mode> {
        let recorded = dataset.order();
        Ok(match order {
            OrderName::Windowed => {
                let (run, window) = (self.run.unwrap_or(recorded.run()), self.window.unwrap_or(recorded.window()));
                Mode::Windowed(RunsAndWindows::new(run, window)?)
            }
            _ if self.run.or(self.window).is_some() => {
                return Err(Failure::Usage("--run and --window are sizes of --order windowed".to_owned()));
            }
            OrderName::Sequential => Mode::Sequential,
            OrderName::Shuffled => Mode::Shuffled,
        })
    }
}

/// Parses the name of a GPU. Returns its number.
fn device(text: &str) -> Result<usize, String> {
    let number = match text {
        "cuda" => Some(0),
        _ => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
    };
    number.ok_or_else(|| "write cuda, or cuda:1 for another GPU".to_owned())
}

/// Parses milliseconds: above 0, at most an hour.
fn step(text: &str) -> Result<Duration, String> {
    let milliseconds = text.parse().ok().filter(|milliseconds| (0.001..=3.6e6).contains(milliseconds));
    let seconds = milliseconds.map(|milliseconds: f64| milliseconds / 1e3);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write milliseconds, 0.001 to 3600000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_threads_and_steps_have_bounds() {
        assert_eq!("auto".parse(), Ok(DecodeThreads::Auto));
        assert_eq!("7".parse(), Ok(DecodeThreads::Number(7)));
        assert!(["0", "1025", "-1", "", "all"].iter().all(|text| text.parse::<DecodeThreads>().is_err()));
        assert_eq!((device("cuda"), device("cuda:3")), (Ok(0), Ok(3)));
        assert!(["", "cpu", "cuda:", "cuda:-1", "1"].iter().all(|text| device(text).is_err()));
        assert_eq!(step("200"), Ok(Duration::from_millis(200)));
        assert!(["0", "-1", "NaN", "", "3600001"].iter().all(|text| step(text).is_err()));
    }
}
