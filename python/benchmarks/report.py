"""Formats results as Markdown tables."""

# A larger share of CPU time used by other processes disturbs a measurement.
DISTURBED_PERCENT = 5
MAIN = [
    ("samples/s", lambda r: number(r.get("samples_per_second"))),
    ("MB/s", lambda r: number(_megabytes(r))),
    ("CPU us/sample", lambda r: number(r.get("cpu_us_per_sample"))),
    ("PSS MB", lambda r: number(_scaled(r.get("pss_bytes"), 1e-6))),
    ("first batch ms", lambda r: number(r.get("first_batch_ms"))),
    ("stall ms", lambda r: number(r.get("stall_ms"))),
    ("stored %", lambda r: number(r.get("stored_percent"))),
    ("others' CPU %", lambda r: number(r.get("others_percent"))),
]
OTHER = [
    ("resume 50 % ms", lambda r: _resumed(r, 50)),
    ("resume 99 % ms", lambda r: _resumed(r, 99)),
    ("4 to 3 ranks: lost", lambda r: _or_cannot(r, "lost")),
    ("repeated", lambda r: _or_cannot(r, "repeated")),
    ("hangs", lambda r: f"{r['hangs']} in {r['cycles']}" if "hangs" in r else r.get("why", "-")),
]


def _scaled(value, factor):
    return None if value is None else value * factor


def _megabytes(result):
    return _scaled(result.get("samples_per_second"), result.get("sample_bytes", 0) * 1e-6)


def number(value):
    """Returns a number with three significant digits, or all digits before the decimal point."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _or_cannot(result, name):
    if name in result:
        return number(result[name]) if isinstance(result[name], float) else str(result[name])
    return "cannot" if result.get("cannot_resume") else "-"


def _resumed(result, percent):
    text = _or_cannot(result, f"resume_{percent}_ms")
    return text if result.get(f"resume_{percent}_exact", True) else f"{text} (other samples)"


def table(title, rows, columns):
    """Returns a Markdown table of named results."""
    head = ["", *(name for name, _ in columns)]
    lines = [[row["label"], *(show(row) for _, show in columns)] for row in rows]
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]

    def text(cells):
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "| " + " | ".join([cells[0].ljust(widths[0]), *rest]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([f"\n{title}\n", text(head), rule, *map(text, lines)])


def notes(results):
    """Returns the notes below the tables."""
    lines = []
    for result in results:
        for reason in ("nearest", "cannot_order", "cannot_resume", "failed"):
            if result.get(reason):
                line = f"- {result['label']}: {reason.replace('_', ' ')}: {result[reason]}"
                if line not in lines:
                    lines.append(line)
    disturbed = max((result.get("others_percent", 0) for result in results), default=0)
    if disturbed > DISTURBED_PERCENT:
        lines.append(f"- other processes used up to {disturbed:.0f} % of the machine: figures are too low")
    return "\n".join(lines)
