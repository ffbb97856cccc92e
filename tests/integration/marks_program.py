# SPDX-License-Identifier: Apache-2.0
"""Every way to mark a region in Python. Needs nothing but krex, in CPython 3.8 or newer."""

import asyncio

import krex


@krex.region
def plain(x):
    """Add one."""
    return x + 1


@krex.region("named")
def other(*, y):
    return y


class Benchmark:
    @krex.region
    def method(self, x):
        return (self, x)

    @classmethod
    @krex.region
    def of_class(cls):
        return cls


@krex.region
async def coroutine(x):
    await asyncio.sleep(0)
    return x


def generator():
    yield 1


def raised_by(function):
    try:
        function()
    except Exception as error:  # noqa: BLE001
        return error
    return None


def raises():
    with krex.region("raises"):
        raise ValueError("goes through")


def main():
    with krex.region("with"):
        pass
    assert plain(1) == 2 and (plain.__name__, plain.__doc__) == ("plain", "Add one.")
    assert other(y=3) == 3
    benchmark = Benchmark()
    assert benchmark.method(4) == (benchmark, 4)
    assert Benchmark.of_class() is Benchmark
    assert asyncio.iscoroutinefunction(coroutine) and asyncio.run(coroutine(5)) == 5
    assert repr(raised_by(raises)) == "ValueError('goes through')"
    twice = krex.region("outer")
    with twice, krex.region("inner"), twice:
        plain(1)
    assert isinstance(raised_by(lambda: krex.region(generator)), TypeError)
    with krex.region():
        pass
    with krex.region("\udc80" + "ü" * 100):
        pass
    print("done")


if __name__ == "__main__":
    main()
