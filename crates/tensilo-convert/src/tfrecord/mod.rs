//! TFRecord files of `tf.train.Example`.

mod example;
mod features;
mod records;

pub(crate) use records::TfRecord;
