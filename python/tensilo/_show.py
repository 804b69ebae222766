"""Formats datasets, schemas and batches as text and HTML tables."""

import html


def schema_text(schema):
    """Returns the columns as a text table."""
    return _lines(_rows(schema))


def _lines(rows):
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = (map(str.ljust, row, widths) for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def schema_html(schema):
    """Returns the columns as an HTML table for notebooks."""
    head, *body = _rows(schema)
    rows = "".join(_html_row("td", row) for row in body)
    return f"<table><thead>{_html_row('th', head)}</thead><tbody>{rows}</tbody></table>"


def dataset_text(dataset, is_closed):
    """Returns the title and the columns of a dataset as text."""
    if is_closed:
        return _closed(dataset)
    return f"{_title(dataset)}\n{schema_text(dataset.schema)}"


def dataset_html(dataset, is_closed):
    """Returns the title and the columns of a dataset as HTML."""
    if is_closed:
        return f"<div>{html.escape(_closed(dataset))}</div>"
    return f"<div>{html.escape(_title(dataset))}</div>{schema_html(dataset.schema)}"


def batch_text(batch):
    """Returns the columns of a batch as text. Shapes start with the number of samples."""
    rows = [("column", "type", "shape")]
    for name, column in batch.items():
        rows.append((name, _type_text(column.dtype, column.levels), _shape_text(column.dtype, column.shape)))
    return f"tensilo.Batch: {len(batch):,} samples\n{_lines(rows)}"


def _title(dataset):
    version = f", version {dataset.version}" if dataset.version else ""
    return f"tensilo.Dataset {_uri(dataset)}: {len(dataset):,} samples{version}"


def _closed(dataset):
    return f"tensilo.Dataset {_uri(dataset)}: closed"


def _uri(dataset):
    return dataset.uri if isinstance(dataset.uri, str) else f"{len(dataset.uri)} files"


def _html_row(tag, row):
    cells = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
    return f"<tr>{cells}</tr>"


def _rows(schema):
    rows = [("column", "type", "shape", "nullable")]
    for name, column in schema.items():
        dtype = column.dtype if column.cast_from is None else f"{column.dtype} (from {column.cast_from})"
        nullable = "yes" if column.nullable else ""
        rows.append((name, _type_text(dtype, column.levels), _shape_text(column.dtype, column.shape), nullable))
    return rows


def _type_text(dtype, levels):
    for _ in levels:
        dtype = f"list<{dtype}>"
    return dtype


def _shape_text(dtype, shape):
    return "" if dtype in ("utf8", "bytes") else str(shape)
