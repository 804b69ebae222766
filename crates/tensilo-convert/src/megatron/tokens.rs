//! The index and the tokens as one input.

use super::documents::Documents;
use super::index::{MAGIC, MegatronIndex};
use crate::element::element_field;
use crate::error::unreadable;
use std::io::Read as _;
use std::sync::Arc;
use tensilo::import::arrow::array::RecordBatch;
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tensilo::import::{FormatFile, InputFormat, RecordSource};
use tensilo::{Error, Result};

/// The name of the only column.
const COLUMN: &str = "tokens";

/// Indexed datasets of Megatron, named by their index.
pub(crate) struct Megatron;

impl InputFormat for Megatron {
    fn name(&self) -> &str {
        "datasets of Megatron (.idx)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut first = Vec::new();
        file.reader()?.take(9).read_to_end(&mut first).map_err(unreadable)?;
        if first != MAGIC {
            return Ok(None);
        }
        let index = MegatronIndex::read(file.reader()?)?;
        let tokens = file.companion(&file.path().with_extension("bin"))?;
        let item = Arc::new(element_field("item", index.dtype, false));
        let schema = Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::List(item), false)]));
        Ok(Some(Box::new(MegatronFiles { index, file: file.clone(), tokens, schema })))
    }
}

/// An index, and the file that it is of.
struct MegatronFiles {
    index: MegatronIndex,
    file: FormatFile,
    tokens: FormatFile,
    schema: SchemaRef,
}

impl RecordSource for MegatronFiles {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.index.document_count)
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let documents = Documents::new(&self.index, &self.file, &self.tokens, self.schema())?;
        let fields = fields.to_vec();
        // a pass may be over no column
        Ok(Box::new(
            documents.map(move |batch| batch?.project(&fields).map_err(|error| Error::bad_input(error.to_string()))),
        ))
    }
}
