//! The nodes of the cluster: one process for each, and its proxies.
//!
//! A node reads a batch whenever it receives a line, and then answers with a line.

use super::server::{Server, options};
use super::{BATCH, CONNECTION_RATE, DATASET, FAULT_RATE, Failure, LATENCY, NODE_RATE};
use std::env;
use std::io::{BufRead, BufReader, Write, stdin};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tensilo_data::model::Job;
use tensilo_data::{DatasetOptions, LoaderOptions, Order, View, WindowSizes};
use tensilo_object::Cache;
use tensilo_testing::{DelayProxy, FaultProxy, Folder, HttpFault, Random, mix};

/// The size of the cache of a node.
pub const CACHE_BYTES: u64 = 4 << 30;

/// The environment variable that makes a process a node: its settings, divided by blanks.
const SETTINGS: &str = "TENSILO_CLUSTER_NODE";

/// The settings of a node.
pub struct Node {
    address: SocketAddr,
    rank: u32,
    world_size: u32,
    order: Order,
    cache: Option<String>,
}

impl Node {
    /// Returns the settings of this process, or `None` if it is not a node.
    pub fn from_environment() -> Result<Option<Self>, Failure> {
        let Ok(text) = env::var(SETTINGS) else { return Ok(None) };
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or_else(|| format!("{SETTINGS}={text:?}: too few settings"));
        let (address, rank, world_size) = (word()?.parse()?, word()?.parse()?, word()?.parse()?);
        let order = match word()? {
            "shuffled" => Order::Shuffled,
            run_samples => {
                let sizes = WindowSizes::new(run_samples.parse()?, word()?.parse()?)?;
                Order::Windowed(sizes.with_streams(word()?.parse()?)?)
            }
        };
        Ok(Some(Self { address, rank, world_size, order, cache: words.next().map(str::to_owned) }))
    }

    fn settings(&self) -> String {
        let order = match self.order {
            Order::Windowed(sizes) => format!("{} {} {}", sizes.run_samples(), sizes.window_runs(), sizes.streams()),
            _ => "shuffled".to_owned(),
        };
        let cache = self.cache.as_ref().map(|folder| format!(" {folder}")).unwrap_or_default();
        format!("{} {} {} {order}{cache}", self.address, self.rank, self.world_size)
    }

    /// Reads batches, one for each line of standard input.
    pub fn run(self) -> Result<(), Failure> {
        let cache = self.cache.map(|folder| Cache::new(folder, CACHE_BYTES));
        let object_options = options(self.address).cache(cache);
        let dataset = DatasetOptions::new().object_options(object_options).open(DATASET)?;
        let loader = LoaderOptions::new(BATCH).rank(self.rank, self.world_size).order(self.order).seed(1);
        let mut batches = loader.decode_threads(1).loader(&View::all(&dataset))?.epoch(0);
        for line in stdin().lines() {
            line?;
            batches.next().ok_or("the epoch has fewer steps")??;
            println!("ready");
        }
        Ok(())
    }
}

/// The running nodes of a job.
pub struct Nodes {
    nodes: Vec<RunningNode>,
    _caches: Folder,
}

struct RunningNode {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Counts requests and bytes, and answers some requests with 503.
    faults: FaultProxy,
    refused: Arc<AtomicUsize>,
    _delays: DelayProxy,
}

impl Nodes {
    /// Starts the nodes of a job, with empty caches.
    pub fn start(server: &Server, job: &Job, order: Order, has_cache: bool) -> Result<Self, Failure> {
        let caches = Folder::new();
        let start = |rank: u32| -> Result<RunningNode, Failure> {
            let faults = FaultProxy::start(server.address());
            let delays = DelayProxy::start_limited(faults.address(), LATENCY, NODE_RATE, CONNECTION_RATE);
            let cache = has_cache.then(|| caches.path(rank.to_string()).display().to_string());
            let node = Node { address: delays.address(), rank, world_size: job.nodes, order, cache };
            let mut command = Command::new(env::current_exe()?);
            command.env(SETTINGS, node.settings()).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn()?;
            let (stdin, stdout) = (process.stdin.take().ok_or("stdin")?, process.stdout.take().ok_or("stdout")?);
            let (count, refused) = (AtomicU64::new(0), Arc::new(AtomicUsize::new(0)));
            let refused_by_proxy = refused.clone();
            faults.set_faults(move |_| {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let is_refused = Random(mix(rank.into(), number)).one_in(FAULT_RATE);
                refused_by_proxy.fetch_add(usize::from(is_refused), Ordering::Relaxed);
                is_refused.then_some(HttpFault::Status(503))
            });
            Ok(RunningNode { process, stdin, stdout: BufReader::new(stdout), faults, refused, _delays: delays })
        };
        Ok(Self { nodes: (0..job.nodes).map(start).collect::<Result<_, _>>()?, _caches: caches })
    }

    /// Requests a batch from each node. Returns the time until all of them have theirs.
    pub fn wait_for_batches(&mut self) -> Result<Duration, Failure> {
        let begun = Instant::now();
        for node in &mut self.nodes {
            node.stdin.write_all(b"next\n")?;
        }
        for node in &mut self.nodes {
            let mut line = String::new();
            if node.stdout.read_line(&mut line)? == 0 {
                return Err("a node has failed".into());
            }
        }
        Ok(begun.elapsed())
    }

    /// Ends the nodes. Returns the number of requests that were answered, and of bytes.
    pub fn finish(self) -> Result<(usize, usize), Failure> {
        let (mut requests, mut bytes) = (0, 0);
        for node in self.nodes {
            let RunningNode { mut process, stdin, faults, refused, .. } = node;
            drop(stdin);
            process.wait()?;
            requests += faults.take_requests().len() - refused.load(Ordering::Relaxed);
            bytes += faults.take_sent_bytes();
        }
        Ok((requests, bytes))
    }
}
