"""Plots results: a panel per measure, a bar per row."""

PANELS = [
    ("steps/s", "steps_per_second", 1),
    ("CPU ms per step", "cpu_ms_per_step", 1),
    ("samples/s", "samples_per_second", 1),
    ("CPU us per sample", "cpu_us_per_sample", 1),
    ("PSS of all processes, MB", "pss_bytes", 1e-6),
    ("first batch, ms", "first_batch_ms", 1),
    ("stall of a 5 ms step, ms", "stall_ms", 1),
    ("resume at 50 %, ms", "resume_50_ms", 1),
    ("resume at 99 %, ms", "resume_99_ms", 1),
    ("lost or repeated, 4 to 3 ranks", "wrong", 1),
    ("hangs", "hangs", 1),
]
LINEAR = {"wrong", "hangs", "pss_bytes"}
OURS, OTHERS = "#c2410c", "#475569"


def plot(title, rows, path):
    """Writes an SVG. Raises ``ImportError`` if matplotlib is not installed."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "tensilo"
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt

    panels = [panel for panel in PANELS if any(panel[1] in row for row in rows)]
    lines = -(-len(panels) // 3)
    figure, axes = plt.subplots(lines, 3, figsize=(15, lines * (0.9 + 0.26 * len(rows))), squeeze=False)
    for axis, (name, key, factor) in zip(axes.flat, panels, strict=False):
        values = [row[key] * factor if row.get(key) is not None else None for row in rows]
        bars = [max(value, 0) if value is not None else 0 for value in values]
        colors = [OURS if row["label"].startswith("tensilo") else OTHERS for row in rows]
        axis.barh([row["label"] for row in rows], bars, color=colors)
        axis.invert_yaxis()
        if key not in LINEAR and any(bars):
            axis.set_xscale("log")
        axis.set_xlim(right=max([*bars, 1e-3]) * (6 if key not in LINEAR else 1.3))
        for i, (row, value, bar) in enumerate(zip(rows, values, bars, strict=True)):
            text = f" {value:,.3g}" if value is not None and value < 1000 else f" {value:,.0f}" if value else ""
            left = bar if bar > 0 else axis.get_xlim()[0]
            axis.text(left, i, text if value is not None else f" {_none(row, key)}", va="center", fontsize=8)
        axis.set_title(name, fontsize=10)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _none(row, key):
    cannot = row.get("cannot_resume") and (key.startswith("resume") or key == "wrong")
    return "cannot" if cannot else "not measured"
