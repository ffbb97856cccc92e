# SPDX-License-Identifier: Apache-2.0
"""Functions of all kinds, marked in place. CPython 3.8 or newer; needs krex/marker/site."""

import asyncio
import contextlib
import functools
import inspect
import traceback
import types

from _krex_marker import found, start, targets, trampoline

log = []


class Manager:
    marks_functions = True

    def __enter__(self):
        log.append("in")

    def __exit__(self, *exc):
        log.append("out")


def took():
    """What has happened since it was asked last."""
    done = " ".join(map(str, log))
    del log[:]
    return done


def raised_by(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001
        return error
    return None


def mark(function):
    before = (
        inspect.signature(function),
        inspect.getfullargspec(function),
        inspect.getsource(function),
    )
    trampoline.mark(function, Manager())
    trampoline.mark(function, Manager())  # the second time does nothing
    after = (
        inspect.signature(function),
        inspect.getfullargspec(function),
        inspect.getsource(function),
    )
    assert before == after
    return function


def check_parameters():
    def all_kinds(a, /, b, c=3, *rest, d, e=5, **more):
        log.append((a, b, c, rest, d, e, more))

    def keyword_only(*, x=1):
        return x

    def none():
        return None

    expected = [(1, 2, 3, (), 4, 5, {}), (1, 2, 9, (8,), 4, 5, {"z": 7})]
    mark(all_kinds)
    all_kinds(1, 2, d=4)
    all_kinds(1, 2, 9, 8, d=4, z=7)
    assert log == ["in", expected[0], "out", "in", expected[1], "out"]
    del log[:]
    assert mark(keyword_only)() == 1 and keyword_only(x=2) == 2 and mark(none)() is None
    assert "all_kinds() missing 2 required positional" in str(raised_by(all_kinds))
    del log[:]


def check_closures():
    seen = 1

    class Base:
        def method(self, __x):  # noqa: PYI063
            nonlocal seen
            seen += 1
            return seen, __x

    class Derived(Base):
        def method(self, y=5):
            return super().method(y), __class__

    mark(Derived.method)
    assert Derived().method() == ((2, 5), Derived)
    mark(Base.method)
    assert Derived().method(6) == ((3, 6), Derived)
    del log[:]


def check_exceptions():
    def fails():
        raise KeyError("x")

    mark(fails)
    frames = traceback.extract_tb(raised_by(fails).__traceback__)
    assert took() == "in out"
    # It shows the function twice, in its file: where it begins, and where it failed.
    assert [frame.name for frame in frames] == ["raised_by", "fails", "fails"]
    assert [frame.line for frame in frames[1:]] == ["def fails():", 'raise KeyError("x")']


def check_generators():
    def items(n):
        try:
            for i in range(n):
                log.append((yield i))  # noqa: PERF401
        except ValueError:
            yield "thrown"
        finally:
            log.append("closed")
        return "result"

    mark(items)
    assert inspect.isgeneratorfunction(items)
    it = items(3)
    assert took() == "" and next(it) == 0 and took() == "in"
    assert it.send("sent") == 1 and it.throw(ValueError) == "thrown"
    assert next(it, "end") == "end" and took() == "sent closed out"
    it = items(3)
    next(it)
    it.close()
    assert took() == "in closed out"

    def outer():
        log.append((yield from items(0)))

    assert list(outer()) == [] and took() == "in closed out result"

    @types.coroutine
    def old_style():
        yield

    assert mark(old_style).__code__.co_flags & inspect.CO_ITERABLE_COROUTINE


def check_coroutines():
    async def sleeps(x):
        await asyncio.sleep(0)
        return x

    async def items():
        try:
            for i in range(3):
                with contextlib.suppress(KeyError):
                    log.append((yield i))
        finally:
            log.append("closed")

    async def use():
        assert [i async for i in items()] == [0, 1, 2]
        assert took() == "in None None None closed out"
        it = items()
        first, second = await it.__anext__(), await it.asend("sent")
        third = await it.athrow(KeyError())
        await it.aclose()
        return first, second, third

    assert asyncio.iscoroutinefunction(mark(sleeps)) and inspect.isasyncgenfunction(mark(items))
    assert asyncio.run(sleeps(4)) == 4 and took() == "in out"
    assert asyncio.run(use()) == (0, 1, 2) and took() == "in sent closed out"


def check_targets():
    module = types.ModuleType("m")

    @functools.lru_cache
    def cached():
        return 1

    @contextlib.contextmanager
    def timer():
        yield 2

    class Callable:
        def __call__(self):
            return 3

    class Has:
        @property
        def value(self):
            return 4

    vars(module).update(
        cached=cached, timer=timer, obj=Callable(), Has=Has, length=len, number=1, inner=types
    )
    for name in ("cached", "timer", "Has.value", "length"):
        assert targets.mark(module, name, "m." + name), name
    assert not targets.mark(module, "later", "m.later")

    class Strange:
        def __getattr__(self, name):
            raise RuntimeError(name)

    module.strange = Strange()
    watch = start.Watch(["m.strange", "m.Has.value"], [])
    found.imported(watch, "m", module)
    assert watch.marked == {"m.Has.value"} and watch.refused == {"m.strange": "__wrapped__"}
    assert trampoline.is_marked(cached.__wrapped__) and trampoline.is_marked(timer.__wrapped__)
    assert trampoline.is_marked(Has.value.fget)
    assert module.length is not len and module.length([1]) == 1 and module.length.__wrapped__ is len
    once = module.length.__code__
    assert targets.mark(module, "length", "m.length") and module.length.__code__ is once
    for name, why in [
        ("obj", "not a Python"),
        ("Has", "a class"),
        ("number", "called"),
        ("inner", "a module"),
    ]:
        error = raised_by(targets.mark, module, name, "m." + name)
        assert isinstance(error, targets.CannotMark) and why in str(error), name


def check_hooks():
    module = types.ModuleType("m")
    was = []

    def set_context(factory):
        before = was[-1] if was else None
        was.append(factory)
        return before

    module.set_context = set_context
    assert targets.hook(module, "set_context", "m.set_context")
    with was[-1](), was[-1]():
        pass
    assert was[-1]().name == "m"
    # Somebody's own goes back.
    was.append("theirs")
    assert targets.hook(module, "set_context", "m.set_context") and was[-1] == "theirs"
    assert not targets.hook(module, "unknown", "m.unknown")


if __name__ == "__main__":
    check_parameters()
    check_closures()
    check_exceptions()
    check_generators()
    check_coroutines()
    check_targets()
    check_hooks()
    print("done")
