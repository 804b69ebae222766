"""Maps nested values to columns: a dict is a struct, and each of its members is a column.

The member "content" of the dicts in a list "messages" becomes the column "messages.content", whose samples are lists.
The metadata of the column records its path, "messages[].content", so that an export can rebuild the struct. If a dict
is None in some sample or has no members, a column with the name of the dict records that.

``tensilo.convert`` makes the same columns from the same values in Arrow structs or JSON lines. The structure is
inferred from the first samples. Later samples that do not match it are refused, because some of their values would be
lost.
"""

from .. import _tensilo
from ._schema import find_type, refused

_PATH = "tensilo.path"
_ABSENT = object()
# The member of a dict that is None. Its columns are null there, but it does not count as a dict that is None.
_OUTER_NONE = object()


class Leaf:
    """A column, and the steps that lead to its values: a key for a dict, None for the members of a list."""

    def __init__(self, name, key, steps, type_):
        self.name, self.key, self.type = name, key, type_
        self._steps = steps

    @property
    def is_of_dicts(self):
        """Whether the column only records which dicts are None, and has no values."""
        return _NoValues in self._steps

    def value(self, sample):
        """Returns the value of a sample in the column."""
        value = sample.get(self.key)
        return _at(value, self._steps) if self._steps else value


class _NoValues:
    """The step from dicts to the column that records which of them are None."""


def _at(value, steps):
    if value is None or not steps:
        return value
    step, rest = steps[0], steps[1:]
    if step is None:
        return [_at(member, rest) for member in value]
    return [] if step is _NoValues else _at(value.get(step), rest)


class _Struct:
    """The structure of dicts: the members that they have in the first samples."""

    def __init__(self, has_nulls, members):
        self.has_nulls, self.members = has_nulls, members


class _List:
    """The structure of lists that contain dicts at some level."""

    def __init__(self, member):
        self.member = member


def columns_of(key, values, known):
    """Returns the columns for the first values of a key, and the structure that later values must have."""
    leaves = []
    if key in known:
        return [Leaf(key, key, (), known[key])], None
    structure = _find(leaves, known, len(values), key, key, _escaped(key), (), values, [])
    return leaves, structure


def _find(leaves, known, count, key, name, path, steps, values, nulls):
    """Adds the columns of the values at ``steps``. ``nulls`` says for each outer list level whether a list is None."""
    present = [value for value in values if value is not None and value is not _OUTER_NONE]
    is_nullable = len(present) < len(values)
    if any(isinstance(value, dict) for value in present):
        kinds = sorted({type(value).__name__ for value in present})
        if len(kinds) > 1:
            text = f"cannot infer a type from the first {count} samples: values of different types: {', '.join(kinds)}"
            raise refused(f"{text}; pass schema={{{key!r}: ...}}", column=name)
        has_nulls = any(value is None for value in values)
        members = dict.fromkeys(member for value in present for member in value)
        if has_nulls or not members:
            type_ = _in_lists(_tensilo.tensor("bool", (0,), nullable=is_nullable), nulls)
            leaves.append(Leaf(name, key, (*steps, _NoValues), _with_path(type_, path)))
        found = {}
        for member in members:
            if not isinstance(member, str):
                raise refused(f"a dict has the key {member!r}, but column names must be str", column=name)
            inside = [value.get(member) if isinstance(value, dict) else _OUTER_NONE for value in values]
            names = f"{name}.{member}", f"{path}.{_escaped(member)}"
            found[member] = _find(leaves, known, count, key, *names, (*steps, member), inside, nulls)
        return _Struct(has_nulls or not members, found)
    if any(_has_dicts(value) for value in present):
        if not all(isinstance(value, (list, tuple)) for value in present):
            kinds = ", ".join(sorted({type(value).__name__ for value in present}))
            raise refused(
                f"cannot infer a type from the first {count} samples: values of different types: {kinds}", column=name
            )
        members = [member for value in present for member in value]
        inside = (*steps, None), members, [*nulls, is_nullable]
        return _List(_find(leaves, known, count, key, name, path + "[]", *inside))
    type_ = known.get(name)
    if type_ is None:
        try:
            type_ = _in_lists(find_type([None if value is _OUTER_NONE else value for value in values]), nulls)
        except (TypeError, ValueError) as error:
            text = f"cannot infer a type from the first {count} samples: {error}; pass schema={{{name!r}: ...}}"
            raise refused(text, column=name) from None
    is_member = any(step is not None for step in steps)
    lists = "[]" * (len(type_.levels) - len(nulls))
    leaves.append(Leaf(name, key, steps, _with_path(type_, path + lists) if is_member else type_))
    return None


def _in_lists(type_, nulls):
    for nullable in reversed(nulls):
        type_ = _tensilo.list_(type_, nullable=nullable)
    return type_


def _with_path(type_, path):
    nulls = [*type_.levels, type_.nullable]
    return _tensilo._column_type(type_.dtype, type_.shape, nulls, type_.cast_from, {**type_.metadata, _PATH: path})


def _escaped(name):
    return "".join("\\" + c if c in "\\.[" else c for c in name)


def _has_dicts(value):
    if isinstance(value, (list, tuple)):
        return any(_has_dicts(member) for member in value)
    return isinstance(value, dict)


def check(structure, value, name):
    """Refuses a value whose dicts do not match the first samples, because some of its members would be lost.

    The writer checks everything else.

    Raises:
        ValueError: a dict does not match; the message says how.
    """
    if isinstance(structure, _Struct):
        if value is None:
            if structure.has_nulls:
                return
            raise ValueError(f"{name!r} is None, but is a dict in all of the first samples")
        if not isinstance(value, dict):
            raise ValueError(f"{name!r} has type {type(value).__name__}, but is a dict in the first samples")
        for member, inner in value.items():
            found = structure.members.get(member, _ABSENT)
            if found is _ABSENT:
                raise ValueError(f"'{name}.{member}' does not occur in the first samples")
            check(found, inner, f"{name}.{member}")
        for member in structure.members.keys() - value.keys():
            check(structure.members[member], None, f"{name}.{member}")
    elif isinstance(structure, _List):
        if value is None:
            return
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{name!r} has type {type(value).__name__}, but is a list in the first samples")
        for member in value:
            check(structure.member, member, name)
