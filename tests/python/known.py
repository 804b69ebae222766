"""Known differences between a source and its export.

A test of round trips compares every table with its source. A difference is allowed only if it is listed with a reason,
and only as long as it occurs: a test fails on unknown differences, and on known ones that no longer exist.
"""
import dataclasses
import fnmatch
import re
import threading

from describe import schema_text
from program import Refused, first_difference, same_rows, same_values


@dataclasses.dataclass
class Known:
    """A difference and where it occurs. Cases and formats are patterns, separated by spaces."""

    reason: str
    cases: str
    source: str = "*"
    target: str = "*"
    route: str = "*"
    # regular expressions and their replacements in the text of the source's schema
    schema: tuple = ()
    # the same for the schema that came back
    found: tuple = ()
    # "equal"; "rows": the same rows in other arrays; "other": not compared
    values: str = "equal"
    # part of the error with which the program refuses to convert or export
    refused: str = ""
    uses: int = 0

    def applies(self, case, source, target, route):
        found = zip((case, source, target, route), (self.cases, self.source, self.target, self.route))
        return all(any(fnmatch.fnmatchcase(name, one) for one in pattern.split()) for name, pattern in found)


def month_day_nano(cases, field):
    """Returns the difference of a field of intervals, which Parquet does not have."""
    return Known(
        "Parquet has no intervals of months, days and nanoseconds. They are stored as three integers.", cases,
        target="parquet", values="other",
        schema=((f'"{field}": month_day_nano_interval', f'"{field}"{{arrow.type=month_day_nano_interval}}: '
                 'extension<arrow.fixed_shape_tensor[value_type=int64, shape=[3]]> of list[3]<"item": int64>'),),
    )


class Differences:
    """The known differences of a test. Each must occur."""

    def __init__(self, known):
        self.known = known
        self.lock = threading.Lock()

    def problem(self, case, source, target, route, found, expected):
        """Returns what is wrong with a table that came back or with a refusal, or `None`."""
        known = [one for one in self.known if one.applies(case, source, target, route)]
        with self.lock:
            for one in known:
                one.uses += 1
        problem = compare(found, expected, known)
        return problem and f"{case}, {source} to {target}, {route}: {problem}"

    def check(self, test, problems):
        """Fails a test if there are problems, or if a known difference did not occur."""
        unused = [f"no longer occurs: {one.cases}: {one.reason}" for one in self.known if not one.uses]
        if problems or unused:
            test.fail("\n".join([f"{len(problems)} tables are not equal", *problems, *unused]))


def replaced(text, replacements):
    """Applies a known difference to the text of a schema. Raises `ValueError` if nothing changes."""
    for pattern, replacement in replacements:
        changed = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        if changed == text:
            raise ValueError(f"the known difference changes nothing: {pattern}: {text}")
        text = changed
    return text


def compare(found, expected, known):
    refusals = [one.refused for one in known if one.refused]
    if isinstance(found, Refused):
        return None if any(text in str(found) for text in refusals) else f"refused: {found}"
    if refusals:
        return f"is no longer refused with {refusals}"
    expected_schema, found_schema = schema_text(expected.schema), schema_text(found.schema)
    try:
        for one in known:
            expected_schema, found_schema = replaced(expected_schema, one.schema), replaced(found_schema, one.found)
    except ValueError as error:
        return str(error)
    if found_schema != expected_schema:
        return f"schema:\n{found_schema}\ninstead of\n{expected_schema}"
    if not any(one.schema or one.found for one in known) and not found.schema.equals(expected.schema, check_metadata=True):
        return "pyarrow finds the schemas unequal, but their texts are equal"
    return compare_values(found, expected, {one.values for one in known} - {"equal"})


def compare_values(found, expected, known):
    if found.num_rows != expected.num_rows:
        return f"{found.num_rows} rows instead of {expected.num_rows}"
    if found.schema.types == expected.schema.types and same_values(found, expected):
        return f"values no longer need {known}" if known else None
    if "other" in known or (known and same_rows(found, expected)):
        return None
    if found.schema.types != expected.schema.types and same_rows(found, expected):
        return None  # the schema is known to differ
    return f"values: {first_difference(found, expected)}"
