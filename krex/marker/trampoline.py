# SPDX-License-Identifier: Apache-2.0
"""Marks a function in place: the object stays the same one, its code enters the mark first.

Replacing the object would leave those out who have it already, show in `is`, `id()` and pickles,
and be what harnesses take for a cheat. So the function gets new code with the same parameters,
name, file and flags, which has the mark and a function with the old code among its constants.
"""

import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Of inspect, which takes longer to import than everything here.
_VARARGS, _VARKEYWORDS, _GENERATOR = 0x04, 0x08, 0x20
_COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x80, 0x100, 0x200
_AST_ONLY = 0x400  # ast.PyCF_ONLY_AST; the module is large, this works without it

_MARK, _CALL = "krex: the mark", "krex: the function"  # constants that stand for objects

_PLAIN = "            return {call}\n"
_AWAITED = "            return await {call}\n"
_DELEGATED = "            return (yield from {call})\n"
# What `yield from` does, which asynchronous generators lack.
_ASYNC_DELEGATED = """\
            _krex_inner = {call}
            _krex_step = _krex_inner.__anext__()
            while True:
                try:
                    _krex_item = await _krex_step
                except StopAsyncIteration:
                    return
                try:
                    _krex_sent = yield _krex_item
                except GeneratorExit:
                    await _krex_inner.aclose()
                    raise
                except BaseException as _krex_error:
                    _krex_step = _krex_inner.athrow(_krex_error)
                else:
                    _krex_step = _krex_inner.asend(_krex_sent)
"""


def mark(function: types.FunctionType, manager: "Any") -> None:
    """Have `function` run inside `manager`, a context manager that may be entered again and again.

    A generator is inside from its first item until it is exhausted or closed, a coroutine from its
    start to its end. A function that is marked already stays as it is.
    """
    if not is_marked(function):
        function.__code__ = _code(function, manager)


def is_marked(function: types.FunctionType) -> bool:
    """Whether `mark` was here before."""
    return any(getattr(c, "marks_functions", False) for c in function.__code__.co_consts)


def _code(function: types.FunctionType, manager: "Any") -> types.CodeType:
    old = function.__code__
    tree = compile(_source(old), old.co_filename, "exec", _AST_ONLY, True)
    _put_on_one_line(tree)
    module = compile(tree, old.co_filename, "exec", 0, True)
    new = _inner(_inner(module))
    stand_for = {_MARK: manager, _CALL: _copy(function)}
    new = new.replace(
        co_consts=tuple(stand_for.get(c, c) if isinstance(c, str) else c for c in new.co_consts),
        co_firstlineno=old.co_firstlineno,
        co_name=old.co_name,
        co_flags=new.co_flags | old.co_flags & _ITERABLE_COROUTINE,
    )
    if hasattr(old, "co_qualname"):
        new = new.replace(co_qualname=old.co_qualname)  # type: ignore[call-arg]
    return new


def _inner(code: types.CodeType) -> types.CodeType:
    """The code of the function that is defined in it."""
    return next(c for c in code.co_consts if isinstance(c, types.CodeType))


def _copy(function: types.FunctionType) -> types.FunctionType:
    """A function with the old code; it shares globals and closure."""
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


def _source(code: types.CodeType) -> str:
    """A function with the parameters of `code`, and as many free variables, so that it fits.

    `__call__` is for the compiler, which warns of a constant that is called.
    """
    parameters, arguments = _parameters(code)
    free = ", ".join(code.co_freevars)
    call = f"{_CALL!r}.__call__({arguments})"
    define, body = _shape(code.co_flags)
    lines = [
        f"def outer({free}):",
        f"    {define} inner({parameters}):",
        f"        if 0: ({free})" if free else "",
        f"        with {_MARK!r}:",
    ]
    return "\n".join(lines) + "\n" + body.format(call=call)


def _shape(flags: int) -> "tuple[str, str]":
    if flags & _ASYNC_GENERATOR:
        return "async def", _ASYNC_DELEGATED
    if flags & _COROUTINE:
        return "async def", _AWAITED
    return "def", _DELEGATED if flags & _GENERATOR else _PLAIN


def _parameters(code: types.CodeType) -> "tuple[str, str]":
    """The parameters, as in a `def` (defaults stay the function's), and as they are passed on."""
    names = code.co_varnames
    count, keyword_only = code.co_argcount, code.co_kwonlyargcount
    positional, keywords = names[:count], names[count : count + keyword_only]
    rest = list(names[count + keyword_only :])
    declared, passed = list(positional), list(positional)
    if code.co_posonlyargcount:
        declared.insert(code.co_posonlyargcount, "/")
    if code.co_flags & _VARARGS:
        declared.append("*" + rest[0])
        passed.append("*" + rest.pop(0))
    elif keywords:
        declared.append("*")
    declared += keywords
    passed += [f"{name}={name}" for name in keywords]
    if code.co_flags & _VARKEYWORDS:
        declared.append("**" + rest[0])
        passed.append("**" + rest[0])
    return ", ".join(declared), ", ".join(passed)


def _put_on_one_line(node: "Any") -> None:
    """So that a traceback, and who looks for the source, finds the function's first line."""
    if hasattr(node, "lineno"):
        node.lineno = node.end_lineno = 1
        node.col_offset = node.end_col_offset = 0
    for field in node._fields:
        child = getattr(node, field)
        for item in child if isinstance(child, list) else [child]:
            if hasattr(item, "_fields"):
                _put_on_one_line(item)
