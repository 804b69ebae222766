"""Datasets and schemas as tables, of text and of HTML."""

import html


def schema_text(schema):
    """Returns the columns as lines of a table."""
    rows = _rows(schema)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = (map(str.ljust, row, widths) for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def schema_html(schema):
    """Returns the columns as a table of a notebook."""
    head, *body = _rows(schema)
    rows = "".join(_html_row("td", row) for row in body)
    return f"<table><thead>{_html_row('th', head)}</thead><tbody>{rows}</tbody></table>"


def dataset_text(dataset):
    """Returns what a dataset is, and its columns."""
    return f"{_title(dataset)}\n{schema_text(dataset.schema)}"


def dataset_html(dataset):
    """Returns the same for a notebook."""
    return f"<div>{html.escape(_title(dataset))}</div>{schema_html(dataset.schema)}"


def _title(dataset):
    uri = dataset.uri if isinstance(dataset.uri, str) else f"{len(dataset.uri)} files"
    version = f", version {dataset.version}" if dataset.version else ""
    return f"tensilo.Dataset {uri}: {len(dataset):,} samples{version}"


def _html_row(tag, row):
    cells = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
    return f"<tr>{cells}</tr>"


def _rows(schema):
    rows = [("column", "type", "shape", "nullable")]
    for name, column in schema.items():
        dtype = column.dtype if column.cast_from is None else f"{column.dtype} (from {column.cast_from})"
        for _ in column.levels:
            dtype = f"list<{dtype}>"
        shape = "" if column.dtype in ("utf8", "bytes") else str(column.shape)
        rows.append((name, dtype, shape, "yes" if column.nullable else ""))
    return rows
