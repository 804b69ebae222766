//! An LMDB database with one value per sample: MessagePack, plain or compressed with Zstandard.
//!
//! Structs are maps with field names, as MessagePack encodes a Python dictionary. A list of numbers
//! is a byte string, which is smaller and faster than individual numbers. Texts and byte strings
//! borrow from the value, without an intermediate copy.

use super::{LEVEL, Peer, Store};
use crate::nested::columns::{Columns, Element, IndexedColumns, Layout};
use crate::nested::data::Dataset;
use crate::peers::Family;
use crate::peers::lmdb_blosc::{self as env, Samples};
use anyhow::{Context, Result, ensure};
use heed::{EnvFlags, PutFlags, RoTxn, WithoutTls};
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;
use std::path::Path;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe;

pub struct Lmdb {
    pub compressed: bool,
}

/// The struct of chats.
#[derive(Serialize, Deserialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

impl Peer<Dataset> for Lmdb {
    fn name(&self) -> String {
        if self.compressed { format!("LMDB msgpack zstd {LEVEL}") } else { "LMDB msgpack".to_owned() }
    }

    fn about(&self) -> String {
        let each = if self.compressed { format!(", each by Zstandard level {LEVEL}") } else { String::new() };
        format!("LMDB {}; samples by rmp-serde {}{each}", env::version(), env!("RMP_SERDE_VERSION"))
    }

    fn family(&self) -> Family {
        Family::Recipe
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        let samples = &data.samples;
        let env = env::environment(data.raw_bytes(), samples.samples(), file, env::WRITE)?;
        let mut compressor = Compressor::new(LEVEL)?;
        let mut transaction = env.write_txn()?;
        let database: Samples = env.create_database(&mut transaction, None)?;
        let (mut packed, mut stored) = (Vec::new(), Vec::new());
        for i in 0..samples.samples() {
            packed.clear();
            pack(samples, i, &mut packed)?;
            let value = if self.compressed {
                stored.resize(zstd_safe::compress_bound(packed.len()), 0);
                let length = compressor.compress_to_buffer(&packed, stored.as_mut_slice())?;
                &stored[..length]
            } else {
                &packed
            };
            database.put_with_flags(&mut transaction, PutFlags::APPEND, &env::key(i), value)?;
        }
        Ok(transaction.commit()?)
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        let env = env::environment(data.raw_bytes(), data.samples.samples(), file, EnvFlags::READ_ONLY)?;
        let transaction = env.clone().static_read_txn()?;
        let samples = env.open_database(&transaction, None)?.context("the database is missing")?;
        let layout = *data.samples.layout();
        let coder =
            Coder { decompressor: self.compressed.then(Decompressor::new).transpose()?, packed: Vec::new(), layout };
        Ok(Box::new(Open { transaction, samples, coder, out: Columns::new(&layout) }))
    }
}

/// Writes a sample as MessagePack.
fn pack(samples: &IndexedColumns, i: usize, out: &mut Vec<u8>) -> Result<()> {
    let layout = samples.layout();
    let items = samples.items(&(i..i + 1));
    let text = |field: usize, item: usize| std::str::from_utf8(samples.item(field, item));
    let mut packer = rmp_serde::Serializer::new(out).with_struct_map();
    match (layout.element, layout.is_list, layout.fields.len()) {
        (Element::Text, false, 0) => text(0, items.start)?.serialize(&mut packer)?,
        (Element::Text, true, 0) => {
            let texts = items.map(|item| text(0, item)).collect::<Result<Vec<_>, _>>()?;
            texts.serialize(&mut packer)?;
        }
        (Element::Text, true, 2) => {
            let message = |item| Ok(Message { role: text(0, item)?, content: text(1, item)? });
            items.map(message).collect::<Result<Vec<_>>>()?.serialize(&mut packer)?;
        }
        (Element::F32, true, 0) => {
            let lists: Vec<&Bytes> = items.map(|item| Bytes::new(samples.item(0, item))).collect();
            lists.serialize(&mut packer)?;
        }
        _ => anyhow::bail!("no MessagePack for samples of type {}", layout.type_name()),
    }
    Ok(())
}

struct Coder {
    decompressor: Option<Decompressor<'static>>,
    packed: Vec<u8>,
    layout: Layout,
}

impl Coder {
    /// Decodes a stored sample, and appends it to `out`.
    fn decode(&mut self, stored: &[u8], out: &mut Columns) -> Result<()> {
        let Some(decompressor) = &mut self.decompressor else { return unpack(stored, &self.layout, out) };
        let length = zstd_safe::get_frame_content_size(stored)
            .ok()
            .flatten()
            .context("a Zstandard frame does not state its length")?;
        let length = usize::try_from(length)?;
        if self.packed.len() < length {
            self.packed.resize(length, 0);
        }
        let packed = &mut self.packed[..length];
        ensure!(
            decompressor.decompress_to_buffer(stored, packed)? == length,
            "a Zstandard frame is shorter than it states"
        );
        unpack(packed, &self.layout, out)
    }
}

fn unpack(packed: &[u8], layout: &Layout, out: &mut Columns) -> Result<()> {
    let Columns { lists, fields } = out;
    match (layout.element, layout.is_list, fields.as_mut_slice()) {
        (Element::Text, false, [field]) => {
            field.push(rmp_serde::from_slice::<&str>(packed)?.as_bytes(), layout.element);
        }
        (Element::Text, true, [field]) => {
            let texts: Vec<&str> = rmp_serde::from_slice(packed)?;
            lists.push(texts.len() as u32);
            texts.iter().for_each(|text| field.push(text.as_bytes(), layout.element));
        }
        (Element::Text, true, [roles, contents]) => {
            let messages: Vec<Message<'_>> = rmp_serde::from_slice(packed)?;
            lists.push(messages.len() as u32);
            for message in messages {
                roles.push(message.role.as_bytes(), layout.element);
                contents.push(message.content.as_bytes(), layout.element);
            }
        }
        (Element::F32, true, [field]) => {
            let rows: Vec<&[u8]> = rmp_serde::from_slice(packed)?;
            lists.push(rows.len() as u32);
            rows.iter().for_each(|row| field.push(row, layout.element));
        }
        _ => anyhow::bail!("no MessagePack for samples of type {}", layout.type_name()),
    }
    Ok(())
}

struct Open {
    transaction: RoTxn<'static, WithoutTls>,
    samples: Samples,
    coder: Coder,
    out: Columns,
}

impl Store for Open {
    fn decode_all(&mut self) -> Result<()> {
        self.out.clear();
        for entry in self.samples.iter(&self.transaction)? {
            self.coder.decode(entry?.1, &mut self.out)?;
        }
        Ok(())
    }

    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()> {
        let stored = self.samples.get(&self.transaction, &env::key(i))?.context("no such sample")?;
        self.coder.decode(stored, out)
    }

    fn gather(&mut self, request: &[usize]) -> Result<()> {
        self.out.clear();
        for &i in request {
            let stored = self.samples.get(&self.transaction, &env::key(i))?.context("no such sample")?;
            self.coder.decode(stored, &mut self.out)?;
        }
        Ok(())
    }

    fn results(&self, out: &mut Columns) -> Result<()> {
        out.clone_from(&self.out);
        Ok(())
    }
}
