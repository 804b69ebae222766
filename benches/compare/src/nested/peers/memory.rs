//! `memcpy`: columns in memory, the baseline of every report.

use super::{Peer, Store};
use crate::nested::columns::{Columns, IndexedColumns};
use crate::nested::data::Dataset;
use crate::peers::Family;
use anyhow::Result;
use std::cell::RefCell;
use std::path::Path;

pub struct Memory;

thread_local! {
    /// The destination of "encoding". Its pages exist before the clock starts.
    static COPY: RefCell<Columns> = RefCell::default();
}

impl Peer<Dataset> for Memory {
    fn name(&self) -> String {
        "memcpy".to_owned()
    }

    fn about(&self) -> String {
        "columns in memory: lengths and elements".to_owned()
    }

    fn family(&self) -> Family {
        Family::Memory
    }

    fn encode(&self, data: &Dataset, _file: &Path) -> Result<()> {
        COPY.with_borrow_mut(|copy| {
            copy.fields.resize_with(data.samples.layout().field_count(), Default::default);
            copy.clear();
            data.samples.copy(0..data.samples.samples(), copy);
        });
        Ok(())
    }

    fn open(&self, data: &Dataset, _file: &Path) -> Result<Box<dyn Store>> {
        let out = Columns::new(data.samples.layout());
        Ok(Box::new(Open { samples: data.samples.clone(), out }))
    }

    fn stored_bytes(&self, data: &Dataset, _file: &Path) -> Result<u64> {
        Ok(data.raw_bytes() as u64)
    }
}

struct Open {
    samples: IndexedColumns,
    out: Columns,
}

impl Store for Open {
    fn decode_all(&mut self) -> Result<()> {
        self.out.clear();
        self.samples.copy(0..self.samples.samples(), &mut self.out);
        Ok(())
    }

    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()> {
        self.samples.copy(i..i + 1, out);
        Ok(())
    }

    fn gather(&mut self, request: &[usize]) -> Result<()> {
        self.out.clear();
        request.iter().for_each(|&i| self.samples.copy(i..i + 1, &mut self.out));
        Ok(())
    }

    fn results(&self, out: &mut Columns) -> Result<()> {
        out.clone_from(&self.out);
        Ok(())
    }
}
