"""The stub of the extension.

Editors and type checkers read the stub and never import the extension, so the docstrings that PyO3 makes
of the comments in the Rust sources are repeated in the stub.
"""

import ast
import inspect
import itertools
import pathlib
import types

from tensilo import _tensilo

STUB = pathlib.Path(_tensilo.__file__).with_name("_tensilo.pyi")


def stub_docstrings(body, owner=""):
    """Returns the docstrings of definitions by qualified name. The docstring of a property follows it."""
    found = {}
    for node, following in itertools.zip_longest(body, body[1:]):
        match node, following:
            case ast.If(), _:
                found |= stub_docstrings(node.body, owner)
            case ast.ClassDef(name=name), _:
                found[name] = ast.get_docstring(node)
                found |= stub_docstrings(node.body, f"{name}.")
            case ast.FunctionDef(name=name), _ if docstring := ast.get_docstring(node):
                assert owner + name not in found, f"two overloads of {owner}{name} have docstrings"
                found[owner + name] = docstring
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                found[owner + name] = inspect.cleandoc(docstring)
    return {name: docstring for name, docstring in found.items() if docstring}


def runtime_docstrings():
    """Returns the docstrings of classes, methods, properties and functions by qualified name."""
    # `__new__` and operators such as `__len__` have other types, and docstrings of the interpreter
    members = types.MethodDescriptorType | types.ClassMethodDescriptorType | types.GetSetDescriptorType
    found = {}
    for name, value in vars(_tensilo).items():
        if inspect.isclass(value) or inspect.isbuiltin(value):
            found[name] = value.__doc__
        if inspect.isclass(value):
            own = {f"{name}.{key}": member for key, member in vars(value).items() if isinstance(member, members)}
            found |= {key: member.__doc__ for key, member in own.items()}
    return {name: inspect.cleandoc(docstring) for name, docstring in found.items() if docstring}


def test_the_stub_has_the_docstrings_of_the_extension():
    stub = stub_docstrings(ast.parse(STUB.read_text(encoding="utf-8")).body)
    runtime = runtime_docstrings()
    assert {"open", "Loader", "Dataset.take", "Dataset.schema"} <= runtime.keys()
    assert stub == runtime
