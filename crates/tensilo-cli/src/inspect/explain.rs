//! `tensilo inspect --explain`: the encoding of one chunk of each column, and its alternatives.

use super::args::InspectArgs;
use super::cold_read::{amplification_text, quotient};
use crate::terminal::write_wrapped;
use crate::text::human;
use crate::text::{Cells, Table};
use serde_json::{Value, json};
use std::io::{self, Write};
use tensilo::explain::{Choice, Explanation, Section, Trial};
use tensilo::facts::BlockInfo;
use tensilo::{Column, Profile};

/// A chunk that is explained.
pub(super) struct Explained {
    explanation: Explanation,
    /// The regret of each choice, if requested.
    regrets: Vec<Option<f64>>,
}

/// Explains the requested chunk of a column; `None` if the column has no such chunk.
pub(super) fn explain(args: &InspectArgs, column: &Column) -> tensilo::Result<Option<Explained>> {
    let explanation = match args.sample {
        Some(sample) => Some(column.explain_chunk_of(sample)?),
        None => column.explain(args.chunk.unwrap_or(0))?,
    };
    let Some(explanation) = explanation else { return Ok(None) };
    let regret = |choice: &Choice| match args.regret {
        true => column.regret(explanation.chunk, choice.profile),
        false => Ok(None),
    };
    let regrets = explanation.choices.iter().map(regret).collect::<tensilo::Result<_>>()?;
    Ok(Some(Explained { explanation, regrets }))
}

/// Returns the member `explanation` of a column.
pub(super) fn object(Explained { explanation, regrets }: &Explained) -> Value {
    let choices = explanation.choices.iter().zip(regrets);
    let info = &explanation.info;
    json!({
        "chunk": explanation.chunk,
        "samples": [info.samples.start, info.samples.end],
        "encoding": info.encoding,
        "transform": explanation.transform,
        "elements": explanation.element_count,
        "raw_bytes": explanation.raw_bytes,
        "stored_bytes": explanation.stored_bytes,
        "bits_per_element": explanation.bits_per_element(explanation.stored_bytes),
        "pieces": explanation.sections.iter().map(|section| section_object(explanation, section)).collect::<Vec<_>>(),
        "trials": explanation.trials.iter().map(|trial| trial_object(explanation, trial)).collect::<Vec<_>>(),
        "choices": choices.map(|(choice, regret)| choice_object(choice, *regret)).collect::<Vec<_>>(),
        "blocks": explanation.blocks.as_ref().map(|blocks| blocks.blocks.iter().map(block_object).collect::<Vec<_>>()),
        "front_bytes": explanation.cold_read.front_bytes,
        "cold_read_bytes": explanation.cold_read.bytes(),
        "read_amplification": explanation.read_amplification(),
    })
}

fn block_object(block: &BlockInfo) -> Value {
    json!({
        "samples": [block.samples.start, block.samples.end],
        "stored_bytes": block.file_range.end.saturating_sub(block.file_range.start),
        "raw_bytes": block.raw_bytes,
    })
}

fn section_object(explanation: &Explanation, section: &Section) -> Value {
    json!({
        "name": section.name,
        "detail": section.detail,
        "stored_bytes": section.stored_bytes,
        "bits_per_element": explanation.bits_per_element(section.stored_bytes),
    })
}

fn trial_object(explanation: &Explanation, trial: &Trial) -> Value {
    json!({
        "encoding": trial.encoding,
        "profiles": names(&trial.profiles),
        "stored_bytes": trial.stored_bytes,
        "bits_per_element": trial.stored_bytes.and_then(|bytes| explanation.bits_per_element(bytes)),
        // an approximation
        "ratio": trial.stored_bytes.and_then(|bytes| quotient(explanation.raw_bytes, bytes as f64)),
        "in_file": trial.in_file,
    })
}

fn choice_object(choice: &Choice, regret: Option<f64>) -> Value {
    json!({
        "profile": choice.profile.name(),
        "encoding": choice.encoding,
        "stored_bytes": choice.stored_bytes,
        "reason": choice.reason,
        "in_file": choice.in_file,
        "regret": regret,
    })
}

fn names(profiles: &[Profile]) -> Vec<&'static str> {
    profiles.iter().map(|profile| profile.name()).collect()
}

