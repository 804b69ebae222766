//! Competitors that have written and opened a file, and whose values were compared with the input.

use crate::peers::{Data, Peer};
use crate::run::{Contender, Times};
use anyhow::Result;
use std::path::Path;

/// A competitor with its file open.
pub struct OpenPeer<'a, D: Data> {
    pub data: &'a D,
    pub peer: Box<dyn Peer<D>>,
    pub store: Box<D::Store>,
}

/// Writes, opens and checks one file per competitor.
pub fn prepare<'a, D: Data>(
    data: &'a D,
    peers: Vec<Box<dyn Peer<D>>>,
    folder: &Path,
) -> Result<Vec<Contender<OpenPeer<'a, D>>>> {
    let numbered = peers.into_iter().enumerate();
    numbered.map(|(number, peer)| prepare_one(data, peer, &folder.join(format!("{}-{number}", data.name())))).collect()
}

fn prepare_one<'a, D: Data>(data: &'a D, peer: Box<dyn Peer<D>>, file: &Path) -> Result<Contender<OpenPeer<'a, D>>> {
    let result = (|| {
        peer.encode(data, file)?;
        let mut store = peer.open(data, file)?;
        data.check(&mut store)?;
        Ok((peer.stored_bytes(data, file)?, store))
    })();
    let (stored_bytes, store) =
        result.map_err(|error: anyhow::Error| error.context(format!("{} on {}", peer.name(), data.name())))?;
    Ok(Contender {
        name: peer.name(),
        about: peer.about(),
        choice: peer.choice(),
        stays_decoded: peer.stays_decoded(),
        family: peer.family(),
        stored_bytes,
        measured: OpenPeer { data, peer, store },
        times: Times::default(),
    })
}