/// Writes the explanation of a column.
pub(super) fn write(
    output: &mut impl Write,
    column: &Column,
    explained: Option<&Explained>,
    width: usize,
) -> io::Result<()> {
    let (name, chunks) = (human::excerpt(&column.schema().name), column.facts().chunk_count);
    let Some(explained @ Explained { explanation, .. }) = explained else {
        return heading(output, &format!("column {name}: no such chunk, it has {chunks}"), width);
    };
    let (info, chunk) = (&explanation.info, explanation.chunk);
    let samples = format!("samples {}..{}", info.samples.start, info.samples.end);
    let encoding = &info.encoding;
    let words = format!("column {name}: chunk {chunk} of {chunks}, {samples}, values in {encoding}");
    heading(output, &words, width)?;
    if let Some(transform) = &explanation.transform {
        write_wrapped(output, &format!("transform: {transform}"), width)?;
    }
    writeln!(output)?;
    sections_table(explanation).write(output, width)?;
    writeln!(output)?;
    trials_table(explanation).write(output, width)?;
    writeln!(output)?;
    choices_table(explained).write(output, width)?;
    write_wrapped(output, origin(explanation), width)?;
    write_wrapped(output, &cold_read(explanation), width)
}

fn heading(output: &mut impl Write, words: &str, width: usize) -> io::Result<()> {
    writeln!(output)?;
    write_wrapped(output, words, width)
}

fn sections_table(explanation: &Explanation) -> Table<'static> {
    let headings =
        [("section", Cells::Text), ("bytes", Cells::Number), ("bits/element", Cells::Number), ("what", Cells::Prose)];
    let mut table = Table::new(&headings);
    let mut row = |name: &str, bytes: u64, detail: String| {
        table.row(vec![name.to_owned(), bytes.to_string(), bits(explanation, Some(bytes)), detail]);
    };
    for Section { name, stored_bytes, detail, .. } in &explanation.sections {
        row(name, *stored_bytes, detail.clone());
    }
    row("all", explanation.stored_bytes, format!("of {} elements", explanation.element_count));
    table
}

fn trials_table(explanation: &Explanation) -> Table<'static> {
    let mut table = Table::new(&[
        ("encoding", Cells::Text),
        ("bytes", Cells::Number),
        ("bits/element", Cells::Number),
        ("ratio", Cells::Number),
        ("", Cells::Text),
        ("profiles", Cells::Prose),
    ]);
    for trial in &explanation.trials {
        let bytes = trial.stored_bytes;
        table.row(vec![
            trial.encoding.clone(),
            bytes.map_or("cannot".to_owned(), |bytes| bytes.to_string()),
            bits(explanation, bytes),
            bytes.map_or("-".to_owned(), |bytes| human::ratio(explanation.raw_bytes, bytes)),
            mark(trial.in_file),
            if trial.profiles.is_empty() { "-".to_owned() } else { names(&trial.profiles).join(", ") },
        ]);
    }
    table
}

fn choices_table(Explained { explanation, regrets }: &Explained) -> Table<'static> {
    let has_regrets = regrets.iter().any(Option::is_some);
    let regret_heading = has_regrets.then_some(("regret", Cells::Number));
    let headings = [("profile", Cells::Text), ("takes", Cells::Text), ("bytes", Cells::Number), ("", Cells::Text)];
    let headings: Vec<_> = headings.into_iter().chain(regret_heading).chain([("because", Cells::Prose)]).collect();
    let mut table = Table::new(&headings);
    for (choice, regret) in explanation.choices.iter().zip(regrets) {
        let mut row = vec![
            choice.profile.name().to_owned(),
            choice.encoding.clone(),
            choice.stored_bytes.to_string(),
            mark(choice.in_file),
        ];
        row.extend(regret.map(|regret| format!("{:.1} %", 100.0 * regret)));
        row.push(choice.reason.clone());
        table.row(row);
    }
    table
}

fn mark(in_file: bool) -> String {
    if in_file { "*" } else { "" }.to_owned()
}

/// Returns the meaning of the marks.
fn origin(explanation: &Explanation) -> &'static str {
    if explanation.choices.iter().any(|choice| choice.in_file) {
        "* stored in this file"
    } else {
        "no profile chooses the stored encoding for this chunk: the writer kept the one of the chunks before it, or \
         another release wrote the file"
    }
}

fn cold_read(explanation: &Explanation) -> String {
    let cold = explanation.cold_read;
    let parts = match cold.front_bytes {
        0 => String::new(),
        front => format!(" ({} of the front, {} of blocks)", human::bytes(front), human::bytes(cold.sample_bytes)),
    };
    let amplification = amplification_text(explanation.read_amplification());
    format!("a cold sample reads {}{parts}: read amplification {amplification}", human::bytes(cold.bytes()))
}

fn bits(explanation: &Explanation, bytes: Option<u64>) -> String {
    let bits = bytes.and_then(|bytes| explanation.bits_per_element(bytes));
    bits.map_or("-".to_owned(), |bits| format!("{bits:.3}"))
}
